"""Times on the device."""

from __future__ import annotations

import numpy as np
import pytest

from convdsl.backends.wgsl.runtime import Device, Runner, get_device
from convdsl.backends.wgsl.runtime.adapter import choose_adapter
from tests.unit import wgsl_runtime_modules as modules

pytestmark = pytest.mark.gpu


def test_the_devices_clock_is_used_where_there_is_one() -> None:
    runner = Runner(modules.chain())
    a = runner.upload(np.ones(10000, np.float32))
    timing = runner.measure({"a": a}, {"n": 10000}, repeat=3)
    period = get_device().session().period
    assert timing.method == ("wall" if period is None else "timestamps")
    assert len(timing.samples) == 3
    assert min(timing.samples) <= timing.seconds <= max(timing.samples)
    assert 0 < timing.seconds < 1
    assert timing.runs >= 1
    assert 0 < runner.time({"a": a}, {"n": 10000}, repeat=1) < 1


def test_the_hosts_clock_otherwise() -> None:
    device = Device(choose_adapter())
    device.session().period = None
    runner = Runner(modules.chain(), device)
    timing = runner.measure({"a": np.ones(100, np.float32)}, {"n": 100}, repeat=2)
    assert timing.method == "wall"
    assert 0 < timing.seconds < 1
    device.close()


def test_nothing_to_run_takes_next_to_nothing() -> None:
    runner = Runner(modules.chain())
    assert runner.time({"a": np.ones(0, np.float32)}, {"n": 0}, repeat=1) < 0.1
