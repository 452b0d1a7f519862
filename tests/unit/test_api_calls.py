"""Calls like an earlier one take a short way; it comes to the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import convdsl
import convdsl.kernel
from convdsl.calls import KEPT
from convdsl.diagnostics import CdslError
from tests.unit.api_programs import Array

SCALE = """
op scale(x: f32[N, M], w: f32[M], b: f32[N] = 0) -> y: f32[N, M]
{
    y[n, m] = x[n, m] * w[m] + b[n]
}
"""
W = np.array([2, 3, 5], np.float32)


def _x(rows: int = 2) -> Array:
    return np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)


def _kernel() -> convdsl.Kernel:
    return convdsl.compile(SCALE, target="numpy")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From its call on, a kernel that goes the long way fails."""

    def refuse(*args: object) -> None:
        raise AssertionError("checked again")

    return lambda: monkeypatch.setattr(convdsl.kernel, "by_name", refuse)


def test_a_repeated_call_is_not_checked_again(short: Any) -> None:
    kernel, bound = _kernel(), _kernel().bind(w=W)
    b, out = np.ones(2, np.float32), np.empty((2, 3), np.float32)
    kernel(_x(), W, b)
    kernel(_x(), w=W)
    bound(_x())
    short()
    assert (kernel(_x() + 1, W, b) == (_x() + 1) * W + 1).all()
    assert (kernel(_x() + 1, w=W) == (_x() + 1) * W).all()
    assert (bound(_x() + 1) == (_x() + 1) * W).all()
    assert bound(_x() + 2, out=out) is out
    assert (out == (_x() + 2) * W).all()
    with pytest.raises(AssertionError, match="checked again"):
        bound(_x(3))


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (np.zeros((2, 4), np.float32), "E0303"),
        (np.zeros((2, 3), np.float64), "E0354"),
        (np.zeros((2, 3), ">f4"), "E0354"),
        (object(), "E0353"),
    ],
)
def test_what_does_not_fit_is_refused_later_too(x: object, code: str) -> None:
    bound = _kernel().bind(w=W)
    bound(_x())
    with pytest.raises(CdslError) as caught:
        bound(x)
    assert caught.value.code == code


def test_arrays_that_are_converted_are_so_each_time() -> None:
    bound = _kernel().bind(w=W)
    for add in (0, 1):
        assert (bound(np.float16(_x() + add)) == (_x() + add) * W).all()
        assert (bound((_x() + add).data) == (_x() + add) * W).all()
        assert (bound(np.asfortranarray(_x() + add)) == (_x() + add) * W).all()
        assert (bound((_x() + add)[::-1]) == (_x() + add)[::-1] * W).all()


def test_out_is_checked_each_time() -> None:
    bound = _kernel().bind(w=W)
    x, frozen = _x(), np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False
    constant = np.lib.stride_tricks.as_strided(bound.constants["w"], (2, 3), (0, 4))
    bound(x, out=np.empty((2, 3), np.float32))
    for out in (
        np.empty((3, 2), np.float32),
        np.empty((2, 3)),
        frozen,
        x,
        constant,
        [[0.0] * 3] * 2,
    ):
        with pytest.raises(CdslError) as caught:
            bound(x, out=out)  # type: ignore[arg-type]
        assert caught.value.code == "E0355"
    assert (bound.constants["w"] == W).all()
    wide = np.zeros((2, 6), np.float32)
    assert bound(x, out=wide[:, ::2]) is not None
    assert (wide[:, ::2] == x * W).all()
    assert not wide[:, 1::2].any()


def test_source_is_that_of_the_last_call() -> None:
    bound = _kernel().bind(w=W)
    bound(_x(2))
    first = bound.source
    bound(_x(3))
    assert bound.source != first
    bound(_x(2))
    assert bound.source == first
    assert bound.variant[0] == {"N": 2, "M": 3}


def test_more_calls_than_are_kept() -> None:
    bound = _kernel().bind(w=W)
    for _ in range(2):
        for rows in range(1, 80):  # more than variants are kept, too
            assert (bound(_x(rows)) == _x(rows) * W).all()
    assert len(bound._calls._known) == KEPT
    assert bound.variant[0] == {"N": 79, "M": 3}


def test_inputs_may_come_and_go() -> None:
    kernel, b = _kernel(), np.ones(2, np.float32)
    for _ in range(3):
        assert (kernel(_x(), W) == _x() * W).all()
        assert (kernel(_x(), W, b) == _x() * W + 1).all()
        assert (kernel(_x(), W, None) == _x() * W).all()
        assert (kernel(w=W, x=_x(), b=b) == _x() * W + 1).all()


def test_calls_of_many_threads() -> None:
    bound = _kernel().bind(w=W)

    def check(number: int) -> None:
        x = _x(1 + number % 30) + number
        assert (bound(x) == x * W).all()

    with ThreadPoolExecutor(8) as callers:
        for done in [callers.submit(check, i) for i in range(400)]:
            done.result(timeout=60)
