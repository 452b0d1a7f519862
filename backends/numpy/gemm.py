"""A nest `store += A*B` as one `np.matmul` on stacked views.

Roles follow from where a variable occurs (A, B, the store), whatever its level is called; the
levels only say which factor of a longer product belongs to which side.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import Nest, View, canonical
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.gemm_plan import Operand, Plan, Roles, merges, operand, plan
from convdsl.backends.numpy.nest import accumulate_into, target
from convdsl.backends.numpy.proof import Facts
from convdsl.backends.numpy.scope import Scope
from convdsl.backends.numpy.values import Values, spans, uses
from convdsl.ir.expr import Binary, Expr, Load, free_names, loads
from convdsl.ir.index import Index, const, maximum, product
from convdsl.ir.loop import Level, Store

Names = tuple[str, ...]


class NotGemm(Exception):
    """The nest is no matrix product."""


def matmul(nest: Nest, store: Store, levels: dict[str, Level], fresh: bool) -> list[Item]:
    """The statements; `fresh`: the target holds zeros, so the product may be written over it."""
    if store.accumulate != "+":
        raise NotGemm
    left, right = _sides(store.value, nest, levels)
    place = target(nest, store)
    roles = _roles(left, right, place.view.vars, place.reduced, nest)
    access = canonical(store.access, nest)
    result = operand(access, frozenset(place.view.vars), nest)
    half = nest.scope.buffers[access.tensor].dtype == "f16"
    a, b = _operand(left, nest), _operand(right, nest)
    chosen = plan(roles, a, b, result, nest, may_write=fresh and not half)
    last = place.view.vars[-1] if place.view.vars else ""
    if last in chosen.m:  # the transposed product, whose rows are those of the store
        left, right = right, left
        chosen = replace(chosen, m=chosen.n, n=chosen.m)
    if fresh and not half and _makes_vector(chosen, result):
        return [_vector(left, right, chosen, place.view, access.tensor, nest)]
    node = _call(left, right, chosen, nest)
    return _store(node, chosen, place.view, access.tensor, nest, fresh, half)


def _sides(value: Expr, nest: Nest, levels: dict[str, Level]) -> tuple[Expr, Expr]:
    """The two operands of the product."""
    factors = _factors(value)
    rows = {n for n, level in levels.items() if level == "gemm.m"}
    columns = {n for n, level in levels.items() if level == "gemm.n"}
    sides: tuple[list[Expr], list[Expr]] = ([], [])
    open_factors: list[Expr] = []
    for factor in factors:
        used = uses(factor, nest)
        if used & rows and used & columns:
            raise NotGemm
        if used & rows:
            sides[0].append(factor)
        elif used & columns:
            sides[1].append(factor)
        else:
            open_factors.append(factor)
    for factor in open_factors:
        used = uses(factor, nest)
        if not sides[0] or not sides[1]:
            if not used:
                raise NotGemm
            (sides[1] if sides[0] else sides[0]).append(factor)
        else:
            known = frozenset().union(*(uses(f, nest) for f in sides[1]))
            (sides[1] if used <= known else sides[0]).append(factor)
    if not sides[0] or not sides[1]:
        raise NotGemm
    return _product(sides[0]), _product(sides[1])


def _factors(value: Expr) -> list[Expr]:
    if isinstance(value, Binary) and value.op == "*":
        return [*_factors(value.left), *_factors(value.right)]
    return [value]


def _product(factors: list[Expr]) -> Expr:
    out = factors[0]
    for factor in factors[1:]:
        out = Binary("*", out, factor)
    return out


def _roles(left: Expr, right: Expr, stored: Names, reduced: Names, nest: Nest) -> Roles:
    a, b = uses(left, nest), uses(right, nest)
    if a != spans(left, nest) or b != spans(right, nest):
        raise NotGemm
    if not set(stored) <= a | b or not set(reduced) <= a & b or not reduced:
        raise NotGemm
    return Roles(
        batch=tuple(n for n in stored if n in a and n in b),
        m=tuple(n for n in stored if n in a and n not in b),
        n=tuple(n for n in stored if n in b and n not in a),
        k=reduced,
    )


def _operand(expr: Expr, nest: Nest) -> Operand:
    access = canonical(expr.access, nest) if isinstance(expr, Load) else None
    return operand(access, uses(expr, nest), nest)


# -- text -----------------------------------------------------------------------------------------
def _call(left: Expr, right: Expr, chosen: Plan, nest: Nest) -> ast.expr:
    """np.matmul of the two operands, or np.dot of two vectors."""
    if not chosen.stack and not chosen.m and not chosen.n:
        a = _matrix(left, (), (chosen.k,), nest)
        return code.call(code.np("dot"), a, _matrix(right, (), (chosen.k,), nest))
    a = _matrix(left, chosen.stack, (chosen.m, chosen.k), nest)
    b = _matrix(right, chosen.stack, (chosen.k, chosen.n), nest)
    if nest.scope.host_depth and not nest.guard:
        a = _once(a, left, (chosen.m, chosen.k), nest)
        b = _once(b, right, (chosen.n, chosen.k), nest)
    return code.call(code.np("matmul"), a, b)


def _makes_vector(chosen: Plan, result: Operand) -> bool:
    """Whether a matrix with a vector makes neighbours in the store."""
    rows = chosen.m or chosen.n
    if chosen.stack or not rows or (chosen.m and chosen.n) or result.strides is None:
        return False
    return chosen.direct and result.strides[rows[-1]] == 1


def _vector(
    left: Expr, right: Expr, chosen: Plan, place: View, tensor: str, nest: Nest
) -> ast.stmt:
    """np.dot of the two into the store, which costs less around the call of BLAS than np.matmul."""
    scope = nest.scope
    rows = chosen.m or chosen.n
    matrix, vector = (left, right) if chosen.m else (right, left)
    if scope.buffers[tensor].memory == "output":
        scope.merges_output = True  # np.dot takes no `out` with gaps
    there = place.transposed(rows).node()
    if len(rows) > 1:
        there = _reshape(there, [_size(rows, nest)], scope)
    a = _matrix(matrix, (), (rows, chosen.k), nest)
    b = _matrix(vector, (), (chosen.k,), nest)
    if scope.host_depth and not nest.guard:
        a = _once(a, matrix, (rows, chosen.k), nest)
        b = _once(b, vector, (chosen.k,), nest)
    return code.evaluate(code.call(code.np("dot"), a, b, out=there))


def _matrix(expr: Expr, stack: Names, groups: tuple[Names, ...], nest: Nest) -> ast.expr:
    """An operand with its groups of variables as its last axes, each merged to one."""
    order = (*stack, *(n for group in groups for n in group))
    node = Values(nest, order).typed(expr)
    if all(len(group) == 1 for group in groups):
        windows = any(isinstance(n, ast.Name) and n.id == "_strided" for n in ast.walk(node))
        return code.method(node, "copy") if windows else node  # BLAS takes no overlapping rows
    used = uses(expr, nest)
    lead = list(stack)
    while lead and lead[0] not in used:
        lead.pop(0)
    extents = [nest.extent(n) if n in used else product(()) for n in lead]
    return _reshape(node, [*extents, *(_size(group, nest) for group in groups)], nest.scope)


def _once(node: ast.expr, expr: Expr, groups: tuple[Names, ...], nest: Nest) -> ast.expr:
    """An operand that costs a copy or more, and is the same in all iterations around, made once."""
    scope = nest.scope
    reads = loads(expr)
    strides = _operand(expr, nest).strides
    simple = all(merges(g, strides, nest) for g in groups) and isinstance(expr, Load)
    fixed = free_names(expr) | frozenset().union(
        *(v.low.free | v.high.free for v in nest.vars.values() if v.name in uses(expr, nest))
    )
    if simple or not reads or not fixed <= scope.sizes | nest.vars.keys():
        return node
    if any(scope.buffers[r.access.tensor].memory != "input" for r in reads):
        return node
    return scope.prepare(node, reads[0].access.tensor)


def _size(names: Names, nest: Nest) -> Index:
    return product(nest.extent(n) for n in names)


def _reshape(node: ast.expr, extents: list[Index], scope: Scope) -> ast.expr:
    if isinstance(node, ast.Name):
        node = code.name(scope.base(node.id))
    return code.method(node, "reshape", *(scope.integer(e) for e in extents))


def _store(
    node: ast.expr, chosen: Plan, place: View, tensor: str, nest: Nest, fresh: bool, half: bool
) -> list[Item]:
    scope = nest.scope
    if not place.vars:
        if fresh:
            return [code.assign(place.subscript(), node)]
        return accumulate_into(scope, place, "+", node)
    order = (*chosen.stack, *chosen.m, *chosen.n)
    plain = len(chosen.m) == 1 and len(chosen.n) == 1
    extents = [
        *(nest.extent(n) for n in chosen.stack),
        _size(chosen.m, nest),
        _size(chosen.n, nest),
    ]
    if chosen.direct:
        there = place.transposed(order)
        if not plain:
            if scope.buffers[tensor].memory == "output" and max(len(chosen.m), len(chosen.n)) > 1:
                scope.merges_output = True
            there = whole(_reshape(there.node(), extents, scope), order)
        if fresh and not half:
            assert isinstance(node, ast.Call)
            node.keywords.append(ast.keyword("out", there.node()))
            return [code.evaluate(node)]
    else:
        there = place
    before: list[Item] = []
    if not half:
        before, node = _through_scratch(node, extents, tensor, scope)
    if not chosen.direct:
        if not plain:
            node = _reshape(node, [nest.extent(n) for n in order], scope)
        node = whole(node, order).transposed(place.vars).node()
    if fresh:
        return [*before, code.assign(there.subscript(), node)]
    return [*before, *accumulate_into(scope, there, "+", node)]


def whole(node: ast.expr, order: Names) -> View:
    return View(node, tuple(code.section() for _ in order), order)


def _through_scratch(
    node: ast.expr, extents: list[Index], tensor: str, scope: Scope
) -> tuple[list[Item], ast.expr]:
    """Inside a host loop the product goes to an array that is made once."""
    if not scope.host_depth:
        return [], node
    bounds = [scope.facts.bound(e) for e in extents]
    if any(b is None or not b.free <= scope.sizes for b in bounds):
        return [], node
    # The array is made outside of the loops, where what bounds one that never runs may be negative.
    outside = Facts(scope.facts.sizes)
    fixed = [b if outside.holds(b) else maximum(b, const(0)) for b in bounds if b is not None]
    exact = all(scope.facts.equal(b, e) for b, e in zip(fixed, extents, strict=True))
    shape = tuple(fixed) if exact else (product(fixed),)
    name = code.name(scope.scratch_array(scope.buffers[tensor].dtype, shape))
    room = name
    if not exact:
        needed = scope.integer(product(extents))
        room = _reshape(code.subscript(name, [code.section(None, needed)]), extents, scope)
    assert isinstance(node, ast.Call)
    if ast.unparse(node.func) == "np.dot":
        return [], node
    node.keywords.append(ast.keyword("out", room))
    if exact:
        return [code.evaluate(node)], name
    product_name = code.name(scope.working("product"))
    return [code.assign(product_name, node)], product_name
