"""Bound constants, bounded caches, and calls from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError
from convdsl.variants import CACHE
from tests.unit.api_programs import AXPY, FIR, Array, fir, whole

BOTH = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("target", BOTH)
def test_bind_before_sizes_are_known(target: str) -> None:
    w = whole(3)
    kernel = convdsl.compile(FIR, target=target)
    bound = kernel.bind(w=w)
    for shape in ((2, 7), (1, 12), (0, 5), (2, 7)):
        x = whole(*shape)
        assert np.array_equal(bound(x), fir(x, w))
        assert np.array_equal(bound(x=x), fir(x, w))
    assert np.array_equal(kernel(whole(2, 7), w), fir(whole(2, 7), w))  # the first one is as it was


@pytest.mark.parametrize("target", BOTH)
def test_bound_arrays_are_copies(target: str) -> None:
    w, x = whole(3), whole(2, 7)
    expected = fir(x, w)
    bound = convdsl.compile(FIR, target=target).bind(w=w[::-1][::-1])
    w[...] = 77
    assert np.array_equal(bound(x), expected)
    out = np.empty_like(expected)
    assert bound(x, out=out) is out
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("target", BOTH)
def test_bind_in_steps(target: str) -> None:
    kernel = convdsl.compile(AXPY, target=target)
    x, y, b = whole(4), whole(4, seed=1), whole(4, seed=2)
    first = kernel.bind(y=y)
    second = first.bind(b=b)
    assert np.array_equal(first(x), x + 2 * y)
    assert np.array_equal(first(x, b), x + 2 * y + b)
    assert np.array_equal(second(x), x + 2 * y + b)
    everything = second.bind(x=x.astype("f2"))
    assert np.array_equal(everything(), x + 2 * y + b)
    other = kernel.bind(y=-y)
    assert np.array_equal(other(x), x - 2 * y)
    assert np.array_equal(first(x), x + 2 * y)


def test_arguments_after_bind_are_the_others() -> None:
    """Positions count what is not bound; where they do not fit, the error says so."""
    x, y, b = whole(4), whole(4, seed=1), whole(4, seed=2)
    bound = convdsl.compile(AXPY).bind(x=x)
    for wrong in ((x, y, b), (y, whole(3)), (y, whole(4, 1))):
        with pytest.raises(CdslError, match="`x` is bound: pass the others"):
            bound(*wrong)
    with pytest.raises(CdslError, match="`x` is bound, so it cannot be given"):
        bound(y, x=x)
    with pytest.raises(CdslError) as caught:
        convdsl.compile(AXPY)(x, whole(3))
    assert "bound" not in str(caught.value)


def test_wrong_binds() -> None:
    kernel = convdsl.compile(FIR, sizes={"K": 3})

    def refused(code: str, **arrays: Any) -> str:
        with pytest.raises(CdslError) as caught:
            kernel.bind(**arrays)
        assert caught.value.code == code
        return str(caught.value)

    assert "its inputs: x, w" in refused("E0352", v=whole(3))
    assert "4" in refused("E0303", w=whole(4))
    refused("E0303", w=whole(3, 1))
    assert "float64" in refused("E0354", w=np.ones(3))
    refused("E0353", w=[1.0, 2.0, 3.0])
    bound = kernel.bind(w=whole(3))
    with pytest.raises(CdslError) as caught:
        bound(whole(2, 7), w=whole(3))
    assert caught.value.code == "E0352"
    with pytest.raises(CdslError) as caught:
        bound.bind(w=whole(3))
    assert caught.value.code == "E0352"


def test_bound_shapes_take_part_in_the_sizes() -> None:
    bound = convdsl.compile(AXPY).bind(y=whole(4))
    with pytest.raises(CdslError) as caught:
        bound(whole(5))
    assert caught.value.code == "E0303"


def test_variants_are_bounded() -> None:
    kernel = convdsl.compile(FIR)
    w = whole(3)
    bound = kernel.bind(w=w)
    for length in [*range(3, CACHE + 20), 3, 20]:
        x = whole(1, length)
        assert np.array_equal(bound(x), fir(x, w))
        assert f"[1, {length}]" in bound.source or f"(1, {length})" in bound.source
    assert len(kernel._variants._made) == CACHE
    assert len(bound._known) == CACHE
    assert len(bound._constants._prepared or {}) == 1  # one copy for all variants


def test_the_text_shown_is_that_of_the_last_call() -> None:
    kernel = convdsl.compile(FIR)
    texts = []
    for length in (5, 9, 5):
        kernel(whole(1, length), whole(3))
        texts.append(kernel.source)
    assert texts[0] == texts[2] != texts[1]


@pytest.mark.parametrize("target", BOTH)
def test_several_threads(target: str) -> None:
    """One kernel, many shapes, with and without the optional input, bound and not."""
    kernel = convdsl.compile(AXPY, target=target)
    bound = kernel.bind(b=np.ones(5, "f4"))
    together = Barrier(4)

    def work(seed: int) -> list[tuple[Array, Array]]:
        together.wait()
        out = []
        for step in range(12):
            n = 3 + (seed + step) % 4
            x, y, b = (whole(n, seed=s) for s in (seed, step, seed + step))
            out.append((kernel(x, y), x + 2 * y))
            out.append((kernel(x, y, b), x + 2 * y + b))
            if n == 5:
                out.append((bound(x, y), x + 2 * y + 1))
        return out

    with ThreadPoolExecutor(4) as pool:
        for pairs in pool.map(work, range(4)):
            for got, expected in pairs:
                assert np.array_equal(got, expected)


def test_threads_that_fail_do_not_stop_others() -> None:
    kernel = convdsl.compile(FIR)

    def work(seed: int) -> bool:
        x = whole(1, 1 if seed % 2 else 9)
        try:
            y = kernel(x, whole(3))
        except CdslError:
            return seed % 2 == 1
        return bool(np.array_equal(y, fir(x, whole(3))))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))
