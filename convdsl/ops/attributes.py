"""The attributes of the convolutions: read and checked.

`padding`, `output_padding`, `auto_pad`, `output_shape` and `output_size` all say where the result
begins and ends; `convdsl.ops.lengths` turns them into the pads of the language, axis by axis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from convdsl.diagnostics import CdslError

AUTO_PAD = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of one spatial axis before its data: all but the lengths."""

    op: str
    stride: int
    dilation: int
    padding: tuple[int, int] = (0, 0)
    out_pad: int = 0
    auto_pad: str = "NOTSET"
    axis: str = ""  # " of axis 1": which of several, for messages


def integer(op: str, name: str, value: Any, low: int, what: str = "an integer") -> int:
    """The value as an int of at least `low`.

    Raises:
        CdslError: E0370 for another type, E0372 for a number out of range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise CdslError(
            "E0370",
            f"`{name}` of `{op}` must be {what}, not {value!r}",
            help=f"an integer is at least {low}",
        )
    try:
        number = int(value.__index__())
    except TypeError:  # an array has the method, but only works with one element
        raise CdslError("E0370", f"`{name}` of `{op}` must be {what}, not {value!r}") from None
    if not low <= number <= LARGEST:
        raise CdslError(
            "E0372",
            f"`{name}` of `{op}` is {number}",
            help=f"allowed: {low} to {LARGEST}",
        )
    return number


def per_axis(op: str, name: str, value: Any, rank: int, low: int) -> tuple[int, ...]:
    """One int for each spatial axis: given each, or one for all.

    Raises:
        CdslError: E0370, E0372.
    """
    what = "an integer" if rank == 1 else f"an integer or {rank} of them"
    if isinstance(value, (tuple, list)):
        if len(value) != rank:
            raise CdslError(
                "E0370", f"`{name}` of `{op}` must be {what}, not {len(value)} values: {value!r}"
            )
        return tuple(integer(op, name, v, low, what) for v in value)
    return (integer(op, name, value, low, what),) * rank


def pads(op: str, value: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """The pads at the begin and the end of each spatial axis.

    One axis: `p` or `(begin, end)`. Two axes: `p`, `(p, q)` or `((top, bottom), (left, right))`.

    Raises:
        CdslError: E0370, E0372.
    """
    forms = "an integer or (begin, end)"
    if rank > 1:
        forms = "an integer, one integer an axis, or one (begin, end) an axis"
    if not isinstance(value, (tuple, list)):
        p = integer(op, "padding", value, 0, forms)
        return ((p, p),) * rank
    if rank == 1 and len(value) == 2:
        return (_pair(op, value, forms),)
    if len(value) != rank:
        raise CdslError("E0370", f"`padding` of `{op}` must be {forms}, not {value!r}")
    return tuple(_pair(op, v if isinstance(v, (tuple, list)) else (v, v), forms) for v in value)


def _pair(op: str, value: Sequence[Any], forms: str) -> tuple[int, int]:
    if len(value) != 2:
        raise CdslError("E0370", f"`padding` of `{op}` must be {forms}, not {tuple(value)!r}")
    begin, end = (integer(op, "padding", v, 0, forms) for v in value)
    return begin, end


def choice(op: str, name: str, value: Any, allowed: Collection[str]) -> str:
    """The value, which must be one of the allowed words.

    Raises:
        CdslError: E0371.
    """
    if isinstance(value, str) and value in allowed:
        return value
    near = get_close_matches(str(value), allowed, n=1, cutoff=0.7) if value else []
    raise CdslError(
        "E0371",
        f"`{name}` of `{op}` is {value!r}",
        help=f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(allowed)}",
    )


def contradiction(op: str, first: str, second: str, help: str) -> CdslError:
    """E0373: two attributes that cannot be meant together."""
    return CdslError("E0373", f"`{op}` takes `{first}` or `{second}`, not both", help=help)


def check_out_pad(window: Window) -> None:
    """`output_padding` stays below the stride or the dilation.

    Raises:
        CdslError: E0372.
    """
    if window.out_pad >= max(window.stride, window.dilation):
        limit = max(window.stride, window.dilation)
        raise CdslError(
            "E0372",
            f"`output_padding`{window.axis} of `{window.op}` is {window.out_pad}, not less than "
            f"stride = {window.stride} or dilation = {window.dilation}",
            notes=("it chooses among the lengths that a convolution with this stride makes equal",),
            help=f"allowed: {'0' if limit == 1 else f'0 to {limit - 1}'}",
        )
