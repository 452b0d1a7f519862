"""Stores over slices within conditions, for host programs.

Of two slices that one condition ties, the shorter one becomes a host loop, or where that is not known
the one with the smaller step: `t*8 + r < T` bounds t for each r.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from convdsl.ir.expr import Access, Guard, Pred, Var, ge
from convdsl.ir.index import Index, maximum, minimum
from convdsl.ir.interval import Interval, ranges_of, simplest
from convdsl.ir.loop import If, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.relation import bounds_from

Body = tuple[Stmt, ...]
Lengths = Mapping[str, int | None]


def over(
    own: Sequence[Var],
    conditions: Sequence[Pred],
    store: Store,
    apart: Collection[str] = (),
    lengths: Lengths | None = None,
) -> Body:
    """A store over loops, those slices that no condition ties to another one; `apart` are none, too.

    `lengths` says how long loops of an unknown range are at most.
    """
    order, hosts = _arranged(own, conditions, apart, lengths)
    bounded, tests = _bounded(order, conditions)
    loops = _levels(bounded, hosts)
    return nested(loops, (If(tuple(tests), (store,)),) if tests else (store,))


def over_inner(
    own: Sequence[Var],
    conditions: Sequence[Pred],
    store: Store,
    apart: Collection[str],
    lengths: Lengths,
    known: Mapping[str, Interval],
) -> Body:
    """The same; where conditions tie a short slice to a long one, one store for most of the long one.

    `t*8 + r < T` with r in 0..8 holds for all r up to some t; the few positions beyond are stored one by
    one, each with the r that it has.
    """
    names = {v.name for v in own}
    tied = [p for p in conditions if len(p.index.free & names) > 1]
    _, hosts = _arranged(own, conditions, apart, lengths)
    found = _for_all(own, tied, [p for p in conditions if p not in tied], hosts, apart, known)
    if found is None:
        return over(own, conditions, store, apart, lengths)
    around, most = found
    others = [p for p in conditions if p not in tied]
    inside = [most if v.name == most.name else v for v in own]
    body = over(inside, others, store, apart, lengths)
    each = [p for p in conditions if p.index.free & names != {most.name}]
    rest = [v for v in own if v.name != most.name]
    return body + _beyond(around, most, over(rest, each, store))


def _for_all(
    own: Sequence[Var],
    tied: Sequence[Pred],
    others: Sequence[Pred],
    hosts: Collection[str],
    apart: Collection[str],
    known: Mapping[str, Interval],
) -> tuple[Var, Var] | None:
    """The long one of two slices that the `tied` conditions tie, within the `others`, and that part of
    it where they hold for all of the short one."""
    names = {v.name for v in own}
    pair = frozenset().union(*(p.index.free & names for p in tied))
    short = next((v for v in own if v.name in pair & set(hosts) - set(apart)), None)
    long = next((v for v in own if v.name in pair - set(hosts)), None)
    if short is None or long is None or len(pair) != 2:
        return None
    inner = [_at_worst(p, short) for p in tied]
    if None in inner:
        return None
    (around,), _ = _bounded([long], [p for p in others if p.index.free & names == {long.name}])
    (part,), left = _bounded([around], [p for p in inner if p is not None])
    if left:
        return None
    low = simplest(minimum(part.low, around.high), known)
    return around, Var(long.name, low, simplest(maximum(part.high, low), known))


def _beyond(around: Var, most: Var, body: Body) -> Body:
    """Statements for each position on both sides of most of a slice."""
    sides = ((around.low, most.low), (most.high, around.high))
    loops = (nested([(Var(most.name, a, b), "host")], body) for a, b in sides if a != b)
    return tuple(s for one in loops for s in one)


def _at_worst(pred: Pred, var: Var) -> Pred | None:
    """The condition for all values of a variable; None where that is not known."""
    index = pred.index
    step = index.coefficient(var.name).as_int() if index.is_affine_in([var.name]) else None
    if step is None or pred.kind != "ge":
        return None
    return ge(index.substitute({var.name: var.low if step > 0 else var.high - 1}))


def with_rest(
    own: Sequence[Var],
    conditions: Sequence[Pred],
    inner: Sequence[Pred],
    access: Access,
    guard: Guard,
    lengths: Lengths | None = None,
) -> Body:
    """A store of `guard` over loops: its value where the `inner` conditions hold, else the other one.

    Where they hold for all of a box, which is tested as a whole, it is one store. Elsewhere, where they
    bound one slice alone, what is left of it on both sides is filled; or everything is filled first.
    """
    _, hosts = _arranged(own, (*conditions, *inner), (), lengths)
    rows = _rows(own, conditions, inner, access, guard, hosts, lengths)
    if rows is not None:
        return rows
    whole = _whole(own, inner) if hosts else None  # Python loops are what a test may save
    parts = _parts(own, conditions, inner, access, guard, lengths)
    if whole is None:
        return parts
    inside = over(own, conditions, Store(access, guard.value), (), lengths)
    return (If((ge(whole),), inside), If((ge(-1 - whole),), parts))


def _rows(
    own: Sequence[Var],
    conditions: Sequence[Pred],
    inner: Sequence[Pred],
    access: Access,
    guard: Guard,
    hosts: Collection[str],
    lengths: Lengths | None,
) -> Body | None:
    """The same where conditions tie a short slice to a long one of larger steps, as windows with a hop
    have: most of the long one in one store, the few positions on both sides one by one."""
    found = _for_all(own, inner, conditions, hosts, (), ranges_of(own))
    if found is None or not all(_hops(p, found[1].name) for p in inner):
        return None
    around, most = found
    inside = [most if v.name == most.name else v for v in own]
    each = [p for p in conditions if p.index.free & {v.name for v in own} != {most.name}]
    body = over(inside, each, Store(access, guard.value), (), lengths)
    rest = [v for v in own if v.name != most.name]
    return body + _beyond(around, most, _parts(rest, each, inner, access, guard, lengths))


def _hops(pred: Pred, long: str) -> bool:
    """Whether one position along a slice changes a condition by more than one."""
    return abs(pred.index.coefficient(long).as_int() or 0) > 1


def _whole(own: Sequence[Var], conditions: Sequence[Pred]) -> Index | None:
    """An index that is zero or more where the conditions hold at all points; None where it never is.

    It depends on loops around; without such a loop there is one box, whose conditions are met or not.
    """
    least: list[Index] = []
    names = {v.name for v in own}
    for pred in conditions:
        found: Pred | None = pred
        for var in own:
            found = _at_worst(found, var) if found is not None else None
        if found is None or found.index.free & names:
            return None
        least.append(found.index)
    worst = minimum(*least)
    return worst if worst.free else None


def _parts(
    own: Sequence[Var],
    conditions: Sequence[Pred],
    inner: Sequence[Pred],
    access: Access,
    guard: Guard,
    lengths: Lengths | None,
) -> Body:
    """The same without a test of the whole box."""
    order, hosts = _arranged(own, (*conditions, *inner), (), lengths)
    around, tests = _bounded(order, conditions)
    within, more = _bounded(order, (*conditions, *inner))
    cut = [n for n, (a, b) in enumerate(zip(around, within, strict=True)) if a != b]
    value, rest = Store(access, guard.value), Store(access, guard.otherwise)
    if tests or more or len(cut) != 1 or order[cut[0]].name in hosts:
        inside = over(own, (*conditions, *inner), value, (), lengths)
        return (*over(own, conditions, rest, (), lengths), *inside)
    (at,) = cut
    whole, part = around[at], within[at]
    known = ranges_of(around)
    low = part.low
    if low != whole.low:
        low = simplest(minimum(low, whole.high), known)
    high = simplest(maximum(part.high, low), known)
    pieces = ((whole.low, low, rest), (low, high, value), (high, whole.high, rest))
    stores = tuple(
        s
        for a, b, store in pieces
        for s in nested([(Var(whole.name, a, b), "slice")], (store,))
        if a != b
    )
    return _around(around, at, hosts, stores)


def _around(loops: Sequence[Var], at: int, hosts: set[str], body: Body) -> Body:
    """Host loops around statements over one slice, to which the other slices are added."""
    slices = [v for n, v in enumerate(loops) if n != at and v.name not in hosts]
    body = tuple(s for one in body for s in nested([(v, "slice") for v in slices], (one,)))
    return nested([(v, "host") for v in loops if v.name in hosts], body)


def _arranged(
    own: Sequence[Var], conditions: Sequence[Pred], apart: Collection[str], lengths: Lengths | None
) -> tuple[list[Var], set[str]]:
    """The loops, those that run on the host first, and the names of these."""
    names = [x.name for x in own]
    found = {x.name: x.extent.as_int() for x in own} if lengths is None else lengths
    hosts = set(apart)
    for pred in conditions:
        tied = [n for n in names if n in pred.index.free and n not in hosts]
        if len(tied) > 1:
            known = all(found[n] is not None for n in tied)
            steps = {n: abs(pred.index.coefficient(n).as_int() or 1 << 31) for n in tied}
            tied.sort(key=lambda n: ((found[n] or 0) * known, steps[n]))
            hosts |= set(tied[:-1])
    first = [x for x in own if x.name in hosts]
    return first + [x for x in own if x.name not in hosts], hosts


def _bounded(order: Sequence[Var], conditions: Sequence[Pred]) -> tuple[list[Var], list[Pred]]:
    """The loops within the conditions on each and those around it, and what is no bound of one."""
    names = {x.name for x in order}
    left = list(conditions)
    out: list[Var] = []
    tests: list[Pred] = []
    for at, loop in enumerate(order):
        seen = {x.name for x in order[: at + 1]}
        mine = [p for p in left if loop.name in p.index.free and p.index.free & names <= seen]
        var, more = bounds_from(mine, loop)
        left = [p for p in left if p not in mine]
        out.append(var)
        tests += more
    return out, tests + left


def _levels(loops: Sequence[Var], hosts: set[str]) -> list[tuple[Var, Level]]:
    return [(v, "host" if v.name in hosts else "slice") for v in loops]
