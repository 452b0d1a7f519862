"""`python -m convdsl.demo`: its error measure is right, and its table appears on any machine."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import convdsl
from convdsl import demo
from convdsl.diagnostics import DeviceError

SMALL = demo.Layer(2, 3, 7, 8, 3)
TEXT = (Path(convdsl.__file__).parent / "ops" / "conv_transpose1d.cdsl").read_text("utf-8")


def _console() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=132), text


@pytest.mark.parametrize(
    "layer", [SMALL, demo.Layer(1, 2, 5, 3, 4), demo.Layer(3, 1, 1, 1, 1)], ids=str
)
def test_the_error_is_measured_right(layer: demo.Layer) -> None:
    """Against the definition: none for the definition itself, the right one for another result."""
    x, w = layer.data()
    y = convdsl.evaluate(TEXT, {"x": x, "w": w}, {"stride": layer.stride})
    assert y.shape == (layer.n, 1, layer.length)
    assert demo.sampled_error(layer, x, w, y) < 1e-15
    assert demo.sampled_error(layer, x, w, y * 1.5) == pytest.approx(0.5)
    wrong = y.copy()
    wrong[-1, 0, -1] += 1
    assert demo.sampled_error(layer, x, w, wrong) > 0.01


def test_positions_are_a_sample_with_the_edges() -> None:
    layer = demo.Layer(8, 1, 500, 64, 16)
    x, w = layer.data()
    y = convdsl.evaluate(TEXT, {"x": x, "w": w}, {"stride": layer.stride})
    for place in (0, 1, 15, 16, layer.length - 16, layer.length - 1):
        wrong = y.copy()
        wrong[0, 0, place] += 1
        assert demo.sampled_error(layer, x, w, wrong) > 1e-4


def test_the_layers_are_those_of_the_issue() -> None:
    assert demo.HEADLINE.flops == 2 * 8 * 4098 * 435 * 4096
    assert str(demo.HEADLINE) == "x[8,4098,435] w[4098,1,4096] stride 1024"
    assert str(demo.TWIN) == "x[2,258,27] w[258,1,256] stride 64"


def test_numpy_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "HEADLINE", SMALL)
    console, _ = _console()
    layer, floor = demo.numpy_rows(console)
    assert layer.error is not None
    assert layer.error < 1e-6
    assert layer.seconds is not None
    assert floor.flops == layer.flops == SMALL.flops
    assert "np.matmul" in floor.plan
    assert "threads" not in layer.where


@pytest.mark.gpu
def test_wgsl_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "HEADLINE", SMALL)
    monkeypatch.setattr(demo, "TWIN", SMALL)
    console, _ = _console()
    (row,) = demo.wgsl_rows(console)
    assert row.seconds is not None
    assert row.error is not None
    assert row.error < 1e-6


def test_without_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that says so, with the command that helps."""

    def missing() -> list[object]:
        raise DeviceError("no WebGPU adapter was found", help="apt-get install some-driver")

    monkeypatch.setattr("convdsl.backends.wgsl.runtime.adapter._enumerate", missing)
    console, text = _console()
    (row,) = demo.wgsl_rows(console)
    assert row.seconds is None
    demo.show(console, [row])
    assert "no WebGPU adapter was found" in text.getvalue()
    assert "apt-get install some-driver" in text.getvalue()


def test_the_table() -> None:
    console, text = _console()
    rows = [
        demo.Row("numpy: CPU", str(demo.HEADLINE), "columns", 2.0, demo.HEADLINE.flops, 3e-7),
        demo.Row("numpy: CPU", "[1,2] x 3", "bare np.matmul", 1.0, demo.HEADLINE.flops),
    ]
    demo.show(console, rows)
    shown = text.getvalue()
    for word in ("columns", "2 s", "58.41", "3e-07", "116.8", "convdsl new my_op", "float64"):
        assert word in shown


@pytest.mark.slow
@pytest.mark.gpu
def test_the_whole_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "convdsl.demo"], cwd=tmp_path, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The whole operator")
    assert TEXT in done.stdout
    errors = [
        line.split("│")[-2] for line in done.stdout.splitlines() if " e-" in line or "e-0" in line
    ]
    assert len(errors) == 2
    assert all(float(error) < 3e-6 for error in errors)
    assert "Traceback" not in done.stderr
    assert np.isfinite([float(error) for error in errors]).all()
