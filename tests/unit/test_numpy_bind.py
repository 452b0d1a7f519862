"""`bind` of a generated NumPy module, run alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import convdsl
from tests.folding import LAYER, SIZES, arrays, layer

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
