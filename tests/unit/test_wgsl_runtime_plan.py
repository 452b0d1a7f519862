"""A module with numbers for its sizes, and the limits that are checked on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from convdsl.backends.wgsl.module import Binding, Limits, WgslModule
from convdsl.backends.wgsl.runtime.plan import Plan, check_kernel, make_plan, whole
from convdsl.diagnostics import DeviceError, InternalError
from tests.unit import wgsl_runtime_modules as modules

LIMITS = Limits()


def planned(module: WgslModule, sizes: dict[str, int], limits: Limits = LIMITS) -> Plan:
    return make_plan(module, whole(module), sizes, limits, "A")


def test_shapes_dispatches_and_uniforms() -> None:
    plan = planned(modules.chain(), {"n": 100})
    assert [s.shape for s in plan.inputs] == [(100,)]
    assert [(s.name, s.nbytes) for s in plan.temps] == [("t", 800)]
    assert plan.outputs[0].shape == (100,)
    assert [s.dispatch for s in plan.steps] == [(4, 1, 1), (2, 1, 1)]
    assert np.frombuffer(plan.uniform, "<i4").tolist() == [100, 200, 0, 0]


def test_an_empty_output_needs_no_step_and_no_temporary() -> None:
    plan = planned(modules.chain(), {"n": 0})
    assert plan.steps == ()
    assert plan.temps == ()
    assert plan.outputs[0].nbytes == 0


def test_the_last_dispatch_that_fits_and_the_first_that_does_not() -> None:
    most = 65535 * 64
    assert planned(modules.add(), {"n": most}).steps[0].dispatch[0] == 65535
    with pytest.raises(DeviceError, match=r"'add' needs 65536 x 1 x 1 .* A allows 65535"):
        planned(modules.add(), {"n": most + 1})


def test_a_size_beyond_32_bits_is_refused() -> None:
    huge = Limits(max_workgroups_per_dimension=2**40)
    with pytest.raises(DeviceError, match=r"n = 2147483648"):
        planned(modules.add(), {"n": 2**31}, huge)


def test_a_missing_size_is_ours() -> None:
    with pytest.raises(InternalError, match=r"needs the size 'n'"):
        planned(modules.add(), {})


def test_an_entry_point_that_needs_more_than_the_device_has() -> None:
    kernel = modules.add().kernels[0]
    check_kernel(kernel, Limits(), "A")
    with pytest.raises(
        DeviceError, match=r"512 x 1 x 1 = 512 .* allows 256, at most 256 x 256 x 64"
    ):
        check_kernel(replace(kernel, workgroup=(512, 1, 1)), Limits(), "A")
    with pytest.raises(DeviceError, match=r"1 x 1 x 65"):
        check_kernel(replace(kernel, workgroup=(1, 1, 65)), Limits(), "A")
    many = tuple(Binding(i, f"b{i}", "read") for i in range(9))
    with pytest.raises(DeviceError, match=r"binds 9 buffers, but A allows 8"):
        check_kernel(replace(kernel, bindings=many), Limits(), "A")
