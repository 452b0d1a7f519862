"""What the command says of mistakes, whole: each NAME.args in tests/errors/cli has its NAME.expect.

An .args file holds the arguments as a shell would split them; they run in a folder with scale.cdsl,
fir.cdsl, pool.cdsl, x.npy (float32 [2, 12]), w.npy ([3]), d.npy (float64 [3]) and suite.json; and with
facts of a machine: machine_cpu.json, machine_old.json (another schema), machine_odd.json (no flops).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from convdsl.machine.document import to_json
from convdsl.machine.facts import Cpu, Machine
from tests.unit.cli_tools import Cli, cli

__all__ = ["cli"]

SUITE = """\
{"schema": 1, "op": "conv_transpose1d", "cases": [
  {"name": "up", "N": 1, "c_in": 4, "L": 20, "c_out": 3, "K": 4, "stride": 0}
]}
"""
FOLDER = Path(__file__).parents[1] / "errors" / "cli"
CASES = sorted(FOLDER.glob("*.args"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_message(path: Path, cli: Cli, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 12), np.float32))
    np.save(tmp_path / "w.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "d.npy", np.zeros(3))
    (tmp_path / "suite.json").write_text(SUITE, "utf-8")
    facts = to_json(Machine(Cpu(flops=1e9)))
    (tmp_path / "machine_cpu.json").write_text(json.dumps(facts))
    (tmp_path / "machine_old.json").write_text(json.dumps(facts | {"schema": 0}))
    facts["cpu"]["facts"]["flops"] = 0
    (tmp_path / "machine_odd.json").write_text(json.dumps(facts))
    before = sorted(tmp_path.iterdir())
    done = cli(*shlex.split(path.read_text("utf-8"), comments=True))
    assert done.code in (1, 2, 3), done
    assert sorted(tmp_path.iterdir()) == before
    text = f"exit {done.code}\n"
    if done.out:
        text += f"-- stdout --\n{done.out}"
    golden(path.with_suffix(".expect"), f"{text}-- stderr --\n{done.err}")


def test_no_expectation_is_orphaned() -> None:
    assert len(CASES) >= 25
    assert sorted(FOLDER.glob("*.expect")) == [case.with_suffix(".expect") for case in CASES]
