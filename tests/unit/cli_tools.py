"""Running the command in tests: in this process, or as users do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from convdsl.cli import run

SCALE = "op scale(x: f32[N], gain: float = 2.0) -> y: f32[N] {\n    y[n] = gain * x[n]\n}\n"
FIR = """\
op fir(x: f32[N, L], w: f32[K], b: f32[N] = 0, stride: int = 1) -> y: f32[N, LO]
where LO == (L - K) // stride + 1,
      stride >= 1, K >= 1
{
    y[n, o] = b[n] + sum[k, l | o*stride + k == l] x[n, l] * w[k]
}
"""
POOL = """\
op pool(x: f32[N], width: int) -> y: f32[N] {
    y[o] = max[k in 0..width, n | n == o + k - 1] x[n]
}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run the command in an empty folder that holds scale.cdsl, fir.cdsl and pool.cdsl."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, text in (("scale", SCALE), ("fir", FIR), ("pool", POOL)):
        (tmp_path / f"{name}.cdsl").write_text(text, "utf-8")

    def call(*args: str) -> Done:
        capfd.readouterr()
        code = run(args)
        said = capfd.readouterr()
        return Done(code, said.out, said.err)

    return call


def command(*args: str) -> list[str]:
    """The command as another process runs it."""
    return [sys.executable, "-m", "convdsl", *args]


def process(
    *args: str, cwd: Path, env: dict[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run the command in another process."""
    return subprocess.run(
        command(*args), cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout,
        check=False, encoding="utf-8",
    )  # fmt: skip
