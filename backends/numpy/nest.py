"""One perfect nest around one store as one NumPy statement.

Variables of the store are the axes of its view, further ones are reduced. Where a nest has no such
form, `NotVector` names the variables of which one has to become a Python loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import Nest, NotVector, View, view
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.injective import injective
from convdsl.backends.numpy.scope import Scope
from convdsl.backends.numpy.values import UFUNCS, Values, binary, operation, spans, uses
from convdsl.ir.expr import Access, Const, Expr, Load, Scalar, Var, loads
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
    """A read of the stored buffer is of the element itself, or of one that nothing stores to."""
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
    """The statements of a slice nest. `fresh`: the target holds the identity, it is not read."""
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
    if direct and operation(store.value, nest.scope) is not None:
        here, before = named(nest.scope, place.view)
        return [*before, *into(here, store.value, place.view.vars, store.access.tensor, values)]
    return [code.assign(place.view.subscript(), values.emit(store.value))]


def into(
    here: ast.expr, expr: Expr, order: tuple[str, ...], tensor: str, values: Values
) -> list[Item]:
    """Statements that leave the value of `expr` in `here`, an operation at a time where possible.

    An operand may be computed in `here` first when it has all axes and the other operand is a leaf
    that does not read the stored buffer.
    """
    found = operation(expr, values.scope)
    assert found is not None
    function, operands = found

    def big(e: Expr) -> bool:
        whole = uses(e, values.nest) == frozenset(order) and e.dtype == expr.dtype
        return whole and operation(e, values.scope) is not None

    def small(e: Expr) -> bool:
        return isinstance(e, Const | Scalar) or (isinstance(e, Load) and e.access.tensor != tensor)

    before: list[Item] = []
    args: list[ast.expr] = []
    for operand in operands:
        if not before and big(operand) and all(small(e) for e in operands if e is not operand):
            before = into(here, operand, order, tensor, values)
            args.append(here)
        else:
            args.append(values.emit(operand))
    if not before and all(isinstance(e, Const | Scalar) for e in operands):
        args[0] = values.typed(operands[0])
    return [*before, code.evaluate(code.call(function, *args, out=here))]
