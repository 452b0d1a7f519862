"""The accuracy classes: at most 1.5, 3 or 5 times the error of a float32 sum in blocks of 128 terms.

That error, E0, is the root mean square against float64 of a sum taken one term after the other within
blocks of 128, and then one block after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import convdsl
from convdsl.passes.plan_toom_cpu import BLOCK_ERROR
from convdsl.passes.toom_accuracy import most_results

Array = npt.NDArray[Any]
BOTH = [pytest.param("numpy"), pytest.param("wgsl", marks=pytest.mark.gpu)]
DRAWS = 6  # of a case, taken together: some have two dozen results, too few for their rms alone


def blocked(terms: Array) -> Array:
    """The sums over the last axis, in float32, as the language defines E0."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for block in range(0, terms.shape[-1], 128):
        part = np.zeros(terms.shape[:-1], np.float32)
        for at in range(block, min(block + 128, terms.shape[-1])):
            part = part + terms[..., at].astype(np.float32)
        total = total + part
    return total


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def windows(x: Array, width: int, stride: int) -> Array:
    """[channels, positions, width]"""
    return np.lib.stride_tricks.sliding_window_view(x, width, axis=-1)[:, ::stride]


def convolution(
    draw: Callable[..., Array], channels: int, length: int, taps: int, stride: int
) -> tuple[str, dict[str, int], list[Array], Array]:
    x, w = draw(channels, length), draw(2, channels, taps)
    seen = windows(x.astype(np.float64), taps, stride)
    products = np.einsum("cok,mck->mock", seen, w.astype(np.float64))
    terms = products.reshape(2, products.shape[1], channels * taps)
    return convdsl.ops.source("conv1d"), {"stride": stride}, [x[None], w], terms[None]


def column_sum(
    draw: Callable[..., Array], rows: int
) -> tuple[str, dict[str, int], list[Array], Array]:
    a = draw(rows, 16)
    text = "op total(a: f32[K, N]) -> y: f32[N] { y[n] = sum[k] a[k, n] }"
    return text, {}, [a], a.T.astype(np.float64)


def vector(
    draw: Callable[..., Array], terms: int, *axes: str
) -> tuple[str, dict[str, int], list[Array], Array]:
    """A matrix with axes k and n in some order, and a vector of so many terms."""
    a, b = draw(terms), draw(*(terms if axis == "k" else 40 for axis in axes))
    index, shape = ", ".join(axes), ", ".join(axes).upper()
    text = (
        f"op vector(a: f32[K], b: f32[{shape}]) -> y: f32[N] {{ y[n] = sum[k] a[k] * b[{index}] }}"
    )
    rows = b if axes == ("n", "k") else b.T
    return text, {}, [a, b], a.astype(np.float64) * rows


def numbers(kind: str) -> Callable[..., Array]:
    """Draws arrays of a shape; the same ones whichever tests ran before."""
    rng = np.random.default_rng(7)
    draw = rng.standard_normal if kind == "normal" else rng.random
    return lambda *shape: draw(shape, dtype=np.float32)


CASES = {
    "few channels, long kernel": lambda d: convolution(d, 8, 1500, 512, 64),
    "many channels, long kernel": lambda d: convolution(d, 16, 4096, 1024, 256),
    "one channel, stride one": lambda d: convolution(d, 1, 1200, 1024, 1),
    "channels only": lambda d: convolution(d, 1200, 12, 1, 1),
    "few hundred terms": lambda d: column_sum(d, 700),
    "sum along a strided axis": lambda d: column_sum(d, 6000),
    "many parts": lambda d: column_sum(d, 40_000),
    "vector, rows of terms": lambda d: vector(d, 512, "n", "k"),
    "vector, columns of terms": lambda d: vector(d, 512, "k", "n"),
    "long vector": lambda d: vector(d, 3000, "k", "n"),
}


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("sizes", ["fixed", "dynamic"])
@pytest.mark.parametrize("kind", ["normal", "positive"])
@pytest.mark.parametrize("case", CASES)
def test_strict(case: str, kind: str, sizes: str, target: str) -> None:
    draw = numbers(kind)
    drawn = [CASES[case](draw) for _ in range(DRAWS)]
    text, params, _, _ = drawn[0]
    known = ["N", "C", "L", "M", "K"] if "conv1d" in text else ["N", "K"]
    kernel = convdsl.compile(
        text, params=params, accuracy="strict", target=target,
        dynamic=known if sizes == "dynamic" else [],
    )  # fmt: skip
    exact = [terms.sum(-1) for *_, terms in drawn]
    sums = [blocked(terms) for *_, terms in drawn]
    found = [kernel(*arrays) for _, _, arrays, _ in drawn]
    assert rms(np.array(found) - exact) <= 1.5 * rms(np.array(sums) - exact)


TOOM = """
schedule conv_transpose1d for {target} {{
    phases y over o, k -> t, r, j
    toom y over t, j by {results} -> xt, wt, zt: tile, u, z
}}"""


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("kind", ["normal", "positive"])
@pytest.mark.parametrize(("accuracy", "most"), [("standard", 3.0), ("fast", 5.0)])
@pytest.mark.parametrize("channels", [256, 300, 1026])
@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_toom(taps: int, channels: int, accuracy: str, most: float, kind: str, target: str) -> None:
    """The fastest algorithm that a class allows, alone and in long blocks, on data of its own."""
    draw = numbers(kind)
    stride, length = 48, 60
    x, w = draw(1, channels, length), draw(channels, 1, taps * stride)
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (taps - 1, taps - 1)))
    seen = windows(padded, taps, 1)[..., ::-1]
    phases = w[:, 0].reshape(channels, taps, stride).astype(np.float64)
    products = np.einsum("ctj,cjr->trcj", seen, phases)
    terms = products.reshape(1, 1, -1, channels * taps)
    exact = terms.sum(-1)
    fastest = most_results(taps, channels, accuracy)
    assert fastest is not None
    for results in {fastest, most_results(taps, channels, accuracy, BLOCK_ERROR) or fastest}:
        kernel = convdsl.compile(
            convdsl.ops.source("conv_transpose1d"), params={"stride": stride}, accuracy=accuracy,
            target=target, schedule=TOOM.format(target=target, results=results), absent="b",
        )  # fmt: skip
        found = kernel(x, w)
        assert kernel.plan.algorithm == "toom"
        assert rms(found - exact) <= most * rms(blocked(terms) - exact)
