"""Facts of a machine as JSON: what is written is read back, and what is not right is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convdsl.diagnostics import CdslError
from convdsl.machine.document import LARGEST, from_json, read, text_of, to_json
from convdsl.machine.facts import TYPICAL, Cpu, Gpu, Machine, Origin
from convdsl.machine.given import machine_of

ORIGIN = Origin(
    "A processor", "2026-05-04T12:00:00+00:00", (("numpy", "2.4.6"),), (("processors", 4),),
    (("FLOP/s: 8x8x8", 1.5e9),), ("near", "far"),
)  # fmt: skip
MEASURED = Machine(
    Cpu(threads=4, flops=6.25e10, origin=ORIGIN),
    Gpu(units=20, bandwidth=1e11, origin=replace(ORIGIN, device="A graphics card")),
)


@pytest.mark.parametrize(
    "machine", [MEASURED, Machine(cpu=MEASURED.cpu), Machine(gpu=MEASURED.gpu)],
    ids=["both", "cpu", "gpu"],
)  # fmt: skip
def test_round_trip(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text_of(machine), "utf-8")
    assert read(path) == machine
    assert text_of(read(path)) == text_of(machine)


def refused(code: str, record: object) -> CdslError:
    with pytest.raises(CdslError) as caught:
        from_json(record, "m.json")
    assert caught.value.code == code
    assert "m.json" in caught.value.message
    assert caught.value.help
    return caught.value


@pytest.mark.parametrize("record", [None, [], 3, {}, {"schema": 1}, {"cpu": {}}, {"suite": []}])
def test_what_is_no_machine(record: object) -> None:
    refused("E0910", record)


@pytest.mark.parametrize("schema", [0, 2, "1", None, True, 1.0])
def test_another_schema(schema: object) -> None:
    assert "schema 1" in refused("E0911", to_json(MEASURED) | {"schema": schema}).message


@pytest.mark.parametrize("text", ["x" * 100_000, "a\nb\x1b[31m", "\ud800"])
def test_messages_are_one_short_line(text: str) -> None:
    record: Any = to_json(MEASURED)
    facts = record["cpu"] | {"facts": record["cpu"]["facts"] | {text: 1}}
    for code, more in (
        ("E0911", {"schema": text}), ("E0912", {text: {}}), ("E0912", {"cpu": facts}),
        ("E0912", {"cpu": record["cpu"] | {text: 1}}),
    ):  # fmt: skip
        message = refused(code, record | more).message
        assert message.isprintable()
        assert len(message) < 200


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("cpu",), None, "`cpu`"),
        (("tpu",), {}, "`tpu`"),
        (("cpu", "device"), ..., "lacks `cpu.device`"),
        (("cpu", "device"), 3, "`cpu.device`"),
        (("cpu", "device"), "a\nb", "`cpu.device`"),
        (("cpu", "device"), "a" * 500, "`cpu.device`"),
        (("gpu", "versions"), {"numpy": 2}, "`gpu.versions`"),
        (("gpu", "about"), {"x": [1]}, "`gpu.about`"),
        (("gpu", "rates"), {"x": float("nan")}, "`gpu.rates`"),
        (("gpu", "rates"), {"x": 10**400}, "`gpu.rates`"),
        (("gpu", "typical"), "near", "`gpu.typical`"),
        (("gpu", "colour"), "red", "`gpu.colour`"),
        (("cpu", "facts"), [], "lacks `threads`"),
        (("cpu", "facts", "flops"), ..., "lacks `flops`"),
        (("cpu", "facts", "speed"), 1, "unknown `speed`"),
        (("cpu", "facts", "flops"), "fast", "'fast'"),
        (("cpu", "facts", "flops"), True, "True"),
        (("cpu", "facts", "flops"), None, "None"),
        (("cpu", "facts", "flops"), 0, "`flops` of a CPU is 0"),
        (("cpu", "facts", "flops"), -1.0, "-1.0"),
        (("cpu", "facts", "flops"), 10**400, "1000"),
        (("cpu", "facts", "add"), float("inf"), "inf"),
        (("cpu", "facts", "add"), float("nan"), "nan"),
        (("cpu", "facts", "threads"), 2.0, "2.0"),
        (("cpu", "facts", "threads"), 0, "`threads`"),
        (("gpu", "facts", "single"), 1.5, "`single` of a GPU is 1.5"),
    ],
)
def test_a_value_that_is_not_right(path: tuple[str, ...], value: object, said: str) -> None:
    record: Any = copy.deepcopy(to_json(MEASURED))
    inside = record
    for name in path[:-1]:
        inside = inside[name]
    if value is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    assert said in refused("E0912", record).message


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100_000, " " * (LARGEST + 1), "NaN"])
def test_what_is_no_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(text.encode("latin-1"))
    for broken in (path, tmp_path, tmp_path / "none.json", Path("a\0b")):
        with pytest.raises(CdslError) as caught:
            machine_of(broken, "cpu")
        assert caught.value.code == "E0910"


def test_facts_are_checked_where_they_are_made() -> None:
    for wrong in (
        {"flops": 0.0},
        {"threads": 1.5},
        {"near": -1},
        {"wake": float("nan")},
        {"threads": 10**5000},
    ):
        with pytest.raises(CdslError, match="E0912"):
            Cpu(**wrong)
    with pytest.raises(CdslError, match="E0912"):
        replace(Gpu(), units=0)


def test_what_a_caller_may_say(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text_of(Machine(cpu=MEASURED.cpu)), "utf-8")
    assert machine_of(None, "gpu") is TYPICAL
    assert machine_of(MEASURED, "gpu") is MEASURED
    for given in (path, str(path)):
        assert machine_of(given, "cpu").cpu == MEASURED.cpu
    others: tuple[tuple[Any, str], ...] = ((path, "E0913"), (7, "E0914"), ({"cpu": {}}, "E0914"))
    for wrong, code in others:
        with pytest.raises(CdslError) as caught:
            machine_of(wrong, "gpu")
        assert caught.value.code == code


def test_the_form_is_stable() -> None:
    """Names and order of a file; a change of them is another schema."""
    record = json.loads(text_of(MEASURED))
    assert list(record) == ["schema", "cpu", "gpu"]
    assert list(record["cpu"]) == [
        "device", "measured", "versions", "about", "rates", "typical", "facts",
    ]  # fmt: skip
    assert list(record["cpu"]["facts"]) == [
        "threads", "flops", "half", "copy", "add", "transform", "store", "scattered", "near", "far",
        "call", "wake",
    ]  # fmt: skip
    assert list(record["gpu"]["facts"]) == [
        "units", "flops", "bandwidth", "launch", "busy", "single", "full", "tested", "ahead",
        "ahead_wide", "windows",
    ]  # fmt: skip
