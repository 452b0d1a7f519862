"""The formatter: layout, and comments in every place."""

from __future__ import annotations

from pathlib import Path

import pytest

from convdsl.syntax.parser import parse
from convdsl.syntax.printer import format_text

WORKED = Path(__file__).parents[2] / "grammar" / "corpus" / "accept" / "conv_transpose1d.cdsl"


def test_the_worked_text() -> None:
    """The layout of the language's own example."""
    op = format_text(WORKED.read_text("utf-8")).split("\n\n")[0]
    assert op == (
        "op conv_transpose1d(\n"
        "    x: f32[N, groups*C, L],\n"
        "    w: f32[groups*C, M, K],\n"
        "    b: f32[groups*M] = 0,\n"
        "    stride: int = 1, dilation: int = 1, pad_begin: int = 0, pad_end: int = 0,\n"
        "    out_pad: int = 0, groups: int = 1,\n"
        ") -> y: f32[N, groups*M, LO]\n"
        "where LO == (L - 1)*stride - pad_begin - pad_end + dilation*(K - 1) + out_pad + 1,\n"
        "      stride >= 1, dilation >= 1, groups >= 1, K >= 1,"
        " 0 <= out_pad < max(stride, dilation)\n"
        "{\n"
        "    y[n, (g, m), o] = b[(g, m)]\n"
        "        + sum[c, k, l | l*stride + k*dilation == o + pad_begin]\n"
        "              x[n, (g, c), l] * w[(g, c), m, k]\n"
        "}"
    )


SHIPPED = sorted((Path(__file__).parents[2] / "convdsl" / "ops").glob("*.cdsl"))
# The rest of the corpus is there for its odd layout.
PLAIN = (
    "casts", "conv1d", "conv_transpose1d", "istft", "matmul", "max_pool", "softmax", "vocoder",
)  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [*SHIPPED, *(WORKED.with_stem(name) for name in PLAIN)],
    ids=lambda p: f"{p.parent.name}-{p.stem}",
)
def test_texts_that_are_shown_are_canonical(path: Path) -> None:
    text = path.read_text("utf-8")
    assert format_text(text) == text


def test_quotients_are_set_wide_and_products_tight() -> None:
    """As diagnostics print them."""
    text = "op f(x: f32[N]) -> y: f32[M] where M == (2*N - 1) // 2 + N % 3 * 2 { y[m] = 1 }"
    line = "where M == (2*N - 1) // 2 + N % 3*2"
    assert line in format_text(text)


def test_relations_stand_one_below_the_other() -> None:
    """Behind the indices where the first one fits there, else on a line of their own."""
    long = "first*stride_h + second*dilation_h == third + pad_top"
    text = (
        "op f(x: f32[N, M], stride_h: int, dilation_h: int, pad_top: int) -> y: f32[N]"
        f"{{ y[third] = sum[first, second, fourth | {long}, fourth*stride_h == third + pad_top]"
        " x[first, second] * x[fourth, second] }"
    )
    assert format_text(text).split("\n")[1:5] == [
        f"    y[third] = sum[first, second, fourth | {long},",
        "                                           fourth*stride_h == third + pad_top]",
        "                   x[first, second] * x[fourth, second]",
        "}",
    ]
    text = text.replace("fourth |", "fourth, sixth, seventh, eighth_index |")
    assert format_text(text).split("\n")[1:3] == [
        "    y[third] = sum[first, second, fourth, sixth, seventh, eighth_index",
        f"                   | {long},",
    ]


def test_the_last_line_of_a_list_is_no_single_item() -> None:
    """It takes one from a line of three or more, never from one that it would leave alone."""
    names = ["a" * 22, "b" * 22, "c" * 22, "d" * 22]
    text = f"op f(x: f32[N], {', '.join(f'{n}: int' for n in names)}) -> y: f32[N] {{ y[n] = 1 }}"
    assert format_text(text).split("\n")[2:4] == [
        f"    {names[0]}: int, {names[1]}: int,",
        f"    {names[2]}: int, {names[3]}: int,",
    ]
    pair = ["a" * 40, "b" * 40, "c" * 40]
    text = f"op f(x: f32[N], {', '.join(f'{n}: int' for n in pair)}) -> y: f32[N] {{ y[n] = 1 }}"
    assert format_text(text).split("\n")[2:4] == [
        f"    {pair[0]}: int, {pair[1]}: int,",
        f"    {pair[2]}: int,",
    ]


COMMENTED = """# file header

# about the operator
op f(x: f32[N, # the batch
   L], w: f32[L] # the weights
   , a: int = 1, # first
   # about b
   b: int = 2, c: int = 3
) # after
-> y: f32[N] # result
where N >= 1, # n
  # own
  L >= 2
{
   # body
   let h[n] = exp( x[n, # axis
      l]) + (a*(b + c))  # end of let
   y[n] = sum[l | 2*l == n] h[n]*-(-2) # one
      # two
      + -sum[l] x[n, l] * max(a, b) # three
   # before the end
} # behind
# last

# very last"""

FORMATTED = """# file header

# about the operator
op f(
    x: f32[N, L],            # the batch
    w: f32[L],               # the weights
    a: int = 1,              # first
    # about b
    b: int = 2, c: int = 3,  # after
) -> y: f32[N]  # result
where N >= 1,   # n
      # own
      L >= 2
{
    # body
    let h[n] = exp(x[n, l])  # axis
        + a * (b + c)        # end of let
    y[n] = sum[l | 2*l == n]
               h[n] * --2              # one
        # two
        + -sum[l] x[n, l] * max(a, b)  # three
    # before the end
}  # behind
# last

# very last
"""


def test_comments() -> None:
    """Comments stay with the words that they follow or precede."""
    assert format_text(COMMENTED) == FORMATTED
    assert format_text(FORMATTED) == FORMATTED


WORDS = "op f(x: f32[N], k: int = 1) -> y: f32[N] where N >= k { let h[n] = x[n] y[n] = h[n]*2 }"


@pytest.mark.parametrize("own", [False, True], ids=["end", "own"])
@pytest.mark.parametrize("at", range(len(WORDS.split(" ")) + 1))
def test_a_comment_anywhere(at: int, own: bool) -> None:
    """A comment after any word survives, and formatting is idempotent."""
    words = WORDS.split(" ")
    words.insert(at, ("\n" if own else "") + "# c1\n\n# c2\n")
    text = " ".join(words)
    formatted = format_text(text)
    assert parse(formatted) == parse(WORDS)
    assert formatted.count("# c1") == formatted.count("# c2") == 1
    assert formatted.index("# c1") < formatted.index("# c2")
    assert format_text(formatted) == formatted


def test_width() -> None:
    """No line of the corpus is longer than the width unless a comment ends it."""
    for path in WORKED.parent.glob("*.cdsl"):
        for line in format_text(path.read_text("utf-8")).split("\n"):
            assert len(line.split("  #")[0]) <= 100, line
