"""Value expressions as NumPy expressions over the axes of a nest.

float32 stays float32: Python literals are weak, and where only literals meet, the first one becomes
a NumPy scalar of the right type. With no axes the same code gives scalar Python.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import reduce

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import Nest, NotVector, arange, canonical, view
from convdsl.backends.numpy.injective import in_bounds
from convdsl.backends.numpy.integers import condition
from convdsl.backends.numpy.scope import Scope
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Scalar,
    Select,
    children,
    free_names,
)

UFUNCS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"} | {
    "max": "maximum", "min": "minimum",
}  # fmt: skip
DIRECT = ("abs", "sqrt", "exp", "log", "sin", "cos", "tanh")


@dataclass(frozen=True)
class Value:
    """`literal`: a Python number, whose type gives way to the other operand's."""

    node: ast.expr
    literal: bool = False


class Values:
    """Emits expressions aligned to the axes `order`."""

    def __init__(self, nest: Nest, order: tuple[str, ...]) -> None:
        self.nest = nest
        self.scope = nest.scope
        self.order = order
        self.guarded = False

    def emit(self, expr: Expr) -> ast.expr:
        return self.value(expr).node

    def typed(self, expr: Expr) -> ast.expr:
        """An expression that has a NumPy type, also when it is a number."""
        value = self.value(expr)
        return self._strong(value, expr).node

    def _strong(self, value: Value, expr: Expr) -> Value:
        if not value.literal:
            return value
        kind = "int32" if expr.dtype == "i32" else "float32"
        return Value(code.call(code.np(kind), value.node))

    def value(self, expr: Expr) -> Value:
        match expr:
            case Const(number, dtype):
                return Value(code.number(float(number) if dtype == "f32" else int(number)), True)
            case Scalar():
                return self._scalar(expr)
            case Load():
                return Value(self._load(expr))
            case Binary(op, left, right):
                if is_square(expr):
                    return Value(code.call(code.np("square"), self.typed(left)))
                a, b = self.value(left), self.value(right)
                if a.literal and b.literal:
                    a = self._strong(a, left)
                return Value(binary(op, a.node, b.node))
            case Call():
                return Value(self._call(expr))
            case Cast():
                return Value(self._cast(expr))
            case Select():
                return Value(self._select(expr))
            case Guard():
                return self._guard(expr)
            case _:
                raise InternalError(f"no NumPy form of {type(expr).__name__} in a loop program")

    # -- leaves -----------------------------------------------------------------------------------
    def _scalar(self, expr: Scalar) -> Value:
        names = self.nest.names(expr.index)
        if not names:
            node = self.scope.integer(expr.index)
            if expr.dtype == "f32":
                return Value(code.call(code.np("float32"), node))
            return Value(node, True)
        node = self.scope.integer(expr.index, self._aranges(names))
        kind = "float32" if expr.dtype == "f32" else "int32"
        return Value(code.method(node, "astype", code.np(kind)))

    def _aranges(self, names: list[str]) -> dict[str, ast.expr]:
        return {n: arange(n, self.order, self.nest) for n in names}

    def _load(self, expr: Load) -> ast.expr:
        access = expr.access
        node: ast.expr | None = None
        if not self.guarded or in_bounds(access, self.nest):
            try:
                node = view(access, self.nest).aligned(self.order)
            except NotVector:
                self.nest.require_values()
        if node is None:
            access = canonical(access, self.nest)
            base = self.scope.array(access)
            arrays = self._aranges(self.nest.used(access))
            index = [self.scope.integer(i, arrays) for i in access.index]
            if self.guarded:
                node = code.call(self.scope.helper("_gather"), base, *index)
            else:
                node = code.subscript(base, index)
        half = self.scope.buffers[access.tensor].dtype == "f16"
        return _as(node, "float32") if half and not self.scope.widened(access.tensor) else node

    # -- operations -------------------------------------------------------------------------------
    def _call(self, expr: Call) -> ast.expr:
        found = operation(expr, self.scope)
        if found is None:  # functions that are no ufunc
            name = "_leaky_relu_any" if expr.name == "leaky_relu" else f"_{expr.name}"
            function, operands = self.scope.helper(name), expr.args
        else:
            function, operands = found
        first, *rest = operands
        return code.call(function, self.typed(first), *map(self.emit, rest))

    def _cast(self, expr: Cast) -> ast.expr:
        node = self.typed(expr.value)
        match expr.to:
            case "i32":
                if expr.value.dtype == "i32":
                    return node
                return code.call(self.scope.helper("_to_int"), node)
            case "f16":
                return _as(_as(node, "float16"), "float32")
            case "f32":
                return node if expr.value.dtype == "f32" else _as(node, "float32")

    def _select(self, expr: Select) -> ast.expr:
        left, right = self.value(expr.left), self.value(expr.right)
        yes, no = self.value(expr.yes), self.value(expr.no)
        if yes.literal and no.literal:
            yes = self._strong(yes, expr.yes)
        test = code.compare(left.node, expr.op, right.node)
        if self.order:
            return code.call(code.np("where"), test, yes.node, no.node)
        return code.choose(test, self._strong(yes, expr.yes).node, self._strong(no, expr.no).node)

    def _guard(self, expr: Guard) -> Value:
        """A condition on nest variables masks; one without them decides in Python."""
        fixed = [p for p in expr.conditions if not self.nest.names(p.index)]
        moving = [p for p in expr.conditions if self.nest.names(p.index)]
        outer = self.guarded
        self.guarded = outer or bool(moving)
        value = self._strong(self.value(expr.value), expr.value)
        self.guarded = outer
        otherwise = self.value(expr.otherwise)
        node = value.node
        if moving:
            test = reduce(lambda a, b: ast.BinOp(a, ast.BitAnd(), b), map(self._mask, moving))
            node = code.call(code.np("where"), test, node, otherwise.node)
        if fixed:
            otherwise = self._strong(otherwise, expr.otherwise)
            tests = [condition(p, lambda n: code.name(self.scope.identifier(n))) for p in fixed]
            node = code.choose(code.both(tests), node, otherwise.node)
        return Value(node)

    def _mask(self, pred: Pred) -> ast.expr:
        def lookup(name: str) -> ast.expr:
            return code.name(self.scope.identifier(name))

        return condition(pred, lookup, self._aranges(self.nest.names(pred.index)))


def operation(expr: Expr, scope: Scope) -> tuple[ast.expr, tuple[Expr, ...]] | None:
    """The function with an `out` argument that computes a node, and the operands it takes."""
    match expr:
        case Binary(op, left, right):
            if is_square(expr):
                return code.np("square"), (left,)
            return code.np(UFUNCS[op]), (left, right)
        case Call(name, args) if name in DIRECT:
            return code.np(name), args
        case Call("relu", args):
            return code.np("maximum"), (*args, Const(0, expr.dtype))
        case Call("pow", (value, Const(2))):
            return code.np("square"), (value,)
        case Call("pow", args):
            return code.np("power"), args
        case Call("sigmoid", args):
            return scope.helper("_sigmoid"), args
        case Call("leaky_relu", (value, Const(slope) as factor)) if 0 < slope <= 1:
            return scope.helper("_leaky_relu"), (value, factor)
        case _:
            return None


def is_square(expr: Binary) -> bool:
    """A product of one value with itself, which is computed once."""
    return expr.op == "*" and expr.left == expr.right and not isinstance(expr.left, Const | Scalar)


def binary(op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    if op in ("max", "min"):
        return code.call(code.np(UFUNCS[op]), left, right)
    return code.operate(left, op, right)


def _as(node: ast.expr, kind: str) -> ast.expr:
    return code.method(node, "astype", code.np(kind))


def uses(expr: Expr, nest: Nest) -> frozenset[str]:
    """Nest variables that a value depends on."""
    return free_names(expr) & nest.vars.keys()


def spans(expr: Expr, nest: Nest) -> frozenset[str]:
    """Nest variables whose axis the emitted array surely has: not those of one branch alone."""
    match expr:
        case Guard(conditions, value, otherwise):
            moving = frozenset(n for p in conditions for n in nest.names(p.index))
            both = spans(value, nest), spans(otherwise, nest)
            fixed = any(not nest.names(p.index) for p in conditions)
            return both[0] & both[1] if fixed else both[0] | both[1] | moving
        case Scalar() | Load():
            return uses(expr, nest)
        case _:
            return frozenset().union(*(spans(e, nest) for e in children(expr)))
