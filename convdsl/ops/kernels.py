"""Kernels of the shipped operators, kept: a second call neither parses nor compiles."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Any

from convdsl.api import ACCURACIES, compile
from convdsl.diagnostics import CdslError
from convdsl.kernel import Kernel
from convdsl.ops.attributes import choice
from convdsl.ops.sources import ACTIVATIONS, SLOPE, program
from convdsl.registry import backend
from convdsl.syntax.ast import DType

Activation = str | tuple[str, float] | None
Applied = tuple[str, float | None] | None

KERNELS = 128  # each keeps a bounded number of variants, one for each combination of sizes


@lru_cache(maxsize=KERNELS)
def kernel(
    op: str,
    dtype: DType,
    channels_last: bool,
    activation: Applied,
    params: tuple[tuple[str, int], ...],
    target: str,
    accuracy: str,
) -> Kernel:
    """The kernel of an operator's variant; the arguments are everything that changes its text."""
    name, slope = activation or (None, None)
    values: dict[str, int | float] = dict(params)
    if slope is not None:
        values[SLOPE] = slope
    tree = program(op, channels_last=channels_last, dtype=dtype, activation=name)
    return compile(tree, params=values, target=target, accuracy=accuracy)


def activation_of(op: str, value: Any) -> Applied:
    """An activation with its slope, if it has one: `"relu"`, `("leaky_relu", 0.1)`, None.

    Raises:
        CdslError: E0370 for another form, E0371 for an unknown name.
    """
    if value is None:
        return None
    pair = isinstance(value, (tuple, list))
    name, *rest = value if pair and len(value) else (value,)
    name = choice(op, "activation", name, ACTIVATIONS)
    if name != "leaky_relu":
        if rest:
            raise CdslError("E0370", f"the activation `{name}` of `{op}` takes no number")
        return name, None
    if len(rest) > 1:
        raise CdslError("E0370", f"the activation `{name}` of `{op}` takes one number, its slope")
    slope = rest[0] if rest else 0.01
    if isinstance(slope, (bool, str)) or not hasattr(slope, "__float__"):
        raise CdslError("E0370", f"the slope of `{name}` must be a number, not {slope!r}")
    if not isfinite(float(slope)):
        raise CdslError("E0372", f"the slope of `{name}` must be finite, not {slope!r}")
    return name, float(slope)


def check_target(op: str, target: Any, accuracy: Any) -> None:
    """Refuse an unknown target or accuracy class.

    Raises:
        CdslError: E0371, E0351.
    """
    choice(op, "accuracy", accuracy, ACCURACIES)
    if not isinstance(target, str):
        raise CdslError("E0370", f"`target` of `{op}` must be a name, not {target!r}")
    backend(target)
