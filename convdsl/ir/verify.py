"""The specification of well-formed loop programs and equation systems, run after every pass.

Each rule is one function `check_*`, whose docstring states it; a broken rule is a bug of convdsl.
"""

from __future__ import annotations

from collections.abc import Callable

from convdsl.ir.loop import LoopProgram
from convdsl.ir.verify_loops import (
    check_gemm,
    check_grid,
    check_registers,
    check_threads,
    check_unrolls,
    check_vectors,
)
from convdsl.ir.verify_names import (
    check_access,
    check_buffers,
    check_inputs,
    check_names,
    check_sizes,
    check_values,
)
from convdsl.ir.verify_races import check_exchange, check_writers
from convdsl.ir.verify_site import Site, sites
from convdsl.ir.verify_system import verify_system
from convdsl.ir.verify_workers import check_workers

__all__ = ["RULES", "verify", "verify_system"]

# In this order: a rule may take those before it for granted.
RULES: tuple[Callable[[LoopProgram, tuple[Site, ...]], None], ...] = (
    check_sizes,
    check_buffers,
    check_names,
    check_access,
    check_inputs,
    check_values,
    check_threads,
    check_grid,
    check_registers,
    check_vectors,
    check_unrolls,
    check_gemm,
    check_exchange,
    check_writers,
    check_workers,
)


def verify(program: LoopProgram) -> None:
    """Raise InternalError with the kernel, the statement and the rule that it breaks."""
    found = sites(program)
    for rule in RULES:
        rule(program, found)
