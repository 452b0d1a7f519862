"""Where a NumPy program accumulates: the result tensor itself, or blocks and phases of it.

With phases an output variable o = stride*t + tap_stride*kappa + offset is stored as [t, kappa]. When
that is the result's own memory the accumulation happens in place; else in a buffer that is spread out
afterwards: `interleaved` [t, kappa] for long phases, `planar` [kappa, t] for few, so that the innermost
runs stay long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from convdsl.ir.equation import Piece, System, Tensor
from convdsl.ir.expr import Access, Const, Load, Reduce, ValueType, Var
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, sym
from convdsl.ir.loop import Buffer, Level, Stmt, Store, nest
from convdsl.passes.names import Names
from convdsl.passes.points import Phase, Points

LONG_PHASES = 16  # a run of this many floats (a cache line) is worth keeping contiguous


@dataclass
class Context:
    """What the lowerings of one system share; `temps` collects the buffers they make."""

    system: System
    names: Names
    data_first: tuple[str, ...]
    temps: list[Buffer] = field(default_factory=list)

    @property
    def constants(self) -> frozenset[str]:
        """The tensors of literal numbers."""
        return frozenset(t.name for t in self.system.constants)

    def temp(self, wanted: str, dtype: ValueType, dims: Sequence[Index]) -> Buffer:
        made = Buffer(self.names.fresh(wanted), dtype, tuple(dims), "temp")
        self.temps.append(made)
        return made


@dataclass(frozen=True, slots=True)
class Place:
    """Storage for partial results: `access` in terms of the variables `vars`."""

    vars: tuple[Var, ...]
    access: Access
    dtype: ValueType
    is_tensor: bool

    def fill(self, value: float | int) -> Stmt:
        store = Store(self.access, Const(value, self.dtype))
        return nest([(v, "slice") for v in self.vars], (store,))[0]

    def load(self) -> Load:
        return Load(self.access, self.dtype)


def place_for(context: Context, tensor: Tensor, piece: Piece, reduction: Reduce) -> Place:
    """The result tensor where its dtype is that of the sum, else a buffer of the same extents."""
    if tensor.dtype == reduction.dtype:
        return Place(piece.vars, piece.access, reduction.dtype, True)
    made = context.temp("acc", reduction.dtype, piece.access.dims)
    access = Access(made.name, piece.access.index, made.dims)
    return Place(piece.vars, access, reduction.dtype, False)


def hits_for(context: Context, piece: Piece, reduction: Reduce) -> Place:
    """A mark for each setting of the variables that decide whether the reduction has any point."""
    names = {n for p in reduction.constraints for n in p.index.free}
    deciding = tuple(v for v in piece.vars if v.name in names)
    made = context.temp("hit", "i32", [v.high for v in deciding])
    access = Access(made.name, tuple(sym(v.name) for v in deciding), made.dims)
    return Place(deciding, access, "i32", False)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A place with some output variables addressed by block and phase."""

    target: Place
    place: Place
    phases: dict[str, Phase]
    spread: tuple[Stmt, ...]
    covers: bool


def blocked_place(
    context: Context, target: Place, points: Points, fixed: frozenset[str]
) -> Blocked:
    """Where to accumulate under these points; variables in `fixed` are host loops outside."""
    if not points.phases:
        return Blocked(target, target, {}, (), False)
    if all(_in_place(target, name, phase) for name, phase in points.phases.items()):
        return Blocked(target, _in_tensor(target, points), points.phases, (), False)
    interleaved = all(p.dense and p.split.period >= LONG_PHASES for p in points.phases.values())
    kept = [
        (v, i, d)
        for v, i, d in zip(target.vars, target.access.index, target.access.dims, strict=True)
        if v.name not in fixed
    ]
    dims: list[Index] = []
    index: list[Index] = []
    tail: list[tuple[Index, Index]] = []
    for var, at, extent in kept:
        phase = points.phases.get(var.name)
        if phase is None:
            dims.append(extent)
            index.append(at)
        elif interleaved:
            dims += [phase.blocks, const(phase.split.period)]
            index += [phase.block, phase.kappa]
        else:
            dims.append(phase.split.phases)
            index.append(phase.kappa)
            tail.append((phase.blocks, phase.block))
    dims += [d for d, _ in tail]
    index += [i for _, i in tail]
    buffer = context.temp("blocks", target.dtype, dims)
    access = Access(buffer.name, tuple(index), buffer.dims)
    made = Place(tuple(v for v, _, _ in kept), access, target.dtype, False)
    variables = tuple(v for v, _, _ in kept)
    make = _spread_interleaved if interleaved else _spread_planar
    spread = make(context, target, made, points.phases, variables)
    covers = interleaved and all(
        _covers(target, name, phase) for name, phase in points.phases.items()
    )
    return Blocked(target, made, points.phases, spread, covers)


def fill_blocked(context: Context, blocked: Blocked, value: float | int) -> Stmt:
    """Fill the whole buffer behind a blocked place."""
    access = blocked.place.access
    axes = [Var(context.names.fresh("i"), const(0), d) for d in access.dims]
    whole = Access(access.tensor, tuple(sym(v.name) for v in axes), access.dims)
    clear = Store(whole, Const(value, blocked.place.dtype))
    return nest([(v, "slice") for v in axes], (clear,))[0]


def _extent(target: Place, name: str) -> Index:
    return next(v.high for v in target.vars if v.name == name)


def _shift(phase: Phase) -> Index:
    """The output position of block 0, phase 0."""
    return phase.split.offset + phase.first * phase.split.stride


def _in_place(target: Place, name: str, phase: Phase) -> bool:
    whole = phase.blocks * phase.split.stride
    return phase.dense and _shift(phase) == 0 and whole == _extent(target, name)


def _covers(target: Place, name: str, phase: Phase) -> bool:
    low, high = _shift(phase).as_int(), (_shift(phase) + phase.blocks * phase.split.stride).as_int()
    extent = _extent(target, name).as_int()
    return (
        low is not None and high is not None and extent is not None and low <= 0 and high >= extent
    )


def _in_tensor(target: Place, points: Points) -> Place:
    dims: list[Index] = []
    index: list[Index] = []
    for at, extent in zip(target.access.index, target.access.dims, strict=True):
        phase = points.phases.get(str(at))
        if phase is None:
            dims.append(extent)
            index.append(at)
        else:
            dims += [phase.blocks, const(phase.split.stride)]
            index += [phase.block, phase.kappa]
    access = Access(target.access.tensor, tuple(index), tuple(dims))
    return Place(target.vars, access, target.dtype, target.is_tensor)


def _spread_interleaved(
    context: Context,
    target: Place,
    made: Place,
    phases: dict[str, Phase],
    variables: tuple[Var, ...],
) -> tuple[Stmt, ...]:
    """One copy: [t, kappa] in row-major order is the output, shifted and cropped."""
    loops: list[tuple[Var, Level]] = []
    index: list[Index] = []
    dims: list[Index] = []
    for var in variables:
        phase = phases.get(var.name)
        if phase is None:
            loops.append((var, "slice"))
            index.append(sym(var.name))
            dims.append(var.high)
            continue
        shift, length = _shift(phase), phase.blocks * phase.split.stride
        reached = Var(var.name, maximum(0, shift), minimum(var.high, shift + length))
        loops.append((reached, "slice"))
        index.append(sym(var.name) - shift)
        dims.append(length)
    source = Load(Access(made.access.tensor, tuple(index), tuple(dims)), made.dtype)
    return nest(loops, (Store(target.access, source),))


def _spread_planar(
    context: Context,
    target: Place,
    made: Place,
    phases: dict[str, Phase],
    variables: tuple[Var, ...],
) -> tuple[Stmt, ...]:
    """A strided copy for each phase."""
    host: list[tuple[Var, Level]] = []
    loops: list[tuple[Var, Level]] = []
    to: dict[str, Index] = {}
    source: list[Index] = []
    blocks: list[Index] = []
    for var in variables:
        phase = phases.get(var.name)
        if phase is None:
            loops.append((var, "slice"))
            source.append(sym(var.name))
            continue
        split = phase.split
        kappa, t = context.names.fresh("r"), context.names.fresh("t")
        base = sym(kappa) * split.tap_stride + split.offset
        low = maximum(phase.first, ceildiv(-base, split.stride))
        high = minimum(
            phase.first + phase.blocks, floordiv(var.high - 1 - base, const(split.stride)) + 1
        )
        host.append((Var(kappa, const(0), split.phases), "host"))
        loops.append((Var(t, low, high), "slice"))
        to[var.name] = sym(t) * split.stride + base
        source.append(sym(kappa))
        blocks.append(sym(t) - phase.first)
    read = Access(made.access.tensor, (*source, *blocks), made.access.dims)
    where = Access(
        target.access.tensor,
        tuple(i.substitute(to) for i in target.access.index),
        target.access.dims,
    )
    return nest([*host, *loops], (Store(where, Load(read, made.dtype)),))
