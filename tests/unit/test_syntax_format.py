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
        "    stride: int = 1, dilation: int = 1, pad_begin: int = 0, pad_end: int = 0,"
        " out_pad: int = 0,\n"
        "    groups: int = 1,\n"
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
