"""Plans by the facts of a machine: what is chosen, what is said of it, and that nothing mixes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import ops
from convdsl.cli.plan_text import plan_lines
from convdsl.kernel import Kernel
from convdsl.machine.document import text_of
from convdsl.machine.facts import TYPICAL, TYPICAL_CPU, TYPICAL_GPU, Cpu, Gpu, Machine, Origin

LAYER = {"N": 1, "C": 64, "L": 4096, "M": 64, "K": 3}
WIDE = {"N": 1, "C": 512, "L": 4096, "M": 512, "K": 3}
PRODUCT = {"M": 256, "N": 256, "K": 256}


def conv1d(target: str, sizes: dict[str, int], machine: Machine | None = None) -> Kernel:
    return convdsl.compile(ops.source("conv1d"), target=target, sizes=sizes, machine=machine)


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
def test_typical_facts_are_the_default(target: str) -> None:
    kernel, same = conv1d(target, WIDE), conv1d(target, WIDE, Machine(Cpu(), Gpu()))
    assert kernel.source == same.source
    assert kernel.plan == same.plan
    assert f"(typical {'CPU' if target == 'numpy' else 'GPU'})" in kernel.plan.machine
    assert kernel.plan.to_json()["machine"] == kernel.plan.machine


def test_slow_products_of_a_cpu_are_saved() -> None:
    """Toom-Cook has fewer products; where they are what takes time, it is chosen."""
    assert conv1d("numpy", LAYER).plan.algorithm == "phases"
    plan = conv1d("numpy", LAYER, Machine(Cpu(flops=2e9))).plan
    assert plan.algorithm == "toom"
    assert plan.reason.endswith("of the time of the direct sum, at 2 GFLOP/s a core (given CPU)")
    slow = Machine(Cpu(flops=2e9, transform=1e-6, scattered=1e-6))  # and memory is slower yet
    assert conv1d("numpy", LAYER, slow).plan.algorithm == "phases"


def test_slow_memory_of_a_gpu_is_spared() -> None:
    plan = conv1d("wgsl", WIDE).plan
    assert plan.algorithm == "toom"
    assert plan.reason.endswith(", at 41 TFLOP/s and 2.6 TB/s (typical GPU)")
    slow = replace(TYPICAL_GPU, bandwidth=2e10, origin=Origin("A card"))
    plan = conv1d("wgsl", WIDE, Machine(gpu=slow)).plan
    assert plan.algorithm == "phases"
    assert plan.machine == "41 TFLOP/s and 20 GB/s (A card)"


def test_threads_that_wake_at_once_do_nothing_where_sizes_are_unknown() -> None:
    """No work is known, which is worth no thread; the columns of unknown sizes are made by one."""
    text = ops.source("conv_transpose1d")
    how: dict[str, Any] = {"params": {"stride": 2}, "dynamic": [*"NCLMK"]}
    at_once = convdsl.compile(text, machine=Machine(Cpu(wake=0.0)), **how)
    assert Cpu(wake=0.0).workers(0.0) == 1
    assert at_once.plan.algorithm == "columns"
    assert at_once.source == convdsl.compile(text, **how).source


def test_few_compute_units_take_large_tiles() -> None:
    """More tiles than units only help where there are units."""
    text = ops.source("matmul")
    tiles = {
        units: convdsl.compile(
            text, target="wgsl", sizes=PRODUCT, machine=Machine(gpu=Gpu(units=units))
        ).plan.tiles
        for units in (1, 132)
    }
    area = {n: np.prod([int(x) for x in t.split(",")[0].split("x")[:2]]) for n, t in tiles.items()}
    assert area[1] > area[132]


def test_threads_and_caches_cut_the_results() -> None:
    sizes = {"N": 1, "C": 64, "L": 16384, "M": 64, "K": 3}

    def chunks(**facts: float) -> int:
        machine = Machine(replace(TYPICAL_CPU, **facts))  # type: ignore[arg-type]
        lines = str(conv1d("numpy", sizes, machine).schedule).splitlines()
        cut = next(line for line in lines if "split y:" in line)
        return -(-16384 // int(cut.split(" by ")[1].split(" ")[0]))

    assert chunks(near=2**19) > chunks() >= chunks(near=2**26)
    assert chunks(threads=16, near=2**26) >= 16 > chunks(near=2**26)
    assert chunks(threads=16, near=2**26, wake=1.0) < 16  # no work is worth a thread


def test_kernels_do_not_share_plans() -> None:
    """Two kernels of one text in one process, called with the same shapes."""
    x = np.ones((1, 64, 4096), np.float32)
    w = np.ones((64, 64, 3), np.float32)
    text = ops.source("conv1d")
    kernels = [
        convdsl.compile(text, machine=machine) for machine in (None, Machine(Cpu(flops=2e9)), None)
    ]
    results = [kernel(x, w) for kernel in kernels]
    assert [k.plan.algorithm for k in kernels] == ["phases", "toom", "phases"]
    for kernel in kernels:
        kernel.bind(w=w)(x)
    assert [k.plan.algorithm for k in kernels] == ["phases", "toom", "phases"]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
def test_a_saved_kernel_keeps_its_facts(target: str, tmp_path: Path) -> None:
    facts = Machine(Cpu(flops=2e9, origin=Origin("A processor")), Gpu(units=3))
    kernel = conv1d(target, LAYER, facts)
    kernel.save(tmp_path)
    again = convdsl.load_kernel(tmp_path)
    assert again.options.machine == facts
    assert again.plan == kernel.plan
    assert again.source != conv1d(target, LAYER).source
    conv1d(target, LAYER).save(tmp_path)
    assert convdsl.load_kernel(tmp_path).options.machine == TYPICAL


def test_a_saved_kernel_keeps_its_cap_and_algorithm(tmp_path: Path) -> None:
    kernel = convdsl.compile(ops.source("conv1d"), sizes=WIDE, cap=2**20, algorithm="toom")
    kernel.save(tmp_path)
    again = convdsl.load_kernel(tmp_path)
    assert again.options.cap == 2**20
    assert again.source == kernel.source


def test_a_file_is_as_good_as_a_record(tmp_path: Path) -> None:
    facts = Machine(Cpu(flops=2e9, origin=Origin("A processor")))
    path = tmp_path / "machine.json"
    path.write_text(text_of(facts), "utf-8")
    read = convdsl.compile(ops.source("conv1d"), sizes=LAYER, machine=str(path))
    assert read.source == conv1d("numpy", LAYER, facts).source
    assert plan_lines(read.plan)[-1] == "chosen for: 2 GFLOP/s a core (A processor)"
    assert not any("chosen for" in line for line in plan_lines(conv1d("numpy", LAYER).plan))


def test_the_same_facts_give_the_same_text() -> None:
    facts = Machine(Cpu(threads=3, near=2**18, flops=1e9), Gpu(units=7, flops=1e11))
    for target in ("numpy", "wgsl"):
        assert conv1d(target, WIDE, facts).source == conv1d(target, WIDE, facts).source
