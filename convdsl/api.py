"""The embeddable compiler: `parse`, `load`, `compile`, `evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from convdsl.backends.base import PROFILES
from convdsl.budget import CAP
from convdsl.diagnostics import CdslError
from convdsl.kernel import Kernel
from convdsl.machine.given import machine_of
from convdsl.registry import backend
from convdsl.schedule.find import find_schedule
from convdsl.sema.instantiate import check_absent
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes
from convdsl.sema.without import without
from convdsl.syntax.ast import Program
from convdsl.syntax.parser import load, parse
from convdsl.syntax.printer import print_program
from convdsl.variants import Options

if TYPE_CHECKING:
    from os import PathLike

    from convdsl.machine.facts import Machine
    from convdsl.passes.plan import Algorithm
    from convdsl.schedule.schedule import Schedule

ACCURACIES = ("strict", "standard", "fast")
ALGORITHMS = ("gather", "phases", "columns", "toom")


def as_program(program: Program | str | PathLike[str]) -> Program:
    """A program from itself, a text or a path: a str is a path if it is one line that ends in .cdsl."""
    if isinstance(program, Program):
        return program
    if isinstance(program, str) and ("\n" in program or not program.endswith(".cdsl")):
        return parse(program)
    return load(program)


def compile(
    program: Program | str | PathLike[str],
    *,
    op: str | None = None,
    target: str = "numpy",
    sizes: Mapping[str, int] | None = None,
    params: Mapping[str, int | float] | None = None,
    schedule: Schedule | str | PathLike[str] | None = None,
    accuracy: str = "standard",
    limits: str = "webgpu",
    dynamic: Iterable[str] = (),
    absent: Iterable[str] = (),
    algorithm: Algorithm | None = None,
    cap: int = CAP,
    machine: Machine | str | PathLike[str] | None = None,
) -> Kernel:
    """Compile one op of a program.

    Args:
        program: a `Program`, a text, or a path.
        op: the op's name; may be left out when the program has one.
        target: "numpy" or "wgsl".
        sizes: sizes the kernel is fixed to; a mismatch at a call is an error. Without them each new
            shape makes a specialised variant, in a bounded cache.
        params: values of int and float parameters; defaults fill the rest.
        schedule: a `Schedule`, or a text or path with a `schedule OP for TARGET` block. None takes
            the block in the program if it has one, else chooses a plan from the sizes.
        accuracy: "strict", "standard" or "fast": how much rounding plans and schedules may add.
            "strict" only reorders sums; the others allow Toom-Cook, as far as its error is in the
            class.
        limits: what generated WGSL may use: "webgpu" (any browser), "adapter" (this machine's), or
            "software" (any browser, but made for an adapter that runs on a CPU, as "adapter" is
            where this machine's is one).
        dynamic: sizes that stay symbols in the generated text.
        absent: inputs with a default that the kernel goes without: they are constants in the text,
            and no call can pass them. Other inputs with a default may be left out of any call.
        algorithm: for experts: "gather", "phases", "columns" or, for WGSL, "toom", where it can be.
            None chooses from roles and sizes, which is rarely worse.
        cap: bytes of temporaries that a chosen plan for NumPy keeps to as far as it can, by taking
            smaller parts of the results at a time; inputs, the output, and what is kept of
            constants are not among them. The results are the same but for rounding.
        machine: what a plan is chosen for. None: typical facts, so that the same text comes out
            everywhere. "here": this machine, measured at the first use and kept. Else the path of
            a file that `convdsl devices --measure -o` wrote, or a `convdsl.machine.facts.Machine`.

    Raises:
        CdslError: for mistakes in the program, its parameters or sizes, or in a file of facts.
        DeviceError: for `machine="here"` where there is nothing to measure.
    """
    tree = as_program(program)
    if accuracy not in ACCURACIES:
        raise CdslError(
            "E0358",
            f"unknown accuracy class `{accuracy}`",
            help=f"choose one of: {', '.join(ACCURACIES)}",
        )
    if limits not in PROFILES:
        raise CdslError(
            "E0506", f"unknown limits `{limits}`", help=f"choose one of: {', '.join(PROFILES)}"
        )
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise CdslError(
            "E0358",
            f"unknown algorithm `{algorithm}`",
            notes=("None, the default, chooses from roles and sizes",),
            help=f"choose one of: {', '.join(ALGORITHMS)}",
        )
    if cap < 1:
        raise CdslError(
            "E0358", f"`cap` is {cap}, not a number of bytes from 1 on",
            help=f"leave it out for {CAP}, which is 64 MiB",
        )  # fmt: skip
    facts = machine_of(machine, backend(target).part)
    resolved = resolve(tree, op)
    gone = frozenset([absent] if isinstance(absent, str) else absent)
    check_absent(resolved, gone)
    resolved = without(resolved, gone)
    chosen = find_schedule(schedule, tree, resolved.name, target)
    bound = bind_parameters(resolved, params or {})
    fixed = dict(sizes or {})
    symbols = frozenset([dynamic] if isinstance(dynamic, str) else dynamic)
    known = set(resolved.input_sizes)
    for name in sorted(symbols):
        if name not in known or name in fixed:
            reason = "is given in `sizes` too" if name in fixed else "is no size of an input"
            raise CdslError(
                "E0358", f"`dynamic` names `{name}`, which {reason}",
                notes=(f"the op's sizes: {', '.join(resolved.input_sizes) or 'none'}",),
            )  # fmt: skip
    complete_sizes(resolved, bound, fixed, partial=True)
    # A defined size that depends on a dynamic one is dynamic itself.
    for name, formula in resolved.defined:
        if formula.free & symbols:
            if name in fixed:
                raise CdslError(
                    "E0358",
                    f"`{name}` cannot be given: it follows from sizes that have no number",
                    help=f"give {', '.join(sorted(formula.free & symbols))} instead",
                )
            symbols |= {name}
    options = Options(
        resolved, print_program(tree), bound, target, accuracy, limits, fixed, symbols, gone,
        algorithm, chosen, cap, facts,
    )  # fmt: skip
    return Kernel(options)


def evaluate(
    program: Program | str | PathLike[str],
    arrays: Mapping[str, Any],
    params: Mapping[str, int | float] | None = None,
    *,
    op: str | None = None,
) -> Any:
    """The definition in float64, slow and exact in its meaning: what every backend is held against.

    Returns a float64 array. Absent inputs take their defaults.
    """
    from convdsl.definition import evaluate as run

    return run(as_program(program), arrays, params, op)


__all__ = ["compile", "evaluate", "load", "parse"]
