"""The functions of the language on float64 and int64 arrays: their definition.

Special values follow IEEE 754: max and min give NaN if an argument is NaN, and so does relu.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _gelu(x: Array) -> Array:
    bounded = np.where(np.isneginf(x), -40.0, x)  # -inf * 0 would be NaN; the limit is 0
    return np.asarray(0.5 * bounded * (1 + _erf(bounded / math.sqrt(2))))


def cast(to: str, x: Array) -> Array:
    """To i32: truncates, saturates, NaN gives 0. To f16: one rounding, the value stays wide."""
    match to:
        case "f16":
            return x.astype(np.float64).astype(np.float16).astype(np.float64)
        case "i32":
            whole = np.clip(np.trunc(x), -(2.0**31), 2.0**31 - 1)
            return np.where(np.isnan(whole), 0.0, whole).astype(np.int64)
        case _:
            return x.astype(np.float64)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
REDUCERS: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, -math.inf),
    "min": (np.minimum, math.inf),
}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "gelu": _gelu,
    "leaky_relu": lambda x, slope: np.where(x >= 0, x, slope * x),
    "pow": np.power,
}
