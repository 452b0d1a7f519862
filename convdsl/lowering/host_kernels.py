"""Lower a scheduled system to a host program: one stretch of it for each equation.

A piece whose loops a schedule arranged runs as arranged, and in it what is computed there; every other
equation is accumulated by slices over its taps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.equation import Equation, Piece, Tensor, accesses
from convdsl.ir.expr import Access, Expr, Guard, Load, loads, map_children
from convdsl.ir.index import Index, const
from convdsl.ir.loop import Kernel, LoopProgram, Stmt, Store, map_body
from convdsl.passes.lower_numpy import all_names, as_stated, buffer_of, lower_equation
from convdsl.passes.name_bounds import name_bounds
from convdsl.passes.names import Names
from convdsl.passes.numpy_place import Context
from convdsl.passes.plan import Choice
from convdsl.passes.privatise import privatise
from convdsl.schedule.lower_numpy import lower_nest, plain_loop
from convdsl.schedule.nest import Nest
from convdsl.schedule.numpy_holes import filled_first
from convdsl.schedule.regions import Region, region_of
from convdsl.schedule.state import State, readers_of

Body = tuple[Stmt, ...]


def lower_host(state: State, choices: Mapping[str, Choice]) -> LoopProgram:
    """The loop program of a scheduled system; `choices` by tensor, for comments."""
    system = state.system
    loops = {n for nest in state.nests.values() for n in nest.taken}
    context = Context(
        system, Names(all_names(system) | loops), tuple(t.name for t in system.inputs)
    )
    lowering = _Lowering(state, context)
    kernels = []
    for equation in system.equations:
        if equation.tensor not in state.sites:
            known = choices.get(equation.tensor)
            what = equation.pieces[0].origin if known is None else known.algorithm
            body = lowering.equation(equation, frozenset(), ())
            kernels.append(Kernel(equation.tensor, (), body, f"{equation.tensor}: {what}"))
    found = (layout_of(state, t, lowering.regions.get(t.name, ())) for t in system.tensors)
    layouts = {x.tensor: x for x in found if x is not None}
    made = [replace(k, body=tuple(_moved(s, layouts) for s in k.body)) for k in kernels]
    plain = map(buffer_of, system.tensors)
    buffers = [replace(b, dims=layouts[b.name].dims) if b.name in layouts else b for b in plain]
    every = (*buffers, *context.temps)
    program = LoopProgram(system.name, system.sizes, system.definitions, every, tuple(made))
    return name_bounds(privatise(program), context.names)


class _Lowering:
    """`regions` are the parts of tensors that are held where they are computed inside a reader."""

    def __init__(self, state: State, context: Context) -> None:
        self.state = state
        self.context = context
        self.regions: dict[str, tuple[Region | None, ...]] = {}

    def equation(
        self, equation: Equation, around: frozenset[str], box: tuple[Region | None, ...]
    ) -> Body:
        """The statements of an equation, of the part `box` of it inside the host loops `around`."""
        state = self.state
        labels = [n for n in state.pieces() if n.split(".")[0] == equation.tensor]
        guarded = any(isinstance(p.value, Guard) for p in equation.pieces)
        arranged = box or guarded or any(n in state.nests for n in labels)
        if not arranged and as_stated(equation):
            return lower_equation(self.context, equation)
        body: Body = ()
        pieces = equation.pieces
        first = None if box else self._filled(labels, pieces)
        if first is not None:
            pieces = pieces[:1]
            body = first[1] if first[0] is None else ()
        for label, piece in zip(labels, pieces, strict=first is None):
            nest = state.nest(label)
            names = {
                x.name: self.context.names.fresh(x.name) for x in nest.loops if x.name in around
            }
            nest = nest.renamed(names)
            pairs = zip(piece.vars, box, strict=bool(box))
            wanted = {v.name: region for v, region in pairs if region is not None}
            inside = self._inside(label, nest, names, around, wanted)
            if first is not None and first[0] is not None:
                inside[first[0]] = first[1] + inside.get(first[0], ())
            body += lower_nest(self.context, label, nest, inside, wanted)
        return body

    def _filled(
        self, labels: Sequence[str], pieces: Sequence[Piece]
    ) -> tuple[str | None, Body] | None:
        """What fills all results before the first piece stores its own; see `filled_first`."""
        if len(pieces) < 2 or any(n in self.state.nests for n in labels[1:]):
            return None
        return filled_first(self.state.nest(labels[0]), pieces[1:], self.context.names)

    def _inside(
        self,
        label: str,
        nest: Nest,
        names: Mapping[str, str],
        around: frozenset[str],
        wanted: Mapping[str, Region],
    ) -> dict[str, Body]:
        """What is computed in the loops of a nest, some of which were renamed, of the part `wanted`."""
        out: dict[str, Body] = {}
        for equation in self.state.system.equations:
            site = self.state.sites.get(equation.tensor)
            if site is None or site.reader != label:
                continue
            loop = names.get(site.loop, site.loop)
            outside = {x.name for x in nest.loops[: nest.place(loop) + 1]}
            regions = self._region(equation.tensor, nest, loop, _limits(nest, wanted))
            self.regions[equation.tensor] = regions
            body = self.equation(equation, around | outside, regions)
            out[loop] = out.get(loop, ()) + body
        return out

    def _region(
        self, tensor: str, nest: Nest, loop: str, limits: Mapping[str, Region]
    ) -> tuple[Region | None, ...]:
        """The part of a tensor that an iteration reads, or what is computed in it."""
        if any(load.access.tensor == tensor for load in loads(nest.piece.value)):
            return tuple(region_of(nest, tensor, loop, limits))
        (reader,) = readers_of(self.state, tensor)
        between, outside = self.state.nest(reader), {x.name for x in nest.loops}
        names = {x.name: self.context.names.fresh(x.name) for x in between.loops}
        between = between.renamed({n: new for n, new in names.items() if n in outside})
        box = self._region(reader.split(".")[0], nest, loop, limits)
        wanted = {v.name: r for v, r in zip(between.piece.vars, box, strict=True) if r is not None}
        return tuple(region_of(between, tensor, None, _limits(between, wanted)))


def _limits(nest: Nest, wanted: Mapping[str, Region]) -> dict[str, Region]:
    """The parts of loops that make the parts `wanted` of the variables."""
    limits: dict[str, Region] = {}
    for name, region in wanted.items():
        plain = plain_loop(nest, name)
        if plain is not None:
            low = region.low - nest.values[name].without(plain.name)
            limits[plain.name] = replace(region, low=low)
    return limits


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor is held: its axes in the order `axes`, each from `low` on, `dims` elements."""

    tensor: str
    axes: tuple[int, ...]
    low: tuple[Index, ...]
    dims: tuple[Index, ...]

    def access(self, access: Access) -> Access:
        at = [access.index[a] - self.low[a] for a in self.axes]
        return Access(access.tensor, tuple(at), self.dims)


def layout_of(state: State, tensor: Tensor, regions: Sequence[Region | None]) -> Layout | None:
    """The layout of an intermediate tensor, in the order of the loops that make it.

    None for one that is held as it is: all others, and those that are read through other axes.
    """
    scheduled = tensor.name in state.nests or tensor.name in state.sites
    nest = state.nest(tensor.name) if scheduled else None
    pieces = (p for q in state.system.equations for p in q.pieces)
    views = {a.dims for p in pieces for a in accesses(p) if a.tensor == tensor.name}
    if tensor.role != "let" or nest is None or views != {tensor.dims}:
        return None
    places = []
    for index in nest.piece.access.index:
        loops = nest.put(index).free
        places.append(max((nest.place(n) for n in loops if nest.has(n)), default=-1))
    found = [regions[a] if regions else None for a in range(len(places))]
    kept = [a for a, region in enumerate(found) if region is None or not region.single]
    axes = tuple(sorted(kept, key=lambda a: places[a]))
    low = tuple(const(0) if r is None else r.low for r in found)
    extents = [d if r is None else r.extent for d, r in zip(tensor.dims, found, strict=True)]
    return Layout(tensor.name, axes, low, tuple(extents[a] for a in axes))


def _moved(stmt: Stmt, layouts: Mapping[str, Layout]) -> Stmt:
    """The statement with every access to those tensors as they are held."""

    def put(access: Access) -> Access:
        layout = layouts.get(access.tensor)
        return access if layout is None else layout.access(access)

    def value(expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return Load(put(expr.access), expr.dtype)
        return map_children(expr, value)

    if isinstance(stmt, Store):
        return replace(stmt, access=put(stmt.access), value=value(stmt.value))
    return map_body(stmt, lambda body: tuple(_moved(s, layouts) for s in body))
