"""What the functions of `convdsl.ops.conv` share: check, work out pads, find the kernel, run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from convdsl.arguments import Array
from convdsl.diagnostics import CdslError
from convdsl.ops.attributes import (
    AUTO_PAD,
    Window,
    choice,
    contradiction,
    integer,
    pads,
    per_axis,
)
from convdsl.ops.kernels import activation_of, check_target, kernel
from convdsl.ops.lengths import direct_pads, transposed_pads
from convdsl.ops.shapes import arrays, batched, check_convolution

# By the number of spatial axes: the layouts, and how the language's parameters are named.
_LAYOUTS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC")}
_SUFFIXES = {1: ("",), 2: ("_h", "_w")}
_PADS = {1: (("pad_begin", "pad_end"),), 2: (("pad_top", "pad_bottom"), ("pad_left", "pad_right"))}
_AXES = {1: ("",), 2: (" of the height", " of the width")}
_RANKS = {"conv1d": 1, "conv2d": 2, "conv_transpose1d": 1, "conv_transpose2d": 2}


@dataclass(frozen=True, slots=True)
class Given:
    """Attributes as the user gave them, not yet checked."""

    stride: Any
    padding: Any
    dilation: Any
    groups: Any
    auto_pad: Any
    layout: Any
    activation: Any
    target: Any
    accuracy: Any
    output_padding: Any = 0
    output_shape: Any = None
    output_size: Any = None


def transposed(op: str, x: Any, w: Any, b: Any, given: Given) -> Array:
    """Run a transposed convolution; the arguments are those of `convdsl.ops.conv_transpose1d`."""
    rank = _RANKS[op]
    out_pads = per_axis(op, "output_padding", given.output_padding, rank, 0)
    windows = _windows(op, given, out_pads)
    same = windows[0].auto_pad.startswith("SAME")
    if given.output_shape is not None and given.output_size is not None:
        raise contradiction(op, "output_shape", "output_size", "each names the output length")
    if given.output_size is not None and same:
        raise contradiction(op, "output_size", "auto_pad", "SAME_* fixes the output length")
    if given.output_shape is None and given.auto_pad != "NOTSET":
        _check_unpadded(op, windows)
    data = _Data(op, x, w, b, given, windows, transposed=True)
    shapes = _lengths(data, "output_shape", given.output_shape)
    sizes = _lengths(data, "output_size", given.output_size)
    params: list[tuple[str, int]] = []
    for n, window in enumerate(windows):
        length, taps = data.lengths[n], data.w.shape[2 + n]
        begin, end, out_pad = transposed_pads(window, length, taps, shapes[n], sizes[n])
        params += _params(window, n, (begin, end))
        params.append((f"out_pad{_SUFFIXES[rank][n]}", out_pad))
    return data.run(params)


def direct(op: str, x: Any, w: Any, b: Any, given: Given) -> Array:
    """Run a convolution; the arguments are those of `convdsl.ops.conv1d`."""
    rank = _RANKS[op]
    if isinstance(given.padding, str):
        word = choice(op, "padding", given.padding, ("valid", "same"))
        if given.auto_pad != "NOTSET":
            raise contradiction(op, "padding", "auto_pad", "leave one of them out")
        auto_pad = "VALID" if word == "valid" else "SAME_UPPER"
        windows = _windows(op, given, (0,) * rank, auto_pad)
        if word == "same" and any(window.stride != 1 for window in windows):
            raise CdslError(
                "E0373",
                f"`padding` of `{op}` is 'same', which needs stride = 1, not {given.stride}",
                help='with a stride, say `auto_pad="SAME_UPPER"`: ceil(L / stride) positions',
            )
    else:
        windows = _windows(op, given, (0,) * rank)
        if given.auto_pad != "NOTSET":
            _check_unpadded(op, windows)
    data = _Data(op, x, w, b, given, windows, transposed=False)
    params: list[tuple[str, int]] = []
    for n, window in enumerate(windows):
        length, taps = data.lengths[n], data.w.shape[2 + n]
        params += _params(window, n, direct_pads(window, length, taps))
    return data.run(params)


def product(op: str, a: Any, b: Any, activation: Any, target: Any, accuracy: Any) -> Array:
    """Run the matrix product; the arguments are those of `convdsl.ops.matmul`."""
    check_target(op, target, accuracy)
    applied = activation_of(op, activation)
    given, dtype = arrays(a=a, b=b)
    if len(given) < 2:
        raise CdslError("E0353", f"`{op}` needs two arrays, one is None")
    left, right = given["a"], given["b"]
    if not {left.ndim, right.ndim} <= {1, 2} or left.shape[-1] != right.shape[0]:
        raise CdslError(
            "E0374",
            f"`{op}` cannot multiply {list(left.shape)} by {list(right.shape)}",
            help="allowed: [M, K] by [K, N]; [K] stands for one row, or for one column",
        )
    shape = left.shape[:-1] + right.shape[1:]
    rows = left if left.ndim == 2 else left[None]
    columns = right if right.ndim == 2 else right[:, None]
    return kernel(op, dtype, False, applied, (), target, accuracy)(rows, columns).reshape(shape)


class _Data:
    """The arrays and the checked attributes of one call."""

    def __init__(
        self, op: str, x: Any, w: Any, b: Any, given: Given, windows: list[Window], transposed: bool
    ) -> None:
        self.op, self.given = op, given
        rank = len(windows)
        check_target(op, given.target, given.accuracy)
        self.activation = activation_of(op, given.activation)
        self.groups = integer(op, "groups", given.groups, 1)
        layout = choice(op, "layout", given.layout, _LAYOUTS[rank])
        self.channels_last = layout.endswith("C")
        found, self.dtype = arrays(x=x, w=w, b=b)
        for name in ("x", "w"):
            if name not in found:
                raise CdslError("E0353", f"`{name}` of `{op}` is None, not an array")
        self.x, self.unbatched = batched(op, found["x"], layout)
        self.w, self.b = found["w"], found.get("b")
        first = 1 if self.channels_last else 2
        self.lengths = self.x.shape[first : first + rank]
        channels = self.x.shape[-1 if self.channels_last else 1]
        check_convolution(
            op, channels, self.w, self.b, self.groups, transposed=transposed, rank=rank
        )

    def run(self, params: list[tuple[str, int]]) -> Array:
        given = self.given
        key = (*params, ("groups", self.groups))
        made = kernel(
            self.op,
            self.dtype,
            self.channels_last,
            self.activation,
            key,
            given.target,
            given.accuracy,
        )
        y = made(self.x, self.w, self.b)
        return y[0] if self.unbatched else y


def _windows(
    op: str, given: Given, out_pads: tuple[int, ...], auto_pad: str | None = None
) -> list[Window]:
    rank = _RANKS[op]
    strides = per_axis(op, "stride", given.stride, rank, 1)
    dilations = per_axis(op, "dilation", given.dilation, rank, 1)
    padding = ((0, 0),) * rank if auto_pad else pads(op, given.padding, rank)
    word = auto_pad or choice(op, "auto_pad", given.auto_pad, AUTO_PAD)
    return [
        Window(op, strides[n], dilations[n], padding[n], out_pads[n], word, _AXES[rank][n])
        for n in range(rank)
    ]


def _check_unpadded(op: str, windows: list[Window]) -> None:
    if any(window.padding != (0, 0) for window in windows):
        word = windows[0].auto_pad
        raise contradiction(op, "padding", "auto_pad", f"{word} says what the padding is")


def _lengths(data: _Data, name: str, value: Any) -> tuple[int | None, ...]:
    """One wanted length for each spatial axis; a whole shape must agree in its other axes.

    Raises:
        CdslError: E0370, E0372, E0374.
    """
    rank = len(data.lengths)
    if value is None:
        return (None,) * rank
    whole = data.x.ndim - data.unbatched
    if isinstance(value, (tuple, list)) and len(value) == whole:
        given = tuple(integer(data.op, name, v, 0) for v in value)
        x, w, g = data.x.shape, data.w.shape, data.groups
        out = w[1] * g
        cut = 0 if data.unbatched else 1
        first = given[cut : cut + rank] if data.channels_last else given[-rank:]
        expected = (*first, out) if data.channels_last else (out, *first)
        expected = expected if data.unbatched else (x[0], *expected)
        if given != expected:
            raise CdslError(
                "E0374",
                f"`{name}` of `{data.op}` is {list(given)}, but batch and channels give "
                f"{list(expected)}",
                help="the lengths of the spatial axes are enough",
            )
        return first
    return per_axis(data.op, name, value, rank, 0)


def _params(window: Window, n: int, pads: tuple[int, int]) -> list[tuple[str, int]]:
    """The parameters of the language for one spatial axis, output padding apart."""
    rank = _RANKS[window.op]
    suffix = _SUFFIXES[rank][n]
    begin, end = _PADS[rank][n]
    return [
        (f"stride{suffix}", window.stride),
        (f"dilation{suffix}", window.dilation),
        (begin, pads[0]),
        (end, pads[1]),
    ]
