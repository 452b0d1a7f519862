"""The commonest slips: each rule looks at the scene of an error and answers, or leaves it.

Rules are tried in the order of `SLIPS`; the first that answers wins.
"""

from __future__ import annotations

from collections.abc import Callable

from convdsl.diagnostics import CdslError, Note
from convdsl.syntax.scene import CLOSERS, COMPARES, OPERATORS, REDUCERS, RESERVED, Scene

Slip = Callable[[Scene], CdslError | None]


def _reducer_without_brackets(s: Scene) -> CdslError | None:
    """`sum(k) a`, `sum(k | ...)`, `sum k a`."""
    at: int | None = len(s.words) - 1
    if s.before() == ")":
        at = s.opener_of(len(s.words) - 1)
        at = None if at is None else at - 1
    elif s.frames and s.frames[-1].bracket == "(" and s.found in ("|", "in", "=="):
        at = s.frames[-1].index - 1
    elif s.found == "[":
        return None
    if at is None or at < 0 or s.words[at].text not in REDUCERS:
        return None
    if s.before() == ")" and s.words[at].text in ("max", "min"):
        return None
    name = s.words[at].text
    return CdslError(
        "E0110",
        f"`{name}` takes its indices in square brackets",
        s.word_span(at),
        help=f"write `{name}[k] a[k]*b[k]`: the index, then the product that it reduces",
    )


def _reduction_inside_product(s: Scene) -> CdslError | None:
    """`a * sum[k] b`, `sum[k] sum[j] b`: the `[` is what does not fit."""
    if s.found != "[" or s.before() not in REDUCERS:
        return None
    name = s.before()
    return CdslError(
        "E0111",
        "a reduction stands alone or after `+` or `-`",
        s.word_span(-1),
        notes=("it binds the product that follows, up to the next `+` or `-`",),
        help=f"put it in parentheses: `({name}[...] ...)`",
    )


def _unclosed(s: Scene) -> CdslError | None:
    """The text ends inside a bracket, or something comes that no bracket holds."""
    outside = s.found in ("->", "{", "let") or (s.found == "=" and s.place in ("index", "sizes"))
    outside = outside and s.place not in ("top", "where", "body")
    if s.found and s.found not in CLOSERS and not outside:
        return None
    if not s.frames:
        if not s.found:
            return None
        return CdslError("E0107", f"`{s.found}` closes nothing", s.span, help="delete it")
    frame = s.frames[-1]
    if CLOSERS.get(s.found) == frame.bracket:
        return None
    there = Note(f"`{s.found}` comes first", s.span) if s.found else Note("the text ends first")
    closer = next(c for c, opener in CLOSERS.items() if opener == frame.bracket)
    return CdslError(
        "E0107",
        f"`{frame.bracket}` is not closed",
        s.word_span(frame.index),
        notes=(there,),
        help=f"add the missing `{closer}`",
    )


def _equals(s: Scene) -> CdslError | None:
    """`=` for `==` and the reverse."""
    if s.found == "=" and s.place in ("relations", "where", "args"):
        where = {"relations": "a relation", "where": "`where`", "args": "a condition"}[s.place]
        return CdslError("E0108", f"{where} compares with `==`", s.span, help="write `==`")
    if s.found == "==" and s.place in ("body", "params") and s.before() in ("]", *_names(s)):
        if "=" not in s.expected:
            return None
        what = "a definition" if s.place == "body" else "a default"
        return CdslError("E0108", f"{what} is written with one `=`", s.span, help="write `=`")
    return None


def _names(s: Scene) -> tuple[str, ...]:
    return (s.before(),) if s.before()[:1].isalpha() else ()


def _update(s: Scene) -> CdslError | None:
    """`y[n] += ...`"""
    if s.place != "body" or s.expected != {"="} or s.found not in OPERATORS:
        return None
    return CdslError(
        "E0101",
        "a tensor is defined once, with `=`",
        s.span,
        help="an accumulation is stated as a reduction: `y[n] = sum[k] a[n, k]`",
    )


def _index_arithmetic(s: Scene) -> CdslError | None:
    """`x[n, l*2]`, `x[0, l]`, `x[n, :]`."""
    if s.place not in ("index", "composite"):
        return None
    computed = s.found in (*OPERATORS, *REDUCERS, "(", ":", "..", "[") or s.found[:1].isdigit()
    if not computed:
        return None
    return CdslError(
        "E0109",
        "an axis takes a bare index, and this is an expression",
        s.span,
        help="reads are bare: put the arithmetic in the relation,\n"
        "like `sum[l | l == 2*o] x[n, l]` for an access at 2*o",
    )


def _relation_compares(s: Scene) -> CdslError | None:
    """`sum[k | k < n]`."""
    if s.place != "relations" or s.found not in COMPARES:
        return None
    return CdslError(
        "E0122",
        "a relation is one equation with `==`",
        s.span,
        help="a range narrows by sizes, `k in 0..count`; by an index, `k <= n`, it is done with\n"
        "one more for the difference, `sum[k, d in 0..N | k + d == n]`, or with a mask tensor",
    )


def _range(s: Scene) -> CdslError | None:
    """`sum[k = 0..K]`, `sum[0..K]`."""
    if s.place != "binders":
        return None
    if s.found not in ("=", ":", "..", "<", "<=") and not s.found[:1].isdigit():
        return None
    return CdslError(
        "E0101",
        f"`{s.found}` cannot stand among the indices of a reduction",
        s.span,
        help="a range is written `k in 0..K` (K itself is left out); relations follow a `|`",
    )


def _comparison(s: Scene) -> CdslError | None:
    """`y[n] = a < b`."""
    if s.found not in COMPARES or s.place not in ("body", "group", "args"):
        return None
    return CdslError(
        "E0121",
        "a comparison cannot stand here",
        s.span,
        help="among values write `select(a < b, x, y)`, without parentheses around `a < b`",
    )


def _reserved(s: Scene) -> CdslError | None:
    """`max: f32[N]`: a word of the language as a name."""
    if s.found not in RESERVED or "NAME" not in s.expected:
        return None
    return CdslError(
        "E0120",
        f"`{s.found}` is a word of the language and cannot be a name",
        s.span,
        notes=("the words that are never names: " + ", ".join(f"`{w}`" for w in RESERVED),),
        help="choose another name",
    )


def _misplaced_else(s: Scene) -> CdslError | None:
    if s.found != "else" or s.place in ("top", "params"):
        return None
    return CdslError(
        "E0115",
        "`else` belongs to a `max[...]` or `min[...]` before it",
        s.span,
        help="a choice between values is written `select(a < b, x, y)`",
    )


def _power(s: Scene) -> CdslError | None:
    if s.found != "*" or s.before() != "*":
        return None
    return CdslError(
        "E0101", "`**` is not an operator", s.span, help="a power is written `pow(a, b)`"
    )


def _juxtaposed(s: Scene) -> CdslError | None:
    """`2x`, `a[n] b[n]`: a product without `*`."""
    adjacent = bool(s.words) and s.words[-1].end == s.span.start
    if s.before()[:1].isdigit() and s.found[:1].isalpha() and adjacent:
        text = f"{s.before()}*{s.found}"
        return CdslError("E0101", "a product needs its `*`", s.span, help=f"write `{text}`")
    if s.place == "body" and s.expected == {"="} and s.before() == "]":
        opener = s.opener_of(len(s.words) - 1)
        if opener is None:
            return None
        name, before = s.words[opener - 1], s.words[opener - 2]
        if before.end == name.start:
            return CdslError(
                "E0101",
                "a product needs its `*`",
                s.word_span(opener - 1),
                help=f"write `{before.text}*{name.text}[...]`",
            )
        return CdslError(
            "E0101",
            f"`{name.text}[...]` starts a statement, and its `=` is missing",
            s.word_span(opener - 1),
            help="a statement is `name[...] = value`; a product is written with `*`",
        )
    return None


def _statement(s: Scene) -> CdslError | None:
    """`y = ...` without axes; `op` inside a body that was not closed."""
    if s.place != "body" or s.expected != {"["}:
        return None
    if s.before() in ("op", "schedule") and s.found[:1].isalpha():
        return CdslError(
            "E0107",
            "`{` is not closed",
            s.word_span(s.frames[-1].index),
            notes=(Note(f"`{s.before()}` comes first", s.word_span(-1)),),
            help="add the missing `}`",
        )
    name = s.before()
    return CdslError(
        "E0101",
        f"the indices of `{name}` are missing",
        s.word_span(-1),
        help=f"a statement is `{name}[n, o] = value`; for a tensor of rank 0 write `{name}[]`",
    )


def _missing_comma(s: Scene) -> CdslError | None:
    starts = s.found[:1].isalnum() or s.found == "("
    if "," not in s.expected or not starts or s.found in RESERVED[4:]:
        return None
    help_ = "start the body with `{`, or join clauses with commas" if s.place == "where" else None
    return CdslError("E0101", f"`,` is missing before `{s.found}`", s.span, help=help_)


def _skeleton(s: Scene) -> CdslError | None:
    """Outside brackets only the outline of operators and schedules can be wrong."""
    if s.place != "top":
        return None
    outline = "an operator is written `op name(inputs) -> y: f32[...] { y[...] = ... }`"
    if "{" in s.expected and s.found:
        return CdslError("E0101", f"`{{` is missing before `{s.found}`", s.span, help=outline)
    if s.expected <= {"op", "schedule", "$END"}:
        found = f"`{s.found}` starts neither an operator nor a schedule"
        return CdslError("E0101", found, s.span, help=outline)
    for text in ("->", ":", "for"):
        if s.expected == {text}:
            found = f"`{s.found}`" if s.found else "the end of the text"
            help_ = outline if text != "for" else "a schedule is written `schedule name for wgsl {`"
            return CdslError("E0101", f"`{text}` is missing before {found}", s.span, help=help_)
    return None


SLIPS: tuple[Slip, ...] = (
    _unclosed,
    _reduction_inside_product,
    _reducer_without_brackets,
    _equals,
    _update,
    _index_arithmetic,
    _relation_compares,
    _range,
    _comparison,
    _misplaced_else,
    _reserved,
    _power,
    _juxtaposed,
    _statement,
    _missing_comma,
    _skeleton,
)
