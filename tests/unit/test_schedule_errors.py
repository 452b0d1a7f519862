"""Messages, whole: each program with a schedule in tests/errors/schedule has its diagnostic next to it.

Comment lines at the top give what it is compiled with, as JSON: `# sizes: {"M": 4}` and
`# dynamic: ["K"]`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import convdsl
from convdsl.codes import equations, tiles, workers
from convdsl.codes import schedule as schedules
from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System
from convdsl.schedule.find import find_schedule
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.order import Order
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.syntax import ast
from convdsl.syntax.parser import parse

TABLE = schedules.TABLE | equations.TABLE | tiles.TABLE | workers.TABLE
CASES = sorted((Path(__file__).parents[1] / "errors" / "schedule").glob("*.cdsl"))
MATMUL = "op mm(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] { y[m, n] = sum[k] a[m, k] * b[k, n] }"


def _given(text: str) -> dict[str, Any]:
    lines = [line[2:].split(": ", 1) for line in text.split("\n") if line.startswith("# ")]
    return {key: json.loads(value) for key, value in lines}


def _use(text: str, name: str) -> None:
    """Compile, until the text of the kernel is there."""
    given = _given(text)
    program = parse(text, name)
    blocks = [item for item in program.items if isinstance(item, ast.Schedule)]
    kernel = convdsl.compile(
        program,
        target=blocks[0].target.name,
        sizes=given["sizes"],
        dynamic=given.get("dynamic", ()),
    )
    assert kernel.source


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_message(path: Path, golden: Callable[[Path, str], None]) -> None:
    """The rendered diagnostic, at a line of the schedule."""
    with pytest.raises(CdslError) as caught:
        _use(path.read_text("utf-8"), path.name)
    error = caught.value
    assert error.code in TABLE or error.code.startswith("E05")
    assert error.span is not None or error.code.startswith("E05")
    golden(path.with_suffix(".expect"), f"{error}\n")


def test_no_expectation_is_orphaned() -> None:
    """Each .expect belongs to a .cdsl."""
    assert len(CASES) >= 80
    folder = CASES[0].parent
    assert {p.stem for p in folder.glob("*.expect")} <= {p.stem for p in CASES}


def test_every_code_has_a_file() -> None:
    """But E0627, which is about what is given beside the program."""
    shown = {
        line.split("[")[1].split("]")[0]
        for path in CASES
        for line in path.with_suffix(".expect").read_text("utf-8").splitlines()[:1]
    }
    assert set(TABLE) - shown <= {"E0627"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Schedule("mm", "numpy"), "the schedule is of `mm` for numpy, not `mm` for wgsl"),
        (Schedule("conv1d"), "the schedule is of `conv1d` for wgsl, not `mm` for wgsl"),
        ("schedule mv for wgsl { }", "there is no schedule of `mm` for wgsl in <schedule>"),
    ],
)
def test_a_schedule_of_something_else(given: Schedule | str, why: str) -> None:
    with pytest.raises(CdslError, match="E0627") as caught:
        find_schedule(given, parse(MATMUL), "mm", "wgsl")
    assert caught.value.message.startswith(why)


def test_a_schedule_of_another_target() -> None:
    with pytest.raises(CdslError, match="E0627"):
        find_schedule(Schedule("mm", "numpy"), parse(MATMUL), "mm", "wgsl")


@pytest.mark.parametrize("text", ["", "schedule a for wgsl { }\nschedule b for wgsl { }"])
def test_parse_takes_one_schedule(text: str) -> None:
    with pytest.raises(CdslError, match="E0626"):
        Schedule.parse(text)


@pytest.mark.parametrize(
    ("loop", "outer"),
    [
        ("m n", "mo"),
        ("m", "mo, mi"),
        ("m", "mo\n    gather y"),
        ("", "mo"),
        ("m", "m\u00f6"),
        ("m", "#"),
    ],
)
def test_python_cannot_make_what_no_text_says(loop: str, outer: str) -> None:
    with pytest.raises(CdslError, match="E0601"):
        Schedule("mm").split("y", loop, 4, outer, "inner")


def test_ten_thousand_steps_take_bounded_time() -> None:
    turns = (Order("y", ("n", "m")), Order("y", ("m", "n")), Map("y", (("m", "grid"),)))
    schedule = Schedule("mm", "wgsl", turns * 3_300).map("y", {"n": "thread"})
    begin = time.monotonic()
    state = schedule.replay(_matmul())
    assert time.monotonic() - begin < 10
    assert [x.level for x in state.nests["y"].loops] == ["grid", "thread", "serial"]


@pytest.mark.parametrize("factors", [(2,), (3, 5), (7, 4, 6), (1,)])
def test_splits_of_fused_loops_end(factors: tuple[int, ...]) -> None:
    """Index expressions never blow up: the chain is refused in time, or stays short."""
    schedule = Schedule("mm").fuse("y", ("m", "n"), "f0")
    for n in range(1_000):
        factor = factors[n % len(factors)]
        schedule = schedule.split("y", f"f{n}", factor, f"o{n}", f"i{n}")
        schedule = schedule.order("y", f"i{n}", f"o{n}") if n % 3 == 1 else schedule
        pair = (f"i{n}", f"o{n}") if n % 3 == 1 else (f"o{n}", f"i{n}")
        schedule = schedule.fuse("y", pair, f"f{n + 1}")
    begin = time.monotonic()
    with pytest.raises(CdslError, match="E0629"):
        schedule.replay(_matmul())
    assert time.monotonic() - begin < 20


def _matmul() -> System:
    return instantiate(resolve(parse(MATMUL)), {}, {"M": 60, "K": 4, "N": 60})
