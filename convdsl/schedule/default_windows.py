"""The operands of a filter, laid out so that one tile of the data serves all taps without a test.

xs[c, u] = x[n, c, s], zeros around each row             `convdsl.passes.layout`
y[n, t] = sum[j, c] xs[c, n*T + t - j + (J-1)] * w[c, j]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from convdsl.ir.expr import Expr, free_names, loads
from convdsl.ir.index import product
from convdsl.machine.facts import Gpu
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.layout import Axis, Line, line_of
from convdsl.passes.plan_toom import filter_in
from convdsl.passes.tiles import (
    Tiled,
    WorkgroupLimits,
    choose_tiles,
    estimate,
    reads_of,
    shape_of,
    stores_apart,
)
from convdsl.passes.toom import Filter
from convdsl.schedule.builder import Builder
from convdsl.schedule.default_product import depth_of
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.pad import Pad

MOST_TAPS = 16  # of a window whose terms are written out
GAIN = 0.95  # of the direct time, at most: what is worth a copy


@dataclass(frozen=True, slots=True)
class Windows:
    """A filter whose operands can be laid out: the axes of the data, the one of the block last."""

    found: Filter
    data: tuple[Line, ...]
    weights: tuple[Axis, ...]
    taps: int

    @property
    def rows(self) -> bool:
        """Whether the block is among the rows of the product."""
        return self.found.block in self.found.product.m


def windows_of(gemm: Contraction) -> Windows | None:
    """The product as a filter whose data fit in one line for each of their other indices."""
    found = filter_in(gemm)
    taps = found.tap.extent.as_int() if found is not None else None
    if found is None or taps is None or not 2 <= taps <= MOST_TAPS:
        return None
    if gemm.reduction.dtype != "f32":
        return None
    if len(gemm.k) < 2:
        return None  # of the taps alone there is nothing to tile
    own = [v for v in (*gemm.m, *gemm.n) if v.name in free_names(found.data.value)]
    rows = [v.name for v in own if v != found.block]
    data = _axes(gemm, _factor(gemm, found), {found.block.name: rows[0] if rows else None})
    weights = _axes(gemm, found.taps.value, {})
    if len(rows) > 1 or data is None or weights is None:
        return None
    return Windows(found, data, tuple(x.axis for x in weights), taps)


def _axes(
    gemm: Contraction, factor: Expr, over: Mapping[str, str | None]
) -> tuple[Line, ...] | None:
    """The axes of a copy of an operand, one for each sum of indices that it is read along.

    Those of summed indices first, so that neighbours along the rows or columns are some in the copy,
    and of these the source's fastest, so that a tile of it can be transposed. `over` comes last.
    """
    names, free = free_names(factor), {v.name for v in (*gemm.m, *gemm.n)}
    used = [v.name for v in (*gemm.batch, *gemm.k, *gemm.m, *gemm.n) if v.name in names]
    lines: list[Line] = []
    said = {n for n in over.values() if n is not None}
    for name in sorted(used, key=lambda n: n not in over):
        if name in said:
            continue
        line = line_of(gemm.piece, gemm.reduction, factor, Axis(name, over.get(name)))
        if isinstance(line, str) or said & set(line.terms):
            return None
        if over and name not in over and len(line.terms) > 1:
            return None  # the data move in one direction only
        named = name if name in over else line.unit
        lines.append(replace(line, axis=replace(line.axis, index=named)))
        said |= set(line.terms)
    fastest = _fastest(factor)

    def place(line: Line) -> tuple[bool, bool, bool]:
        terms = set(line.terms)
        return not terms.isdisjoint(free), line.axis.index in over, terms.isdisjoint(fastest)

    return tuple(sorted(lines, key=place))


def pays(windows: Windows, gpu: Gpu) -> bool:
    """Whether the product without tests saves the time of the copy."""
    gemm = windows.found.product
    shape = shape_of(gemm)
    if shape is None:
        return False
    copied = 8 * prod(x.extent for x in windows.data) / gpu.bandwidth  # read and written
    laid_out = estimate(gpu, shape, "windows", stores_apart(gemm.piece)) + copied + gpu.launch
    return laid_out <= GAIN * estimate(gpu, shape, reads_of(gemm), stores_apart(gemm.piece))


@dataclass(frozen=True, slots=True)
class Laid:
    """What became of the product, and its tiles; `data` is read in windows that `tap` moves.

    `transposed` are copies in which neighbours are none in what they are copied from.
    """

    gemm: Contraction
    tiled: Tiled
    tap: str
    data: str
    transposed: tuple[str, ...]


def lay_out(
    builder: Builder, name: str, windows: Windows, gpu: Gpu, limits: WorkgroupLimits
) -> Laid:
    """The steps that copy the operands; the data's rows are as long as whole tiles read."""
    found, gemm = windows.found, windows.found.product
    tiled = choose_tiles(gemm, gpu, limits, "windows")
    depth, _ = depth_of(gemm, found.tap.name)
    terms = next(v.extent.as_int() or 0 for v in gemm.k if v.name == depth)
    each = max(1, tiled.tiles.k // windows.taps)
    tiled = replace(tiled, tiles=replace(tiled.tiles, k=each))
    side, tile = (gemm.m, tiled.tiles.m) if windows.rows else (gemm.n, tiled.tiles.n)
    count = product(v.extent for v in side).as_int() or 1
    length = -(-count // tile) * tile + -(-(windows.taps - 1) // 4) * 4
    axes = [x.axis for x in windows.data]
    axes[-1] = replace(axes[-1], length=length)
    line, transposed = _copy(builder, name, gemm, _factor(gemm, found), tuple(axes)), []
    if _fastest(_factor(gemm, found)).isdisjoint(windows.data[-1].terms):
        transposed.append(line)
    rest = terms % (each * tiled.parts)
    if rest or found.taps.conditions:
        copy = _copy(builder, name, gemm, found.taps.value, windows.weights)
        if windows.weights[-1].index not in _fastest(found.taps.value):
            transposed.append(copy)
    if rest:
        builder.do(Pad(name, depth, each * tiled.parts))
    made = contraction_of(builder.state.pieces()[name])
    assert made is not None
    return Laid(made, tiled, found.tap.name, line, tuple(transposed))


def _copy(
    builder: Builder, name: str, gemm: Contraction, factor: Expr, axes: tuple[Axis, ...]
) -> str:
    """The tensor with an operand laid out along these axes."""
    operand = next(n for n, f in operands(gemm.reduction).items() if f == factor)
    made = builder.tensor(f"{operand.replace('.', '_')}_line")
    builder.do(Layout(name, operand, axes, made))
    return made


def _factor(gemm: Contraction, found: Filter) -> Expr:
    """The operand with the data, as the sum reads it."""
    return gemm.a.value if found.block in gemm.m else gemm.b.value


def _fastest(factor: Expr) -> frozenset[str]:
    """The indices along which neighbours in memory differ."""
    return loads(factor)[0].access.index[-1].free
