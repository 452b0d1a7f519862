"""Schedules that drawn sequences of steps once failed on, each shrunk."""

from __future__ import annotations

import numpy as np
import pytest

import convdsl
from convdsl import ops
from convdsl.diagnostics import CdslError
from tests.property.scheduled_runs import check_scheduled

PLACED = """
op placed(x: f32[C, L], w: f32[C, K], u: f32[Q]) -> y: f32[Q] {
    y[o] = sum[c, k, l | l*3 + k == o + 1] x[c, l] * w[c, k] * u[o]
}"""
SPREAD = "op spread(b: f32[K], u: f32[N]) -> y: f32[N] { y[n] = u[n] + sum[k] b[k] }"
PARTS = """schedule placed for wgsl {{
    rfactor y: k by {} -> a, as
    solve as for k
    split as: c by 1 -> a1, a1i
    order as: a
    stage as: w at a1 in {}
    map as: a -> thread
    map y: o -> thread
}}"""


@pytest.mark.parametrize("memory", ["workgroup", "register"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_an_operand_is_staged_apart_from_what_bounds_it(length: int, memory: str) -> None:
    """`w[o + 1 - l*3]` is an element only where the part `a` has terms, and `a` is none of its loops."""
    check_scheduled(PLACED, PARTS.format(length, memory), {"C": 5, "L": 5, "K": 4, "Q": 17})


CUT = "schedule spread for wgsl {{\n rfactor y: k by 4 -> part, y_part\n {}\n {}\n}}"
PADDED, MAPPED = "pad y_part: n to 8", "map y: n -> thread"


def test_a_tensor_is_padded_before_the_loops_of_its_reader() -> None:
    """The reader went on with the old extent."""
    sizes = {"K": 10, "N": 5}
    check_scheduled(SPREAD, CUT.format(PADDED, MAPPED), sizes)
    with pytest.raises(CdslError, match="scheduled already") as error:
        check_scheduled(SPREAD, CUT.format(MAPPED, PADDED), sizes)
    assert error.value.code == "E0625"


BAND = """
op band(x: f32[N, N], v: f32[N]) -> y: f32[N] {
    y[i] = sum[j in 1..N, q in 0..2 | i + q == j + 1] x[i, j] * x[j, i] * v[j]
}"""


@pytest.mark.parametrize("operand", ["x", "x.2"])
def test_a_condition_stays_that_other_operands_need(operand: str) -> None:
    """What bounds one operand, and went into its copy, bounded the others as well."""
    phases = "phases y over i, q -> a, ar, aj"
    steps = f"{phases}\n    reindex y: {operand} by a, ar, aj -> copy"
    check_scheduled(BAND, f"schedule band for wgsl {{\n    {steps}\n}}", {"N": 9})


def test_one_relation_in_phases_and_another_one_left() -> None:
    """With sizes of one and none nothing else is left to tell that an index is two."""
    text, schedule = ops.source("conv_transpose2d"), "phases y over p, i -> a, ar, aj"
    sizes = {"N": 0, "C": 2, "H": 0, "W": 0, "M": 2, "KH": 1, "KW": 1}
    kernel = convdsl.compile(
        text, params={"dilation_w": 2, "groups": 2}, sizes=sizes, absent="b",
        schedule=f"schedule conv_transpose2d for numpy {{\n    {schedule}\n}}",
    )  # fmt: skip
    x, w = np.zeros((0, 4, 0, 0), np.float32), np.zeros((4, 2, 1, 1), np.float32)
    assert kernel(x, w).shape == (0, 4, 0, 0)


SLIDE = """
op slide(x: f32[N, C, L], w: f32[C, K]) -> y: f32[N, LO]
where LO == L + K - 1, K >= 1
{
    y[n, o] = sum[c, k, l | l + k == o] x[n, c, l] * w[c, k]
}"""
SLID = """schedule slide for wgsl {{
    solve y for l
    split y: o by {} -> block, inside
    split y: inside by {} -> lane, own
    order y: block, lane, n, c, k, own
    map y: block -> grid, lane -> thread, n -> {}
    stage y: x at c in workgroup
    stage y: x at c in register
    unroll y: k, own
}}"""


@pytest.mark.parametrize("place", ["grid", "thread"])
@pytest.mark.parametrize(("own", "taps"), [(4, 3), (3, 3), (3, 4), (5, 2)])
def test_a_window_in_registers_is_filled_from_its_tile(own: int, taps: int, place: str) -> None:
    """A tile with rows besides is no window: the one in registers was read across its rows. And of a
    window of five elements the last quad of a thread lay beyond the tile."""
    sizes = {"N": 3, "C": 2, "L": 40, "K": taps}
    order = SLID.format(8 * own, own, place)
    if place == "grid":
        order = order.replace("block, lane, n,", "block, n, lane,")
    check_scheduled(SLIDE, order, sizes)


MATMUL = "op mm(a: f32[I, K], w: f32[K, J]) -> y: f32[I, J] { y[i, j] = sum[k] a[i, k] * w[k, j] }"
WRITTEN = """schedule mm for wgsl {{
    split y: k by 4 -> turn, term tail {}
    split y: j by 8 -> block, own
    order y: block, i, turn, term, own
    map y: block -> grid, i -> thread
    stage y: w at term in register
    unroll y: term, own
}}"""


@pytest.mark.parametrize("tail", ["guard", "pad"])
def test_nothing_is_copied_for_a_term_that_is_none(tail: str) -> None:
    """The rest of a loop that is written out around a copy: its text has a fourth term of three."""
    check_scheduled(MATMUL, WRITTEN.format(tail), {"I": 10, "K": 3, "J": 12})


NONE = """
op none(x: f32[C, L], w: f32[C, K]) -> y: f32[LO] where LO == 1 {
    y[o] = sum[c, k, l | k + o == l*4 + 8] x[c, l] * w[c, k]
}"""


def test_a_sum_that_ends_before_it_begins_is_empty() -> None:
    """A loop with -1 iterations was written out."""
    steps = "gather y\n    order y: o, c, l\n    map y: o -> thread\n    unroll y: l"
    check_scheduled(NONE, f"schedule none for wgsl {{\n    {steps}\n}}", {"C": 2, "L": 6, "K": 4})
