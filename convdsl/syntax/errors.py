"""Lark's errors in the user's words: one sentence about what was written, and a remedy.

The commonest slips have a rule each (`convdsl.syntax.slips`); what none of them knows is described
by the words that would have fitted.
"""

from __future__ import annotations

from typing import cast

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from convdsl.diagnostics import CdslError, Source, Span
from convdsl.syntax.characters import bad_character
from convdsl.syntax.scene import REDUCERS, Scene, frames
from convdsl.syntax.slips import SLIPS
from convdsl.syntax.words import words

_VALUE = frozenset({"NAME", "NUMBER", "(", "-"})
_OPERATOR = frozenset({"+", "-", "MULTIPLY"})
_SOFT = frozenset({"op", "schedule", "for", "in", "where"})
_SPOKEN = {
    "NAME": "a name",
    "NUMBER": "a number",
    "MULTIPLY": "an operator",
    "COMPARE": "a comparison",
    "QNAME": "a dotted name",
    "$END": "the end of the text",
}


def explain(error: UnexpectedInput, source: Source, parser: Lark) -> CdslError:
    """The diagnostic for a text that Lark could not parse."""
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        return bad_character(Span(source, at, at + 1))
    scene = _scene(cast(UnexpectedToken, error), source, parser)
    for slip in SLIPS:
        if found := slip(scene):
            return found
    return _generic(scene)


def _scene(error: UnexpectedToken, source: Source, parser: Lark) -> Scene:
    fixed = {t.name: t.pattern.value for t in parser.terminals if t.pattern.type == "str"}
    expected = frozenset(fixed.get(name, name) for name in error.accepts)
    token = error.token
    if token.type == "$END":
        before = words(source.text)
        # After the last word, not after the comments and blank lines behind it.
        end = before[-1].end if before else 0
        return Scene(source, "", Span(source, end, end), expected, tuple(before), frames(before))
    start = token.start_pos or 0
    before = words(source.text[:start])
    span = Span(source, start, start + len(token))
    return Scene(source, str(token), span, expected, tuple(before), frames(before))


def _generic(scene: Scene) -> CdslError:
    phrases = _fold(scene.expected)
    found = f"`{scene.found}`" if scene.found else "the end of the text"
    if len(phrases) == 1:
        return CdslError("E0101", f"{phrases[0]} is missing before {found}", scene.span)
    message = f"{found} cannot stand here" if scene.found else "the text ends too early"
    notes = (f"what may stand here: {_enumerate(phrases)}",) if phrases else ()
    return CdslError("E0101", message, scene.span, notes=notes)


def _fold(expected: frozenset[str]) -> list[str]:
    """What would fit as few phrases, in a fixed order."""
    left = set(expected)
    phrases: list[str] = []
    if left >= _VALUE:
        phrases.append("a value")
        left -= _VALUE | _SOFT | set(REDUCERS)
    elif "NAME" in left:
        phrases.append("a name")
        left -= {"NAME"} | _SOFT
    if left >= _OPERATOR:
        phrases.append("an operator")
        left -= _OPERATOR
    if "COMPARE" in left:
        phrases.append("a comparison")
        left -= {"COMPARE", "=="}
    return phrases + sorted(_SPOKEN.get(word, f"`{word}`") for word in left)


def _enumerate(phrases: list[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    return ", ".join(phrases[:-1]) + " or " + phrases[-1]
