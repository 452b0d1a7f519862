"""One kernel as an entry point."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.functions import Helpers
from convdsl.backends.wgsl.grid import grid_loops, plan_grid
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.backends.wgsl.lines import Block
from convdsl.backends.wgsl.memory import Memory, Place
from convdsl.backends.wgsl.module import Extent3, Limits
from convdsl.backends.wgsl.names import Names
from convdsl.backends.wgsl.polynomial import Depths
from convdsl.backends.wgsl.prologue import Prologue
from convdsl.backends.wgsl.ranges import Ranges
from convdsl.backends.wgsl.threads import thread_shape, workgroup_size
from convdsl.backends.wgsl.values import Values
from convdsl.backends.wgsl.workgroup import Workgroup
from convdsl.ir.loop import Kernel


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The text of a kernel's function, and how it is dispatched."""

    lines: tuple[str, ...]
    workgroup: tuple[int, int, int]
    dispatch: Extent3
    sizes: bool  # does it read the uniform?
    used: frozenset[str]  # buffers in memory that its text names


def entry_point(
    kernel: Kernel,
    entry: str,
    places: dict[str, Place],
    sizes: dict[str, str],
    names: Names,
    helpers: Helpers,
    limits: Limits,
) -> EntryPoint:
    """The function `entry`. `places` are all buffers of the kernel, `sizes` the texts of sizes."""
    names = Names(names)
    plan = plan_grid(kernel, limits)
    loops, body = grid_loops(kernel)
    shape = thread_shape(kernel)
    env = Environment()
    index = IndexText(names, Ranges(), Depths(), helpers)
    memory = Memory(places, env, index)
    values = Values(memory, index, env, helpers)
    values.block = index.scopes[0].block

    prologue = Prologue(env, index, sizes, plan)
    prologue.grid(loops)
    threads = prologue.threads(shape)
    Workgroup(kernel, env, index, memory, values, threads).body(body)

    parameters, declarations, guard = prologue.declarations()
    inside = Block()
    inside.items += declarations
    inside.items += memory.registers()
    if guard:
        inside.nest(f"if ({guard})", values.block)
    else:
        inside.items += values.block.items
    size = workgroup_size(shape)
    function = Block()
    function.line(f"@compute @workgroup_size({', '.join(map(str, size))})")
    if len(parameters) > 1:
        lines = Block()
        lines.items += [f"{p}," for p in parameters]
        function.items += [f"fn {entry}(", lines, ") {", inside, "}"]
    else:
        function.items += [f"fn {entry}({''.join(parameters)}) {{", inside, "}"]
    return EntryPoint(
        tuple(function.lines()), size, plan.dispatch, prologue.uses_sizes, frozenset(memory.used)
    )
