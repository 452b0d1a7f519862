"""Parse trees of `grammar/loop.lark` to indices, conditions, accesses and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NoReturn, cast

from lark import Token, Tree

from convdsl.diagnostics import CdslError, Source, Span
from convdsl.ir.expr import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Cast,
    CompareOp,
    Const,
    DType,
    Expr,
    Guard,
    Load,
    Param,
    Pred,
    Reduce,
    Reducer,
    Scalar,
    Select,
    Var,
)
from convdsl.ir.index import Index, const, maximum, minimum, sym

Node = Tree[Token]
Storage = Mapping[str, tuple[tuple[Index, ...], DType]]


def parts(node: Node) -> list[Node]:
    """The children of a node that has no tokens."""
    return cast("list[Node]", node.children)


def word(node: Node) -> str:
    """The text of a node made of tokens only: a name or a keyword."""
    return "".join(map(str, node.children))


def of_kind(nodes: Iterable[Node | Token], kind: str) -> list[Node]:
    return [n for n in nodes if isinstance(n, Tree) and n.data == kind]


class ExprReader:
    """Reads the parts that both IRs share. `storage` has the dims and dtype of what is declared."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.storage: Storage = {}

    def fail(self, code: str, message: str, node: Node) -> NoReturn:
        raise CdslError(code, message, self.span(node))

    def span(self, node: Node) -> Span:
        if node.meta.empty:
            return Span(self.source, 0, 0)
        return Span(self.source, node.meta.start_pos, node.meta.end_pos)

    # -- integers ---------------------------------------------------------------------------------
    def index(self, node: Node) -> Index:
        match node.data:
            case "int":
                return const(self._int(word(node), node))
            case "symbol":
                return sym(word(parts(node)[0]))
            case "neg":
                return -self.index(parts(node)[0])
            case "extreme_index":
                pick = maximum if word(parts(node)[0]) == "max" else minimum
                return pick(*self.indices(parts(node)[1]))
        a, b = map(self.index, parts(node))
        match node.data:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
        if b == 0:
            self.fail("E0404", "this index divides by zero", parts(node)[1])
        match node.data:
            case "floordiv":
                return a // b
            case "ceildiv":
                return -((-a) // b)
            case _:
                return a % b

    def _int(self, digits: str, node: Node) -> int:
        if len(digits) > 40:
            self.fail("E0401", f"a number of {len(digits)} digits", node)
        return int(digits)

    def indices(self, node: Node | None) -> tuple[Index, ...]:
        """A list of integers; none where the list is left out."""
        return () if node is None else tuple(map(self.index, parts(node)))

    def var(self, node: Node) -> Var:
        name, low, high = parts(node)
        return Var(word(name), self.index(low), self.index(high))

    def vars(self, nodes: list[Node]) -> tuple[Var, ...]:
        """The variables of the `vars` node among these."""
        return tuple(self.var(v) for group in of_kind(nodes, "vars") for v in parts(group))

    def preds(self, nodes: Iterable[Node | Token]) -> tuple[Pred, ...]:
        """The conditions of the `preds` node among these."""
        return tuple(self._pred(p) for group in of_kind(nodes, "preds") for p in parts(group))

    def _pred(self, node: Node) -> Pred:
        left, op, right = parts(node)
        a, b = self.index(left), self.index(right)
        match word(op):
            case "==":
                return Pred("eq", a - b)
            case "!=":
                return Pred("ne", a - b)
            case ">=":
                return Pred("ge", a - b)
            case ">":
                return Pred("ge", a - b - 1)
            case "<=":
                return Pred("ge", b - a)
            case _:
                return Pred("ge", b - a - 1)

    # -- values -----------------------------------------------------------------------------------
    def access(self, node: Node) -> Access:
        name, *rest = parts(node)
        if word(name) not in self.storage:
            self.fail("E0402", f"`{word(name)}` is not declared", name)
        dims, _ = self.storage[word(name)]
        for view in of_kind(rest, "view"):
            dims = self.indices(next(iter(parts(view)), None))
        index = self.indices(next(iter(of_kind(rest, "sums")), None))
        if len(index) != len(dims):
            message = f"`{word(name)}` has {len(dims)} dims here and {len(index)} indices"
            self.fail("E0403", message, node)
        return Access(word(name), index, dims)

    def number(self, node: Node) -> Const:
        text = word(node)
        if node.children[-1].type == "INT":  # type: ignore[union-attr]
            return Const(self._int(text, node), "i32")
        return Const(float(text), "f32")

    def quotient(self, node: Node) -> Fraction:
        above, _, below = word(node).partition("/")
        denominator = self._int(below or "1", node)
        if denominator == 0:
            self.fail("E0404", "this quotient divides by zero", node)
        return Fraction(self._int(above, node), denominator)

    def expr(self, node: Node) -> Expr:
        match node.data:
            case "number":
                return self.number(node)
            case "param":
                return Param(word(parts(node)[0]))
            case "load":
                access = self.access(parts(node)[0])
                integer = self.storage[access.tensor][1] == "i32"
                return Load(access, "i32" if integer else "f32")
            case "cast":
                to, value = parts(node)
                return Cast(cast(DType, word(to)), self.expr(value))
            case "scalar":
                return self._scalar(node)
            case "call":
                arguments = cast(Node, node.children[1])
                return Call(str(node.children[0]), tuple(map(self.expr, parts(arguments))))
            case "binary":
                left, op, right = parts(node)
                return Binary(cast(BinaryOp, word(op)), self.expr(left), self.expr(right))
            case "extreme_of":
                op, left, right = parts(node)
                return Binary(cast(BinaryOp, word(op)), self.expr(left), self.expr(right))
            case "select":
                left, op, right, yes, no = parts(node)
                a, b, y, n = map(self.expr, (left, right, yes, no))
                return Select(cast(CompareOp, word(op)), a, b, y, n)
            case "guard":
                yes, no = parts(node)[-2:]
                return Guard(self.preds(node.children), self.expr(yes), self.expr(no))
            case _:
                return self._reduce(node)

    def _scalar(self, node: Node) -> Scalar:
        to, index = parts(node)
        if word(to) == "f16":
            self.fail("E0401", "an integer as a value is `f32{...}` or `i32{...}`", to)
        return Scalar(self.index(index), "i32" if word(to) == "i32" else "f32")

    def _reduce(self, node: Node) -> Reduce:
        op, *rest = parts(node)
        otherwise = [self.expr(parts(o)[0]) for o in of_kind(rest, "otherwise")]
        body = rest[-2] if otherwise else rest[-1]
        return Reduce(
            cast(Reducer, word(op)),
            self.vars(rest),
            self.preds(rest),
            self.expr(body),
            otherwise[0] if otherwise else None,
        )
