"""Results that hold a constant between the others of a host program: filled at once, the others over it.

    y[t*5 + r] = acc[t, r]      r in 0..2           y[5*t .. 5*(t + T)] = 0        in each chunk of t
    y[t*5 + r] = 0              r in 2..5     ->    y[t*5 + r] = acc[t, r]

One pass over neighbours is faster than three over every fifth element, and threads share it.
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Access, Const, Var, map_access
from convdsl.ir.index import Index, const, maximum, minimum, product, sym
from convdsl.ir.loop import Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.names import Names
from convdsl.passes.sides import LONG_PHASES
from convdsl.schedule.nest import Nest

STRIDED = 5  # times as long as neighbours take elements that are none
Body = tuple[Stmt, ...]


def filled_first(nest: Nest, rest: Sequence[Piece], names: Names) -> tuple[str | None, Body] | None:
    """Statements that fill the results of an iteration of a loop (None: all), and this loop.

    They come before `nest` stores its own, and take the place of the pieces `rest`. None where these
    are no constant, or not short runs, or where iterations could meet in what they fill.
    """
    values = {p.value for p in rest}
    if len(values) != 1 or not all(isinstance(v, Const) and _scattered(rest) for v in values):
        return None
    (value,) = values
    hosts = [x for x in nest.loops if x.on_host and not x.reduced]
    if nest.loops[: len(hosts)] != tuple(hosts):
        return None
    element = map_access(nest.piece.access, nest.put)
    used: list[str] = []
    variables: list[Var] = []
    index: list[Index] = []
    for at, dim in zip(element.index, element.dims, strict=True):
        found = _span(nest, at, dim, [x.name for x in hosts], names)
        if found is None:
            return None
        span, mine = found
        used += mine
        if isinstance(span, Var):
            variables.append(span)
            span = sym(span.name)
        index.append(span)
    if sorted(used) != sorted(x.name for x in hosts):
        return None
    store = Store(Access(element.tensor, tuple(index), element.dims), value)
    return (hosts[-1].name if hosts else None), nested([(v, "slice") for v in variables], (store,))


def _scattered(rest: Sequence[Piece]) -> bool:
    """Whether the pieces are short runs with others between, and enough of them."""
    holes = sum(product(v.extent for v in p.vars).as_int() or 0 for p in rest)
    every = product(rest[0].access.dims).as_int()
    if every is None or holes * STRIDED < every:
        return False
    for piece in rest:
        last = piece.access.index[-1]
        runs = [v.extent.as_int() for v in piece.vars if last.coefficient(v.name) == 1]
        if any(n is None or n >= LONG_PHASES for n in runs):
            return False
    return True


def _span(
    nest: Nest, index: Index, dim: Index, hosts: Sequence[str], names: Names
) -> tuple[Index | Var, list[str]] | None:
    """What an iteration of the hosts fills along an axis, and those of them that it depends on.

    With a host loop of step H it is H elements, so that each element is one of exactly one iteration.
    """
    mine = [x for x in nest.loops if x.name in index.free]
    own = [x for x in mine if x.name not in hosts]
    around = [x for x in mine if x.name in hosts]
    if not index.is_affine_in([x.name for x in mine]) or len(around) > 1:
        return None
    if not around:
        if not own:
            return index, []
        return Var(names.fresh("o"), const(0), dim), []
    (host,) = around
    first = index.substitute({x.name: const(0) for x in own})
    step, shift = first.coefficient(host.name).as_int(), first.without(host.name).as_int()
    extent, length = host.extent.as_int(), dim.as_int()
    steps = [(index.coefficient(x.name).as_int(), x.extent.as_int()) for x in own]
    if step is None or shift is None or extent is None or length is None:
        return None
    if any(s is None or s < 1 or n is None for s, n in steps):
        return None
    reach = sum((s or 0) * ((n or 1) - 1) for s, n in steps)
    if step < 1 or reach >= step or shift > 0 or step * extent + shift < length:
        return None
    if step == 1:
        return first, [host.name]
    low, high = maximum(first, 0), minimum(first + step, dim)
    return Var(names.fresh("o"), first if shift == 0 else low, high), [host.name]
