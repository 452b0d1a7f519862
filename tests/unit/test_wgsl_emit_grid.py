"""Grid loops as dispatches: folding along loop axes, tails, symbolic sizes, limits."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.grid import AXES, NUMBER, plan_grid, split
from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import CdslError, InternalError
from convdsl.ir.index import Index, const, sym
from convdsl.ir.loop import Kernel, Let, LoopProgram, Stmt
from tests.wgsl_device import run_module
from tests.wgsl_programs import buffer, copy, load, loop, store
from tests.wgsl_rules import check_wgsl_text


def kernel(*extents: Index | int) -> Kernel:
    y = buffer("y", *extents, memory="output")
    names = [f"i{n}" for n in range(len(extents))]
    x = buffer("x", *extents, memory="input")
    body: Stmt = store(y, tuple(map(sym, names)), load(x, *map(sym, names)))
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = loop("grid", name, extent, body)
    return Kernel("k", (), (body,))


def program(*extents: Index | int, sizes: tuple[str, ...] = ()) -> LoopProgram:
    x, y = buffer("x", *extents, memory="input"), buffer("y", *extents, memory="output")
    return LoopProgram("p", sizes, (), (x, y), (kernel(*extents),))


def covered(extents: tuple[int, ...], most: int) -> tuple[int, int, int]:
    """Check that a plan visits every point once; returns its dispatch."""
    plan = plan_grid(kernel(*extents), Limits(max_workgroups_per_dimension=most))
    size = [d.as_int() or 0 for d in plan.dispatch]
    assert max(size) <= most
    seen = []
    for place in itertools.product(*(range(n) for n in size)):
        env = dict(zip(AXES, place, strict=True))
        env_all = {**env, NUMBER: 0}
        values = {name: value.evaluate(env_all) for name, value in plan.values}
        if all(p.index.evaluate(env_all) >= 0 for p in plan.guards):
            seen.append(tuple(values[f"i{n}"] for n in range(len(extents))))
    assert sorted(seen) == sorted(itertools.product(*map(range, extents)))
    return size[0], size[1], size[2]


@pytest.mark.parametrize(
    ("extents", "most", "dispatch"),
    [
        ((), 9, (1, 1, 1)),
        ((5,), 9, (5, 1, 1)),
        ((5, 3), 9, (3, 5, 1)),
        ((2, 3, 4, 5), 9, (5, 4, 6)),
        ((2, 3, 4, 5, 6), 30, (6, 5, 24)),
        ((2, 3, 4, 5, 6), 29, (6, 5, 24)),
        ((2, 3, 4, 5), 5, None),  # 2 * 3 does not fit on z
        ((12,), 9, (4, 3, 1)),
        ((11,), 9, (3, 4, 1)),  # prime: a tail
        ((2, 12), 9, (4, 3, 2)),
        ((12, 2), 9, (2, 4, 3)),
        ((12, 11), 12, (11, 12, 1)),
    ],
)
def test_every_point_once(
    extents: tuple[int, ...], most: int, dispatch: tuple[int, int, int] | None
) -> None:
    if dispatch is None:
        with pytest.raises(CdslError) as caught:
            covered(extents, most)
        assert caught.value.code == "E0507"
    else:
        assert covered(extents, most) == dispatch


def test_split_is_even_and_exact_where_it_can_be() -> None:
    assert split(65536, 65535) == (256, 256)
    assert split(70000, 65535) == (250, 280)
    assert split(65537, 65535) == (257, 256)  # prime
    assert split(2 * 65537, 65535) == (363, 362)  # the only factors are too large
    for extent in range(10, 200):
        high, low = split(extent, 40)
        assert high * low >= extent
        assert max(high, low) <= 40


def test_folds_follow_the_loops() -> None:
    """No near-square fold of the whole grid: 3 x 3 x 2560 x 1280 keeps its axes."""
    plan = plan_grid(kernel(3, 3, 2560, 1280), Limits())
    assert [d.as_int() for d in plan.dispatch] == [1280, 2560, 9]


def test_nothing_to_do() -> None:
    module = emit_module(program(4, 0, 3), Limits())
    assert module.kernels[0].dispatch[0] == const(0)
    check_wgsl_text(module.text)


def test_grid_starts_at_zero() -> None:
    x, y = buffer("x", 4, memory="input"), buffer("y", 4, memory="output")
    body = loop("grid", "i", 4, store(y, (sym("i"),), load(x, sym("i"))), low=1)
    with pytest.raises(InternalError, match="starts at 1"):
        plan_grid(Kernel("k", (), (body,)), Limits())


@pytest.mark.gpu
@pytest.mark.parametrize("extents", [(7,), (12,), (11, 2), (2, 3, 4, 5), (3, 11)])
def test_run_folded(extents: tuple[int, ...]) -> None:
    """The text decodes what the plan says."""
    module = emit_module(program(*extents), Limits(max_workgroups_per_dimension=9))
    check_wgsl_text(module.text)
    x = np.arange(prod(extents), dtype=np.float32).reshape(extents)
    assert np.array_equal(run_module(module, {"x": x})["y"], x)


@pytest.mark.gpu
@pytest.mark.parametrize("most", [3, 4, 65535])
def test_run_symbolic(most: int) -> None:
    """Rows of workgroups, the last of them not full, and a let between the loops."""
    n, m = sym("N"), sym("M")
    x, y = buffer("x", n, m, memory="input"), buffer("y", n, m, memory="output")
    i, j = sym("i"), sym("j")
    inner = loop("grid", "j", m, store(y, (sym("r"), j), load(x, sym("r"), j)))
    body = loop("grid", "i", n, Let("r", n - 1 - i, (inner,)))
    text = LoopProgram("p", ("N", "M"), (), (x, y), (Kernel("k", (), (body,)),))
    module = emit_module(text, Limits(max_workgroups_per_dimension=most))
    check_wgsl_text(module.text)
    for shape in ((3, 4), (1, 1), (2, 5), (0, 3)):
        data = np.arange(prod(shape), dtype=np.float32).reshape(shape)
        sizes = {"N": shape[0], "M": shape[1]}
        assert np.array_equal(run_module(module, {"x": data}, sizes)["y"], data)


@pytest.mark.gpu
def test_run_more_workgroups_than_one_dimension_has() -> None:
    module = emit_module(copy(65536 * 2 + 1, threads=1), Limits())
    assert module.kernels[0].dispatch[1] != 1
    x = (np.arange(65536 * 2 + 1) % 251).astype(np.float32)
    assert np.array_equal(run_module(module, {"x": x})["y"], x + 1)
