"""What the operations of the loop IR do to single values: floats of 64 bits and exact integers.

Floats follow IEEE 754 where Python would raise: 1/0 is inf, log(-1) is nan. `max` and `min` return
nan when either argument is nan, as NumPy's maximum and minimum do. Only a store to an f16 buffer
and a cast to f16 round.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

POISON_INT = -0x5A5A5A5B
"""What an i32 local holds before its first store; an f32 or f16 local holds nan."""


def divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a != a or a == 0:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def maximum(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


def minimum(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def half(a: float) -> float:
    """The nearest value of half precision, ties to even; too large is infinite."""
    try:
        return float(struct.unpack("e", struct.pack("e", a))[0])
    except OverflowError:
        return math.copysign(math.inf, a)


def to_i32(a: float) -> int:
    """Truncation; nan gives 0 and values out of range the nearest bound, as WGSL has it."""
    if a != a:
        return 0
    return int(max(-(2.0**31), min(2.0**31 - 1, a)))


def _ieee(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of `math` that returns nan outside its domain."""

    def guarded(a: float) -> float:
        try:
            return function(a)
        except ValueError:
            return math.nan

    return guarded


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _log(a: float) -> float:
    if a > 0:
        return math.log(a)
    return -math.inf if a == 0 else math.nan


def _sigmoid(a: float) -> float:
    return 1 / (1 + _exp(-a)) if a > -700 else _exp(a) if a == a else math.nan


def _gelu(a: float) -> float:
    return 0.5 * a * (1 + math.erf(a / math.sqrt(2))) if a != -math.inf else 0.0


def _pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:  # a negative base with a fraction, or zero to a negative power
        if a != 0:
            return math.nan
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


CALLS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "sqrt": _ieee(math.sqrt),
    "exp": _exp,
    "log": _log,
    "sin": _ieee(math.sin),
    "cos": _ieee(math.cos),
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda a: maximum(a, 0),
    "gelu": _gelu,
    "leaky_relu": lambda a, slope: a if a >= 0 else slope * a,
    "pow": _pow,
}
