"""Convolutions and the matrix product, with the signatures and weight orders of PyTorch.

Each returns a new array: float16 if all arrays are, else float32 (other dtypes are refused, float16
is widened). Arrays are taken by the buffer protocol, `__array__` or DLPack, with any strides, and
never written. A batch axis may be left out. `activation` is a name (`"relu"`) or a pair
(`("leaky_relu", 0.1)`), computed where the result is stored. All of them raise CdslError, E0370 to
E0375, for what does not fit, with the numbers.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from convdsl.arguments import Array
from convdsl.ops.kernels import Activation
from convdsl.ops.run import Given, direct, product, transposed

Int = SupportsIndex
Ints = Int | tuple[Int, ...] | list[Int]
Padding = Ints | tuple[tuple[Int, Int], ...] | tuple[Int | tuple[Int, Int], ...]


def conv_transpose1d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: Int = 1,
    auto_pad: str = "NOTSET",
    output_shape: Ints | None = None,
    output_size: Ints | None = None,
    layout: str = "NCL",
    activation: Activation = None,
    target: str = "numpy",
    accuracy: str = "standard",
) -> Array:
    """Transposed convolution: y[o] sums x[l] * w[k] over l*stride + k*dilation == o + begin.

    Args:
        x: [N, C, L] or [C, L]; with layout "NLC", [N, L, C] or [L, C].
        w: [C, M / groups, K].
        b: [M], or None.
        stride, dilation, groups: at least 1.
        padding: how much is cropped: `p` at both ends, or `(begin, end)`.
        output_padding: further positions at the end, fewer than stride or dilation.
        auto_pad: as in ONNX: "SAME_UPPER" and "SAME_LOWER" crop or extend to L * stride.
        output_shape: the length to crop to, as in ONNX; `padding` is ignored then.
        output_size: the length wanted, as in PyTorch: it picks `output_padding`.

    Returns:
        [N, M, LO] in the layout of x, LO = (L - 1)*stride - begin - end + dilation*(K - 1)
        + output_padding + 1.
    """
    given = Given(
        stride, padding, dilation, groups, auto_pad, layout, activation, target, accuracy,
        output_padding, output_shape, output_size,
    )  # fmt: skip
    return transposed("conv_transpose1d", x, w, b, given)


def conv_transpose2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: Int = 1,
    auto_pad: str = "NOTSET",
    output_shape: Ints | None = None,
    output_size: Ints | None = None,
    layout: str = "NCHW",
    activation: Activation = None,
    target: str = "numpy",
    accuracy: str = "standard",
) -> Array:
    """Transposed 2-D convolution; as `conv_transpose1d`, each attribute an int or one an axis.

    x is [N, C, H, W] (layout "NHWC": [N, H, W, C]), w [C, M / groups, KH, KW], b [M]; `padding` is
    `p`, `(p, q)` or `((top, bottom), (left, right))`. Returns [N, M, HO, WO].
    """
    given = Given(
        stride, padding, dilation, groups, auto_pad, layout, activation, target, accuracy,
        output_padding, output_shape, output_size,
    )  # fmt: skip
    return transposed("conv_transpose2d", x, w, b, given)


def conv1d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Ints = 1,
    padding: Padding | str = 0,
    dilation: Ints = 1,
    groups: Int = 1,
    auto_pad: str = "NOTSET",
    layout: str = "NCL",
    activation: Activation = None,
    target: str = "numpy",
    accuracy: str = "standard",
) -> Array:
    """Convolution (cross-correlation): y[o] sums x[o*stride + k*dilation - begin] * w[k].

    Args:
        x: [N, C, L] or [C, L]; with layout "NLC", [N, L, C] or [L, C].
        w: [M, C / groups, K].
        b: [M], or None.
        stride, dilation, groups: at least 1.
        padding: zeros around x: `p`, `(begin, end)`, "valid" (none), or "same" (stride 1 only).
        auto_pad: as in ONNX: "SAME_UPPER" and "SAME_LOWER" give ceil(L / stride) positions.

    Returns:
        [N, M, LO] in the layout of x, LO = (L + begin + end - dilation*(K - 1) - 1) // stride + 1.
    """
    given = Given(stride, padding, dilation, groups, auto_pad, layout, activation, target, accuracy)
    return direct("conv1d", x, w, b, given)


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: Ints = 1,
    padding: Padding | str = 0,
    dilation: Ints = 1,
    groups: Int = 1,
    auto_pad: str = "NOTSET",
    layout: str = "NCHW",
    activation: Activation = None,
    target: str = "numpy",
    accuracy: str = "standard",
) -> Array:
    """2-D convolution (cross-correlation); as `conv1d`, each attribute an int or one an axis.

    x is [N, C, H, W] (layout "NHWC": [N, H, W, C]), w [M, C / groups, KH, KW], b [M]; `padding` is
    `p`, `(p, q)`, `((top, bottom), (left, right))`, "valid" or "same". Returns [N, M, HO, WO].
    """
    given = Given(stride, padding, dilation, groups, auto_pad, layout, activation, target, accuracy)
    return direct("conv2d", x, w, b, given)


def matmul(
    a: Any,
    b: Any,
    *,
    activation: Activation = None,
    target: str = "numpy",
    accuracy: str = "standard",
) -> Array:
    """Matrix product of a [M, K] and b [K, N]: [M, N]. A vector for either loses its axis again."""
    return product("matmul", a, b, activation, target, accuracy)
