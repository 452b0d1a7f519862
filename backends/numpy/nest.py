"""One perfect nest around one store as one NumPy statement.

Variables of the store are the axes of its view, further ones are reduced. Where a nest has no such
form, `NotVector` names the variables of which one has to become a Python loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import Nest, NotVector, View, injective, view
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.scope import Scope
from convdsl.backends.numpy.values import DIRECT, UFUNCS, Values, binary, spans, uses
from convdsl.ir.expr import Access, Binary, Call, Const, Expr, Load, Scalar, Var, loads
from convdsl.ir.index import sym
from convdsl.ir.loop import Store

REDUCTIONS = {"+": "sum", "*": "prod", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Target:
    """Where a nest stores: its view, and the order of all axes (those of the view first)."""

    view: View
    order: tuple[str, ...]
    reduced: tuple[str, ...]


def make_nest(scope: Scope, variables: list[Var]) -> Nest:
    """The nest with facts about its own variables; they are taken to have values."""
    inner = scope.facts.copy()
    for var in variables:
        inner.enter(var)
    return Nest(scope, {v.name: v for v in variables}, inner)


def target(nest: Nest, store: Store) -> Target:
    """The store's view, after checking that a NumPy statement means the same as the loops."""
    check_bounds(nest)
    names = set(nest.used(store.access))
    rest = tuple(n for n in nest.vars if n not in names)
    if store.accumulate is None and rest:
        if uses(store.value, nest) & set(rest):
            raise NotVector(frozenset(nest.vars))  # the last value wins
        nest.require_values(list(rest))
        rest = ()
    missing = set(rest) - spans(store.value, nest)
    if missing:
        raise NotVector(frozenset(missing))
    check_own_reads(nest, store, bool(rest))
    unclear = injective(store.access, nest)
    if unclear:
        raise NotVector(unclear)
    result = view(store.access, nest)
    return Target(result, (*result.vars, *rest), rest)


def check_bounds(nest: Nest) -> None:
    """Bounds may not depend on variables of the nest."""
    for var in nest.vars.values():
        inner = (var.low.free | var.high.free) & nest.vars.keys()
        if inner:
            raise NotVector(frozenset(inner))


def check_own_reads(nest: Nest, store: Store, reducing: bool) -> None:
    """A read of the stored buffer is of the element itself, or of elements that no one stores to."""
    if not nest.vars:
        return
    for load in loads(store.value):
        if load.access.tensor != store.access.tensor:
            continue
        if load.access == store.access and not reducing:
            continue
        if not _apart(load.access, store.access, nest):
            raise NotVector(frozenset(nest.vars))


def _apart(a: Access, b: Access, nest: Nest) -> bool:
    """Whether two accesses surely touch no common element, over all points of the nest."""
    if a.dims != b.dims:
        return False
    renamed = {n: f"{n}\0" for n in nest.vars}
    facts = make_nest(nest.scope, list(nest.vars.values())).facts
    for name, var in nest.vars.items():
        facts.enter(Var(renamed[name], var.low, var.high))
    values = {old: sym(new) for old, new in renamed.items()}
    for i, j in zip(a.index, b.index, strict=True):
        distance = i.substitute(values) - j
        if facts.positive(distance) or facts.positive(-distance):
            return True
    return False


# -- the statement ---------------------------------------------------------------------------------
def elementwise(nest: Nest, store: Store, fresh: bool) -> list[Item]:
    """The statements of a slice nest. `fresh`: the target need not be read, it holds the identity."""
    place = target(nest, store)
    values = Values(nest, place.order)
    accumulate = store.accumulate
    if place.reduced:
        node = _reduce(store, values.emit(store.value), len(place.reduced))
        if accumulate not in ("+", "*"):  # those of nothing are the identity
            nest.require_values(list(place.reduced))
        if fresh:
            return [code.assign(place.view.subscript(), node)]
        return accumulate_into(nest.scope, place.view, accumulate or "+", node)
    if accumulate is None or fresh:
        return _assign(nest, place, store, values)
    return accumulate_into(nest.scope, place.view, accumulate, values.emit(store.value))


def _reduce(store: Store, node: ast.expr, count: int) -> ast.expr:
    axes = [code.number(-k) for k in range(count, 0, -1)]
    keywords = {"axis": axes[0] if count == 1 else code.sequence(axes)}
    if store.value.dtype == "i32" and store.accumulate in ("+", "*"):
        keywords["dtype"] = code.np("int32")
    return code.method(node, REDUCTIONS[store.accumulate or "+"], **keywords)


def accumulate_into(scope: Scope, place: View, op: str, node: ast.expr) -> list[Item]:
    """`view op= node`."""
    if not place.vars:
        element = place.subscript()
        if op in ("max", "min"):
            return [code.assign(element, binary(op, element, node))]
        return [code.augment(element, op, node)]
    here, before = named(scope, place)
    if op in ("max", "min"):
        call = code.call(code.np(UFUNCS[op]), here, node, out=here)
        return [*before, code.evaluate(call)]
    if before and isinstance(place.node(), ast.Subscript):
        return [code.augment(place.node(), op, node)]
    return [*before, code.augment(here, op, node)]


def named(scope: Scope, place: View) -> tuple[ast.expr, list[Item]]:
    """A name for a view (not for an element), with the statement that binds it."""
    node = place.node()
    if isinstance(node, ast.Name):
        return node, []
    name = code.name(scope.working("view"))
    return name, [code.assign(name, node)]


def _assign(nest: Nest, place: Target, store: Store, values: Values) -> list[Item]:
    """`view[...] = value`, through `out=` where that saves a temporary."""
    direct = nest.scope.buffers[store.access.tensor].dtype != "f16" and bool(place.view.vars)
    if direct and _is_ufunc(store.value):
        here, before = named(nest.scope, place.view)
        full = frozenset(place.view.vars)
        return [*before, *_into(here, store.value, full, store.access.tensor, values)]
    return [code.assign(place.view.subscript(), values.emit(store.value))]


def _is_ufunc(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return expr.name in (*DIRECT, "relu", "pow")
    return isinstance(expr, Binary)


def _into(
    here: ast.expr, expr: Expr, full: frozenset[str], tensor: str, values: Values
) -> list[Item]:
    """Statements that leave the value of `expr` in `here`, an operation at a time where possible."""

    def big(e: Expr) -> bool:
        return _is_ufunc(e) and uses(e, values.nest) == full and e.dtype == expr.dtype

    def small(e: Expr) -> bool:
        return isinstance(e, Const | Scalar) or (isinstance(e, Load) and e.access.tensor != tensor)

    match expr:
        case Binary(op, a, b):
            before: list[Item] = []
            if big(a) and small(b):
                before, left, right = _into(here, a, full, tensor, values), here, values.emit(b)
            elif big(b) and small(a):
                before, left, right = _into(here, b, full, tensor, values), values.emit(a), here
            else:
                left, right = values.emit(a), values.emit(b)
                if isinstance(a, Const | Scalar) and isinstance(b, Const | Scalar):
                    left = values.typed(a)
            call = code.call(code.np(UFUNCS[op]), left, right, out=here)
            return [*before, code.evaluate(call)]
        case Call(name, args):
            before = []
            if big(args[0]):
                before, first = _into(here, args[0], full, tensor, values), here
            else:
                first = values.typed(args[0])
            if name == "relu":
                zero = code.number(0 if expr.dtype == "i32" else 0.0)
                call = code.call(code.np("maximum"), first, zero, out=here)
            elif name == "pow":
                call = code.call(code.np("power"), first, values.emit(args[1]), out=here)
            else:
                call = code.call(code.np(name), first, out=here)
            return [*before, code.evaluate(call)]
        case _:
            raise NotImplementedError
