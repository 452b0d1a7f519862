"""Suites: the one that ships, what a case may say, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.bench.data import make_data
from convdsl.bench.layer import Convolution, Product, make_layer
from convdsl.bench.suite import choose, read_suite
from convdsl.diagnostics import CdslError

CASE = {"name": "a", "N": 2, "c_in": 4, "L": 9, "c_out": 6, "K": 3, "groups": 2}


def write(folder: Path, cases: Any, **more: Any) -> Path:
    path = folder / "s.json"
    record = {"schema": 1, "op": "conv_transpose1d", "cases": cases} | more
    path.write_text(json.dumps(record), "utf-8")
    return path


def test_the_suite_that_ships() -> None:
    layers = {layer.name: layer for layer in read_suite(None)}
    assert len(layers) == 31
    for layer in layers.values():
        assert isinstance(layer.known, Convolution)
        assert layer.known.transposed
        assert layer.varying == ("x",)
        assert all(e.as_int() is not None for t in layer.system().tensors for e in t.shape)
    assert layers["headline"].sizes == {
        "N": 8, "C": 4098, "L": 435, "M": 1, "K": 4096, "LO": 448512
    }  # fmt: skip
    assert layers["depthwise_k6s3"].known == Convolution(True, 3, 1, 2, 2, 1, 512)
    assert layers["fused_lrelu"].known == Convolution(True, 8, 1, 4, 4, 0, 1, 0.1)
    assert layers["fused_lrelu"].constant == ("b", "w")
    assert layers["headline"].absent == {"b"}


def test_other_operators(tmp_path: Path) -> None:
    matmul = {"name": "m", "op": "matmul", "M": 3, "N": 4, "K": 5}
    direct = {**CASE, "name": "c", "op": "conv1d", "stride": 2, "padding": [0, 1]}
    a, b, c = read_suite(write(tmp_path, [CASE, matmul, direct]))
    assert a.known == Convolution(True, 1, 1, 0, 0, 0, 2)
    assert isinstance(b.known, Product)
    assert (b.varying, b.constant) == (("a",), ("b",))
    assert c.known == Convolution(False, 2, 1, 0, 1, 0, 2)
    data = make_data(c)
    assert data.constants["w"].shape == (6, 2, 3)
    assert not np.array_equal(data.sets[0]["x"], data.sets[1]["x"])
    assert set(data.all(1)) == {"x", "w"}


def test_a_prologue_is_in_the_operator(tmp_path: Path) -> None:
    case = {**CASE, "prologue": "leaky_relu:0.25", "bias": True}
    (layer,) = read_suite(write(tmp_path, [case]))
    (plain,) = read_suite(write(tmp_path, [CASE]))
    arrays = make_data(layer).all(0)
    found = convdsl.evaluate(layer.program, arrays, layer.params)
    x = np.where(arrays["x"] > 0, arrays["x"], 0.25 * arrays["x"].astype(np.float64))
    wanted = convdsl.evaluate(plain.program, {**arrays, "x": x}, plain.params)
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert "b" in arrays


def test_a_file_is_known_by_what_it_says_not_by_its_name() -> None:
    text = convdsl.ops.source("conv1d")
    sizes = {"N": 1, "C": 1, "L": 5, "M": 1, "K": 2}
    same = make_layer("any", "", convdsl.parse("# mine\n" + text), {}, sizes)
    assert same.known == Convolution(False, 1, 1, 0, 0, 0, 1)
    other = make_layer("any", "", convdsl.parse(text.replace("* w[", "* 2 * w[")), {}, sizes)
    assert other.known is None
    bound = make_layer("any", "", convdsl.parse(text), {}, sizes, varying=["w"], constant=["b"])
    assert (bound.varying, bound.constant, bound.absent) == (("w",), ("b", "x"), frozenset())


def test_choose() -> None:
    layers = read_suite(None)
    assert choose(layers, []) == layers
    assert [x.name for x in choose(layers, ["tiny", "holes"])] == ["holes", "tiny"]
    with pytest.raises(CdslError) as caught:
        choose(layers, ["tinny"])
    assert caught.value.code == "E0904"
    assert caught.value.help == "did you mean `tiny`?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no list of `cases`"),
        ('{"cases": []}', "has no list of `cases`"),
        ('{"cases": [{}]}', "has schema None, known is 1"),
    ],
)
def test_no_suite(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, "utf-8")
    with pytest.raises(CdslError, match=message) as caught:
        read_suite(path)
    assert caught.value.code == "E0902"


@pytest.mark.parametrize("path", ["missing.json", ".", "a\0b"])
def test_a_suite_that_cannot_be_read(tmp_path: Path, path: str) -> None:
    with pytest.raises(CdslError, match="cannot read the suite") as caught:
        read_suite(tmp_path / path)
    assert caught.value.code == "E0902"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "case 0 of .* has no `name`"),
        ({"op": "softmax"}, "case `a`: `op` is 'softmax'"),
        ({"op": []}, r"case `a`: `op` is \[\]"),
        ({"L": None}, "case `a`: `L` is None"),
        ({"K": 0}, "case `a`: `K` is 0"),
        ({"N": True}, "case `a`: `N` is True"),
        ({"N": 1.5}, "case `a`: `N` is 1.5"),
        ({"stride": 0}, "case `a`: `stride` is 0"),
        ({"padding": 3}, "case `a`: `padding` is 3"),
        ({"padding": [1]}, r"case `a`: `padding` is \[1\]"),
        ({"dtype": "f16"}, "case `a`: `dtype` is 'f16'"),
        ({"groups": 4}, "case `a`: 4 and 6 channels do not make 4 groups"),
        ({"prologue": "relu"}, "case `a`: `prologue` is 'relu'"),
        ({"prologue": "leaky_relu:inf"}, "case `a`: `prologue` is 'leaky_relu:inf'"),
    ],
)
def test_a_case_that_is_not_right(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(CdslError, match=message) as caught:
        read_suite(write(tmp_path, [{**CASE, **change}]))
    assert caught.value.code == "E0903"


def test_a_case_that_does_not_fit_its_operator(tmp_path: Path) -> None:
    with pytest.raises(CdslError, match="case `a`: ") as caught:
        read_suite(write(tmp_path, [{**CASE, "padding": [90, 0]}]))
    assert caught.value.code.startswith("E03")


def test_names_are_unique(tmp_path: Path) -> None:
    with pytest.raises(CdslError, match="two cases `a`") as caught:
        read_suite(write(tmp_path, [CASE, CASE]))
    assert caught.value.code == "E0903"
