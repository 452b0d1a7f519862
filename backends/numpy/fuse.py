"""Finding nests in statements, and fills that the statement after them makes superfluous."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

from convdsl.backends.numpy.proof import Facts
from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Load,
    Var,
    loads,
    map_access,
    map_children,
    map_index,
)
from convdsl.ir.index import Index, sym
from convdsl.ir.loop import For, Let, Level, Stmt, Store

IDENTITY = {"+": 0.0, "*": 1.0, "max": float("-inf"), "min": float("inf")}


@dataclass(frozen=True)
class Chain:
    """Loops that may become array axes, perfectly nested around one store."""

    vars: tuple[tuple[Var, Level], ...]
    store: Store


def chain(stmt: Stmt) -> Chain | None:
    """The nest that a statement is, integer names inside it substituted."""
    match stmt:
        case Store():
            return Chain((), stmt)
        case For(var, level, (inner,)) if level in ("slice", "vector") or level.startswith("gemm"):
            found = chain(inner)
            if found is None or any(v.name == var.name for v, _ in found.vars):
                return None
            return Chain(((var, level), *found.vars), found.store)
        case Let(name, value, (inner,)) if not isinstance(inner, Store):
            found = chain(inner)
            if found is None or any(v.name in value.free or v.name == name for v, _ in found.vars):
                return None
            return substitute(found, {name: value})
        case _:
            return None


def substitute(found: Chain, values: dict[str, Index]) -> Chain:
    def f(index: Index) -> Index:
        return index.substitute(values)

    variables = tuple((Var(v.name, f(v.low), f(v.high)), level) for v, level in found.vars)
    return Chain(variables, map_store(found.store, f))


def map_store(store: Store, f: object) -> Store:
    assert callable(f)
    return replace(store, access=map_access(store.access, f), value=map_index(store.value, f))


def simplify(found: Chain, facts: Facts) -> Chain:
    """Variables with exactly one value replaced by it, and dims of extent 1 dropped."""
    for at, (var, _) in enumerate(found.vars):
        if facts.expand(var.extent).as_int() == 1:
            rest = Chain(found.vars[:at] + found.vars[at + 1 :], found.store)
            return simplify(substitute(rest, {var.name: var.low}), facts)
    store = found.store
    slim = replace(store, access=squeeze(store.access), value=_squeeze_loads(store.value))
    return Chain(found.vars, slim)


def squeeze(access: Access) -> Access:
    """Without dims of extent 1, whose index is 0."""
    kept = [(i, d) for i, d in zip(access.index, access.dims, strict=True) if d.as_int() != 1]
    return Access(access.tensor, tuple(i for i, _ in kept), tuple(d for _, d in kept))


def _squeeze_loads(expr: Expr) -> Expr:
    if isinstance(expr, Load):
        return replace(expr, access=squeeze(expr.access))
    return map_children(expr, _squeeze_loads)


def fills(first: Chain, second: Chain) -> bool:
    """Whether `first` stores the identity of `second`'s accumulation."""
    value, op = first.store.value, second.store.accumulate
    return op is not None and isinstance(value, Const) and value.value == IDENTITY[op]


def covers(first: Chain, second: Chain, facts: Facts) -> bool:
    """Whether `first` stores, to exactly the elements of `second`, values that could come later."""
    fill, store = first.store, second.store
    if fill.accumulate is not None or store.accumulate is None:
        return False
    if fill.access.tensor != store.access.tensor or fill.access.dims != store.access.dims:
        return False
    reads = (*loads(fill.value), *loads(store.value))
    if any(r.access.tensor == store.access.tensor for r in reads):
        return False
    mine = [v for v, _ in first.vars]
    others = [v for v, _ in second.vars if v.name in store.access.free]
    if len(mine) != len(others) or len(mine) > 5:
        return False
    if any(v.name not in fill.access.free for v in mine):
        return False
    return any(_same(first, second, mine, list(order), facts) for order in permutations(others))


def _same(first: Chain, second: Chain, mine: list[Var], others: list[Var], facts: Facts) -> bool:
    """Whether the accesses are equal with the variables matched in this order."""
    pairs = list(zip(mine, others, strict=True))
    names: dict[str, Index | int] = {a.name: sym(b.name) for a, b in pairs}
    bounds = [(a.low, b.low) for a, b in pairs] + [(a.high, b.high) for a, b in pairs]
    bounds += zip(first.store.access.index, second.store.access.index, strict=True)
    return all(facts.equal(a.substitute(names), b) for a, b in bounds)
