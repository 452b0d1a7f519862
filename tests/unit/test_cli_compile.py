"""`convdsl compile`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import convdsl
from tests.unit.cli_tools import FIR, Cli, cli

__all__ = ["cli"]


def test_wgsl_by_default_with_sizes_as_symbols(cli: Cli) -> None:
    done = cli("compile", "fir.cdsl")
    assert done.code == 0
    assert done.err == ""
    assert "@compute" in done.out
    assert "struct Sizes" in done.out
    wanted = convdsl.compile(FIR, target="wgsl", dynamic=["N", "L", "K"])
    assert done.out == wanted.source


def test_given_sizes_are_numbers(cli: Cli) -> None:
    done = cli("compile", "fir.cdsl", "-D", "N=2", "-D", "L=100", "-DK=5", "-D", "stride = 3")
    assert done.code == 0
    assert "x: f32[2, 100]" in done.out
    assert "y: f32[2, 32]" in done.out
    some = cli("compile", "fir.cdsl", "-D", "K=5")
    assert "w: f32[5]" in some.out
    assert "x: f32[N, L]" in some.out


def test_absent_inputs_are_constants(cli: Cli) -> None:
    sizes = ["-D", "N=2", "-D", "L=100", "-D", "K=5"]
    done = cli("compile", "fir.cdsl", *sizes, "--absent", "b")
    assert (
        done.out
        == convdsl.compile(
            FIR, target="wgsl", sizes={"N": 2, "L": 100, "K": 5}, absent=["b"]
        ).source
    )
    assert "input b" not in done.out
    record = json.loads(cli("compile", "fir.cdsl", "--absent", "b", "--json").out)
    assert (record["absent"], record["without"]) == (["b"], ["b"])
    assert "E0311" in cli("compile", "fir.cdsl", "--absent", "w").err
    assert cli("compile", "fir.cdsl", "--absent", "b,b").code == 2


def test_numpy_runs_without_convdsl(cli: Cli) -> None:
    done = cli("compile", "fir.cdsl", "--target", "numpy")
    assert done.code == 0
    space: dict[str, object] = {}
    exec(done.out, space)
    x, w = np.arange(12, dtype=np.float32).reshape(2, 6), np.ones(3, np.float32)
    result = space["fir"](x, w, np.zeros(2, np.float32))  # type: ignore[operator]
    assert np.array_equal(result, [[3, 6, 9, 12], [21, 24, 27, 30]])


@pytest.mark.parametrize("target", ["wgsl", "numpy"])
def test_every_stage(cli: Cli, target: str) -> None:
    """Each name that the list gives prints something, and the last is the text itself."""
    refused = cli("compile", "fir.cdsl", "--target", target, "--emit", "zzzz")
    assert refused.code == 2
    _, _, listed = refused.err.partition("Choose one of: ")
    names = listed.strip().rstrip(".").split(", ")
    assert {"ast", "definition", "normalise", "lower", target, "plan", "manifest"} <= set(names)
    texts = {}
    for name in names:
        done = cli("compile", "fir.cdsl", "--target", target, "--emit", name)
        assert (done.code, done.err) == (0, ""), done
        assert done.out.endswith("\n")
        texts[name] = done.out
    different = {"ast", "definition", "lower", target, "plan", "manifest"}
    assert len({texts[name] for name in different}) == len(different)
    assert texts[target] == cli("compile", "fir.cdsl", "--target", target).out
    assert texts["definition"].startswith("system fir(N, L, K)\n")
    assert texts["lower"].startswith("func fir(N, L, K)\n")
    assert json.loads(texts["manifest"])["op"] == "fir"
    assert texts["plan"].startswith("plan: ")
    assert "Reduce sum" in texts["ast"]


def test_emit_of_a_target_means_that_target(cli: Cli) -> None:
    assert "import numpy" in cli("compile", "fir.cdsl", "--emit", "numpy").out
    assert cli("compile", "fir.cdsl", "--target", "wgsl", "--emit", "numpy").code == 2
    assert cli("compile", "fir.cdsl", "--emit", "ast", "-o", "d").code == 2
    assert cli("compile", "fir.cdsl", "--emit", "ast", "--json").code == 2


def test_the_tree_of_a_text_that_means_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "odd.cdsl").write_text("op f(x: f32[N]) -> y: f32[N] { y[n] = z[q] }\n", "utf-8")
    assert cli("compile", "odd.cdsl").code == 1
    done = cli("compile", "odd.cdsl", "--emit", "ast")
    assert done.code == 0
    assert "tensor: Ref z" in done.out


def test_print_after(cli: Cli) -> None:
    plain = cli("compile", "fir.cdsl")
    one = cli("compile", "fir.cdsl", "--print-after", "lower", "--print-after", "normalise")
    assert one.out == plain.out
    assert one.err.index("-- after normalise --") < one.err.index("-- after lower --")
    every = cli("compile", "fir.cdsl", "--print-after", "all")
    for name in ("definition", "normalise", "rewrite", "lower", "wgsl"):
        assert f"-- after {name} --\n" in every.err
    wrong = cli("compile", "fir.cdsl", "--print-after", "lowe")
    assert wrong.code == 2
    assert "There is no pass 'lowe' for wgsl. Did you mean 'lower'?" in wrong.err


@pytest.mark.parametrize("target", ["wgsl", "numpy"])
def test_a_folder(cli: Cli, tmp_path: Path, target: str) -> None:
    done = cli("compile", "fir.cdsl", "--target", target, "-D", "K=4", "-o", "out/deep")
    assert done.code == 0
    names = {"wgsl": ["fir.wgsl", "fir.schedule.cdsl"], "numpy": ["fir.py", "fir.schedule.cdsl"]}
    paths = [tmp_path / line for line in done.out.splitlines()]
    assert [p.name for p in paths] == [*names[target], "manifest.json"]
    assert sorted((tmp_path / "out/deep").iterdir()) == sorted(paths)
    assert done.err.startswith("plan: ")
    kernel = convdsl.load_kernel("out/deep")
    assert kernel.source == paths[0].read_text("utf-8")
    assert kernel.target == target
    again = cli("compile", "fir.cdsl", "--target", target, "-D", "K=4", "-o", "out/deep", "--json")
    assert again.code == 0
    facts = json.loads(again.out)
    assert facts["written"] == done.out.splitlines()
    assert facts["sizes"] == {"K": 4}
    assert facts["dynamic"] == ["N", "L"]
    assert facts["params"] == {"stride": 1}


def test_json_without_a_folder(cli: Cli, tmp_path: Path) -> None:
    done = cli("compile", "fir.cdsl", "--json", "-D", "N=1", "-D", "L=9", "-D", "K=2")
    facts = json.loads(done.out)
    assert list(facts["texts"]) == ["fir.wgsl", "fir.schedule.cdsl"]
    assert facts["texts"]["fir.schedule.cdsl"] == facts["applied"]
    assert facts["plan"]["flops"] == 2 * 8 * 2
    assert not (tmp_path / "manifest.json").exists()


def test_several_ops(cli: Cli, tmp_path: Path) -> None:
    text = FIR + FIR.replace("op fir", "op other")
    (tmp_path / "two.cdsl").write_text(text, "utf-8")
    refused = cli("compile", "two.cdsl")
    assert (refused.code, "E0217" in refused.err) == (1, True)
    assert cli("compile", "two.cdsl", "--op", "other").code == 0


@pytest.mark.parametrize("name", ["stride", "L"])
@pytest.mark.parametrize(
    "value", ["9" * 5000, "0x10", "1_000", "one", "", "1,5", "²", "٣", "- 1", "1 2"]
)
def test_nonsense_numbers(cli: Cli, name: str, value: str) -> None:
    done = cli("compile", "fir.cdsl", "-D", f"{name}={value}")
    assert done.code == 2
    assert len(done.err) < 400


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("stride=2.0", "E0302"), ("stride=nan", "E0302"), ("stride=0", "E0301"),
        ("stride=99999999999999999999", "E0307"), ("L=1.5", "E0309"), ("L=-1", "E0305"),
        ("L=99999999999999999999", "E0307"), ("strid=1", "E0302"), ("Q=1", "E0309"),
        ("LO=4", "E0358"), ("N=4294967296", "E0307"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(cli: Cli, value: str, code: str) -> None:
    more = ["-D", "L=2000000"] if value.startswith("N=") else []
    done = cli("compile", "fir.cdsl", "-D", value, *more)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[{code}]: ")


def test_float_parameters(cli: Cli) -> None:
    done = cli("compile", "scale.cdsl", "-D", "gain=1e-3", "--emit", "definition")
    assert "0.001" in done.out
    assert cli("compile", "scale.cdsl", "-D", "gain=3").code == 0
    assert "E0302" in cli("compile", "scale.cdsl", "-D", "gain=inf").err
