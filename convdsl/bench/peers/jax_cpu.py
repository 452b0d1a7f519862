"""JAX on the CPU, compiled by XLA; constants are arguments that lie where it wants them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from convdsl.arguments import Array
from convdsl.bench.contestant import Calls, Contestant, Facts, Prepared, Settings, Unfit
from convdsl.bench.data import Data
from convdsl.bench.extras import require
from convdsl.bench.layer import Convolution, Layer, Product
from convdsl.machine.names import cores, cpu_name


class Jax:
    """The peer `jax`."""

    def open(self, settings: Settings) -> list[Contestant]:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # else it takes most of a GPU's memory
        if settings.threads is not None:
            os.environ["NPROC"] = str(settings.threads)  # XLA's switch; it reads it at the start
        jax = require("jax", "jax")
        cpu = jax.devices("cpu")[0]
        versions = {"jax": str(jax.__version__)}
        facts = Facts("cpu", cpu_name(), versions, settings.threads or cores())

        def prepare(layer: Layer, data: Data) -> Prepared:
            return _prepare(jax, cpu, layer, data)

        return [Contestant("jax", facts, prepare)]


def _prepare(jax: Any, cpu: Any, layer: Layer, data: Data) -> Prepared:
    function = jax.jit(_function(jax, layer))
    sets = [
        {n: jax.device_put(_weights(layer, n, a), cpu) for n, a in data.all(which).items()}
        for which in range(len(data.sets))
    ]

    def run(which: int) -> None:
        function(sets[which]).block_until_ready()  # else calls could run beside each other

    def fetch(which: int) -> Array:
        return np.array(function(sets[which]))

    return Calls(run, fetch, len(sets))


def _weights(layer: Layer, name: str, array: Array) -> Array:
    """Of a transposed convolution, those of the convolution that it is: [out, in / groups, K], from
    the last tap to the first.
    """
    known = layer.known
    if name != "w" or not isinstance(known, Convolution) or not known.transposed:
        return array
    channels, out, taps = array.shape
    split = array.reshape(known.groups, channels // known.groups, out, taps).swapaxes(1, 2)
    return np.ascontiguousarray(split.reshape(known.groups * out, -1, taps)[..., ::-1])


def _function(jax: Any, layer: Layer) -> Any:
    known = layer.known
    if isinstance(known, Product):
        return lambda t: jax.numpy.matmul(t["a"], t["b"])
    if not isinstance(known, Convolution):
        raise Unfit("no function of JAX computes this operator")

    def call(t: dict[str, Any]) -> Any:
        x, w = t["x"], t["w"]
        if known.slope is not None:
            x = jax.nn.leaky_relu(x, known.slope)
        pads, inner, stride = (known.begin, known.end), 1, known.stride
        if known.transposed:
            reach = known.dilation * (w.shape[-1] - 1)
            pads = (reach - known.begin, reach - known.end + known.out_pad)
            inner, stride = known.stride, 1
        y = jax.lax.conv_general_dilated(
            x, w, (stride,), [pads], (inner,), (known.dilation,),
            dimension_numbers=("NCH", "OIH", "NCH"), feature_group_count=known.groups,
        )  # fmt: skip
        return y if "b" not in t else y + t["b"][:, None]

    return call
