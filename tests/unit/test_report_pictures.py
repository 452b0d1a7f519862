"""The tilings and pictures of schedules: numbers that can be counted by hand."""

from __future__ import annotations

import pytest

import convdsl
from convdsl.lowering.tiling import Tiling, tiling_of
from convdsl.report.change import change
from convdsl.report.markup import Markup, join, tag
from convdsl.report.pictures import group_picture, product_picture, sum_picture
from convdsl.report.steps import shots
from convdsl.schedule.nest import Nest

BANK = """\
op bank(x: f32[N, L], w: f32[M, K]) -> y: f32[N, M, T]
where T == L - K + 1
{
    y[n, m, t] = sum[k, l | l == t + k] x[n, l] * w[m, k]
}
"""
TILED = """\
schedule bank for wgsl {
    solve y for l
    split y: t by 32 -> t_tile, t_in tail pad
    split y: t_in by 16 -> t_group, t_lane
    split y: m by 8 -> m_tile, m_in
    split y: k by 4 -> k_tile, k_in tail pad
    order y: n, m_tile, t_tile, m_in, t_lane, k_tile, k_in, t_group
    map y: n -> grid, m_tile -> grid, t_tile -> grid, m_in -> thread, t_lane -> thread
    stage y: x at k_tile in workgroup
    partial y at k_tile
}
"""


def nest(text: str = TILED, **sizes: int) -> Nest:
    known = {"N": 2, "M": 16, "L": 109, "K": 10} | sizes
    kernel = convdsl.compile(BANK, target="wgsl", sizes=known, schedule=text)
    return shots(kernel)[-1].state.nests["y"]


@pytest.fixture(scope="module")
def tiling() -> Tiling:
    return tiling_of(nest())


def test_numbers(tiling: Tiling) -> None:
    assert tiling.words == "8x32x4, 1x2 a thread"
    assert (tiling.a, tiling.b) == ("w", "x")
    assert (str(tiling.rows.extent), str(tiling.columns.extent)) == ("16", "200")
    assert (str(tiling.rows.groups), str(tiling.columns.groups)) == ("2", "8")
    assert (str(tiling.threads), str(tiling.block), str(tiling.terms.extent)) == ("128", "4", "10")


def test_pictures(tiling: Tiling) -> None:
    product = product_picture(tiling, "y")
    assert product.count('class="tile"') == 1
    assert "16 rows (m)" in product
    assert "200 columns (n, t)" in product
    group = group_picture(tiling)
    assert group is not None
    # Two runs of one column for each of two threads: t_group is apart by 16.
    assert group.count('class="mine"') == group.count('class="other"') == 2
    summed = sum_picture(nest())
    assert summed is not None
    assert "k_tile: 3" in summed
    assert "x to workgroup memory, partial sums" in summed


def test_markup_escapes_what_it_did_not_make() -> None:
    assert tag("p", "a < b & c", title='"x"') == '<p title="&quot;x&quot;">a &lt; b &amp; c</p>'
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert join(["<", Markup("<br>")]) == "&lt;<br>"
    assert (
        tag("line", x1=1.5, stroke_width=2.0, hidden=None)
        == '<line x1="1.5" stroke-width="2"></line>'
    )


def test_only_lines_that_differ_are_marked() -> None:
    before, after = "for a\n  for b\n    x", "for b\n  for c\n    x"
    shown = change("y", before, after)
    assert shown.count('class="minus"') == 1
    assert shown.count('class="plus"') == 1
    assert shown.count('class="same"') == 4
    assert "is gone" in change("y", before, "")
