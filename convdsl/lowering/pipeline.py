"""The passes of each target, in order. Every step is named, kept for printing, and verified.

definition -> normalise -> choose -> schedule -> rewrite -> lower
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from convdsl.budget import CAP
from convdsl.ir.cover import Verdict, prove_covers
from convdsl.ir.equation import System
from convdsl.ir.loop import LoopProgram
from convdsl.ir.text import print_program, print_system
from convdsl.ir.verify import verify, verify_system
from convdsl.lowering.host_kernels import lower_host
from convdsl.lowering.kernels import lower_wgsl
from convdsl.lowering.scheduled import choices_of, tiles_of, with_parts, with_slices
from convdsl.machine.facts import TYPICAL_CPU, TYPICAL_GPU, Cpu, Gpu
from convdsl.passes.normalise import normalise
from convdsl.passes.plan import Algorithm, Bounds, Choice, choose_numpy, choose_wgsl
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.default import default_schedule
from convdsl.schedule.default_numpy import default_numpy
from convdsl.schedule.schedule import Schedule


@dataclass
class Trace:
    """The program after each step, by the step's name; printed only when somebody looks.

    `covers` holds for each rewritten equation whether its pieces are proved to define every element
    exactly once; a refuted proof is an InternalError.
    """

    steps: dict[str, System | LoopProgram | str] = field(default_factory=dict)
    covers: dict[str, Verdict] = field(default_factory=dict)

    def system(self, name: str, system: System) -> System:
        verify_system(system)
        self.steps[name] = system
        return system

    def program(self, name: str, program: LoopProgram) -> LoopProgram:
        verify(program)
        self.steps[name] = program
        return program

    def text(self, name: str) -> str:
        """The text of one step."""
        match self.steps[name]:
            case System() as system:
                return print_system(system)
            case LoopProgram() as program:
                return print_program(program)
            case str() as text:
                return text


@dataclass(frozen=True, slots=True)
class Lowered:
    """The loop program with the choices that led to it, by tensor, and the tiles by kernel.

    `machine` is what the choices were made for.
    What is not finite in the inputs `finite` would spread to results that do not depend on it.
    """

    program: LoopProgram
    system: System
    choices: Mapping[str, Choice]
    tiles: Mapping[str, str]
    schedule: Schedule
    machine: Cpu | Gpu
    finite: frozenset[str] = frozenset()


def _begin(
    system: System, given: Schedule | None, trace: Trace, accuracy: str
) -> tuple[System, System]:
    """The system in normal form, and what the steps of a given schedule make of it."""
    trace.system("definition", system)
    normal = normalise(system, given.kept if given is not None else ())
    trace.system("normalise", normal)
    return normal, given.replay(normal, accuracy=accuracy).system if given is not None else normal


def lower_to_numpy(
    system: System,
    algorithm: Algorithm | None,
    given: Schedule | None,
    trace: Trace,
    accuracy: str = "standard",
    cap: int = CAP,
    cpu: Cpu = TYPICAL_CPU,
) -> Lowered:
    system, begun = _begin(system, given, trace, accuracy)
    choices = choose_numpy(begun, algorithm, accuracy, cpu, cap)
    schedule = default_numpy(system, choices, given, accuracy, cap, cpu)
    trace.steps["schedule"] = str(schedule)
    state = schedule.replay(system, accuracy=accuracy)
    trace.system("rewrite", state.system)
    trace.covers = prove_covers(state.system)
    said = choices_of([q.tensor for q in system.equations], choices, given)
    said = with_slices(said, schedule)
    program = trace.program("lower", lower_host(state, said))
    return Lowered(program, state.system, said, {}, schedule, cpu, state.finite)


def lower_to_wgsl(
    system: System,
    algorithm: Algorithm | None,
    given: Schedule | None,
    limits: WorkgroupLimits,
    trace: Trace,
    accuracy: str = "standard",
    gpu: Gpu = TYPICAL_GPU,
) -> Lowered:
    system, begun = _begin(system, given, trace, accuracy)
    bounds = Bounds(accuracy, limits.buffer, gpu, limits.software)
    choices = choose_wgsl(begun, algorithm, bounds)
    schedule, _ = default_schedule(system, choices, limits, given, accuracy, gpu)
    trace.steps["schedule"] = str(schedule)
    state = schedule.replay(system, accuracy=accuracy)
    trace.system("rewrite", state.system)
    trace.covers = prove_covers(state.system)
    program = trace.program("lower", lower_wgsl(state, limits))
    said = choices_of([q.tensor for q in system.equations], choices, given)
    said = with_parts(said, state, schedule, given)
    return Lowered(program, state.system, said, tiles_of(state), schedule, gpu)
