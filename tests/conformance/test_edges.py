"""Programs at the edges of the rules, each once wrong; the values are worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import convdsl
from convdsl import CdslError

BOTH = [pytest.param("numpy"), pytest.param("wgsl", marks=pytest.mark.gpu)]


def chain(length: int, step: str) -> str:
    """A program of lets, each of which reads the one before more than once."""
    lets = "".join(
        f"    let h{n}[i] = {step.replace('@', f'h{n - 1}[i]')}\n" for n in range(1, length)
    )
    last = f"h{length - 1}[i]"
    return f"op f(x: f32[N]) -> y: f32[N]\n{{\n    let h0[i] = x[i]\n{lets}    y[i] = {last}\n}}\n"


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
@pytest.mark.parametrize("step", ["@*@ + 1", "abs(@) + @", "max(@, @*2)"])
def test_lets_read_twice_do_not_double_the_text(step: str, target: str) -> None:
    short, long = (
        len(convdsl.compile(chain(n, step), target=target, dynamic=["N"]).source) for n in (10, 40)
    )
    assert long < 8 * short


@pytest.mark.parametrize("target", BOTH)
def test_a_chain_of_lets(target: str) -> None:
    x = np.array([0, 1, -2], np.float32)
    y = convdsl.compile(chain(5, "abs(@) + @"), target=target)(x)
    assert y.tolist() == [0, 16, 0]


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("dynamic", [["E", "N"], ["E"], []])
def test_max_over_nothing_is_refused_once_sizes_are_known(dynamic: list[str], target: str) -> None:
    """k*E == n + 1 with E = 2 has no point at n = 0; with E = 1 it has one everywhere."""
    text = "op f(x: f32[E], z: f32[N]) -> y: f32[N] { y[n] = max[k | k*E == n + 1] x[k] }"
    kernel = convdsl.compile(text, dynamic=dynamic, target=target)
    with pytest.raises(CdslError) as caught:
        kernel(np.ones(2, np.float32), np.ones(3, np.float32))
    assert caught.value.code == "E0306"


@pytest.mark.gpu
def test_an_empty_axis_beside_symbolic_ones() -> None:
    """HO = 1 - 2 + 1 = 0: no workgroup runs, whichever of the other sizes have numbers."""
    text = """op f(x: f32[N, C, H, W], w: f32[C, M, KH, KW]) -> y: f32[N, M, HO, WO]
where HO == H - KH + 1, WO == W - KW + 1
{
    y[n, m, i, j] = sum[c, kh, kw, h, v | i + kh == h, j + kw == v] x[n, c, h, v] * w[c, m, kh, kw]
}
"""
    x, w = np.ones((1, 9, 1, 4), np.float32), np.ones((9, 9, 2, 2), np.float32)
    for dynamic in itertools.combinations(["N", "C", "W", "M", "KW"], 2):
        assert convdsl.compile(text, target="wgsl", dynamic=dynamic)(x, w).shape == (1, 9, 0, 3)


@pytest.mark.parametrize("target", BOTH)
def test_a_size_beside_a_factor_of_zero(target: str) -> None:
    """C*D = 0 tells nothing of D; the axis of d does."""
    text = "op f(x: f32[C*D], c: f32[C], d: f32[D]) -> y: f32[] { y[] = sum[i] d[i] }"
    kernel = convdsl.compile(text, dynamic=["C", "D"], target=target)
    empty = np.ones(0, np.float32)
    assert float(kernel(empty, empty, np.ones(4, np.float32))) == 4


def test_three_factors_are_two_tiles() -> None:
    """The window is multiplied into the basis before it is staged: two tiles fit every limit."""
    istft = convdsl.parse(convdsl.ops.source("istft"))
    sizes = {"N": 300, "F": 300, "T": 300, "K": 300}
    kernel = convdsl.compile(istft, target="wgsl", sizes=sizes, accuracy="strict")
    assert kernel.plan.algorithm == "phases"
    assert kernel.source.count("var<workgroup>") == 2


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("count", [8, 7])
def test_integers_of_numbers_beyond_them(count: int, target: str) -> None:
    """WGSL's own conversion stops at 2147483520; a multiple of four is converted by fours."""
    text = "op f(x: f32[N]) -> y: i32[N] { y[n] = i32(x[n]) }"
    x = np.array([3e9, -3e9, 2**31, -(2**31), 2147483520, 1.9, -1.9, np.inf], np.float32)
    most, least = 2**31 - 1, -(2**31)
    y = convdsl.compile(text, target=target)(x[:count])
    assert y.tolist() == [most, least, most, least, 2147483520, 1, -1, most][:count]
