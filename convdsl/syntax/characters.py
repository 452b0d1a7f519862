"""Characters that start no word of the language, and what was probably meant."""

from __future__ import annotations

from unicodedata import name as unicode_name

from convdsl.diagnostics import CdslError, Span

_LOOKALIKES = {
    "\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MULTIPLICATION SIGN}": "*",
    "\N{DOT OPERATOR}": "*", "\N{MIDDLE DOT}": "*", "\N{DIVISION SIGN}": "/",
    "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=", "\N{RIGHTWARDS ARROW}": "->", "\N{N-ARY SUMMATION}": "sum",
    "\N{N-ARY PRODUCT}": "prod", "\N{HORIZONTAL ELLIPSIS}": "..", "\N{NO-BREAK SPACE}": " ",
}  # fmt: skip

_HINTS = {
    "^": "a power is written `pow(a, b)`",
    "@": "a matrix product is written with its indices: `sum[k] a[m, k]*b[k, n]`",
    ";": "statements need no `;`: leave it out",
    '"': "the language has no strings",
    "'": "the language has no strings, and names have no `'`",
    "&": "clauses are joined by commas",
    "!": "`!=` compares; conditions are not negated otherwise",
    "_": "a name starts with a letter",
    ".": "a number has digits on both sides of its point (`0.5`, `1.0`); a range is `0..K`",
    "?": "a choice is written `select(a < b, x, y)`",
    "$": "names are letters, digits and `_`",
}


def bad_character(span: Span) -> CdslError:
    """The error for a character that starts no word."""
    char = span.source.text[span.start : span.end]
    if char.isascii():
        return CdslError(
            "E0101", f"`{char}` is not part of the language", span, help=_HINTS.get(char)
        )
    instead = _LOOKALIKES.get(char)
    called = unicode_name(char, "a character without a name").lower()
    return CdslError(
        "E0101",
        f"U+{ord(char):04X} ({called}) is not part of the language",
        span,
        help=f"write `{instead}`" if instead else "outside comments the language is plain ASCII",
    )
