"""The schedule that is used when there is none: the chosen plan, written in the verbs of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from convdsl.ir.equation import System
from convdsl.ir.expr import Var
from convdsl.ir.index import product
from convdsl.ir.loop import LANES
from convdsl.machine.facts import TYPICAL_GPU, Gpu
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.padding import pad_index, padded_axes
from convdsl.passes.phases import equation_with, the_reduction
from convdsl.passes.plan import Choice
from convdsl.passes.reduce_loops import FLUSH, most_parts
from convdsl.passes.tiles import Tiled, Tiles, WorkgroupLimits, choose_tiles
from convdsl.passes.toom_accuracy import block_of
from convdsl.schedule.builder import Builder
from convdsl.schedule.default_product import Window, depth_of, tile_product
from convdsl.schedule.default_windows import Windows, lay_out, pays, windows_of
from convdsl.schedule.direct_wgsl import direct
from convdsl.schedule.packing import packs
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.transforms import transform_of, transform_steps
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad, touching
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll

COPY_SIDE = 32  # elements of a cache line
LONG = 256  # terms of a sum below which one thread is soon through with them
FEWEST_TERMS = 32  # of a part of a sum that one thread adds up


def default_schedule(
    system: System,
    choices: Mapping[str, Choice],
    limits: WorkgroupLimits,
    given: Schedule | None = None,
    accuracy: str = "standard",
    gpu: Gpu = TYPICAL_GPU,
) -> tuple[Schedule, dict[str, Tiles]]:
    """The schedule for the chosen algorithms, and the tiles of each equation that is tiled.

    The steps of a `given` schedule come first; what it says nothing of is filled in. An equation
    whose relations it treats, but not its loops, gets loops.
    """
    builder = _Builder(system, limits, given, accuracy, gpu)
    pending = list(builder.pending(choices))
    pending.sort(
        key=lambda p: p[0] not in builder.products
    )  # products first: they may pad operands
    for name, choice in pending:
        if choice is not None:
            builder.equation(name, choice)
        else:
            builder.rest(name)
    return builder.schedule(), builder.tiles


class _Builder(Builder):
    def __init__(
        self,
        system: System,
        limits: WorkgroupLimits,
        given: Schedule | None,
        accuracy: str,
        gpu: Gpu,
    ) -> None:
        super().__init__(system, "wgsl", given, accuracy)
        self.tiles: dict[str, Tiles] = {}
        self.limits = limits
        self.gpu = gpu
        self.products = {s.tensors[2] for s in self.given.steps if isinstance(s, Toom)}
        self.gathered = {s.equation for s in self.given.steps if isinstance(s, Gather)}

    def equation(self, name: str, choice: Choice) -> None:
        algorithm = choice.algorithm
        if algorithm in ("phases", "toom"):
            self.dense(name)
            made = self.transformed(name, choice.results) if algorithm == "toom" else ()
            for equation in (*made, name):
                self.product(equation)
            return
        if algorithm == "columns":
            columns = self.tensor("columns")
            self.do(Columns(name, columns))
            self.product(columns)
        summed = name if self.limits.software else self.few(name)
        for made in dict.fromkeys((summed, name)):
            arranged = direct(self, made, self.limits)
            if not arranged and equation_with(self.state.pieces()[made]) is not None:
                self.do(Gather(made))

    def transformed(self, name: str, results: int) -> Sequence[str]:
        """Toom-Cook: the tensors of both transforms and of the product."""
        step = self.toom(name, results)
        if step is None:
            return ()
        data, taps, made = step.tensors
        self.products.add(made)
        return made, taps, data  # the product first: it may pad its operands

    def few(self, name: str) -> str:
        """Few results with long sums keep few threads busy: cut the sums. The tensor to go on with."""
        piece = self.state.pieces()[name]
        reduction = the_reduction(piece.value)
        if reduction is None or reduction.op != "sum" or reduction.dtype != "f32":
            return name
        tied = {n for p in reduction.constraints for n in p.index.free}
        plain = [v for v in reduction.vars if v.name not in tied]
        results = product(v.extent for v in piece.vars).as_int()
        if not plain or results is None:
            return name
        long = max(plain, key=lambda v: v.extent.as_int() or 0)
        extent = long.extent.as_int() or 0
        parts = min(
            self.gpu.full // max(1, results),
            extent // FEWEST_TERMS,
            most_parts(extent, product(v.extent for v in reduction.vars).as_int() or extent),
            self.limits.buffer // (4 * max(1, results)),
        )
        return (
            name
            if parts < 2 or extent < LONG
            else self.cut(name, long.name, _length(extent, parts))
        )

    def rest(self, name: str) -> None:
        """What is left to do for an equation whose relations a schedule has treated.

        Nothing after `gather`: each thread adds up the terms of its own result.
        """
        if name in self.gathered:
            return
        if equation_with(self.state.pieces()[name]) is not None:
            self.do(Gather(name))
        else:
            self.product(name)

    def product(self, name: str) -> None:
        """Tile a matrix product; nothing for an equation that is none."""
        small = transform_of(self.state.pieces()[name], self.state.system)
        if small is not None:
            names = self.names(name)
            for step in transform_steps(name, small, names):
                self.do(step)
            return
        gemm = contraction_of(self.state.pieces()[name])
        if gemm is None or not gemm.m or not gemm.n:
            return
        windows = windows_of(gemm) if name not in self.products else None
        if windows is not None and pays(windows, self.gpu):
            self.windowed(name, windows)
            return
        for tensor, axes in packs(gemm):
            copy = self.tensor(f"{tensor}_packed")
            self.do(Pack(name, tensor, axes, copy))
            self.transpose(copy)
        gemm = contraction_of(self.state.pieces()[name]) or gemm
        tiled = choose_tiles(
            gemm, self.gpu, self.limits, "padded" if name in self.products else None
        )
        flush = block_of(gemm.extents[3].as_int() or 0) if name in self.products else FLUSH
        gemm = self.padded(name, gemm, tiled)
        if tiled.parts > 1:
            name = self.parts(name, gemm, tiled.parts)
            gemm = contraction_of(self.state.pieces()[name]) or gemm
        self.tiles[name] = tiled.tiles
        tile_product(self, name, gemm, tiled.tiles, flush)

    def windowed(self, name: str, windows: Windows) -> None:
        """Tile a product whose data are read in windows, which serve all taps."""
        laid = lay_out(self, name, windows, self.gpu, self.limits)
        gemm, tiled = laid.gemm, laid.tiled
        for copy in laid.transposed:
            self.transpose(copy)
        if tiled.parts > 1:
            name = self.parts(name, gemm, tiled.parts)
            gemm = contraction_of(self.state.pieces()[name]) or gemm
        self.tiles[name] = tiled.tiles
        tile_product(self, name, gemm, tiled.tiles, FLUSH, Window(laid.data, laid.tap))

    def padded(self, name: str, gemm: Contraction, tiled: Tiled) -> Contraction:
        """The product without rests of tiles, where its operands are made here and fit all the same."""
        tiles, (depth, _) = tiled.tiles, depth_of(gemm)
        wanted = [(depth, tiles.k * tiled.parts)]
        for side, size in ((gemm.m, tiles.m), (gemm.n, tiles.n)):
            wanted += _least_padding(side, size)
        system = self.state.system
        for index, multiple in wanted:
            axes = padded_axes(system, name, index)
            if isinstance(axes, str) or set(touching(self.state, axes)) & set(self.state.nests):
                return gemm
            system = pad_index(system, name, index, multiple, axes)
        sizes = [(t.elements * 4).as_int() for t in system.tensors if t.role == "let"]
        if any(size is None or size > self.limits.buffer for size in sizes):
            return gemm
        extents = {v.name: v.extent.as_int() or 1 for v in (*gemm.m, *gemm.n, *gemm.k)}
        for index, multiple in wanted:
            if extents[index] % multiple:
                self.do(Pad(name, index, multiple))
        return contraction_of(self.state.pieces()[name]) or gemm

    def parts(self, name: str, gemm: Contraction, parts: int) -> str:
        """Cut the longest sum into parts, each a product of its own; the tensor that holds them."""
        depth, _ = depth_of(gemm)
        extent = next(v.extent.as_int() or 1 for v in gemm.k if v.name == depth)
        return self.cut(name, depth, _length(extent, parts))

    def cut(self, name: str, variable: str, length: int) -> str:
        """Reduce blocks of a sum apart; the tensor that holds them."""
        made = self.tensor(f"{name}_part")
        part = self.names(name).fresh("part")
        self.do(Rfactor(name, variable, length, part, made))
        return made

    def transpose(self, y: str) -> None:
        """Square tiles: a workgroup reads whole cache lines of the source and stores whole ones.

        Four elements a thread keep as many reads under way.
        """
        loops = [x.name for x in self.state.nest(y).loops]
        fresh = self.names(y).fresh
        first, last = loops[0], loops[-1]
        row, rest = fresh(f"{first}_tile"), fresh(f"{first}_in")
        lane_row, each = fresh(f"{first}_lane"), fresh(f"{first}_each")
        column, lane_column = fresh(f"{last}_tile"), fresh(f"{last}_lane")
        self.do(Split(y, first, COPY_SIDE, row, rest))
        self.do(Split(y, rest, LANES, lane_row, each))
        self.do(Split(y, last, COPY_SIDE, column, lane_column))
        grid = [*loops[1:-1], row, column]
        self.do(Order(y, (*grid, lane_row, lane_column, each)))
        self.map(y, grid=grid, thread=[lane_row, lane_column])
        self.do(Unroll(y, (each,)))


def _length(extent: int, parts: int) -> int:
    """The length of a part: whole steps of a tile, and without a rest if there is such a length near."""
    length = -(-extent // parts)
    exact = [n for n in range(length, length + length // 4 + 1) if extent % n == 0]
    return exact[0] if exact else -(-length // 16) * 16


def _least_padding(side: Sequence[Var], size: int) -> list[tuple[str, int]]:
    """The index that has to grow least for whole tiles, and the multiple that it grows to."""
    ways: list[tuple[float, str, int]] = []
    count = product(v.extent for v in side).as_int() or 0
    for var in side:
        extent = var.extent.as_int() or 1
        multiple = size // gcd(size, count // extent)
        ways.append((-(-extent // multiple) * multiple / extent, var.name, multiple))
    return [min(ways)[1:]] if ways else []
