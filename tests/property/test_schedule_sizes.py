"""A schedule written for sizes in general applies, and means the same, where some of them are one."""

from __future__ import annotations

from itertools import product

import pytest

from tests.property.scheduled_runs import check_scheduled

BATCHED = """
op batched(a: f32[B, M, K], b: f32[B, K, N]) -> y: f32[B, M, N]
{
    y[i, m, n] = sum[k] a[i, m, k] * b[i, k, n]
}"""
UP = """
op up(x: f32[N, C, L], w: f32[C, M, K]) -> y: f32[N, M, Q]
where Q == (L - 1)*3 + K
{
    y[n, m, o] = sum[c, k, l | l*3 + k == o] x[n, c, l] * w[c, m, k]
}"""
TILED = """schedule batched for wgsl {
    tile y: m by 4, n by 8 -> m_tile, n_tile, m_in, n_in tail pad
    split y: n_in by 4 -> n_lane, n_vec
    split y: k by 4 -> k_tile, k_in tail pad
    order y: i, m_tile, n_tile, m_in, n_lane, k_tile, k_in, n_vec
    map y: i -> grid, m_tile -> grid, n_tile -> grid, m_in -> thread, n_lane -> thread
    swizzle y: m_tile, n_tile by 2
    stage y: a at k_tile in workgroup pad 4
    stage y: b at k_tile in workgroup pad 4
    stage y: a at k_in in register
    stage y: b at k_in in register
    pipeline y: a, b
    interior y: a, b
    partial y at k_tile
    unroll y: k_in
    vectorize y: n_vec
}"""
WHOLE = """schedule batched for wgsl {
    fuse y: i, m -> im
    order y: k, n
    map y: im -> thread
    stage y: b at k in register
}"""
PHASES = """schedule up for wgsl {
    phases y over o, k -> t, r, j
    order y: n, t, m, r, j, c
    fuse y: n, t -> nt
    fuse y: m, r -> mr
    split y: nt by 4 -> nt_tile, nt_in tail pad
    split y: mr by 4 -> mr_tile, mr_in tail pad
    split y: c by 2 -> c_tile, c_in tail pad
    order y: nt_tile, mr_tile, nt_in, mr_in, j, c_tile, c_in
    map y: nt_tile -> grid, mr_tile -> grid, nt_in -> thread, mr_in -> thread
    stage y: x at c_tile in workgroup
    stage y: w at c_tile in workgroup
    pipeline y: w, x
    interior y: x, w
    partial y at c_tile
}"""
GATHERED = """schedule up for wgsl {
    gather y
    split y: m by 2 -> m_tile, m_in tail cut
    order y: n, o, m_tile, c, m_in
    map y: n -> grid, o -> thread
}"""
LANES = """schedule batched for wgsl {
    split y: n by 4 -> n_tile, n_lane
    order y: n_lane, n_tile
    map y: i -> grid, m -> grid, n_lane -> thread
}"""
CASES = {
    "tiled": (BATCHED, TILED, {"B": 2, "M": 6, "K": 9, "N": 20}),
    "whole": (BATCHED, WHOLE, {"B": 2, "M": 3, "K": 5, "N": 4}),
    "lanes": (BATCHED, LANES, {"B": 2, "M": 2, "K": 3, "N": 9}),
    "phases": (UP, PHASES, {"N": 2, "C": 3, "L": 4, "M": 2, "K": 7}),
    "gathered": (UP, GATHERED, {"N": 2, "C": 3, "L": 4, "M": 3, "K": 4}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_holds_for_sizes_of_one(name: str) -> None:
    text, schedule, general = CASES[name]
    for ones in product((False, True), repeat=len(general)):
        sizes = {n: 1 if one else v for (n, v), one in zip(general.items(), ones, strict=True)}
        if name == "phases" and sizes["L"] == sizes["K"] == 1:
            continue  # an output of one element has no index left to split
        check_scheduled(text, schedule, sizes)
