"""The operands of a filter, laid out so that one tile of the data serves all taps without a test.

xs[c, u] = x[n, c, s], zeros around each row             `convdsl.passes.layout`
y[n, t] = sum[j, c] xs[c, n*T + t - j + (J-1)] * w[c, j]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from convdsl.ir.expr import Expr, Var, free_names, loads
from convdsl.ir.index import product
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.layout import Axis, Line, line_of
from convdsl.passes.plan_toom import filter_in
from convdsl.passes.tiles import Gpu, Tiled, WorkgroupLimits, choose_tiles, estimate, shape_of
from convdsl.passes.toom import Filter
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.reindex import Reindex

MOST_TAPS = 16  # of a window whose terms are written out
GAIN = 0.95  # of the direct time, at most: what is worth a copy


@dataclass(frozen=True, slots=True)
class Windows:
    """A filter whose data can be laid out: its axes, and the axis along the block."""

    found: Filter
    axes: tuple[Axis, ...]
    line: Line
    taps: int

    @property
    def rows(self) -> bool:
        """Whether the block is among the rows of the product."""
        return self.found.block in self.found.product.m


def windows_of(gemm: Contraction) -> Windows | None:
    """The product as a filter whose data fit in one line for each of their other indices."""
    found = filter_in(gemm)
    taps = found.tap.extent.as_int() if found is not None else None
    if found is None or taps is None or not 2 <= taps <= MOST_TAPS or gemm.reduction.dtype != "f32":
        return None
    factor, names = _factor(gemm, found), free_names(found.data.value)
    own = [v for v in (*gemm.m, *gemm.n) if v.name in names and v != found.block]
    if len(own) > 1:
        return None
    block = Axis(found.block.name, own[0].name if own else None)
    plain = [v for v in (*gemm.batch, *gemm.k) if v.name in names and v != found.tap]
    axes = (*(Axis(v.name) for v in _fastest_first(factor, plain)), block)
    lines: list[Line] = []
    for axis in axes:
        line = line_of(gemm.piece, gemm.reduction, factor, axis)
        if isinstance(line, str) or (axis != block and len(line.terms) > 1):
            return None
        lines.append(line)
    return Windows(found, axes, lines[-1], taps)


def pays(windows: Windows, gpu: Gpu) -> bool:
    """Whether the product without tests saves the time of the copy."""
    gemm = windows.found.product
    shape = shape_of(gemm)
    if shape is None:
        return False
    tested = bool(gemm.a.conditions or gemm.b.conditions)
    copied = 8 * windows.line.extent * _settings(windows) / gpu.bandwidth  # read and written
    laid_out = estimate(gpu, shape, False, True) + copied + gpu.launch
    return laid_out <= GAIN * estimate(gpu, shape, tested, False)


@dataclass(frozen=True, slots=True)
class Laid:
    """What became of the product, and its tiles; `data` is read in windows that `tap` moves.

    `transposed`: neighbours in `data` are none in what it is copied from.
    """

    gemm: Contraction
    tiled: Tiled
    tap: str
    data: str
    transposed: bool


def lay_out(
    builder: Builder, name: str, windows: Windows, gpu: Gpu, limits: WorkgroupLimits
) -> Laid:
    """The steps that copy the operands; the data's rows are as long as whole tiles read."""
    found, gemm = windows.found, windows.found.product
    tiled = choose_tiles(gemm, gpu, limits, padded=True, tested=False)
    depth = max((v for v in gemm.k if v != found.tap), key=lambda v: v.extent.as_int() or 0)
    each = max(1, tiled.tiles.k // windows.taps)
    tiled = replace(tiled, tiles=replace(tiled.tiles, k=each))
    side, tile = (gemm.m, tiled.tiles.m) if windows.rows else (gemm.n, tiled.tiles.n)
    count = product(v.extent for v in side).as_int() or 1
    length = -(-count // tile) * tile + -(-(windows.taps - 1) // 4) * 4
    axes = (*windows.axes[:-1], replace(windows.axes[-1], length=length))
    data = builder.tensor(f"{_operand(gemm, found)}_line")
    builder.do(Layout(name, _operand(gemm, found), axes, data))
    if (depth.extent.as_int() or 0) % (each * tiled.parts):
        names = free_names(found.taps.value)
        order = [v.name for v in (*gemm.batch, *gemm.k, *gemm.m, *gemm.n) if v.name in names]
        operand = next(n for n, f in operands(gemm.reduction).items() if f == found.taps.value)
        builder.do(Reindex(name, operand, tuple(order), builder.tensor(f"{operand}_line")))
        builder.do(Pad(name, depth.name, each * tiled.parts))
    made = contraction_of(builder.state.pieces()[name])
    assert made is not None
    last = loads(_factor(gemm, found))[0].access.index[-1].free
    return Laid(made, tiled, found.tap.name, data, found.block.name not in last)


def _factor(gemm: Contraction, found: Filter) -> Expr:
    """The operand with the data, as the sum reads it."""
    return gemm.a.value if found.block in gemm.m else gemm.b.value


def _operand(gemm: Contraction, found: Filter) -> str:
    return next(n for n, f in operands(gemm.reduction).items() if f == _factor(gemm, found))


def _fastest_first(factor: Expr, plain: list[Var]) -> list[Var]:
    """The fastest index of the source in front, so that a tile of the copy can be transposed."""
    last = loads(factor)[0].access.index[-1].free
    return sorted(plain, key=lambda v: v.name not in last)


def _settings(windows: Windows) -> int:
    """Lines that the copy has."""
    gemm, names = windows.found.product, [a.index for a in windows.axes[:-1]]
    return product(v.extent for v in (*gemm.batch, *gemm.k) if v.name in names).as_int() or 1
