"""Toom-Cook for NumPy: the text that it becomes, when it is chosen, and what is held at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import convdsl
from convdsl import ops
from convdsl.budget import CAP
from convdsl.machine.facts import Cpu, Machine
from convdsl.passes import plan_toom_cpu
from convdsl.passes.plan_toom_cpu import balanced, part_of

GOLDEN = Path(__file__).parents[1] / "golden" / "numpy"
HEADLINE = {"N": 8, "C": 4098, "L": 435, "M": 1, "K": 4096}
SCHEDULE = """
schedule conv_transpose1d for numpy {{
    phases y over o, k -> t, r, j
    toom y over t, j by {results} -> data, taps, made: tile, u, z
}}
"""
CASES = {
    "toom_2_2": (2, {"stride": 16, "pad_begin": 3}, {"N": 1, "C": 3, "L": 9, "M": 2, "K": 32}),
    "toom_4_4": (4, {"stride": 16}, {"N": 3, "C": 9, "L": 10, "M": 1, "K": 60}),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_text(name: str, golden: Callable[[Path, str], None]) -> None:
    """Products with the matrices, in parts, and no temporary of a call inside the loops."""
    results, params, sizes = CASES[name]
    small: dict[str, Any] = {
        "LEAST_ROWS": 4, "TERMS_BLOCK": 4, "block_of": lambda _: 4
    }  # fmt: skip
    with mock.patch.multiple(plan_toom_cpu, **small):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params=params, sizes=sizes, accuracy="fast",
            schedule=SCHEDULE.format(results=results), machine=Machine(Cpu(far=8192)),
        )  # fmt: skip
        golden(GOLDEN / f"{name}.py.txt", f"{kernel.schedule}\n{kernel.source}")
    rng = np.random.default_rng(0)
    shapes = {
        "x": [sizes[n] for n in "NCL"], "w": [sizes[n] for n in "CMK"], "b": [sizes["M"]],
    }  # fmt: skip
    arrays = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    wanted = convdsl.evaluate(ops.source("conv_transpose1d"), arrays, params)
    np.testing.assert_allclose(kernel(**arrays), wanted, rtol=0, atol=1e-4)


def chosen(sizes: dict[str, int], stride: int, accuracy: str) -> convdsl.Kernel:
    return convdsl.compile(
        ops.source("conv_transpose1d"), params={"stride": stride}, sizes=sizes, accuracy=accuracy
    )


def test_where_it_pays() -> None:
    plans = {a: chosen(HEADLINE, 1024, a).plan for a in ("strict", "standard", "fast")}
    assert [p.algorithm for p in plans.values()] == ["columns", "toom", "toom"]
    assert plans["standard"].reason.startswith("F(3,4): 6 products for 12, estimated at ")
    assert plans["fast"].reason.startswith("F(4,4): 7 products for 16, estimated at ")
    assert (plans["standard"].temporary_bytes or 2**31) < 2**28
    few_channels = {**HEADLINE, "C": 8}
    assert chosen(few_channels, 1024, "fast").plan.algorithm == "phases"
    short_phases = {"N": 1, "C": 256, "L": 3200, "M": 128, "K": 16}  # results lie scattered
    assert chosen(short_phases, 8, "fast").plan.algorithm == "phases"


def test_forced_where_it_does_not_pay() -> None:
    kernel = convdsl.compile(
        ops.source("conv_transpose1d"), params={"stride": 8}, algorithm="toom",
        sizes={"N": 1, "C": 256, "L": 320, "M": 128, "K": 16},
    )  # fmt: skip
    assert kernel.plan.algorithm == "toom"
    assert kernel.plan.reason.endswith("asked for")


def test_bound_taps_are_transformed_once() -> None:
    kernel = chosen({**HEADLINE, "C": 512, "L": 40}, 1024, "standard")
    assert kernel.plan.folds["y_taps"] == ("w",)


def test_parts() -> None:
    """Whole loops inside, blocks of one, the others on the host."""
    assert part_of([8, 146], 6 * 1024, CAP) == (0, 2)
    assert part_of([8, 1460], 6 * 1024, CAP) == (1, 292)
    assert part_of([2, 8], 6 * 1024, CAP) == (0, 0)
    assert part_of([None, 146], 6 * 1024, CAP) == (0, 2)
    assert part_of([5, 5], 2**14, CAP) == (0, 0)  # few rows are one product however long they are
    assert part_of([5, 5], 2**14, 2**20) == (1, 2)  # but for the cap
    assert part_of([4, 146], 6 * 512, CAP, terms=4) == (0, 0)
    assert part_of([4, 146], 6 * 512, CAP, terms=2050) == (0, 2)  # each of two threads has a part
    assert part_of([1, 76], 6 * 512, CAP, terms=2050) == (0, 0)  # of many rows
    assert balanced(4098, 192) == 187


@pytest.mark.parametrize("empty", ["N", "C", "M"])
def test_nothing_to_do(empty: str) -> None:
    """No results, or sums of no terms, have a plan like others."""
    sizes = {"N": 2, "C": 300, "L": 30, "M": 2, "K": 512, empty: 0}
    kernel = convdsl.compile(
        ops.source("conv_transpose1d"), params={"stride": 128}, sizes=sizes, absent="b"
    )
    x = np.ones([sizes[n] for n in "NCL"], np.float32)
    w = np.ones([sizes[n] for n in "CMK"], np.float32)
    assert np.array_equal(kernel(x, w), np.zeros((sizes["N"], sizes["M"], 29 * 128 + 512)))
