"""Facts as JSON.

    {"schema": 1,
     "cpu": {"device": "...", "measured": "2026-05-04T12:00:00+00:00", "versions": {...}, "about": {...},
             "rates": {...}, "typical": [...], "facts": {"flops": 1e11, ...}},
     "gpu": {...}}

One of the parts is enough. `facts` are those of `convdsl.machine.facts`, all of them; what is read back
is equal to what was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from convdsl.diagnostics import CdslError
from convdsl.machine.facts import TYPICAL, Cpu, Gpu, Machine, Origin, Part, names, numbers

SCHEMA = 1
LARGEST = 1 << 20  # bytes of a file
_LONGEST = 400  # characters of a text
_KINDS: dict[Part, type[Cpu] | type[Gpu]] = {"cpu": Cpu, "gpu": Gpu}
_REMEDY = "`convdsl devices --measure -o FILE` writes such a file"


def to_json(machine: Machine) -> dict[str, Any]:
    """The measured parts of a machine."""
    record: dict[str, Any] = {"schema": SCHEMA}
    for part in parts_of(machine):
        facts = getattr(machine, part)
        record[part] = _origin_json(facts.origin) | {"facts": numbers(facts)}
    return record


def text_of(machine: Machine) -> str:
    """The text of a file."""
    return json.dumps(to_json(machine), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def parts_of(machine: Machine) -> tuple[Part, ...]:
    """The parts that are not the typical ones."""
    return tuple(p for p in _KINDS if getattr(machine, p) != getattr(TYPICAL, p))


def read(path: Path) -> Machine:
    """The machine that a file describes.

    Raises:
        CdslError: E0910 for what is no such file, E0911 for one of another schema, E0912 for facts
            that are missing or not right.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CdslError("E0910", f"cannot read `{path}`: {reason}", help=_REMEDY) from None
    if len(data) > LARGEST:
        raise CdslError("E0910", f"`{path}` has more than {LARGEST} bytes", help=_REMEDY)
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise CdslError("E0910", f"`{path}` is not JSON: {reason}", help=_REMEDY) from None
    return from_json(record, str(path))


def from_json(record: object, name: str) -> Machine:
    """The machine that a value of JSON describes; errors as those of `read`, with the file's name."""
    if not isinstance(record, dict) or "schema" not in record or not _KINDS.keys() & record.keys():
        raise CdslError("E0910", f"`{name}` does not hold facts of a machine", help=_REMEDY)
    if type(record["schema"]) is not int or record["schema"] != SCHEMA:
        raise CdslError(
            "E0911",
            f"`{name}` has schema {repr(record['schema'])[:40]}, this convdsl reads schema {SCHEMA}",
            help="measure again with `convdsl devices --measure`",
        )
    if unknown := record.keys() - {"schema", *_KINDS}:
        raise _wrong(
            name, f"has the unknown part `{_word(min(unknown))}`", f"the parts are {_list(_KINDS)}"
        )
    found = {part: _part(record[part], part, name) for part in _KINDS if part in record}
    return Machine(**found)  # type: ignore[arg-type]


def _part(record: object, part: Part, name: str) -> Cpu | Gpu:
    if not isinstance(record, dict):
        raise _wrong(name, f"has no object as `{part}`", _REMEDY)
    fields = (*_ORIGIN, "facts")
    for field in fields:
        if field not in record:
            raise _wrong(name, f"lacks `{part}.{field}`", f"`{part}` has {_list(fields)}")
    if unknown := record.keys() - set(fields):
        raise _wrong(
            name, f"has an unknown `{part}.{_word(min(unknown))}`", f"`{part}` has {_list(fields)}"
        )
    for field, (fits, what) in _ORIGIN.items():
        if not fits(record[field]):
            raise _wrong(name, f"has no {what} as `{part}.{field}`", _REMEDY)
    facts, known = record["facts"], names(_KINDS[part])
    if not isinstance(facts, dict) or facts.keys() != set(known):
        given = facts.keys() if isinstance(facts, dict) else set()
        lacking, others = [n for n in known if n not in given], sorted(given - set(known))
        which = f"lacks `{lacking[0]}`" if lacking else f"has an unknown `{_word(others[0])}`"
        raise _wrong(name, f"{which} in `{part}.facts`", f"the facts are {_list(known)}")
    try:
        return _KINDS[part](**facts, origin=_origin(record))
    except CdslError as error:
        message = f"`{name}`: {error.message}"
        raise CdslError(error.code, message, notes=error.notes, help=error.help) from None


def _origin(record: Mapping[str, Any]) -> Origin:
    return Origin(
        record["device"],
        record["measured"],
        tuple(record["versions"].items()),
        tuple(record["about"].items()),
        tuple((n, float(v)) for n, v in record["rates"].items()),
        tuple(record["typical"]),
    )


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "device": origin.device,
        "measured": origin.measured,
        "versions": dict(origin.versions),
        "about": dict(origin.about),
        "rates": dict(origin.rates),
        "typical": list(origin.typical),
    }


def _is_text(value: object) -> bool:
    """Short, and printed as one line."""
    return isinstance(value, str) and len(value) <= _LONGEST and value.isprintable()


def _is_name(value: object) -> bool:
    return _is_text(value) and value != ""


def _is_map(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict) and all(_is_name(n) and fits(v) for n, v in value.items())
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1e300  # type: ignore[operator]


_ORIGIN: dict[str, tuple[Callable[[object], bool], str]] = {
    "device": (_is_text, "short text"),
    "measured": (_is_text, "short text"),
    "versions": (_is_map(_is_text), "object of short texts"),
    "about": (_is_map(lambda v: _is_text(v) or type(v) is int), "object of texts and integers"),
    "rates": (_is_map(_is_number), "object of numbers"),
    "typical": (lambda v: isinstance(v, list) and all(map(_is_name, v)), "list of names"),
}


def _wrong(name: str, what: str, help: str) -> CdslError:
    return CdslError("E0912", f"`{name}` {what}", help=help)


def _word(name: str) -> str:
    """A name that a file has, as part of one line."""
    return repr(name)[1:-1][:40]


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)
