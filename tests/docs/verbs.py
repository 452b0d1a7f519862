"""The section of every verb in docs/reference/schedules.md, from its record."""

from __future__ import annotations

import ast
import inspect
import re
import sys

from convdsl.codes import CODES
from convdsl.schedule.step import Compound, Step
from convdsl.schedule.verbs import COMPOUNDS, VERBS

CODE = re.compile(r"E06\d\d")
EVERY = {"E0600", "E0601", "E0602", "E0603", "E0604", "E0605", "E0625"}  # said once for all verbs
KINDS: dict[str, type[Step] | type[Compound]] = {**VERBS, **COMPOUNDS}


def verbs_text() -> str:
    """All sections, in the order of the records."""
    return "\n" + "\n".join(_section(kind) for kind in KINDS.values()) + "\n"


def _section(kind: type[Step] | type[Compound]) -> str:
    out = [f"### {kind.verb}", f"```text\n{kind.form}\n```"]
    for paragraph in inspect.getdoc(kind).split("\n\n"):  # type: ignore[union-attr]
        out.append(f"```text\n{paragraph}\n```" if paragraph.startswith("before:") else paragraph)
    own = sorted(codes_of(kind) - EVERY)
    if own:
        out.append("Refused with " + ", ".join(map(_code, own)) + ".")
    return "\n\n".join(out) + "\n"


def codes_of(kind: type[Step] | type[Compound]) -> set[str]:
    """The codes that the module of a verb names."""
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    return {v for v in values if isinstance(v, str) and CODE.fullmatch(v)}


def _code(name: str) -> str:
    known = CODES.get(name)
    return name if known is None else f"{name} ({known.title})"
