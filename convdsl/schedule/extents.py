"""What one iteration of a loop copies of an operand: loops, a window, or a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import Expr, Pred, Var, map_index
from convdsl.ir.index import Index, const, product, sym, total
from convdsl.ir.interval import Interval, ranges_of
from convdsl.ir.loop import LANES
from convdsl.schedule.boxes import Box, box_of
from convdsl.schedule.nest import Loop, Nest, Stage, operands
from convdsl.schedule.rejoin import merged_loads, settled
from convdsl.schedule.windows import Window, window_of


@dataclass(frozen=True, slots=True)
class Extent:
    """The loops of a copy: `rows` x `columns`, the latter over a window where there is one."""

    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    window: Window | None
    box: Box | None = None

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (*self.rows, *self.columns)

    @property
    def place(self) -> tuple[Index, Index]:
        """The row and the column that an iteration of all loops reads."""
        own = self.window or self.box
        return flat(self.rows), own.place if own is not None else flat(self.columns)


def extent_of(
    nest: Nest, stage: Stage, threads: Sequence[Loop], conditions: Sequence[Pred]
) -> Extent:
    """What a stage copies in one iteration of its loop."""
    moving = moving_loops(nest, stage, threads)
    own = own_conditions(nest, stage, conditions)
    box = _box(nest, stage, moving, own)
    if box is not None:
        return Extent((), box.loops, None, box)
    window, spared = window_of(value_of(nest, stage), moving), of_results(nest)
    tile = _tile_of(nest, stage)
    source = extent_of(nest, tile, threads, conditions) if tile is not None else None
    if (
        window is None
        or not all(window.carries(p.index) or p in spared for p in own)
        or (source is not None and not all(map(window.carries, source.place)))
    ):
        rows, columns = (tuple(x for x in moving if x.reduced == r) for r in (True, False))
        return Extent(rows, columns, None)
    rows = tuple(x for x in moving if x.name not in window.coefficients)
    return Extent(rows, _window_loops(nest, stage, window, source), window)


def _tile_of(nest: Nest, stage: Stage) -> Stage | None:
    """The tile that a copy in registers may be filled from."""
    if stage.memory == "workgroup":
        return None
    mine = (s for s in nest.stages if s.operand == stage.operand)
    return next((s for s in mine if s.memory == "workgroup"), None)


def _window_loops(
    nest: Nest, stage: Stage, window: Window, source: Extent | None
) -> tuple[Loop, ...]:
    """Four elements of a window at a time; one by one where a rest would lie beyond the source."""
    names = nest.names()
    quad, lane = names.fresh(f"{stage.name}_quad"), names.fresh(f"{stage.name}_lane")
    quads = -(-window.extent // LANES)
    if source is not None and source.window is not None:
        begin = source.window.extent - window.extent  # at most
        held = product(x.extent for x in source.columns).as_int() or 0
        if begin + quads * LANES > held:
            return (Loop(lane, const(window.extent), False),)
    return Loop(quad, const(quads), False), Loop(lane, const(LANES), False)


def _box(
    nest: Nest, stage: Stage, moving: Sequence[Loop], conditions: Sequence[Pred]
) -> Box | None:
    """What a copy in registers holds of an operand that no tile holds, where iterations share it."""
    if stage.memory == "workgroup" or _tile_of(nest, stage) is not None:
        return None
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    value = map_index(factor_of(nest, stage), lambda i: _settled(nest, nest.put(i), known))
    tests = {p: Pred(p.kind, _settled(nest, p.index, known)) for p in conditions}
    within = {x.name for x in moving}
    sure = [t for t in tests.values() if t.index.free <= within & _written_out(nest)]
    tests = {p: t for p, t in tests.items() if t not in sure}
    return box_of(value, moving, tests, sure, known, nest.names())


def written_out(nest: Nest, pred: Pred, known: Mapping[str, Interval]) -> bool:
    """Whether a condition is known for each copy of the text, so that testing it costs nothing."""
    return _settled(nest, pred.index, known).free <= _written_out(nest)


def _written_out(nest: Nest) -> set[str]:
    """The loops with a copy of the text for each iteration."""
    return {x.name for x in nest.loops if x.level in ("unroll", "vector")}


def _settled(nest: Nest, index: Index, known: Mapping[str, Interval]) -> Index:
    """An index over the loops, without those of one iteration and without needless divisions."""
    once = {x.name: const(0) for x in nest.loops if x.extent == 1}
    return settled(index.substitute(once), known)


def factor_of(nest: Nest, stage: Stage) -> Expr:
    reduction = nest.reduction
    assert reduction is not None
    return operands(reduction)[stage.operand]


def own_conditions(nest: Nest, stage: Stage, conditions: Sequence[Pred]) -> tuple[Pred, ...]:
    """The conditions that concern no loop but those that the operand depends on."""
    every, needed = {x.name for x in nest.loops}, nest.depends_on(factor_of(nest, stage))
    return tuple(p for p in conditions if p.index.free & every <= needed)


def of_results(nest: Nest) -> tuple[Pred, ...]:
    """Tails without which there are more results, which nobody stores."""
    summed = {x.name for x in nest.loops if x.reduced}
    return tuple(t.condition for t in nest.tails if t.condition.index.free.isdisjoint(summed))


def value_of(nest: Nest, stage: Stage) -> Expr:
    """The operand in terms of the loops."""
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    return merged_loads(map_index(factor_of(nest, stage), lambda i: settled(nest.put(i), known)))


def moving_loops(nest: Nest, stage: Stage, threads: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops inside a stage that its operand depends on; of a tile the thread loops too."""
    needed = nest.depends_on(factor_of(nest, stage))
    inside = {x.name for x in nest.loops[nest.place(stage.at) + 1 :] if x.level != "grid"}
    lanes = {x.name for x in threads}
    inside = inside | lanes if stage.memory == "workgroup" else inside - lanes
    return tuple(nest.loop(d) for d in nest.digits if d in inside and d in needed)


def flat(loops: tuple[Loop, ...]) -> Index:
    """The row-major position of the current iteration within the loops."""
    parts: list[Index] = []
    stride = const(1)
    for loop in reversed(loops):
        parts.append(sym(loop.name) * stride)
        stride = stride * loop.extent
    return total(parts)
