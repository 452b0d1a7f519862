"""Running modules written by hand on the adapter of this machine."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from convdsl.backends.wgsl.module import Binding
from convdsl.backends.wgsl.runtime import Device, Runner, get_device, session
from convdsl.backends.wgsl.runtime.adapter import choose_adapter
from convdsl.backends.wgsl.runtime.memory import Staging
from convdsl.diagnostics import DeviceError, InternalError
from convdsl.ir.index import ZERO, const
from tests.unit import wgsl_runtime_modules as modules

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]


def numbers(n: int, dtype: npt.DTypeLike = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-99, 99, n).astype(dtype)


def test_add_with_sizes_that_change_and_no_stale_data() -> None:
    runner = Runner(modules.add())
    for n in (2, 0, 1, 1000, 0, 3, 64):
        a, b = numbers(n), numbers(n, seed=n)
        y = runner.run({"a": a, "b": b}, {"n": n})
        assert y.shape == (n,)
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y.numpy(), a + b)


def test_two_kernels_with_a_temporary_that_grows_and_shrinks() -> None:
    runner = Runner(modules.chain())
    for n in (5, 3000, 1, 0, 3000, 5):
        a = numbers(n, seed=n)
        y = runner.run({"a": a}, {"n": n}).numpy()
        np.testing.assert_array_equal(y, 2 * a[::-1] + 1)


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("size", [1, 5, 64, 129])
def test_copy(dtype: Any, size: int) -> None:
    a = numbers(size, {"f32": np.float32, "i32": np.int32}[dtype])
    np.testing.assert_array_equal(Runner(modules.copy(size, dtype)).run({"a": a}, {}).numpy(), a)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 127])
def test_f16_with_odd_sizes(size: int) -> None:
    device = get_device()
    if "shader-f16" not in device.info.features:
        with pytest.raises(DeviceError, match="shader-f16"):
            Runner(modules.copy(size, "f16")).prepare()
        return
    a = numbers(size, np.float16) / np.float16(8)
    y = Runner(modules.copy(size, "f16")).run({"a": a}, {}).numpy()
    assert y.dtype == np.float16
    assert y.tobytes() == a.tobytes()


def test_any_strides_and_read_only_arrays_are_taken() -> None:
    runner = Runner(modules.copy(6))
    base = numbers(24)
    base.flags.writeable = False
    for view in (base[::4], base[::-4], base[3:9]):
        np.testing.assert_array_equal(runner.run({"a": view}, {}).numpy(), view)
    tensor = runner.upload(base.reshape(4, 6).T)
    assert tensor.shape == (6, 4)
    np.testing.assert_array_equal(tensor.numpy(), base.reshape(4, 6).T)
    np.testing.assert_array_equal(np.asarray(runner.upload(np.float32(3))), np.float32(3))


def test_outputs_that_are_held_are_not_written_again() -> None:
    runner = Runner(modules.add())
    zero = runner.upload(np.zeros(3, np.float32))
    kept = [runner.run({"a": np.full(3, k, np.float32), "b": zero}, {"n": 3}) for k in range(8)]
    assert [t.numpy().tolist() for t in kept] == [[k, k, k] for k in range(8)]
    assert kept[0].device_name == str(runner.device.info)


def test_an_output_is_an_input_of_the_next_run_and_one_tensor_serves_twice() -> None:
    runner = Runner(modules.add())
    y = runner.upload(np.ones(4, np.float32))
    for _ in range(5):
        y = runner.run({"a": y, "b": y}, {"n": 4})
    np.testing.assert_array_equal(y.numpy(), np.full(4, 32, np.float32))


def test_memory_is_used_again() -> None:
    device = Device(choose_adapter())
    runner = Runner(modules.add(), device)
    a = runner.upload(numbers(1000))
    for _ in range(20):
        runner.run({"a": a, "b": a}, {"n": 1000}).numpy()
    assert device.session().pool.created <= 3
    device.close()


def test_ten_runs_give_the_same_bytes() -> None:
    runner = Runner(modules.chain())
    a = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    assert len({runner.run({"a": a}, {"n": 5000}).numpy().tobytes() for _ in range(10)}) == 1


def test_a_kernel_that_is_not_run_leaves_zeros() -> None:
    add = modules.add()
    runner = Runner(replace(add, kernels=(replace(add.kernels[0], dispatch=(ZERO,) * 3),)))
    full = Runner(add)
    a = full.upload(np.ones(300, np.float32))
    for _ in range(3):
        full.run({"a": a, "b": a}, {"n": 300}).numpy()
        assert not runner.run({"a": a, "b": a}, {"n": 300}).numpy().any()


def test_an_empty_input_can_be_bound() -> None:
    add = modules.add()
    buffers = (replace(add.buffers[0], dims=(const(0),)), *add.buffers[1:])
    text = add.text.replace("a[i] + b[i]", "b[i] + f32(sizes.n) + 0.0 * a[0]")
    runner = Runner(replace(add, buffers=buffers, text=text))
    y = runner.run({"a": np.zeros(0, np.float32), "b": np.ones(3, np.float32)}, {"n": 3})
    assert y.shape == (3,)
    y.numpy()


def test_pipelines_are_made_once_for_one_text() -> None:
    device = Device(choose_adapter())
    first, second = Runner(modules.chain(), device), Runner(modules.chain(), device)
    first.prepare()
    assert device.pipelines_created == 2
    for runner in (first, second):
        runner.prepare()
        for n in (3, 4):
            runner.run({"a": numbers(n)}, {"n": n}).numpy()
    assert device.pipelines_created == 2
    Runner(modules.copy(3), device).prepare()
    assert device.pipelines_created == 3
    device.close()


def test_many_sizes_do_not_grow_the_caches_without_bound() -> None:
    runner = Runner(modules.add())
    for n in range(1, 60):
        a = numbers(n)
        np.testing.assert_array_equal(runner.run({"a": a, "b": a}, {"n": n}).numpy(), a + a)
    assert runner._prepared is not None
    assert len(runner._prepared._plans) <= 32


def test_one_runner_from_several_threads() -> None:
    runner = Runner(modules.chain())
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for n in (7, 130, 513, 1) * 4:
                a = numbers(n, seed=seed)
                y = runner.run({"a": a}, {"n": n}).numpy()
                if not np.array_equal(y, 2 * a[::-1] + 1):
                    wrong.append((seed, n))
        except Exception as error:  # shown by the assertion below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_transfers_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "UPLOAD", 256)
    monkeypatch.setattr(Staging, "LARGEST", 512)
    tensor = get_device().upload(numbers(1001, np.float16))
    np.testing.assert_array_equal(tensor.numpy(), numbers(1001, np.float16))


def test_a_submission_for_each_kernel_gives_the_same() -> None:
    a = numbers(300)
    y = Runner(modules.chain(), kernels_a_submit=1).run({"a": a}, {"n": 300}).numpy()
    np.testing.assert_array_equal(y, 2 * a[::-1] + 1)


def test_without_run_time_checks_the_result_is_the_same() -> None:
    a = numbers(300)
    y = Runner(modules.chain(), checks=False).run({"a": a}, {"n": 300}).numpy()
    np.testing.assert_array_equal(y, 2 * a[::-1] + 1)


def test_a_text_that_is_refused_is_shown_with_line_numbers() -> None:
    bad = modules.add(modules.add().text.replace("a[i] + b[i]", "a[i] + q[i]"))
    with pytest.raises(InternalError) as caught:
        Runner(bad).prepare()
    assert ">   10 |   if (i < sizes.n) { y[i] = a[i] + q[i]; }" in str(caught.value)
    with pytest.raises(InternalError, match=r"nowhere"):
        Runner(modules.add(entry="nowhere")).prepare()
    test_add_with_sizes_that_change_and_no_stale_data()


def test_bindings_that_disagree_with_the_text_are_ours() -> None:
    add = modules.add()
    bindings = (*add.kernels[0].bindings[:2], Binding(2, "y", "read"))
    with pytest.raises(InternalError, match=r"fn add\("):
        Runner(replace(add, kernels=(replace(add.kernels[0], bindings=bindings),))).prepare()


def test_wrong_tensors_are_ours() -> None:
    runner, a = Runner(modules.add()), numbers(3)
    with pytest.raises(InternalError, match=r"'b' has shape \(2,\).*made for shape \(3,\)"):
        runner.run({"a": a, "b": a[:2]}, {"n": 3})
    with pytest.raises(InternalError, match=r"'b' has shape \(3,\) and dtype float64"):
        runner.run({"a": a, "b": a.astype(float)}, {"n": 3})
    with pytest.raises(InternalError, match=r"'b' was not given"):
        runner.run({"a": a}, {"n": 3})
    with pytest.raises(InternalError, match=r"int64"):
        runner.upload(np.arange(3))
