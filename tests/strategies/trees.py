"""Short ways to build syntax trees, integer expressions with their numbers, and bounded values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from convdsl.diagnostics import Source, Span
from convdsl.syntax import ast

HERE = Span(Source(""), 0, 0)
EXACT = 1 << 24  # float32 holds every integer below it


def ref(name: str) -> ast.Ref:
    return ast.Ref(name, HERE)


def number(value: float) -> ast.Number | ast.Negate:
    """A literal; negative ones are a sign and a number, as they parse."""
    digits = ast.Number(repr(abs(value)), HERE)
    return ast.Negate(digits, HERE) if value < 0 else digits


def binary(op: str, left: ast.Expr, right: ast.Expr) -> ast.Binary:
    return ast.Binary(op, left, right, HERE)  # type: ignore[arg-type]


def call(name: str, *args: ast.Expr | ast.Comparison) -> ast.Call:
    return ast.Call(name, args, HERE)


def axis(names: Sequence[str]) -> ast.Axis:
    return ast.Axis(tuple(map(ref, names)), HERE)


def read(tensor: str, axes: Sequence[Sequence[str]]) -> ast.Read:
    return ast.Read(ref(tensor), tuple(map(axis, axes)), HERE)


def clause(left: ast.Expr, op: ast.Compare, right: ast.Expr) -> ast.Chain:
    return ast.Chain((left, right), (op,), HERE)


def integer(expr: ast.Expr, env: Mapping[str, int]) -> int:
    """The number of an expression of `+ - * max min` over names."""
    match expr:
        case ast.Number(text):
            return int(text)
        case ast.Ref(name):
            return env[name]
        case ast.Negate(operand):
            return -integer(operand, env)
        case ast.Binary(op, left, right):
            a, b = integer(left, env), integer(right, env)
            return {"+": a + b, "-": a - b, "*": a * b}[op]
        case ast.Call(name, args):
            numbers = [integer(a, env) for a in args if not isinstance(a, ast.Comparison)]
            return max(numbers) if name == "max" else min(numbers)
        case _:
            raise TypeError(expr)


@dataclass(frozen=True, slots=True)
class Extent:
    """A product of sizes, parameters and integers."""

    factors: tuple[str | int, ...]

    @property
    def tree(self) -> ast.Expr:
        out: ast.Expr | None = None
        for factor in self.factors:
            term = ref(factor) if isinstance(factor, str) else number(factor)
            out = term if out is None else binary("*", out, term)
        assert out is not None
        return out

    def count(self, env: Mapping[str, int]) -> int:
        return prod(env[f] if isinstance(f, str) else f for f in self.factors)

    def __add__(self, other: Extent) -> Extent:
        return Extent(self.factors + other.factors)


@dataclass(frozen=True, slots=True)
class Index:
    """An index: `extent` is that of the axes it may stand on, None if it stands on none.

    A written range is `low..high`; without one it is the extent.
    """

    name: str
    extent: Extent | None
    low: ast.Expr | None = None
    high: ast.Expr | None = None

    def span(self, env: Mapping[str, int]) -> range:
        if self.low is not None and self.high is not None:
            return range(integer(self.low, env), integer(self.high, env))
        assert self.extent is not None
        return range(self.extent.count(env))


@dataclass(frozen=True, slots=True)
class Bound:
    """All values are an integer of size at most `units`, divided by `2**shift`."""

    units: int
    shift: int = 0

    @property
    def exact(self) -> bool:
        return self.units < EXACT

    @property
    def half(self) -> bool:
        """Whether storing it as f16 cannot overflow."""
        return self.units >> self.shift < 60_000

    def __add__(self, other: Bound) -> Bound:
        shift = max(self.shift, other.shift)
        units = (self.units << shift - self.shift) + (other.units << shift - other.shift)
        return Bound(units, shift)

    def __or__(self, other: Bound) -> Bound:
        """Either of two values."""
        shift = max(self.shift, other.shift)
        return Bound(
            max(self.units << shift - self.shift, other.units << shift - other.shift), shift
        )

    def __mul__(self, other: Bound) -> Bound:
        return Bound(self.units * other.units, self.shift + other.shift)

    def reduced(self, op: str, count: int) -> Bound:
        """Over at most `count` terms."""
        if op == "sum":
            return Bound(self.units * max(count, 1), self.shift)
        if op == "prod":
            if self.units > 1 and count > 24:
                return Bound(EXACT)
            return Bound(max(self.units, 1 << self.shift) ** max(count, 1), self.shift * count)
        return self


@dataclass(frozen=True, slots=True)
class Value:
    """An expression with its bound. `kind` is f32, i32, or int: integers that adapt to either."""

    tree: ast.Expr
    bound: Bound
    kind: str
