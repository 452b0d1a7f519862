"""A run: who takes part, who is wrong, who fails, and what is made of the numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.bench import ceilings, peers
from convdsl.bench.contestant import Ceilings, Settings
from convdsl.bench.data import Data, make_data
from convdsl.bench.layer import Layer, make_layer
from convdsl.bench.page import page_of
from convdsl.bench.record import LayerRecord, Record, Row
from convdsl.bench.session import Session
from convdsl.bench.timing import Rules, Sample
from convdsl.diagnostics import CdslError, DeviceError, InternalError
from tests.unit.bench_peers import FACTS, PEERS
from tests.unit.test_cli_show import Reader

TEXT = convdsl.ops.source("conv1d")
SIZES = {"N": 1, "C": 4, "L": 30, "M": 3, "K": 5}


class Silent:
    def layer(self, name: str, number: int, count: int) -> None: ...
    def step(self, text: str) -> None: ...


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in PEERS.items():
        monkeypatch.setitem(peers.PEERS, name, place)
    monkeypatch.setattr(ceilings, "LARGE", 512)
    monkeypatch.setattr(ceilings, "LARGEST", 0)
    monkeypatch.setattr(ceilings, "CPU_BYTES", 1 << 12)


def session() -> Session:
    record = Record("convdsl bench", "1", "3", "a system", "standard", None)
    return Session(record, Rules(rounds=2, seconds=0.5, least=0.001), Silent())


def run(*names: str, text: str = TEXT, **more: Any) -> Session:
    made = session()
    made.enter(Settings(), names, **more)
    made.run([make_layer("one", "", convdsl.parse(text), {}, SIZES)])
    return made


def rows(made: Session) -> dict[str, Row]:
    return {r.name: r for r in made.record.layers[0].rows}


def test_a_peer_that_is_wrong_is_shown_and_not_ranked() -> None:
    made = run("right", "fast")
    found = rows(made)
    assert found["right"].status == found["convdsl numpy"].status == "right"
    assert found["fast"].status == "wrong"
    assert found["fast"].error is not None
    assert found["fast"].error.l2 > 1e-3
    assert found["fast"].seconds == 1e-9
    (layer,) = made.record.layers
    best = layer.best_peer()
    assert best is not None
    assert best.name == "right"
    assert layer.against(found["fast"], best) is None
    assert (layer.against(found["convdsl numpy"], best) or 0) > 1
    assert "fast" not in made.record.ratios("convdsl numpy")
    assert made.errors == []


def test_less_precise_products_are_right_but_no_measure() -> None:
    made = run("right", "rounded")
    assert rows(made)["rounded"].status == "right"
    best = made.record.layers[0].best_peer()
    assert best is not None
    assert best.name == "right"
    assert set(made.record.ratios("convdsl numpy")) == {"best peer", "right", "rounded"}


def test_one_that_fails_or_has_no_such_layer_leaves_the_others() -> None:
    made = run("breaks", "unfit", "right")
    found = rows(made)
    assert (found["breaks"].status, found["breaks"].samples) == ("failed", [])
    assert found["breaks"].note == "RuntimeError: a bead fell off"
    assert (found["unfit"].status, found["unfit"].note) == ("unfit", "it has no beads for it")
    assert found["right"].ranked
    assert found["convdsl numpy"].ranked
    assert made.errors == []


def test_peers_that_are_missing_are_noted_unless_all_are() -> None:
    made = run("missing", "nodevice", "right")
    assert made.record.notes == [
        "missing is left out: `missing` needs the package beads (pip install beads)",
        "nodevice is left out: there is no abacus (buy one)",
    ]
    assert set(made.record.contestants) == {"convdsl numpy", "right"}
    with pytest.raises(CdslError, match="needs the package beads"):
        session().enter(Settings(), ["missing", "nodevice"])
    with pytest.raises(DeviceError, match="there is no abacus"):
        session().enter(Settings(), ["nodevice"])


def test_a_result_of_ours_that_is_wrong_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    from convdsl.backends.numpy import NumpyBackend

    compile = NumpyBackend.compile

    def spoiled(self: Any, request: Any) -> Any:
        executable = compile(self, request)
        ready = executable.ready

        def off(names: Any, constants: Any) -> Any:
            run = ready(names, constants)

            def spoil(arrays: Any, out: Any) -> Any:
                y = run(arrays, out)
                y += 1
                return y

            return spoil

        monkeypatch.setattr(executable, "ready", off)  # `run` takes it, too
        return executable

    monkeypatch.setattr(NumpyBackend, "compile", spoiled)
    made = run("right")
    assert rows(made)["convdsl numpy"].status == "wrong"
    ((name, error),) = made.errors
    assert name == "one"
    assert isinstance(error, InternalError)
    assert "relative L2" in error.message


def test_a_layer_that_fails_does_not_lose_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_data(layer: Layer) -> Data:
        if layer.name == "large":
            raise MemoryError("1 TB")
        return make_data(layer)

    monkeypatch.setattr("convdsl.bench.session.make_data", made_data)
    made = session()
    made.enter(Settings(), ["right"])
    program = convdsl.parse(TEXT)
    made.run([make_layer(name, "", program, {}, SIZES) for name in ("large", "good")])
    assert [(name, type(error)) for name, error in made.errors] == [("large", MemoryError)]
    assert [x.name for x in made.record.layers if any(r.ranked for r in x.rows)] == ["good"]
    assert made.record.notes == ["large failed: MemoryError: 1 TB"]


def test_other_plans() -> None:
    made = run(plans=True)
    found = rows(made)
    assert len(found) >= 2
    plans = [r.plan for r in found.values()]
    assert len(set(plans)) == len(plans)
    assert all(r.status == "right" for r in found.values())


def test_an_operator_that_nobody_else_has() -> None:
    made = run("matmul", text=TEXT.replace("* w[", "* exp(w[").replace("c, k]\n", "c, k])\n"))
    found = rows(made)
    assert found["convdsl numpy"].status == "right"
    assert found["matmul numpy"].kind == "floor"
    assert found["matmul numpy"].status == "right"
    assert found["matmul numpy"].error is not None
    assert found["matmul numpy"].plan == "3 x 26 x 20"
    assert made.record.layers[0].best_peer() is None


def test_the_floor_is_what_the_machine_needs() -> None:
    layer = LayerRecord("a", "", "f", {}, {}, flops=100, bytes=10)
    assert layer.floor(Ceilings(10.0, 5.0)) == (10.0, "compute")
    assert layer.floor(Ceilings(100.0, 5.0)) == (2.0, "memory")
    assert layer.floor(None) is None
    assert LayerRecord("a", "", "f", {}, {}).floor(Ceilings(1.0, 1.0)) is None


def timed(name: str, kind: Any, seconds: float, status: Any = "right") -> Row:
    return Row(name, kind, "cpu", "f32", status, samples=[Sample(seconds)])


def measured() -> Record:
    record = Record("convdsl bench --vs p", "1", "3", "<a & b>", "standard", 2)
    record.contestants = {"us": FACTS, "p": FACTS, "q": FACTS}
    record.ceilings = {"cpu": Ceilings(1e11, 1e10)}
    record.notes = ["a <note>"]
    for name, mine, p, q in (("a", 1.0, 2.0, 9.0), ("b", 1.0, 8.0, 4.0)):
        rows = [timed("us", "ours", mine), timed("p", "peer", p), timed("q", "peer", q)]
        rows.append(timed("w", "peer", 0.1, "wrong"))
        rows.append(Row("n", "peer", "cpu", "f32", "unfit", "no <such> layer"))
        record.layers.append(LayerRecord(name, "", "f", {"N": 1}, {"s": 0.5}, 10**9, 10**8, rows))
    return record


def test_means_are_geometric() -> None:
    ratios = measured().ratios("us")
    assert {name: count for name, (_, count) in ratios.items()} == {"best peer": 2, "p": 2, "q": 2}
    means = {name: mean for name, (mean, _) in ratios.items()}
    assert means == pytest.approx({"best peer": 8**0.5, "p": 4.0, "q": 6.0})


def test_json_has_everything() -> None:
    record = json.loads(json.dumps(measured().to_json(), allow_nan=False))
    assert record["format"] == 1
    assert set(record) == {
        "format", "command", "convdsl", "python", "system", "accuracy", "threads", "contestants",
        "ceilings", "layers", "means", "notes",
    }  # fmt: skip
    assert record["contestants"]["p"] == {
        "place": "cpu", "device": "an abacus", "versions": {"beads": "1.0"}, "threads": 1,
        "software": False,
    }  # fmt: skip
    first = record["layers"][0]
    assert set(first) == {
        "name", "source", "op", "sizes", "params", "flops", "bytes", "floors", "best_peer", "rows"
    }  # fmt: skip
    assert first["best_peer"] == "p"
    assert first["floors"] == {"cpu": {"seconds": 0.01, "bound": "memory"}}
    row = first["rows"][0]
    assert set(row) == {
        "name", "kind", "place", "precision", "status", "note", "plan", "schedule", "seconds",
        "clock", "calls", "samples", "error", "ratio",
    }  # fmt: skip
    assert row["samples"] == [{"host": 1.0, "device": None}]
    assert row["ratio"] == 2.0
    assert record["means"]["us"]["p"] == {"ratio": pytest.approx(4.0), "layers": 2}


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = page_of(measured())
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text
    page = Reader()
    page.feed(text)
    assert page.open == []
    assert "script" not in page.seen
    assert page.seen.count("svg") == 3  # a roofline, and bars for each layer
    assert set(page.links) == {f"#{place}" for place in page.places}
    for words in ("<a & b>", "a <note>", "no <such> layer", "WRONG, not ranked", "an abacus"):
        assert words in page.text


def test_a_page_of_nothing() -> None:
    page = Reader()
    page.feed(page_of(Record("c", "1", "3", "s", "standard", None)))
    assert page.open == []
    assert "Nothing was measured." in page.text


def test_kernel_times_of_a_profile() -> None:
    from convdsl.bench.peers.onnxruntime_webgpu import kernel_seconds

    def event(at: int, took: int, kind: str = "Api") -> dict[str, Any]:
        return {"cat": kind, "ts": at, "dur": took}

    warm = [event(0, 1000), event(1, 500), event(2, 9, "Node")]
    two = [event(10, 3), event(11, 4), event(12, 5), event(13, 6)]
    assert kernel_seconds([*two, *warm], 2) == pytest.approx(9e-6)
    assert kernel_seconds([*two, *warm], 3) is None
    assert kernel_seconds([event(2, 9, "Node")], 2) is None


def test_weights_of_a_transposed_convolution_as_a_convolution() -> None:
    """JAX is given the convolution with flipped weights on spread data; so is NumPy here."""
    from convdsl.bench.peers.jax_cpu import _weights

    program = convdsl.parse(convdsl.ops.source("conv_transpose1d"))
    params = {"groups": 2, "dilation": 2}
    sizes = {"N": 1, "C": 3, "L": 6, "M": 2, "K": 3}
    layer = make_layer("t", "", program, params, sizes)
    arrays = make_data(layer).all(0)
    reach = params["dilation"] * (sizes["K"] - 1)
    direct = convdsl.ops.conv1d(
        arrays["x"], _weights(layer, "w", arrays["w"]), dilation=2, groups=2, padding=reach
    )
    wanted = convdsl.evaluate(program, arrays, params)
    assert np.allclose(direct, wanted, rtol=1e-5, atol=1e-5)
