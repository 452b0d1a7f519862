"""Checks that need numbers: ranges, divisors, element counts, 32-bit index arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from convdsl.diagnostics import CdslError, Span
from convdsl.ir.expr import Expr, Reduce, Scalar, Var, walk
from convdsl.ir.index import Index
from convdsl.sema.integers import evaluate, refs, show
from convdsl.sema.model import ResolvedOp

INT32 = 2**31 - 1


def check_numbers(op: ResolvedOp, env: Mapping[str, int], absent: frozenset[str]) -> None:
    """Check everything but the `where` clauses; what needs a name that `env` lacks is left out.

    Raises:
        CdslError: E0305, E0307, E0308 or E0310.
    """
    _check_written(op, env)
    _check_narrowings(op, env)
    for tensor in op.system.tensors:
        if tensor.name not in absent:
            _check_tensor(op, tensor.name, tensor.shape, env)
    for equation in op.system.equations:
        for piece in equation.pieces:
            _check_arithmetic(op, piece.value, {v.name: v for v in piece.vars}, env)


def _check_written(op: ResolvedOp, env: Mapping[str, int]) -> None:
    """Evaluate written ranges and the result's axes: divisors, overflow, negative extents."""
    for binder in op.binders:
        for bound in (binder.low, binder.high):
            if bound is not None and all(r.name in env for r in refs(bound)):
                evaluate(bound, env)
    for number, axis in enumerate(op.syntax.output.axes):
        if all(r.name in env for r in refs(axis)):
            value = evaluate(axis, env)
            if value < 0:
                raise CdslError(
                    "E0305",
                    f"axis {number} of `{op.output.name}` is negative",
                    axis.span,
                    notes=(" = ".join(dict.fromkeys([show(axis), show(axis, env), str(value)])),),
                )


def _check_narrowings(op: ResolvedOp, env: Mapping[str, int]) -> None:
    for n in op.narrowings:
        if not (n.low.free | n.high.free | n.extent.free) <= env.keys():
            continue
        low, high, extent = (i.evaluate(env) for i in (n.low, n.high, n.extent))
        if low < high and not (low >= 0 and high <= extent):
            raise CdslError(
                "E0310",
                f"`{n.index}` leaves axis {n.axis} of `{n.tensor}`",
                n.span,
                notes=(
                    f"`{n.index}` ranges over {n.low}..{n.high} = {low}..{high}",
                    f"the axis ranges over 0..{n.extent} = 0..{extent}",
                ),
                help="a written range may narrow an axis but not leave it",
            )


def _check_tensor(
    op: ResolvedOp, name: str, shape: tuple[Index, ...], env: Mapping[str, int]
) -> None:
    if not frozenset().union(*(s.free for s in shape)) <= env.keys():
        return
    extents = [s.evaluate(env) for s in shape]
    negative = next((n for n, extent in enumerate(extents) if extent < 0), None)
    if negative is not None:  # of a let that has the written range of its readers
        raise CdslError(
            "E0305",
            f"axis {negative} of `{name}` is negative",
            _span_of(op, name),
            notes=(f"{shape[negative]} = {extents[negative]}",),
        )
    count = 1
    for extent in extents:
        count *= extent
    if count > INT32:
        raise CdslError(
            "E0307",
            f"`{name}` would have {count} elements; the limit is {INT32}",
            _span_of(op, name),
            notes=(
                "shape (" + ", ".join(map(str, extents)) + ("," if len(extents) == 1 else "") + ")",
                "index arithmetic is 32 bit",
            ),
            help="compute it in parts, for example a batch at a time",
        )


def _span_of(op: ResolvedOp, name: str) -> Span:
    for let in op.syntax.lets:
        if let.definition.tensor.name == name:
            return let.definition.tensor.span
    return op.declaration(name).span


def _check_arithmetic(
    op: ResolvedOp, value: Expr, variables: dict[str, Var], env: Mapping[str, int]
) -> None:
    """Refuse relations and integer values whose parts pass 32 bits."""
    for node in walk(value):
        if isinstance(node, Reduce):
            variables |= {v.name: v for v in node.vars}
    for node in walk(value):
        if isinstance(node, Scalar) and node.index.free <= env.keys():
            number = node.index.evaluate(env)
            if abs(number) > INT32:
                raise CdslError(
                    "E0307",
                    f"the value {node.index} is {number}, which does not fit 32 bits",
                    op.syntax.name.span,
                    help="convert the parts and calculate with floats: `f32(A) * f32(B)`",
                )
        if isinstance(node, Reduce):
            for constraint in node.constraints:
                _check_relation(op, constraint.index, variables, env)


def _check_relation(
    op: ResolvedOp, relation: Index, variables: Mapping[str, Var], env: Mapping[str, int]
) -> None:
    names = [n for n in relation.free if n in variables]
    bounds = {n: (variables[n].low, variables[n].high) for n in names}
    needed = (relation.free - bounds.keys()).union(
        *(low.free | high.free for low, high in bounds.values())
    )
    if not needed <= env.keys():
        return
    rest, largest = relation, 0
    for name in names:
        factor = abs(relation.coefficient(name).evaluate(env))
        low, high = (b.evaluate(env) for b in bounds[name])
        largest = max(largest, factor)
        if low < high:
            largest = max(largest, factor * max(abs(low), abs(high - 1)))
        rest = rest.without(name)
    largest = max(largest, abs(rest.evaluate(env)))
    if largest > INT32:
        raise CdslError(
            "E0307",
            f"the relation {relation} == 0 reaches {largest}, which does not fit 32 bits",
            op.syntax.name.span,
            notes=("index arithmetic is 32 bit",),
        )
