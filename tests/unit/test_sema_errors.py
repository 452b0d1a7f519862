"""Messages, whole: each text in tests/errors/sema has its diagnostic next to it.

Comment lines at the top of a text give what it is used with, as JSON: `# params: {"stride": 0}`,
`# shapes: {"x": [1, 4, 3]}` (without it sizes stay symbols), `# absent: ["x"]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convdsl.codes.sema import TABLE
from convdsl.diagnostics import CdslError
from convdsl.sema.emptiness import check_reductions
from convdsl.sema.instantiate import check_absent, instantiate
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes, solve_sizes
from convdsl.sema.without import without
from convdsl.syntax.parser import parse

CASES = sorted((Path(__file__).parents[1] / "errors" / "sema").glob("*.cdsl"))


def _given(text: str) -> dict[str, Any]:
    lines = [line[2:].split(": ", 1) for line in text.split("\n") if line.startswith("# ")]
    return {key: json.loads(value) for key, value in lines}


def _use(text: str, name: str) -> None:
    """Everything that is checked before a program is compiled."""
    given = _given(text)
    op = resolve(parse(text, name))
    parameters = bind_parameters(op, given.get("params", {}))
    absent = frozenset(given.get("absent", ()))
    check_absent(op, absent)
    sizes: dict[str, int] = {}
    if "shapes" in given:
        op = without(op, [t.name for t in op.inputs if t.name not in given["shapes"]])
        sizes = solve_sizes(op, parameters, {k: tuple(v) for k, v in given["shapes"].items()})
        sizes = complete_sizes(op, parameters, sizes, absent=absent)
    check_reductions(op, parameters, instantiate(op, parameters, sizes, absent))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_message(path: Path, golden: Callable[[Path, str], None]) -> None:
    """The rendered diagnostic."""
    with pytest.raises(CdslError) as caught:
        _use(path.read_text("utf-8"), path.name)
    assert caught.value.code in TABLE
    golden(path.with_suffix(".expect"), f"{caught.value}\n")


def test_no_expectation_is_orphaned() -> None:
    """Each .expect belongs to a .cdsl."""
    assert len(CASES) >= 80
    folder = CASES[0].parent
    assert sorted(folder.glob("*.expect")) == [case.with_suffix(".expect") for case in CASES]


def test_every_code_has_an_example() -> None:
    """All codes but those that the parser reports first, or that concern data, are shown."""
    shown = {p.with_suffix(".expect").read_text("utf-8")[6:11] for p in CASES}
    assert set(TABLE) - shown == {"E0218", "E0309", "E0312"}
