"""Measuring a machine: once, kept for this device and these versions, shown by the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import platformdirs
import pytest

import convdsl
from convdsl import ops
from convdsl.diagnostics import DeviceError
from convdsl.machine import kept, measure_cpu, names, timing
from convdsl.machine.document import from_json, read, text_of, to_json
from convdsl.machine.facts import Cpu, Gpu, Machine, Part, numbers
from convdsl.machine.measure_gpu import measure_gpu
from convdsl.machine.timing import Say, plausible, seconds_of
from tests.unit.cli_tools import Cli, cli

__all__ = ["cli"]


def quickly(say: Say) -> Cpu:
    return measure_cpu.measure_cpu(say, 1e-4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, with nothing in it."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    monkeypatch.setattr(kept, "_FOUND", {})
    return tmp_path / "cache" / "machine"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was measured, without measuring it: 3 GFLOP/s, and one more each time."""
    parts: list[str] = []

    def cpu(say: Say) -> Cpu:
        say("all of it")
        parts.append("cpu")
        origin = replace(names.identity("cpu"), measured="2026-05-04T12:00:00+00:00")
        return Cpu(flops=(2 + len(parts)) * 1e9, origin=origin)

    monkeypatch.setattr(measure_cpu, "measure_cpu", cpu)
    return parts


def test_what_is_here_is_measured_once(
    folder: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        assert kept.here(["cpu"]).cpu.flops == 3e9
    kept._FOUND.clear()  # another process
    assert kept.here(["cpu"]).cpu.flops == 3e9
    assert measured == ["cpu"]
    assert [p.name for p in folder.iterdir()] == [kept.file_of("cpu").name]
    assert kept.measure(["cpu"]).cpu.flops == 4e9  # asked for again
    assert kept.here(["cpu"]).cpu.flops == 4e9
    monkeypatch.setattr(names, "_blas", lambda: "another library")
    assert kept.here(["cpu"]).cpu.flops == 5e9
    assert len(list(folder.iterdir())) == 2
    assert measured == ["cpu"] * 3


@pytest.mark.parametrize("damage", ["", "{}", '{"schema": 2, "cpu": {}}', "of another device"])
def test_a_kept_file_that_is_not_right_is_replaced(
    folder: Path, measured: list[str], damage: str
) -> None:
    first = kept.here(["cpu"])
    path = kept.file_of("cpu")
    other = replace(first.cpu, origin=replace(first.cpu.origin, device="another"))
    path.write_text(text_of(Machine(other)) if damage.startswith("of") else damage, "utf-8")
    kept._FOUND.clear()
    assert kept.here(["cpu"]).cpu.flops == 4e9
    assert read(path) == kept.here(["cpu"])
    assert [p.name for p in folder.iterdir()] == [path.name]


def test_without_a_folder_to_keep_it_in(folder: Path, measured: list[str]) -> None:
    folder.parent.write_text("a file where the folder would be")
    for _ in range(2):
        assert kept.here(["cpu"]).cpu.flops == 3e9
    with pytest.raises(convdsl.CdslError, match="E0360"):
        kept.measure(["cpu"])


def test_compile_for_here(folder: Path, measured: list[str]) -> None:
    for _ in range(2):
        kernel = convdsl.compile(
            ops.source("conv1d"), machine="here",
            sizes={"N": 1, "C": 64, "L": 4096, "M": 64, "K": 3},
        )  # fmt: skip
        assert kernel.plan.machine == f"3 GFLOP/s a core ({names.cpu_name()})"
    assert measured == ["cpu"]


def test_the_facts_of_a_cpu() -> None:
    """By hardly any measuring: numbers of a machine, which plans can be chosen for."""
    said: list[str] = []
    facts = measure_cpu.measure_cpu(said.append, 1e-4)
    assert said == [
        "products of matrices",
        "transforms",
        "copies and additions",
        "calls and threads",
    ]
    assert facts.threads == names.cores()
    assert facts.origin.device == facts.name == names.cpu_name()
    assert set(facts.origin.typical) <= {"near", "far"}
    assert all(rate > 0 for _, rate in facts.origin.rates)
    record = json.loads(json.dumps(to_json(Machine(facts))))
    assert from_json(record, "facts") == Machine(facts)
    right(Machine(facts), "numpy")


def right(machine: Machine, target: str) -> None:
    """A program that is chosen for a machine is right."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 4, (2, 16, 300)).astype(np.float32)
    w = rng.integers(-4, 4, (12, 16, 3)).astype(np.float32)
    kernel = convdsl.compile(
        ops.source("conv1d"), target=target, accuracy="strict", machine=machine
    )
    want = convdsl.evaluate(ops.source("conv1d"), {"x": x, "w": w})
    np.testing.assert_array_equal(kernel(x, w), want.astype(np.float32))


@pytest.mark.gpu
def test_the_facts_of_a_gpu() -> None:
    facts = measure_gpu(lambda text: None, 1, 1e-3)
    about, software = dict(facts.origin.about), facts.busy == 1
    assert about["type"] in ("discrete", "integrated", "virtual", "unknown", "cpu")
    assert software == (facts.single == 1.0) == ("busy" not in facts.origin.typical)
    assert software or about["type"] != "cpu"
    assert facts.full == 1024 * facts.units
    assert {"tested", "ahead", "ahead_wide"} <= set(facts.origin.typical)
    assert numbers(facts) != numbers(Gpu())
    assert from_json(to_json(Machine(gpu=facts)), "facts") == Machine(gpu=facts)
    right(Machine(gpu=facts), "wgsl")


def test_the_median_of_the_quietest_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample in three takes ten times as long, and all of the first round do."""
    clock, calls = [0.0], [0]

    def work() -> None:
        calls[0] += 1
        disturbed = calls[0] < 8 or calls[0] % 3 == 0
        clock[0] += 0.01 if disturbed else 0.001

    monkeypatch.setattr(timing, "perf_counter", lambda: clock[0])
    assert seconds_of(work, 0.03) == pytest.approx(0.001)
    assert calls[0] >= 3 * timing.FEWEST


def test_a_number_of_no_machine() -> None:
    assert plausible("it", 2.0, 1.0, 3.0) == 2.0
    for value in (0.5, 4.0, float("nan"), float("inf")):
        with pytest.raises(DeviceError, match="measuring failed: it came out as"):
            plausible("it", value, 1.0, 3.0)


def _cache(folder: Path, number: int, level: int, kind: str, size: str, shared: str) -> None:
    index = folder / f"index{number}"
    index.mkdir(parents=True)
    for name, text in (
        ("level", str(level)), ("type", kind), ("size", size), ("shared_cpu_list", shared),
    ):  # fmt: skip
        (index / name).write_text(f"{text}\n")


def test_caches_as_the_system_states_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_cpu, "CACHES", tmp_path)
    assert measure_cpu._caches() == (0, 0)
    _cache(tmp_path, 0, 1, "Data", "32K", "0")
    _cache(tmp_path, 1, 1, "Instruction", "32K", "0")
    assert measure_cpu._caches() == (0, 0)
    _cache(tmp_path, 2, 2, "Unified", "1024K", "0")
    assert measure_cpu._caches() == (2**20, 2**20)  # no common one
    _cache(tmp_path, 3, 3, "Unified", "16384K", "0-15,32-47")
    assert measure_cpu._caches() == (2**20 + 2**19, 2**23)
    (tmp_path / "index2" / "size").write_text("a lot")
    assert measure_cpu._caches() == (0, 0)


# -- the command --------------------------------------------------------------------------------
def test_devices_measure(
    cli: Cli, folder: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVDSL_ADAPTER", "no such adapter")
    done = cli("devices", "--measure", "-o", "facts.json")
    assert done.code == 0
    assert "the CPU alone is measured" in done.err
    assert "measuring all of it ..." in done.err
    assert f"kept: {kept.file_of('cpu')}" in done.err
    assert "written: facts.json" in done.err
    assert names.cpu_name() in done.out
    assert all(name in done.out for name in numbers(Cpu()))
    assert "3 GFLOP/s" in done.out
    assert read(Path("facts.json")).cpu.flops == 3e9
    done = cli("devices", "--measure", "--json")
    assert json.loads(done.out)["cpu"]["facts"]["flops"] == 4e9
    assert measured == ["cpu", "cpu"]


@pytest.mark.gpu
def test_devices_measure_both(
    cli: Cli, folder: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gpu(say: Say) -> Gpu:
        return Gpu(units=5, origin=replace(names.identity("gpu"), typical=("busy",)))

    monkeypatch.setattr("convdsl.machine.measure_gpu.measure_gpu", gpu)
    done = cli("devices", "--measure", "-o", "facts.json")
    assert done.code == 0, done.err
    assert read(Path("facts.json")).gpu == kept.here(["gpu"]).gpu
    assert sorted(p.name[:4] for p in folder.iterdir()) == ["cpu-", "gpu-"]
    done = cli("compile", "fir.cdsl", "--machine", "here", "--emit", "plan")
    assert str(names.identity("gpu").device) in done.out


def ran(cli: Cli, *args: str) -> str:
    done = cli(*args)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize("file", [False, True], ids=["here", "file"])
def test_machine_option(cli: Cli, folder: Path, measured: list[str], file: bool) -> None:
    """Every command that chooses plans takes it; measured once, and that is shown."""
    given = "here"
    if file:
        given = "facts.json"
        Path(given).write_text(text_of(kept.here(["cpu"])), "utf-8")
    more = ("--target", "numpy", "--machine", given)
    sizes = [a for n, v in (("N", 2), ("L", 12), ("K", 3)) for a in ("-D", f"{n}={v}")]
    said = f"chosen for: 3 GFLOP/s a core ({names.cpu_name()})\n"
    assert ran(cli, "compile", "fir.cdsl", *more, "--emit", "plan").endswith(said)
    assert said in ran(cli, "run", "fir.cdsl", *more, "--random", "x,w", *sizes)
    record = json.loads(ran(cli, "compile", "fir.cdsl", *more, "--json"))
    assert record["machine"]["cpu"]["facts"]["flops"] == 3e9
    assert record["plan"]["machine"] in said
    assert ran(cli, "show", "fir.cdsl", *more)
    assert ran(cli, "bench", "fir.cdsl", *more, *sizes, "--repeat", "1", "--seconds", "0")
    assert measured == ["cpu"]


@pytest.mark.gpu
def test_each_part_has_a_file_of_its_own(folder: Path) -> None:
    parts: tuple[Part, ...] = ("cpu", "gpu")
    found = {kept.file_of(part) for part in parts}
    assert len(found) == 2
    assert all(path.parent == folder for path in found)
