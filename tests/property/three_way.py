"""One program, held against its definition after every step of the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import convdsl
from convdsl.ir.cover import Verdict, prove_covers
from convdsl.ir.equation import System
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from convdsl.ir.reader import read_program, read_system
from convdsl.ir.text import print_program, print_system
from convdsl.ir.verify import verify, verify_system
from convdsl.kernel import Kernel
from convdsl.syntax import ast

Array = np.ndarray[Any, np.dtype[Any]]
EXACT = 1 << 24
ALGORITHMS = (None, "gather", "phases", "columns")


def definition(
    tree: ast.Program | str, arrays: Mapping[str, Array], params: Mapping[str, int | float]
) -> Array:
    """What the program means. Its numbers must be ones that float32 sums up without rounding."""
    want = convdsl.evaluate(tree, arrays, params)
    if want.size and bool(np.isfinite(want).all()):
        assert float(np.abs(want).max()) < EXACT
    return np.asarray(want)


def same(found: Array, want: Array, what: str) -> None:
    """Equal by `==`, special values in the same places."""
    assert found.shape == want.shape, f"{what}: shape {found.shape}, not {want.shape}"
    np.testing.assert_array_equal(np.asarray(found, np.float64), want, err_msg=what)


def check_steps(
    kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int], want: Array
) -> None:
    """Every system and loop program of the compiled variant: meaning, rules, text, cover."""
    for name, step in kernel.executable.trace.steps.items():
        if isinstance(step, System):
            _check_system(name, step, arrays, sizes, want)
        elif isinstance(step, LoopProgram):
            _check_program(name, step, arrays, sizes, want)


def _check_system(
    name: str, system: System, arrays: Mapping[str, Array], sizes: Mapping[str, int], want: Array
) -> None:
    verify_system(system)
    env = {n: sizes[n] for n in system.sizes}
    found = evaluate_system(system, arrays, env)[system.output.name]
    same(found, want, f"the system after {name}")
    text = print_system(system)
    again = read_system(text)
    verify_system(again)
    assert print_system(again) == text
    for tensor, verdict in prove_covers(system).items():
        # With sizes as symbols a product of two may stand in the way; nothing is ever refuted.
        assert verdict is Verdict.PROVED or system.sizes, tensor


def _check_program(
    name: str,
    program: LoopProgram,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int],
    want: Array,
) -> None:
    text = print_program(program)
    again = read_program(text)
    verify(again)
    assert print_program(again) == text
    output = next(b.name for b in program.buffers if b.memory == "output")
    env = {n: sizes[n] for n in program.sizes}
    found = run_program(again, arrays, env)[output]
    same(found.reshape(want.shape), want, f"the loop program after {name}")


def compiled(
    tree: ast.Program | str,
    target: str,
    algorithm: Any,
    params: Mapping[str, int | float],
    dynamic: Iterable[str] = (),
) -> Kernel:
    return convdsl.compile(
        tree, target=target, algorithm=algorithm, params=params, dynamic=tuple(dynamic)
    )
