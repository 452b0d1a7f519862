"""`bind` of a generated NumPy module, run alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import convdsl
from convdsl.backends.numpy.module import namespace_of
from tests.folding import LAYER, SIZES, arrays, layer
from tests.unit.api_programs import Array, whole

ALONE = """
import sys
import numpy as np
import layer
assert not any(name.startswith("convdsl") for name in sys.modules)
given = np.load("given.npz")
x, w, g = given["x"], given["w"], given["g"]
make, counts = layer.make_v, []
def counted(*given):
    counts.append(len(given))
    return make(*given)
layer.make_v = counted
bound = layer.bind(w=w, g=g)
w[...] = 77  # it was copied
for length in (9, 4, 9):
    part = np.ascontiguousarray(x[:, :, :length])
    want = given[f"want{length}"]
    assert np.array_equal(bound(part), want)
    out = np.empty_like(want)
    assert bound(x=part, out=out) is out
    assert np.array_equal(out, want)
print(len(counts))
one = layer.bind(w=given["w"])
assert np.array_equal(one(x, g), given["want9"])
for wrong in (lambda: layer.bind(q=x), lambda: bound(x, g), lambda: bound(), lambda: bound(x, w=w)):
    try:
        wrong()
    except TypeError:
        continue
    raise AssertionError("taken")
try:
    layer.bind(w=w[:3], g=g)(x)
except ValueError as error:
    print(error)
"""


def test_the_module_alone(tmp_path: Path) -> None:
    convdsl.compile(LAYER, dynamic=list(SIZES)).save(tmp_path)
    given = arrays()
    wants = {f"want{n}": layer(given | {"x": given["x"][:, :, :n]}) for n in (4, 9)}
    np.savez(tmp_path / "given.npz", **given, **wants)  # type: ignore[arg-type]
    (tmp_path / "alone.py").write_text(ALONE, "utf-8")
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["1", "w must be float32[4, 3, 2], not float32[3, 3, 2]"]


CHAIN = """
op chain(x: f32[N, T], len: f32[K], run: f16[K], id: f32[]) -> y: f32[N, T]
{
    let a[k] = sum[t in 0..T] len[k] * len[k]
    let b[] = sum[k] a[k] * run[k]
    y[n, t] = x[n, t] * id[] + b[] + sum[k] a[k]
}
"""


@pytest.mark.parametrize("names", [["len"], ["run"], ["len", "run"], ["run", "id"]])
def test_a_fold_of_a_fold(names: list[str]) -> None:
    """`b` needs what `a` needs, though its text reads neither `len` nor T."""
    kernel = convdsl.compile(CHAIN, dynamic=["N", "T", "K"])
    kernel.specialise({})
    assert kernel.plan.folds["a"] == ("len",)
    assert kernel.plan.folds["b"] == ("len", "run")
    given: dict[str, Array] = {
        "len": whole(3), "run": whole(3, seed=1).astype(np.float16), "id": whole(seed=2),
    }  # fmt: skip
    module = kernel.executable.module  # type: ignore[attr-defined]
    text = dict(zip(module.parameters, module.arguments, strict=True))
    alone = namespace_of(module)["bind"](**{text[n]: given[n] for n in names})
    bound = kernel.bind(**{n: given[n] for n in names})
    for seed, length in ((0, 4), (1, 5), (2, 4), (3, 5)):
        others: dict[str, Array] = {"x": whole(2, length, seed=seed)}
        for n in given.keys() - set(names):
            others[n] = given[n] = np.asarray(whole(*given[n].shape, seed=seed), given[n].dtype)
        want = convdsl.evaluate(CHAIN, given | others)
        assert np.array_equal(bound(**others), want)
        assert np.array_equal(alone(**{text[n]: a for n, a in others.items()}), want)
