"""`convdsl bench`: a small run, what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convdsl.bench import ceilings, peers
from tests.unit.bench_peers import PEERS
from tests.unit.cli_tools import Cli, cli, command

__all__ = ["cli"]

SUITE = """\
{"schema": 1, "op": "conv_transpose1d", "cases": [
  {"name": "up", "N": 1, "c_in": 4, "L": 20, "c_out": 3, "K": 4, "stride": 2, "padding": [1, 1]},
  {"name": "down", "op": "conv1d", "N": 1, "c_in": 4, "L": 20, "c_out": 3, "K": 4, "stride": 2}
]}
"""
# A runner in the background ignores Ctrl-C, and its children would inherit that.
HEARS = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""
QUICK = ["--repeat", "2", "--seconds", "0.2"]
FIR = ["fir.cdsl", "-D", "N=2", "-D", "L=40", "-D", "K=3"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(SUITE, "utf-8")
    monkeypatch.setattr(ceilings, "LARGE", 512)
    monkeypatch.setattr(ceilings, "LARGEST", 0)
    monkeypatch.setattr(ceilings, "CPU_BYTES", 1 << 12)
    for name, place in PEERS.items():
        monkeypatch.setitem(peers.PEERS, name, place)


def test_a_suite_on_numpy_with_the_floor(cli: Cli, tmp_path: Path) -> None:
    done = cli("bench", "--suite", "s.json", "--vs", "matmul", *QUICK, "--json", "r.json",
               "--html", "r.html")  # fmt: skip
    assert done.code == 0, done.err
    for words in ("convdsl numpy", "matmul numpy", "up", "down", "floor, cpu", "at most, cpu"):
        assert words in done.out
    assert "up (1 of 2) ...\ndown (2 of 2) ...\n" in done.err
    assert done.err.endswith("written: r.json\nwritten: r.html\n")
    record = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert record["command"].startswith("convdsl")
    for layer in record["layers"]:
        assert [r["name"] for r in layer["rows"]] == ["convdsl numpy", "matmul numpy"]
        for row in layer["rows"]:
            assert row["status"] == "right"
            assert 0 < row["error"]["l2"] < 1e-6
            assert 1 <= len(row["samples"]) <= 2
            assert row["calls"] >= 1
    assert record["layers"][0]["flops"] == 2 * 4 * 20 * 3 * 4
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")


def test_an_operator_of_ones_own(cli: Cli) -> None:
    done = cli("bench", *FIR, "--bind", "b", "--data", "x,w", "--vs", "right,fast,unfit", *QUICK,
               "--json", "-")  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads(done.out)
    (layer,) = record["layers"]
    assert (layer["name"], layer["source"]) == ("fir", "fir.cdsl")
    assert {r["name"]: r["status"] for r in layer["rows"]} == {
        "convdsl numpy": "right", "right": "right", "fast": "wrong", "unfit": "unfit"
    }  # fmt: skip
    assert layer["best_peer"] == "right"


def test_layers_of_the_suite_that_ships(cli: Cli) -> None:
    done = cli("bench", "--layers", "tiny,odd_primes", *QUICK)
    assert done.code == 0, done.err
    assert "odd_primes (1 of 2)" in done.err
    assert "tiny (2 of 2)" in done.err


def test_what_is_wrong_is_said(cli: Cli) -> None:
    done = cli("bench", "--suite", "s.json", "--vs", "fast,missing", *QUICK)
    assert done.code == 0
    assert "WRONG, not ranked" in done.out
    assert "note: missing is left out" in done.out


def test_a_layer_of_ours_that_fails_is_the_exit_code(cli: Cli, tmp_path: Path) -> None:
    """A schedule that fits one of the two operators."""
    (tmp_path / "f.cdsl").write_text("schedule conv1d for wgsl {\n    gather y\n}\n", "utf-8")
    done = cli("bench", "--suite", "s.json", "--schedule", "f.cdsl", *QUICK)
    assert done.code == 1
    assert done.err.count("error[E06") == 2
    assert done.out.count("FAILED: ") == 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--vs", "missing"], 1),
        (["--vs", "nodevice"], 3),
        (["--vs", "nobody"], 2),
        (["--layers", "nothing"], 1),
        (["--target", "abacus"], 2),
        (["--target", "numpy,numpy"], 2),
        (["--threads", "0"], 2),
        (["--seconds", "-1"], 2),
        (["-D", "N=1"], 2),
        (["--op", "fir"], 2),
        (["fir.cdsl", "--suite", "s.json"], 2),
        (["fir.cdsl", "--layers", "up"], 2),
        (["fir.cdsl"], 1),
        ([*FIR, "-D", "M=2"], 1),
        ([*FIR, "--data", "z"], 1),
        (["missing.cdsl"], 1),
        ([*FIR, "--schedule", "missing.cdsl"], 1),
    ],
    ids=str,
)
def test_how_it_ends(cli: Cli, args: list[str], code: int) -> None:
    done = cli("bench", *QUICK, *args)
    assert done.code == code, done
    assert "internal error" not in done.err


def test_a_missing_package(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it, whether it is a peer or what limits threads."""
    for module, args in (("torch", ["--vs", "torch"]), ("threadpoolctl", ["--threads", "1"])):
        monkeypatch.setitem(sys.modules, module, None)
        done = cli("bench", "--suite", "s.json", *args, *QUICK)
        assert done.code == 1
        assert done.err.startswith(f"error[E0901]: `{args[-1] if module == 'torch' else args[0]}`")
        assert f"needs the package {module}, which cannot be imported" in done.err
        assert done.err.endswith("  = help: pip install 'convdsl[bench]'\n")
        assert done.out == ""


@pytest.mark.gpu
def test_on_a_device(cli: Cli) -> None:
    done = cli("bench", "--suite", "s.json", "--layers", "up", "--target", "wgsl,numpy", "--plans",
               "--vs", "matmul", "--json", "-", *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads(done.out)
    facts = record["contestants"]["convdsl wgsl"]
    assert facts["place"] == "gpu"
    assert facts["device"]
    assert isinstance(facts["software"], bool)
    rows = {r["name"]: r for r in record["layers"][0]["rows"]}
    assert {"convdsl wgsl", "convdsl numpy", "matmul wgsl", "matmul numpy"} <= set(rows)
    for row in rows.values():
        assert row["status"] == "right", row
        assert row["seconds"] > 0
    assert record["ceilings"]["gpu"]["flops"] > 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_shows_what_was_measured(tmp_path: Path) -> None:
    """The first layer is done when the second one begins; no file is written."""
    large = {"name": "large", "N": 8, "c_in": 512, "L": 20000, "c_out": 64, "K": 64, "stride": 32}
    small = json.loads(SUITE)["cases"][0]
    suite = {"schema": 1, "op": "conv_transpose1d", "cases": [small, large]}
    (tmp_path / "s.json").write_text(json.dumps(suite), "utf-8")
    begun = subprocess.Popen(
        [sys.executable, "-c", HEARS,
         *command("bench", "--suite", "s.json", "--json", "r.json", *QUICK)],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with begun:
        assert begun.stderr is not None
        for line in begun.stderr:
            if line.startswith("large"):
                begun.send_signal(signal.SIGINT)
                break
        out, err = begun.communicate(timeout=120)  # against a hang
    assert begun.returncode == 130, err
    assert "convdsl numpy" in out
    assert "up" in out
    assert "Traceback" not in err
    assert not (tmp_path / "r.json").exists()
