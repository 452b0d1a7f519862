"""A layer as PyTorch computes it: by the function of its name, and by a product and `fold`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from convdsl.bench.contestant import Unfit
from convdsl.bench.layer import Convolution, Layer, Product

Tensors = Mapping[str, Any]
Call = Callable[[Tensors], Any]


def library(torch: Any, layer: Layer) -> Call:
    """`conv_transpose1d`, `conv1d` or `matmul`.

    Raises:
        Unfit: for a layer that is none of them.
    """
    match layer.known:
        case Convolution(transposed=True) as known:
            return _transposed(torch, known)
        case Convolution() as known:
            return _direct(torch, known)
        case Product():
            return lambda t: torch.matmul(t["a"], t["b"])
        case None:
            raise Unfit("no function of PyTorch computes this operator")


def folded(torch: Any, layer: Layer) -> Call:
    """One product for all taps, then overlapping blocks are added: what an expert would write.

    Raises:
        Unfit: for all but transposed convolutions of one group with equal pads.
    """
    known = layer.known
    if (
        not isinstance(known, Convolution)
        or not known.transposed
        or known.groups != 1
        or known.begin != known.end
    ):
        raise Unfit("only for transposed convolutions of one group with equal pads")

    def call(t: Tensors) -> Any:
        x, w = _before(torch, known, t["x"]), t["w"]
        channels, out, taps = w.shape
        length = (x.shape[-1] - 1) * known.stride - 2 * known.begin
        length += known.dilation * (taps - 1) + known.out_pad + 1
        columns = torch.matmul(w.reshape(channels, out * taps).t(), x)
        y = torch.nn.functional.fold(
            columns, (1, length), (1, taps), (1, known.dilation), (0, known.begin),
            (1, known.stride),
        )  # fmt: skip
        y = y.squeeze(2)
        return y if t.get("b") is None else y + t["b"][:, None]

    return call


def _before(torch: Any, known: Convolution, x: Any) -> Any:
    return x if known.slope is None else torch.nn.functional.leaky_relu(x, known.slope)


def _transposed(torch: Any, known: Convolution) -> Call:
    """Unequal pads are cut off the result: PyTorch crops both ends alike."""
    pad = min(known.begin, known.end)
    begin, end = known.begin - pad, known.end - pad

    def call(t: Tensors) -> Any:
        y = torch.nn.functional.conv_transpose1d(
            _before(torch, known, t["x"]), t["w"], t.get("b"), known.stride, pad, known.out_pad,
            known.groups, known.dilation,
        )  # fmt: skip
        return y[..., begin : y.shape[-1] - end] if begin or end else y

    return call


def _direct(torch: Any, known: Convolution) -> Call:
    """Unequal pads are zeros written first."""
    equal = known.begin == known.end

    def call(t: Tensors) -> Any:
        x = _before(torch, known, t["x"])
        if not equal:
            x = torch.nn.functional.pad(x, (known.begin, known.end))
        return torch.nn.functional.conv1d(
            x, t["w"], t.get("b"), known.stride, known.begin if equal else 0, known.dilation,
            known.groups,
        )  # fmt: skip

    return call
