"""Folds on a device: tensors, timing, memory, a device that is lost."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import convdsl
from convdsl.backends.wgsl.runtime import get_device
from convdsl.diagnostics import DeviceError
from tests.folding import LAYER, SIZES, Ran, arrays, layer
from tests.unit.api_programs import whole

pytestmark = pytest.mark.gpu


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return Ran(monkeypatch)


def test_on_the_device(ran: Ran) -> None:
    kernel = convdsl.compile(LAYER, target="wgsl", sizes=SIZES, algorithm="phases")
    given = arrays()
    bound = kernel.bind(w=given["w"], g=given["g"])
    x = kernel.upload(given["x"])
    assert np.array_equal(bound.run(x=x).numpy(), layer(given))
    assert ran.look() == ["v_elements", "y_phases"]
    assert bound.time(x=x, repeat=1) > 0
    assert set(ran.look()) == {"y_phases"}


def test_memory_comes_back() -> None:
    """What a bound kernel keeps on the device is given back with it."""
    kernel = convdsl.compile(LAYER, target="wgsl", sizes=SIZES)
    given = arrays()
    kernel(**given)
    pool = get_device().session().pool

    def lent() -> int:
        gc.collect()
        pool._settle()
        return len(pool._lent)

    before = lent()
    bound = kernel.bind(w=given["w"], g=given["g"])
    bound(given["x"])
    assert lent() == before + 3  # w, g and v
    del bound
    assert lent() == before


def test_a_lost_device(ran: Ran) -> None:
    """DeviceError once at most; then all that is kept is made again."""
    kernel = convdsl.compile(LAYER, target="wgsl", sizes=SIZES, algorithm="phases")
    given = arrays()
    bound = kernel.bind(w=given["w"], g=given["g"])
    assert np.array_equal(bound(given["x"]), layer(given))
    get_device().session().gpu.destroy()
    with pytest.raises(DeviceError, match="lost"):
        bound(given["x"])
    ran.look()
    for later in (["v_elements", "y_phases"], ["y_phases"]):
        assert np.array_equal(bound(given["x"]), layer(given))
        assert ran.look() == later


def test_a_copy_that_a_schedule_makes(ran: Ran) -> None:
    text = """
op product(a: f32[M, K], w: f32[N, K]) -> y: f32[M, N] { y[m, n] = sum[k] a[m, k] * w[n, k] }
schedule product for wgsl { pack y: w by 1, 0 -> w_packed }
"""
    a, w = whole(5, 7), whole(6, 7, seed=1)
    bound = convdsl.compile(text, target="wgsl", dynamic=["M", "K", "N"]).bind(w=w)
    for rows in (5, 2):
        assert np.array_equal(bound(a[:rows]), a[:rows] @ w.T)
    first, *rest = ran.look()
    assert first.startswith("w_packed")
    assert not any("w_packed" in part for part in rest)
    assert len(rest) == 2
