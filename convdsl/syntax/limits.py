"""What is refused before lexing, and the limits on a tree: no source text may hang or crash us.

The checks here are linear in the size limit, not in the text: a 10 MB line costs one `len`.
"""

from __future__ import annotations

import re

from convdsl.diagnostics import CdslError, Source, Span

MAX_BYTES = 128 * 1024
"""The largest source text, in bytes of UTF-8."""

MAX_NESTING = 200
"""The deepest nesting of brackets."""

MAX_DEPTH = 128
"""The deepest expression tree; parentheses alone add nothing to it.

A sum or product of n terms is a tree n deep, since `a + b + c` is `(a + b) + c`. Passes and the
standard library (`copy.deepcopy`) walk trees recursively with several frames a level, and must stay
inside Python's limit of 1000.
"""

_BRACKET = re.compile(r"#[^\n]*|[(\[{]|[)\]}]")

# Control characters but tab and newline; a carriage return stands only before a newline. Marks that
# change the direction of text are refused too: what is read must be what is compiled. Surrogates
# have no UTF-8 form.
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\r(?!\n)"
)


def too_large(name: str) -> CdslError:
    """The error for a text or file above `MAX_BYTES`."""
    return CdslError(
        "E0102",
        f"`{name}` is larger than {MAX_BYTES // 1024} KiB",
        notes=(f"the limit for one source text is {MAX_BYTES} bytes of UTF-8",),
        help="put the operators into several files; tables of numbers belong in input tensors",
    )


def check_text(source: Source) -> None:
    """Refuse a text that is too large, holds forbidden characters, or nests too deep."""
    text = source.text
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise too_large(source.name)
    if bad := _FORBIDDEN.search(text):
        raise CdslError(
            "E0106",
            f"the character U+{ord(bad.group()):04X} cannot stand in a source text",
            Span(source, bad.start(), bad.end()),
            help="delete it; only tabs, spaces and newlines separate words",
        )
    depth = 0
    for match in _BRACKET.finditer(text):
        first = match.group()[0]
        if first in "([{":
            depth += 1
            if depth > MAX_NESTING:
                raise CdslError(
                    "E0103",
                    f"brackets are nested more than {MAX_NESTING} deep",
                    Span(source, match.start(), match.end()),
                    help="name an inner part with `let`",
                )
        elif first != "#":
            depth = max(0, depth - 1)


def too_deep(span: Span) -> CdslError:
    """The error for an expression tree deeper than `MAX_DEPTH`."""
    start = Span(span.source, span.start, min(span.end, span.start + 1))
    return CdslError(
        "E0103",
        f"the expression that starts here is more than {MAX_DEPTH} operations deep",
        start,
        notes=("each `+`, `-`, `*` and `/` of a row, each call and each sign is one level",),
        help="split it with `let`, or state the sum as a reduction over an index",
    )
