"""The schedule of a tiled matrix product, in the same verbs that users write."""

from __future__ import annotations

from convdsl.ir.expr import loads
from convdsl.passes.contraction import Contraction
from convdsl.passes.reduce_loops import FLUSH
from convdsl.passes.tiles import Tiles
from convdsl.schedule.nest import Nest, flush, fuse, nest_of, order, set_level, split, stage


def gemm_schedule(gemm: Contraction, tiles: Tiles) -> Nest:
    nest = nest_of(gemm.piece)
    names = nest.names()
    batch = [v.name for v in gemm.batch]
    m, n = [v.name for v in gemm.m], [v.name for v in gemm.n]
    tile_k = _tiled(gemm)
    taps = [v.name for v in gemm.k if v.name != tile_k]
    rest = [tile_k, *taps]
    nest = order(nest, tuple([*batch, *m, *n, *rest]))
    nest, row = _fused(nest, m, names)
    nest, column = _fused(nest, n, names)

    def fresh(*wanted: str) -> list[str]:
        return [names.fresh(w) for w in wanted]

    mt, mi, mj, ty, iv, junk = fresh("m_tile", "mi", "mj", "ty", "iv", "m_in")
    nt, nj, nk, tx, jv, junk2 = fresh("n_tile", "nj", "nk", "tx", "jv", "n_in")
    nest = split(nest, row, tiles.m, mt, junk)
    nest = split(nest, junk, tiles.m // (tiles.rows // 4), mi, mj)
    nest = split(nest, mj, 4, ty, iv)
    nest = split(nest, column, tiles.n, nt, junk2)
    nest = split(nest, junk2, tiles.n // (tiles.columns // 4), nj, nk)
    nest = split(nest, nk, 4, tx, jv)
    kt, kk = fresh("k_tile", "kk")
    nest = split(nest, tile_k, tiles.k, kt, kk)
    block = FLUSH // tiles.k
    outer = [kt]
    count = nest.loop(kt).extent.as_int()
    at_flush = kt
    if count is None or count > block:
        kb, kc = fresh("k_block", "k_step")
        nest = split(nest, kt, block, kb, kc)
        outer = [kb, kc]
        at_flush = kb
    elif taps:
        at_flush = taps[-1]
    nest = order(nest, tuple([*batch, mt, nt, ty, tx, *taps, *outer, kk, mi, iv, nj, jv]))
    for name in [*batch, mt, nt]:
        nest = set_level(nest, name, "grid")
    for name in (ty, tx):
        nest = set_level(nest, name, "thread")
    for name in (mi, iv, nj):
        nest = set_level(nest, name, "unroll")
    nest = set_level(nest, jv, "vector")
    nest = set_level(nest, kk, "unroll")
    for operand in (gemm.a, gemm.b):
        tensor = loads(operand.value)[0].access.tensor
        nest = stage(nest, tensor, outer[-1], "workgroup")
        nest = stage(nest, tensor, kk, "register")
    return flush(nest, at_flush)


def _tiled(gemm: Contraction) -> str:
    variables = gemm.k
    if any(v.extent.as_int() is None for v in variables):
        tested = {n for p in gemm.reduction.constraints for n in p.index.free}
        return next((v.name for v in variables if v.name not in tested), variables[0].name)
    return max(variables, key=lambda v: v.extent.as_int() or 0).name


def _fused(nest: Nest, names: list[str], used: object) -> tuple[Nest, str]:
    first = names[0]
    for second in names[1:]:
        made = used.fresh(first + second)  # type: ignore[attr-defined]
        nest = fuse(nest, first, second, made)
        first = made
    return nest, first
