"""The operators of docs/how-to/write-an-operator.md compute what they say, on both targets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import convdsl
from convdsl.sema.resolve import resolve
from convdsl.syntax.ast import Program
from tests.docs.pages import DOCS, blocks

TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
SIZES = {
    "N": 2,
    "L": 12,
    "K": 3,
    "C": 2,
    "M": 3,
    "T": 5,
    "H": 6,
    "W": 7,
    "KH": 3,
    "KW": 2,
    "LO": 10,
}
PARAMETERS = {"kernel": 3, "groups": 2, "pad": 1}


def recipes() -> Iterator[tuple[Program, str]]:
    for block in blocks(DOCS / "how-to" / "write-an-operator.md"):
        if block.language == "cdsl":
            program = convdsl.parse(block.text)
            yield from ((program, op.name.name) for op in program.ops)


@pytest.mark.parametrize("target", ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("program", "name"), list(recipes()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_recipe(program: Program, name: str, target: str) -> None:
    op = resolve(program, name)
    params = {p.name: PARAMETERS[p.name] for p in op.parameters if p.name in PARAMETERS}
    defaults = {p.name: p.default for p in op.parameters if isinstance(p.default, int)}
    values = SIZES | defaults | params
    random = np.random.default_rng(0)
    arrays = {
        t.name: random.integers(-4, 5, [int(e.evaluate(values)) for e in t.shape]).astype(
            TYPES[t.dtype]
        )
        for t in op.inputs
        if t.default is None
    }
    wanted = convdsl.evaluate(program, arrays, params, op=name)
    result = convdsl.compile(program, op=name, params=params, target=target)(**arrays)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=1e-6)
