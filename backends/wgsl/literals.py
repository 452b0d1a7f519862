"""Numbers as WGSL text that reads back as exactly the same number."""

from __future__ import annotations

import math

import numpy as np

from convdsl.diagnostics import InternalError

I32_MAX = 2**31 - 1


def i32_text(value: int) -> str:
    """An integer literal. An index that needs more than 32 bits is a bug of an earlier pass."""
    if value == -I32_MAX - 1:
        return f"i32({value})"
    if not -I32_MAX <= value <= I32_MAX:
        raise InternalError(f"the integer {value} does not fit in an i32 of a WGSL program")
    return str(value)


def rounded(value: float) -> float:
    """The nearest float32, as a Python float; too large a number becomes an infinity."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def f32_text(value: float) -> str:
    """A finite float literal: the shortest decimal that rounds to the same float32."""
    if not math.isfinite(value):
        raise InternalError(f"{value} has no literal in WGSL")
    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"
