"""The text of a planned matrix product: its operands as matrices, the call, and the store."""

from __future__ import annotations

import ast

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import Nest, View, canonical
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.gemm_plan import Operand, Plan, merges, operand
from convdsl.backends.numpy.nest import accumulate_into
from convdsl.backends.numpy.proof import Facts
from convdsl.backends.numpy.scope import Scope
from convdsl.backends.numpy.values import Values, uses
from convdsl.ir.expr import Expr, Load, free_names, loads
from convdsl.ir.index import Index, const, maximum, product

Names = tuple[str, ...]


def operand_of(expr: Expr, nest: Nest) -> Operand:
    access = canonical(expr.access, nest) if isinstance(expr, Load) else None
    return operand(access, uses(expr, nest), nest)


def product_call(left: Expr, right: Expr, chosen: Plan, nest: Nest) -> ast.expr:
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


def makes_vector(chosen: Plan, result: Operand) -> bool:
    """Whether a matrix with a vector makes neighbours in the store."""
    rows = chosen.m or chosen.n
    if chosen.stack or not rows or (chosen.m and chosen.n) or result.strides is None:
        return False
    return chosen.direct and result.strides[rows[-1]] == 1


def vector_store(
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
    strides = operand_of(expr, nest).strides
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


def product_store(
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
