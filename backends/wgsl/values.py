"""Value expressions as text: one f32 or i32, or in a whole vector loop a vec4 of them.

In a vector loop a part without the loop's variable is one number for all lanes, an aligned read of
a vec4 buffer is one read, and everything else is read lane by lane.
"""

from __future__ import annotations

import math

from convdsl.backends.wgsl.conditions import Conditions
from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.functions import DIRECT, Helpers
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.backends.wgsl.lines import Block
from convdsl.backends.wgsl.literals import f32_text, i32_text, rounded
from convdsl.backends.wgsl.memory import LANES, Memory
from convdsl.backends.wgsl.value import Value, gather, wide
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Param,
    Pred,
    Reduce,
    Scalar,
    Select,
    free_names,
)

_PRODUCTS = frozenset("*/")


class Values(Conditions):
    """Makes text of expressions. Lines that a value needs before it go to `block`."""

    def __init__(
        self, memory: Memory, index: IndexText, env: Environment, helpers: Helpers
    ) -> None:
        super().__init__(env, index)
        self._memory, self._helpers = memory, helpers
        self._free: dict[int, tuple[Expr, frozenset[str]]] = {}
        self.block = Block()

    def free(self, expr: Expr) -> frozenset[str]:
        """Names in an expression, computed once."""
        found = self._free.get(id(expr))
        if found is None:
            found = self._free[id(expr)] = (expr, free_names(expr))
        return found[1]

    def value(self, expr: Expr) -> Value:
        """One number, or a vec4 where the expression depends on the lane."""
        match expr:
            case Const(value, dtype):
                return self._const(value, dtype)
            case Load(access):
                return self._load(expr, self.lane is not None and self.lane in access.free)
            case Scalar(index, dtype):
                return self._scalar(expr, self.lane is not None and self.lane in index.free)
            case Binary(op, left, right):
                if op == "*" and (unit := self.unit(expr)) is not None:
                    return self._times(*unit)
                return self._binary(op, self.value(left), self.value(right))
            case Call(name, args):
                return self._call(name, args)
            case Cast(to, value):
                return self._cast(to, self.value(value))
            case Select(op, left, right, yes, no):
                a, b, y, n = (self.value(e) for e in (left, right, yes, no))
                width = max(v.width for v in (a, b, y, n))
                compared = f"{wide(a, width)} {op} {wide(b, width)}"
                return Value(
                    f"select({wide(n, width)}, {wide(y, width)}, {compared})", y.dtype, width
                )
            case Guard():
                return self._guard(expr)
            case Param(name):
                raise InternalError(f"the parameter {name} has no number")
            case Reduce():
                raise InternalError("a reduction reached the WGSL backend")

    def fma(self, product: Binary, accumulator: str, width: int) -> str:
        """`accumulator + product` in one operation."""
        a, b = self.value(product.left), self.value(product.right)
        return f"fma({wide(a, width)}, {wide(b, width)}, {accumulator})"

    def unit(self, product: Binary) -> tuple[float, Expr] | None:
        """A product with an element of a constant that is 0, 1 or -1: this number and the rest."""
        for factor, rest in ((product.left, product.right), (product.right, product.left)):
            number = self._memory.literal(factor.access) if isinstance(factor, Load) else None
            if number in (0.0, 1.0, -1.0):
                return number, rest
        return None

    def _times(self, unit: float, rest: Expr) -> Value:
        if unit == 0.0:
            return self._const(0.0, "f32")
        value = self.value(rest)
        return value if unit > 0 else Value(f"-{value.within(2)}", "f32", value.width, 0)

    def round_half(self, width: int) -> str:
        """The name of the function that rounds to half precision."""
        return self._helpers.use("round_f164" if width == 4 else "round_f16")

    def named(self, value: Value, hint: str) -> Value:
        """The value under a name, evaluated in the current block."""
        name = self.index.names.fresh(hint)
        self.block.line(f"let {name} = {value.text};")
        return Value(name, value.dtype, value.width)

    def lanes(self, expr: Expr) -> list[Value]:
        """The expression for each of the four lanes."""
        lane = self.lane
        if lane is None:
            raise InternalError("lanes outside a vector loop")
        self.lane = None
        out: list[Value] = []
        for n in range(4):
            with self.env.bind(lane, n):
                out.append(self.value(expr))
        self.lane = lane
        return out

    # -- leaves -----------------------------------------------------------------------------------
    def _const(self, value: float | int, dtype: str) -> Value:
        if dtype == "i32":
            return Value(i32_text(int(value)), "i32", tight=2 if value >= 0 else 0, constant=True)
        value = rounded(value)
        if math.isnan(value):
            return Value(f"{self._helpers.use('not_a_number')}()", "f32")
        if math.isinf(value):
            call = f"{self._helpers.use('infinity')}()"
            return Value(call if value > 0 else f"-{call}", "f32", tight=2 if value > 0 else 0)
        negative = math.copysign(1.0, value) < 0
        return Value(f32_text(value), "f32", tight=0 if negative else 2, constant=True)

    def _load(self, load: Load, lanes: bool) -> Value:
        number = self._memory.literal(load.access)
        if number is not None:
            return self._const(number, load.dtype)
        if not lanes:
            text = self._memory.element(load.access)
            if self._memory.place(load.access).half:
                text = f"f32({text})"
            return Value(text, load.dtype)
        text = self._memory.vector(load.access) or ""
        if text:
            half = self._memory.place(load.access).half
            return Value(f"vec4<f32>({text})" if half else text, load.dtype, 4)
        return gather(self.lanes(load))

    def _scalar(self, scalar: Scalar, lanes: bool) -> Value:
        if lanes:
            return gather(self.lanes(scalar))
        index = self.env.resolve(scalar.index)
        number = index.as_int()
        if number is not None:
            return self._const(number, scalar.dtype)
        text = self.index.value(index)
        if scalar.dtype == "f32":
            return Value(f"f32({text})", "f32")
        return Value(text, "i32", tight=2 if text.isidentifier() else 0)

    # -- operations -------------------------------------------------------------------------------
    def _binary(self, op: str, a: Value, b: Value) -> Value:
        width = max(a.width, b.width)
        if a.constant and b.constant:
            a = self._opaque(a)
        if op in ("max", "min"):
            return Value(f"{op}({wide(a, width)}, {wide(b, width)})", a.dtype, width)
        tight = 1 if op in _PRODUCTS else 0
        left, right = a.within(tight), b.within(tight + 1)
        return Value(f"{left} {op} {right}", a.dtype, width, tight)

    def _call(self, name: str, args: tuple[Expr, ...]) -> Value:
        values = [self.value(a) for a in args]
        first = values[0]
        if name == "pow":
            power = _whole_power(args[1])
            if power is not None:
                return self._power(first, power)
        width = max(v.width for v in values)
        if all(v.constant for v in values):
            values[0] = first = self._opaque(first)
        texts = [wide(v, width) for v in values]
        if name == "relu":
            zero = Value("0" if first.dtype == "i32" else "0.0", first.dtype)
            return Value(f"max({texts[0]}, {wide(zero, width)})", first.dtype, width)
        function = name if name in DIRECT else self._helpers.function(name, width)
        return Value(f"{function}({', '.join(texts)})", first.dtype, width)

    def _power(self, base: Value, power: int) -> Value:
        """A small whole power as products, exact for negative bases."""
        if power == 1:
            return base
        base = self.named(base, "base")
        square = (
            base
            if power == 2
            else self.named(Value(f"{base.text} * {base.text}", "f32", base.width), "square")
        )
        text = {
            2: f"{base.text} * {base.text}",
            3: f"{square.text} * {base.text}",
            4: f"{square.text} * {square.text}",
        }[power]
        return Value(text, "f32", base.width, 1)

    def _cast(self, to: str, value: Value) -> Value:
        if to == "f16":
            if value.dtype == "i32":
                value = self._cast("f32", value)
            return Value(f"{self.round_half(value.width)}({value.text})", "f32", value.width)
        if to == value.dtype:
            return value
        if value.constant and to == "i32":
            value = self._opaque(value)
        result = Value("", to, value.width)
        if to == "i32" and value.dtype == "f32":
            # WGSL clamps to the largest f32 below 2^31, not to the largest i32.
            value = self.named(value, "number")
            low, high = f"{result.type}({value.text})", f"{result.type}(2147483647)"
            limit = wide(Value("2147483648.0", "f32"), value.width)
            text = f"select({low}, {high}, {value.text} >= {limit})"
            return Value(text, to, value.width)
        return Value(f"{result.type}({value.text})", to, value.width, constant=value.constant)

    def _opaque(self, value: Value) -> Value:
        """A constant behind a variable: compilers refuse constant expressions that overflow."""
        name = self.index.names.fresh("number")
        self.block.line(f"var {name}: {value.dtype} = {value.text};")
        return Value(name, value.dtype)

    # -- guards -----------------------------------------------------------------------------------
    def _guard(self, guard: Guard) -> Value:
        lane = self.lane
        common, own = self.by_lane(guard.conditions)
        shared = self.settle(common)
        if shared is None:
            return self.value(guard.otherwise)
        if not shared and not own:
            return self.value(guard.value)
        otherwise = self.value(guard.otherwise)
        free = self.free(guard.value) | self.free(guard.otherwise)
        width = 4 if own or (lane is not None and lane in free) else 1
        result = Value("", otherwise.dtype, width)
        name = self.index.names.fresh("picked")
        self.block.line(f"var {name}: {result.type} = {wide(otherwise, width)};")
        outer, self.block = self.block, Block()
        if own:
            self._lane_guards(name, own, guard.value)
        else:
            self.block.line(f"{name} = {wide(self.value(guard.value), width)};")
        inner, self.block = self.block, outer
        if shared:
            self.block.branch(self.condition(shared), inner)
        else:
            self.block.items += inner.items
        return Value(name, otherwise.dtype, width)

    def _lane_guards(self, name: str, conditions: tuple[Pred, ...], value: Expr) -> None:
        lane, self.lane = self.lane, None
        if lane is None:
            raise InternalError("lanes outside a vector loop")
        for n in range(4):
            with self.env.bind(lane, n):
                left = self.decide(conditions)
                if left is None:
                    continue
                outer, self.block = self.block, Block()
                self.block.line(f"{name}.{LANES[n]} = {self.value(value).text};")
                inner, self.block = self.block, outer
                if left:
                    self.block.branch(self.condition(left), inner)
                else:
                    self.block.items += inner.items
        self.lane = lane


def _whole_power(exponent: Expr) -> int | None:
    if isinstance(exponent, Const) and exponent.value in (1, 2, 3, 4):
        return int(exponent.value)
    return None
