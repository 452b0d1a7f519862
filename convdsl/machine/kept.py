"""Measured facts, kept in the user's cache folder: a file for each device with its versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from convdsl.diagnostics import CdslError
from convdsl.files import make_folder, write_files
from convdsl.machine.document import read, text_of
from convdsl.machine.facts import Cpu, Gpu, Machine, Origin, Part
from convdsl.machine.names import identity
from convdsl.machine.timing import Say

_LOCK = Lock()  # two at a time would measure each other
_FOUND: dict[Path, Cpu | Gpu] = {}  # what this process has read or measured


def quiet(text: str) -> None:
    """Says nothing."""


def here(parts: Sequence[Part], say: Say = quiet) -> Machine:
    """The facts of this machine, as they are kept; measured where they are not.

    Raises:
        DeviceError: when a part is not here, or cannot be measured.
    """
    with _LOCK:
        return _machine({part: _kept(part) or _measured(part, say) for part in parts})


def measure(parts: Sequence[Part], say: Say = quiet) -> Machine:
    """Measure and keep.

    Raises:
        CdslError: E0360 when the system does not let us write.
        DeviceError: as `here`.
    """
    with _LOCK:
        found = _machine({part: _measured(part, say) for part in parts})
    for part in parts:
        _keep(part, found)
    return found


def file_of(part: Part) -> Path:
    """Where the facts of a part are kept; another device or version has another file."""
    from platformdirs import user_cache_path

    origin = identity(part)
    named = json.dumps([origin.device, origin.versions, origin.about]).encode()
    name = f"{part}-{hashlib.sha256(named).hexdigest()[:16]}.json"
    return user_cache_path("convdsl", appauthor=False) / "machine" / name


def _machine(found: dict[Part, Cpu | Gpu]) -> Machine:
    return Machine(**found)  # type: ignore[arg-type]


def _kept(part: Part) -> Cpu | Gpu | None:
    """What is kept of this very device; a file that is not right is as good as none."""
    path = file_of(part)
    if path not in _FOUND:
        with contextlib.suppress(CdslError):
            facts: Cpu | Gpu = getattr(read(path), part)
            if _same(facts.origin, identity(part)):
                _FOUND[path] = facts
    return _FOUND.get(path)


def _same(one: Origin, other: Origin) -> bool:
    return (one.device, one.versions, one.about) == (other.device, other.versions, other.about)


def _measured(part: Part, say: Say) -> Cpu | Gpu:
    """Measure, and keep it where that is possible."""
    facts: Cpu | Gpu
    if part == "cpu":
        from convdsl.machine.measure_cpu import measure_cpu

        facts = measure_cpu(say)
    else:
        from convdsl.machine.measure_gpu import measure_gpu

        facts = measure_gpu(say)
    _FOUND[file_of(part)] = facts
    with contextlib.suppress(CdslError):  # this process has them all the same
        _keep(part, _machine({part: facts}))
    return facts


def _keep(part: Part, machine: Machine) -> None:
    path = file_of(part)
    make_folder(path.parent)
    alone = Machine(cpu=machine.cpu) if part == "cpu" else Machine(gpu=machine.gpu)
    write_files({path: text_of(alone).encode()})
