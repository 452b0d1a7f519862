"""Host loops around one NumPy statement that keep its rounding error and its temporaries small."""

from __future__ import annotations

from collections.abc import Mapping

from convdsl.ir.expr import Access, Var
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, product, sym
from convdsl.ir.interval import interval
from convdsl.ir.loop import Level
from convdsl.passes.names import Names
from convdsl.passes.numpy_partial import ROW, row_block
from convdsl.passes.points import Name

SMALL_PRODUCT = 2**21  # multiplications
NARROW_PRODUCT = 8  # rows or columns
VECTOR = 512  # terms of a matrix with a vector, of which BLAS adds up several side by side
TERMS = 2**22  # elements of a temporary that is about to be summed


def cut_terms(
    names: Names, slices: list[Var], access: Access, in_rows: bool
) -> tuple[list[tuple[Var, Level]], list[Var]]:
    """Host loops over blocks, so that terms waiting to be summed stay below `TERMS`.

    `in_rows`: the terms of one result are cut too, so that no plain sum grows long.

    A sum over slices that are not in the result exists for a moment as an array of all its terms.
    """
    if all(v.name in access.free for v in slices):
        return [], slices
    cuts: list[tuple[Var, Level]] = []
    out = list(slices)
    for at, var in enumerate(slices if in_rows else ()):
        row = row_block(_most(var)) if var.name not in access.free else None
        if row is not None:
            cut = Var(names.fresh("row"), const(0), ceildiv(var.extent, row))
            start = var.low + sym(cut.name) * row
            cuts.append((cut, "host"))
            out[at] = Var(var.name, start, minimum(start + row, var.high))
    for at, var in sorted(enumerate(slices), key=lambda av: -(_most(av[1]).as_int() or 2**62)):
        if var.name not in access.free:
            continue
        others = product(_most(v) for n, v in enumerate(out) if n != at)
        count = (others * _most(out[at])).as_int()
        if count is not None and count <= TERMS:
            break
        block = maximum(1, floordiv(const(TERMS), maximum(1, others)))
        cut = Var(names.fresh("cut"), const(0), ceildiv(var.extent, block))
        start = var.low + sym(cut.name) * block
        cuts.append((cut, "host"))
        out[at] = Var(var.name, start, minimum(start + block, var.high))
        if count is None:
            break
    return cuts, out


def _most(var: Var) -> Index:
    """The largest extent that a slice may have, where that is known."""
    high = interval(var.extent, {})[1]
    return var.extent if high is None else const(max(high, 0))


def cut_product(
    names: Names, levels: list[tuple[Var, Level]], whole: Mapping[str, Index], plain: bool
) -> tuple[list[tuple[Var, Level]], list[tuple[Var, Level]], Name | None]:
    """Host loops over blocks of terms where BLAS would add them up one after the other.

    It blocks large products by itself; small and narrow ones run through kernels that do not. `whole`
    are the extents of the variables, which a slice may narrow; `plain` operands lie in memory as BLAS
    takes them. With unknown sizes the length of a block is a name, worked out when the program runs.
    """
    sizes: dict[str, Index] = dict.fromkeys(("gemm.batch", "gemm.m", "gemm.n", "gemm.k"), const(1))
    for var, level in levels:
        if var.name not in whole:
            return [], levels, None
        sizes[level] = sizes[level] * whole[var.name]
    summed = [n for n, (_, level) in enumerate(levels) if level == "gemm.k"]
    at = max(summed, key=lambda n: whole[levels[n][0].name].as_int() or 2**31)
    var = levels[at][0]
    work = sizes["gemm.m"] * sizes["gemm.n"] * sizes["gemm.k"]
    m, n, k = (sizes[f"gemm.{role}"].as_int() for role in "mnk")
    named: Name | None = None
    if m is not None and n is not None and k is not None:
        most, row = (VECTOR, VECTOR) if plain and 1 in (m, n) else (2 * ROW, ROW)
        if k <= most or (m * n * k > SMALL_PRODUCT and min(m, n) >= NARROW_PRODUCT):
            return [], levels, None
        block = const(max(1, row * (whole[var.name].as_int() or 1) // k))
    else:
        extent = whole[var.name]
        all_of_it = floordiv(work, const(SMALL_PRODUCT)) * extent
        named = Name(names.fresh("rows"), maximum(ROW, minimum(extent, all_of_it)))
        block = sym(named.name)
    cut = Var(names.fresh("row"), const(0), ceildiv(var.extent, block))
    start = var.low + sym(cut.name) * block
    out = list(levels)
    out[at] = (Var(var.name, start, minimum(start + block, var.high)), "gemm.k")
    return [(cut, "host")], out, named
