"""Every diagnostic code that is raised is explained, and the other way round."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from convdsl.codes import CODES, explain

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"E0[1-9][0-9]{2}")


def _sources() -> Iterator[Path]:
    for folder in ("convdsl", "backends"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).parts
            if parts[:2] not in (("convdsl", "codes"), ("convdsl", "backends")):
                yield path


def _raised() -> dict[str, str]:
    found = {}
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and CODE.fullmatch(value):
                found[value] = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
    return found


def test_every_code_is_explained() -> None:
    raised = _raised()
    assert {code: place for code, place in raised.items() if code not in CODES} == {}


def test_every_explanation_is_of_a_code_that_is_raised() -> None:
    assert sorted(set(CODES) - set(_raised())) == []


@pytest.mark.parametrize("code", CODES)
def test_an_explanation_says_something(code: str) -> None:
    entry = CODES[code]
    assert 3 <= len(entry.title) <= 80
    assert not entry.title.endswith(".")
    assert len(entry.text.split()) >= 10
    assert max(map(len, entry.text.splitlines())) <= 100
    assert explain(code).startswith(f"{code}: {entry.title}\n\n")


def test_codes_are_in_order_within_their_families() -> None:
    names = list(CODES)
    assert len(set(names)) == len(names)
    for family in {name[:3] for name in names}:
        mine = [name for name in names if name.startswith(family)]
        assert mine == sorted(mine)
