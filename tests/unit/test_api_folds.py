"""What depends on bound inputs alone runs once; counted, and equal to what is not bound."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.constants import KEPT
from convdsl.diagnostics import CdslError
from tests.folding import FRAMES, LAYER, SIZES, Ran, arrays, layer, results
from tests.unit.api_programs import whole

BOTH = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return Ran(monkeypatch)


def folded(kernel: convdsl.Kernel) -> str:
    """What is made of `v`: `v` itself, or where sizes are known a matrix of it."""
    (made,) = kernel.plan.folds
    return made


def once_and_rest(kernel: convdsl.Kernel) -> tuple[str, list[str]]:
    """What `Ran` shows of the fold, and of a later call."""
    if kernel.target == "numpy":
        return f"make_{folded(kernel)}", []
    options = kernel.options
    plain = options.algorithm == "phases" or bool(options.dynamic & {"C", "M"})
    return "v_elements" if plain else "v_product", ["y_phases"]


HOWS: list[dict[str, Any]] = [
    {"sizes": SIZES},
    {"sizes": {"C": 4, "M": 3, "K": 2}, "dynamic": ["N", "L"]},
    {"dynamic": list(SIZES)},
]


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("how", HOWS, ids=["fixed", "mixed", "dynamic"])
def test_a_fold_runs_once(ran: Ran, target: str, how: dict[str, Any]) -> None:
    kernel = convdsl.compile(LAYER, target=target, algorithm="phases", **how)
    assert kernel.plan.folds[folded(kernel)] == ("g", "w")
    ran.watch(kernel, folded(kernel))
    once, rest = once_and_rest(kernel)
    given = arrays()
    want = layer(given)
    bound = kernel.bind(w=given["w"], g=given["g"])
    assert ran.look() == []
    assert np.array_equal(bound(given["x"]), want)
    assert ran.look() == [once, *rest]
    for _ in range(2):
        assert np.array_equal(bound(given["x"]), want)
        assert ran.look() == rest
    for n, length in ((1, 4), (3, 9), (1, 1)) if "dynamic" in how else ():
        more = arrays(n, length)
        assert np.array_equal(bound(more["x"]), layer(more))
        assert ran.look() == rest
    assert np.array_equal(kernel(**given), want)  # not bound: all of it
    assert ran.look() == ([once] if target == "numpy" else ["v_elements+y_phases"])


@pytest.mark.parametrize("target", BOTH)
def test_a_part_of_what_a_fold_needs_is_not_enough(ran: Ran, target: str) -> None:
    kernel = convdsl.compile(LAYER, target=target, sizes=SIZES)
    ran.watch(kernel, folded(kernel))
    given = arrays()
    bound = kernel.bind(w=given["w"])
    for seed in (2, 3):
        given["g"] = whole(3, seed=seed)
        assert np.array_equal(bound(given["x"], given["g"]), layer(given))
    assert results(bound) == []
    twice = bound.bind(g=given["g"])  # in steps
    for _ in range(2):
        assert np.array_equal(twice(given["x"]), layer(given))
    assert len(results(twice)) == 1
    assert results(bound) == []


@pytest.mark.parametrize("target", BOTH)
def test_bound_kernels_are_independent(ran: Ran, target: str) -> None:
    kernel = convdsl.compile(LAYER, target=target, sizes=SIZES)
    ran.watch(kernel, folded(kernel))
    once, rest = once_and_rest(kernel)[0], 0 if target == "numpy" else 1
    x = whole(2, 4, 9)
    weights = [{"w": whole(4, 3, 2, seed=s), "g": whole(3, seed=s)} for s in (4, 5)]
    bound = [kernel.bind(**w) for w in weights]
    for _ in range(2):
        for b, w in zip(bound, weights, strict=True):
            assert np.array_equal(b(x), layer({"x": x, **w}))
    assert ran.look().count(once) == 2
    again = kernel.bind(**weights[0])
    assert np.array_equal(again(x), layer({"x": x, **weights[0]}))
    assert len(ran.look()) == 1 + rest


@pytest.mark.parametrize("target", BOTH)
def test_results_are_kept_for_the_last_sizes(ran: Ran, target: str) -> None:
    """A fold that depends on a size runs once for each number of it."""
    kernel = convdsl.compile(FRAMES, target=target, dynamic=["N", "T"], sizes={"K": 4})
    assert kernel.plan.folds["norm"] == ("window",)
    ran.watch(kernel, "norm")
    window = whole(4)
    bound = kernel.bind(window=window)

    def runs(n: int, t: int) -> int:
        x = whole(n, t, 4)
        want = convdsl.evaluate(FRAMES, {"x": x, "window": window})
        assert np.array_equal(bound(x), want)
        seen = ran.look()
        return sum("norm" in part for part in seen)

    assert [runs(n, t) for n, t in ((1, 5), (2, 5), (1, 6), (1, 5), (3, 6))] == [1, 0, 1, 0, 0]
    assert [runs(1, t) for t in range(7, 7 + KEPT)] == [1] * KEPT
    assert len(results(bound)) == KEPT
    assert runs(1, 5) == 1  # that one had to go
    assert runs(1, 6 + KEPT) == 0


@pytest.mark.parametrize("target", BOTH)
def test_variants_share_results(target: str) -> None:
    """Sizes given by the call: each makes a variant, and they agree on what the weights become."""
    kernel = convdsl.compile(LAYER, target=target, algorithm="gather")
    given = arrays()
    bound = kernel.bind(w=given["w"], g=given["g"])
    for length in (3, 4, 5, 3):
        more = arrays(1, length)
        assert np.array_equal(bound(more["x"]), layer(more))
    assert len(results(bound)) == 1


@pytest.mark.parametrize("target", BOTH)
def test_saved_and_loaded(ran: Ran, tmp_path: Path, target: str) -> None:
    given = arrays()
    kernel = convdsl.compile(LAYER, target=target, sizes={"K": 2}, dynamic=["N", "C", "L", "M"])
    kernel.bind(w=given["w"], g=given["g"]).save(tmp_path)
    (fold,) = json.loads((tmp_path / "manifest.json").read_text("utf-8"))["module"]["folds"]
    assert (fold["inputs"], fold["results"]) == (["g", "w"], ["v"])
    assert fold["sizes"] == ["C", "M"]
    loaded = convdsl.load_kernel(tmp_path)
    ran.watch(loaded, "v")
    for n, length in ((2, 9), (1, 4), (2, 9)):
        more = arrays(n, length)
        assert np.array_equal(loaded(more["x"]), layer(more))
    assert ran.look().count(once_and_rest(loaded)[0]) == 1


@pytest.mark.parametrize("target", BOTH)
def test_threads_share_one_run(ran: Ran, target: str) -> None:
    kernel = convdsl.compile(
        LAYER, target=target, dynamic=["N", "L"], sizes={"C": 4, "M": 3, "K": 2}
    )
    ran.watch(kernel, folded(kernel))
    given = arrays()
    bound = kernel.bind(w=given["w"], g=given["g"])
    together = Barrier(4)

    def work(seed: int) -> bool:
        together.wait()
        good = True
        for step in range(8):
            x = whole(1 + seed % 2, 4, 3 + step, seed=seed)
            good &= np.array_equal(bound(x), layer(given | {"x": x}))
        return good

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert ran.look().count(once_and_rest(kernel)[0]) == 1


@pytest.mark.parametrize("target", BOTH)
def test_shapes_that_do_not_fit(target: str) -> None:
    """At `bind` where the sizes are known, else at the call; and a later call works."""

    def code(call: Any) -> str:
        with pytest.raises(CdslError) as caught:
            call()
        return str(caught.value.code)

    given = arrays()
    wrong = whole(4)
    fixed = convdsl.compile(LAYER, target=target, sizes=SIZES)
    assert code(lambda: fixed.bind(w=given["w"], g=wrong)) == "E0303"
    free = convdsl.compile(LAYER, target=target, dynamic=list(SIZES))
    assert code(lambda: free.bind(w=given["w"], g=wrong)) == "E0303"  # M by w
    bound = free.bind(w=given["w"], g=given["g"])
    assert code(lambda: bound(whole(2, 5, 9))) == "E0303"
    assert results(bound) == []
    assert np.array_equal(bound(given["x"]), layer(given))


def test_what_is_kept_is_never_written() -> None:
    given = arrays()
    bound = convdsl.compile(LAYER, sizes=SIZES).bind(w=given["w"], g=given["g"])
    bound(given["x"])
    (results_of_fold,) = results(bound)
    (kept,) = results_of_fold.values()
    assert not kept.flags.writeable
    before = kept.tobytes()
    for seed in range(3):
        bound(whole(2, 4, 9, seed=seed))
    assert kept.tobytes() == before


def test_half_precision_is_widened_once(ran: Ran) -> None:
    text = "op f(x: f32[N], w: f16[N]) -> y: f32[N] { y[n] = x[n] * w[n] }"
    kernel = convdsl.compile(text, dynamic=["N"])
    ran.watch(kernel, "w_f32")
    x, w = whole(5), whole(5, seed=1).astype(np.float16)
    bound = kernel.bind(w=w)
    for _ in range(3):
        assert np.array_equal(bound(x), x * w)
    assert ran.look() == ["make_w_f32"]
