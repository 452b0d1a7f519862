"""The error of results: whole, at places, and of results that are wrong in one place alone."""

from __future__ import annotations

from math import inf, nan, sqrt

import numpy as np
import pytest

import convdsl
from convdsl.bench import error
from convdsl.bench.data import make_data
from convdsl.bench.error import Error, difference, errors_of, worst
from convdsl.bench.layer import Layer, make_layer
from convdsl.ir.evaluate import evaluate_at, evaluate_system

PARAMS = {"stride": 3, "pad_begin": 1, "groups": 2}
SIZES = {"N": 2, "C": 3, "L": 40, "M": 2, "K": 5}


def layer() -> Layer:
    program = convdsl.parse(convdsl.ops.source("conv_transpose1d"))
    return make_layer("a", "", program, PARAMS, SIZES)


def test_difference() -> None:
    wanted = np.array([3.0, -4.0, 0.0, 0.0])
    assert difference(wanted.astype(np.float32), wanted) == Error(0.0, 0.0, 4)
    found = difference(np.array([3.0, -4.0, 0.0, 1.0], np.float32), wanted)
    assert found.l2 == pytest.approx(0.2)
    assert found.largest == pytest.approx(1 / (5 / sqrt(4)))
    assert difference(np.ones(2, np.float32), np.zeros(2)) == Error(sqrt(2), 1.0, 2)


def test_what_is_no_number_must_be_equal() -> None:
    wanted = np.array([1.0, inf, nan])
    assert difference(np.array([1.0, inf, nan], np.float32), wanted).l2 == 0
    for other in ([1.0, -inf, nan], [1.0, inf, 0.0], [nan, inf, nan], [inf, inf, nan]):
        assert difference(np.array(other, np.float32), wanted).l2 == inf
    assert difference(np.zeros((3, 1), np.float32), wanted).l2 == inf
    assert Error(inf, inf, 3).to_json() == {"l2": None, "largest": None, "places": 3}


def test_worst_and_bounds() -> None:
    assert worst([Error(1, 2, 3), Error(2, 1, 4)]) == Error(2, 2, 7)
    assert Error(1e-6, 1e-5, 1).within("f32")
    assert not Error(1e-3, 1e-3, 1).within("f32")
    assert Error(1e-3, 1e-3, 1).within("tf32")
    assert not Error(1e-6, 1e-1, 1).within("f32"), "one element far off"
    assert not Error(nan, nan, 1).within("f32")
    assert not Error(1e-9, 1e-9, 1).within("i32")


@pytest.mark.parametrize("whole", [error.WHOLE, 0], ids=["whole", "places"])
def test_errors_of_results(monkeypatch: pytest.MonkeyPatch, whole: int) -> None:
    monkeypatch.setattr(error, "WHOLE", whole)
    one = layer()
    arrays = make_data(one).all(0)
    wanted = convdsl.evaluate(one.program, arrays, PARAMS)
    spot = wanted.copy()
    spot[1, 2, 77] += 10
    found = errors_of(one, arrays, 1, {
        "right": wanted.astype(np.float32), "scaled": wanted * 1.5, "spot": spot,
        "shape": wanted[..., 1:],
    })  # fmt: skip
    assert found["right"].l2 < 1e-7
    assert found["scaled"].l2 == pytest.approx(0.5)
    assert found["spot"].largest > 1, "the others show where it differs"
    assert found["shape"].l2 == inf
    corner = wanted.copy()
    corner[-1, 0, -1] = 99.0
    assert errors_of(one, arrays, 1, {"alone": corner})["alone"].largest > 1


def test_an_empty_result() -> None:
    program = convdsl.parse(convdsl.ops.source("matmul"))
    one = make_layer("a", "", program, {}, {"M": 0, "N": 3, "K": 2})
    arrays = make_data(one).all(0)
    empty = np.zeros((0, 3), np.float32)
    assert errors_of(one, arrays, 0, {"a": empty})["a"].l2 == 0
    assert errors_of(one, arrays, 0, {"a": empty.T})["a"].l2 == inf


TEXTS = {
    "let": "op f(x: f32[N, L]) -> y: f32[N, L] { let s[n] = sum[l] x[n, l]\n"
    "y[n, l] = x[n, l] / s[n] }",
    "half": "op f(x: f16[N, L]) -> y: f16[L, N] { y[l, n] = exp(x[n, l]) }",
    "rank0": "op f(x: f32[N, L]) -> s: f32[] { s[] = max[n, l] x[n, l] }",
    "composite": "op f(x: f32[2*N, L]) -> y: f32[L*N, 2] { y[(l, n), g] = x[(g, n), l] }",
    "integers": "op f(x: i32[N, L]) -> y: i32[N] { y[n] = sum[l] x[n, l] }",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_definition_at_some_places(name: str) -> None:
    one = make_layer(name, "", convdsl.parse(TEXTS[name]), {}, {"N": 3, "L": 4})
    system, arrays = one.system(), make_data(one).all(0)
    whole = evaluate_system(system, arrays)[system.output.name].ravel()
    for places in (range(whole.size), [whole.size - 1, 0]):
        assert np.array_equal(evaluate_at(system, arrays, list(places)), whole[list(places)])
