"""Field cases with given numbers: through `convdsl.ops`, and by every algorithm of each target."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import convdsl
from convdsl import ops
from tests.conformance.cases import CASES, Array, Case, bias, f32, stamp

NAMES = {"stride", "dilation"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, target: str) -> None:
    assert stamp(case.x, case.w, case.b, **dict(case.attributes), target=target) == case.y


def widened(case: Case) -> tuple[Array, Array, Array | None]:
    """The case with a channel of zeros in and two more channels out, so that it is a product."""
    x, w, b = f32(case.x, 3), f32(case.w, 3), bias(case.b)
    x = np.concatenate([x, np.zeros_like(x[:, :1])], 1)
    w = np.concatenate([w, np.full_like(w[:1], 7)], 0)
    w = np.concatenate([w, np.full_like(w[:, :1], 3), np.full_like(w[:, :1], 5)], 1)
    return x, w, b if b is None else np.concatenate([b, b[:1], b[:1]])


@pytest.mark.parametrize("algorithm", ["gather", "phases", "columns"])
@pytest.mark.parametrize("case", [c for c in CASES if "groups" not in dict(c.attributes)], ids=str)
def test_case_by_algorithm(
    case: Case, algorithm: Literal["gather", "phases", "columns"], target: str
) -> None:
    """The same numbers whichever way they are computed, though the sizes would choose gather."""
    given = dict(case.attributes)
    padding = given.get("padding", 0)
    begin, end = padding if isinstance(padding, tuple) else (padding, padding)
    params = {name: given[name] for name in NAMES & given.keys()} | {
        "pad_begin": begin, "pad_end": end, "out_pad": given.get("output_padding", 0),
    }  # fmt: skip
    kernel = convdsl.compile(
        ops.source("conv_transpose1d"), params=params, target=target, accuracy="strict",
        algorithm=algorithm,
    )  # fmt: skip
    x, w, b = widened(case)
    y = f32(case.y, 2)
    assert kernel(x, w, b)[0, : len(y)].tolist() == y.tolist()
    if 1 < w.shape[2] < x.shape[2]:  # else there may be no phases or columns to speak of
        assert kernel.plan.algorithm == algorithm
