"""Run by .ci/run with an installed wheel, outside the checkout and without wgpu."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np

import convdsl

COMMAND = Path(sys.executable).with_name("convdsl")
HERE = Path.cwd()


def command(*arguments: str) -> str:
    """What the installed command prints."""
    return subprocess.run(
        [COMMAND, *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


assert importlib.util.find_spec("wgpu") is None, "the wheel must not need wgpu"
assert Path(sys.prefix) in Path(convdsl.__file__).parents, convdsl.__file__
assert "compile" in command("--help")

# Four frames of two channels, overlapped by half; the oracle scatters.
rng = np.random.default_rng(0)
x = rng.integers(-4, 5, (1, 2, 4)).astype(np.float32)
w = rng.integers(-4, 5, (2, 1, 8)).astype(np.float32)
expected = np.zeros((1, 1, 20), np.float32)
for frame in range(4):
    expected[0, 0, 4 * frame : 4 * frame + 8] += x[0, :, frame] @ w[:, 0]

assert np.array_equal(convdsl.ops.conv_transpose1d(x, w, stride=4, target="numpy"), expected)

np.save("x.npy", x)
np.save("w.npy", w)
Path("op.cdsl").write_text(convdsl.ops.source("conv_transpose1d"), encoding="utf-8")
inputs = ("--input", "x=x.npy", "--input", "w=w.npy", "--output", "y.npy")
command("run", "op.cdsl", "--target", "numpy", "-D", "stride=4", *inputs)
assert np.array_equal(np.load("y.npy"), expected)

command("compile", "op.cdsl", "-D", "stride=4", "-o", "wgsl")  # emitting WGSL needs no adapter
assert list(Path("wgsl").glob("**/*.wgsl")), sorted(Path("wgsl").rglob("*"))
print("the wheel works: help, a call, a run, a compilation")
