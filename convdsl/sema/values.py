"""Values: from the renamed tree of a statement to the expression of its equation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from convdsl.diagnostics import CdslError, Note
from convdsl.ir import expr as ir
from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.index import const, maximum, minimum, sym
from convdsl.sema.declarations import Head, check_float
from convdsl.sema.names import did_you_mean, is_size, quoted
from convdsl.sema.relations import read_relation
from convdsl.sema.scopes import Statement
from convdsl.sema.types import Typed, adapt, floats, integer, stored, unify
from convdsl.syntax import ast

_CASTS = ("f32", "f16", "i32")
_ARITY = {name: 2 if name in ("leaky_relu", "pow") else 1 for name in ir.FUNCTIONS}


def equation(
    head: Head,
    statement: Statement,
    variables: Mapping[str, ir.Var],
    tensors: Mapping[str, Tensor],
    declared: bool,
) -> Equation:
    """The equation of one statement.

    Raises:
        CdslError: E0203 relations, E0213 types, E0214 calls, E0216 no value, E0220 constants.
    """
    values = _Values(head, statement, variables, tensors)
    target = tensors[statement.target]
    value = stored(values.value(statement.value), target.name, target.dtype, declared)
    left = values.access(target, statement.axes)
    free = tuple(variables[name] for name in statement.left)
    return Equation(target.name, (Piece(free, (), left, value),))


class _Values:
    def __init__(
        self,
        head: Head,
        statement: Statement,
        variables: Mapping[str, ir.Var],
        tensors: Mapping[str, Tensor],
    ) -> None:
        self.head, self.statement = head, statement
        self.variables, self.tensors = variables, tensors

    def value(self, expr: ast.Expr) -> Typed:
        match expr:
            case ast.Number(text):
                if text.isdigit():
                    return integer(const(int(text)), expr.span)
                check_float(float(text), "f32", expr.span)
                return Typed(ir.Const(float(text), "f32"), "f32", expr.span)
            case ast.Ref():
                return self._ref(expr)
            case ast.Read(tensor, axes):
                source = self.tensors[tensor.name]
                dtype = "i32" if source.dtype == "i32" else "f32"
                kind = cast(Literal["f32", "i32"], dtype)
                return Typed(ir.Load(self.access(source, axes), kind), kind, expr.span)
            case ast.Negate(operand):
                return self._negate(self.value(operand), expr)
            case ast.Binary():
                return self._binary(expr)
            case ast.Call():
                return self._call(expr)
            case ast.Reduce():
                return self._reduce(expr)

    def access(self, tensor: Tensor, axes: tuple[ast.Axis, ...]) -> ir.Access:
        """An element; the numbers of axes and factors have been compared already."""
        index, dims = [], []
        for axis, factors, extent in zip(axes, tensor.axes, tensor.shape, strict=True):
            index += [sym(ref.name) for ref in axis.names]
            dims += [extent] if len(axis.names) == 1 else list(factors)
        return ir.Access(tensor.name, tuple(index), tuple(dims))

    def _ref(self, ref: ast.Ref) -> Typed:
        name = ref.name
        if name in self.statement.indices:
            own = self.statement.indices[name].name
            raise CdslError(
                "E0216",
                f"the index `{own}` is not a value",
                ref.span,
                notes=("the values of a program come from tensors and parameters",),
                help="pass a tensor that holds the numbers, and read it at this index",
            )
        parameter = self.head.parameters.get(name)
        if parameter is not None and parameter.kind == "float":
            return Typed(ir.Param(name), "f32", ref.span)
        if parameter is not None or (is_size(name) and self.head.is_known_size(name)):
            return integer(sym(name), ref.span)
        if name in self.head.taken:
            raise CdslError(
                "E0216",
                f"the tensor `{name}` needs its axes here",
                ref.span,
                notes=(Note("it is declared here", self.head.taken[name]),),
                help=f"write `{name}[...]`, one index an axis",
            )
        return integer(self.head.integer(ref), ref.span)  # raises: the name is unknown

    def _negate(self, value: Typed, expr: ast.Negate) -> Typed:
        if value.index is not None:
            return integer(-value.index, expr.span)
        if isinstance(value.expr, ir.Const):
            return Typed(ir.Const(-value.expr.value, value.expr.dtype), value.kind, expr.span)
        # Times -1, not 0 - x: the two differ in the sign of zero.
        minus = adapt(integer(const(-1), expr.span), value.kind)
        return Typed(ir.Binary("*", minus.expr, value.expr), value.kind, expr.span)

    def _binary(self, expr: ast.Binary) -> Typed:
        a, b = self.value(expr.left), self.value(expr.right)
        match expr.op:
            case "/":
                a, b = floats(a, "`/`"), floats(b, "`/`")
                return Typed(ir.Binary("/", a.expr, b.expr), "f32", expr.span)
            case "+" | "-" | "*":
                if a.index is not None and b.index is not None:
                    joined = {"+": a.index + b.index, "-": a.index - b.index}.get(expr.op)
                    return integer(a.index * b.index if joined is None else joined, expr.span)
                a, b = unify(a, b, f"`{expr.op}`")
                return Typed(ir.Binary(expr.op, a.expr, b.expr), a.kind, expr.span)
            case _:
                raise CdslError(
                    "E0216",
                    f"`{expr.op}` is not an operation on values",
                    expr.span,
                    help="give the integer a name in `where`, like `H == K // 2`, and use that",
                )

    # -- calls -------------------------------------------------------------------------------------
    def _call(self, call: ast.Call) -> Typed:
        if call.name == "select":
            return self._select(call)
        args = [self._argument(a) for a in call.args]
        if call.name in _CASTS:
            self._arity(call, 1)
            return self._cast(call, args[0])
        if call.name in ("max", "min"):
            return self._extreme(call, args)
        if call.name not in _ARITY:
            known = (*_ARITY, *_CASTS, "max", "min", "select")
            raise CdslError(
                "E0214",
                f"unknown function `{call.name}`",
                call.span,
                help=did_you_mean(call.name, known) or f"the functions are {quoted(known)}",
            )
        self._arity(call, _ARITY[call.name])
        if call.name in ("abs", "relu"):
            return Typed(ir.Call(call.name, (args[0].expr,)), args[0].kind, call.span)
        floated = tuple(floats(a, f"`{call.name}`").expr for a in args)
        return Typed(ir.Call(call.name, floated), "f32", call.span)

    def _arity(self, call: ast.Call, count: int) -> None:
        if len(call.args) != count:
            raise CdslError(
                "E0214",
                f"`{call.name}` takes {count} argument{'s' if count > 1 else ''}, "
                f"but {len(call.args)} {'is' if len(call.args) == 1 else 'are'} given",
                call.span,
            )

    def _argument(self, arg: ast.Expr | ast.Comparison) -> Typed:
        if isinstance(arg, ast.Comparison):
            raise CdslError(
                "E0216",
                "a comparison is not a value",
                arg.span,
                help="it stands only as the condition of `select(cond, a, b)`",
            )
        return self.value(arg)

    def _select(self, call: ast.Call) -> Typed:
        self._arity(call, 3)
        condition = call.args[0]
        if not isinstance(condition, ast.Comparison):
            raise CdslError(
                "E0216",
                "the first argument of `select` is a comparison",
                condition.span,
                help="write `select(a < b, yes, no)`",
            )
        a, b = unify(self.value(condition.left), self.value(condition.right), "this comparison")
        a, b = adapt(a, "i32"), adapt(b, "i32")  # only when neither has a type
        yes, no = unify(self._argument(call.args[1]), self._argument(call.args[2]), "`select`")
        chosen = ir.Select(condition.op, a.expr, b.expr, yes.expr, no.expr)
        return Typed(chosen, yes.kind, call.span)

    def _cast(self, call: ast.Call, value: Typed) -> Typed:
        to = cast(ir.DType, call.name)
        wanted: Literal["f32", "i32"] = "i32" if to == "i32" else "f32"
        value = adapt(value, wanted)
        if value.kind == to:  # nothing to convert
            return Typed(value.expr, wanted, call.span)
        return Typed(ir.Cast(to, value.expr), wanted, call.span)

    def _extreme(self, call: ast.Call, args: list[Typed]) -> Typed:
        if len(args) < 2:
            raise CdslError(
                "E0214",
                f"`{call.name}` takes two or more arguments",
                call.span,
                help=f"a reduction has square brackets: `{call.name}[k] x[k]`",
            )
        op: Literal["max", "min"] = "max" if call.name == "max" else "min"
        result = args[0]
        for arg in args[1:]:
            if result.index is not None and arg.index is not None:
                pick = maximum if op == "max" else minimum
                result = integer(pick(result.index, arg.index), call.span)
                continue
            result, arg = unify(result, arg, f"`{op}`")
            result = Typed(ir.Binary(op, result.expr, arg.expr), result.kind, call.span)
        return result

    # -- reductions --------------------------------------------------------------------------------
    def _reduce(self, reduce: ast.Reduce) -> Typed:
        constraints = tuple(
            ir.eq(read_relation(self.head, self.statement, r)) for r in reduce.relations
        )
        body = self.value(reduce.body)
        otherwise = None if reduce.otherwise is None else self.value(reduce.otherwise)
        if otherwise is not None:
            if reduce.reducer in ("sum", "prod"):
                raise CdslError(
                    "E0218",
                    f"`{reduce.reducer}` has no `else`",
                    otherwise.span,
                    notes=("over no points, sum is 0 and prod is 1",),
                )
            body, otherwise = unify(body, otherwise, f"`{reduce.reducer} ... else`")
        result = ir.Reduce(
            reduce.reducer,
            tuple(self.variables[b.name.name] for b in reduce.binders),
            constraints,
            body.expr,
            None if otherwise is None else otherwise.expr,
        )
        return Typed(result, body.kind, reduce.span)
