"""Every diagnostic code with its title and long explanation: what `convdsl explain CODE` prints.

Each module of this package holds one `TABLE`; a family can have several.
"""

from __future__ import annotations

from convdsl.codes.bench import TABLE as BENCH
from convdsl.codes.code import Code
from convdsl.codes.equations import TABLE as EQUATIONS
from convdsl.codes.ir import TABLE as IR
from convdsl.codes.machine import TABLE as MACHINE
from convdsl.codes.ops import TABLE as OPS
from convdsl.codes.run import TABLE as RUN
from convdsl.codes.schedule import TABLE as SCHEDULE
from convdsl.codes.sema import TABLE as SEMA
from convdsl.codes.syntax import TABLE as SYNTAX
from convdsl.codes.tiles import TABLE as TILES
from convdsl.codes.wgsl import TABLE as WGSL
from convdsl.codes.workers import TABLE as WORKERS

__all__ = ["CODES", "Code", "explain"]

_TABLES = [SYNTAX, SEMA, RUN, OPS, IR, WGSL, SCHEDULE, EQUATIONS, TILES, WORKERS, BENCH, MACHINE]


def _merge() -> dict[str, Code]:
    merged: dict[str, Code] = {}
    for table in _TABLES:
        if twice := merged.keys() & table:
            raise ValueError(f"explained twice: {sorted(twice)}")
        merged |= table
    return dict(sorted(merged.items()))


CODES: dict[str, Code] = _merge()
"""From `E0101` to its explanation."""


def explain(name: str) -> str:
    """The long text of a code, or a KeyError for a code that does not exist."""
    code = CODES[name]
    return f"{name}: {code.title}\n\n{code.text}"
