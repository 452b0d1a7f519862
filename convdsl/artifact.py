"""Saved kernels: a folder with the generated files and a manifest that says what they are.

Nothing generated is executed on loading: the kernel is compiled again from the text in the
manifest, and the result must equal the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from convdsl._version import __version__
from convdsl.diagnostics import CdslError
from convdsl.files import Content, make_folder, remove_folders, write_files
from convdsl.machine.document import from_json, parts_of, to_json
from convdsl.machine.facts import TYPICAL

if TYPE_CHECKING:
    from convdsl.kernel import Kernel

FORMAT = 1
MANIFEST = "manifest.json"
SCHEDULE = ".schedule.cdsl"  # behind the operator's name


def manifest(kernel: Kernel) -> dict[str, Any]:
    """What a kernel is, as values that JSON has; files are not listed yet."""
    options, executable = kernel.options, kernel.executable
    sizes, absent = kernel.variant
    return {
        "format": FORMAT,
        "convdsl": __version__,
        "op": options.op.name,
        "target": options.target,
        "params": dict(options.params),
        "sizes": sizes,
        "fixed": dict(options.fixed),
        "dynamic": [n for n in options.op.input_sizes if n in options.dynamic],
        "absent": sorted(absent),
        "without": sorted(options.absent),
        "accuracy": options.accuracy,
        "limits": options.limits,
        "algorithm": options.algorithm,
        "schedule": None if options.schedule is None else str(options.schedule),
        "cap": options.cap,
        "machine": to_json(options.machine) if parts_of(options.machine) else None,
        "applied": executable.schedule,
        "plan": executable.plan.to_json(),
        "module": executable.manifest(),
        "program": options.text,
        "constants": {},
    }


def texts(kernel: Kernel) -> dict[str, str]:
    """The generated files by name, and the applied schedule, which can be edited and given back."""
    executable = kernel.executable
    if executable.schedule is None:
        return executable.files()
    return executable.files() | {f"{kernel.options.op.name}{SCHEDULE}": executable.schedule}


def save(kernel: Kernel, directory: str | PathLike[str]) -> list[Path]:
    """Write a kernel's files, bound constants and manifest; returns the paths, the manifest last.

    Raises:
        CdslError: E0356 when sizes are not known, E0360 when the system refuses, E0361 when there
            is a manifest of something else.
    """
    folder = Path(directory)
    record = manifest(kernel)
    parts: dict[str, list[bytes | memoryview]] = {
        name: [text.encode()] for name, text in texts(kernel).items()
    }
    if kernel.constants:
        from convdsl.npy import npy_parts

        record["constants"] = {n: f"{record['op']}.{n}.npy" for n in kernel.constants}
        for name, file in record["constants"].items():
            parts[file] = list(npy_parts(kernel.constants[name]))
    record["files"] = {name: _facts(data) for name, data in parts.items()}
    record["check"] = _check(record)
    parts[MANIFEST] = [(json.dumps(record, indent=2, allow_nan=False) + "\n").encode()]
    made = make_folder(folder)
    try:
        _spare_others(folder / MANIFEST)
        files: dict[Path, Content] = {folder / n: _writer(data) for n, data in parts.items()}
        write_files(files)
    except BaseException:
        remove_folders(made)
        raise
    return list(files)


def load_kernel(directory: str | PathLike[str]) -> Kernel:
    """The kernel that `save` wrote, compiled again from its text and compared with its files.

    Raises:
        CdslError: E0361 when the folder holds no saved kernel, E0362 when a file was changed,
            E0363 when this version of convdsl generates another text.
        DeviceError: when it was saved for this machine's adapter and there is none.
    """
    folder = Path(directory)
    record = _read_manifest(folder / MANIFEST)
    for name, facts in record["files"].items():
        _check_file(folder, name, facts)
    from convdsl.api import compile, parse

    program, machine = parse(record["program"], str(folder / MANIFEST)), record["machine"]
    kernel = compile(
        program, op=record["op"], target=record["target"], sizes=record["fixed"],
        params=record["params"], accuracy=record["accuracy"], limits=record["limits"],
        dynamic=record["dynamic"], absent=record["without"], algorithm=record["algorithm"],
        schedule=record["schedule"], cap=record["cap"],
        machine=TYPICAL if machine is None else from_json(machine, str(folder / MANIFEST)),
    )  # fmt: skip
    kernel.specialise(record["sizes"], frozenset(record["absent"]))
    for name, text in texts(kernel).items():
        if record["files"].get(name) != _facts([text.encode()]):
            raise _another_text(folder / name, record)
    if not record["constants"]:
        return kernel
    from convdsl.npy import read_npy

    return kernel.bind(**{n: read_npy(folder / f) for n, f in record["constants"].items()})


# -- the manifest -------------------------------------------------------------------------------
def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _map(*kinds: type) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        return isinstance(value, dict) and all(type(v) in kinds for v in value.values())

    return fits


def _text(value: object) -> bool:
    return isinstance(value, str)


# What loading uses, and when it makes sense; the text says the rest.
_FIELDS: dict[str, Callable[[object], bool]] = {
    "convdsl": _text,
    "op": _text,
    "target": _text,
    "params": _map(int, float),
    "sizes": _map(int),
    "fixed": _map(int),
    "dynamic": _texts,
    "absent": _texts,
    "without": _texts,
    "accuracy": _text,
    "limits": _text,
    "algorithm": lambda value: value is None or value in ("gather", "phases", "columns", "toom"),
    "cap": lambda value: type(value) is int and value > 0,
    "machine": lambda value: value is None or isinstance(value, dict),
    "schedule": lambda value: value is None or (isinstance(value, str) and "\n" in value),
    "program": _text,
    "files": _map(dict),
    "constants": _map(str),
}
_LARGEST = 1 << 26


def _read_manifest(path: Path) -> dict[str, Any]:
    record = _parse(path)
    if record is None:
        raise _no_kernel(path, "is not the manifest of a saved kernel")
    if record["format"] != FORMAT:
        raise CdslError(
            "E0361",
            f"`{path}` has format {record['format']}, this convdsl reads format {FORMAT}",
            notes=(f"it was saved by convdsl {record['convdsl']}, this is {__version__}",),
            help="load it with that version, or compile the operator again",
        )
    if record.pop("check", None) != _check(record):
        raise _changed(path)
    wrong = [name for name, fits in _FIELDS.items() if not fits(record.get(name, ...))]
    if wrong or not set(record["constants"].values()) <= set(record["files"]):
        raise _no_kernel(path, f"does not say right: {', '.join(wrong or ['constants'])}")
    return record


def _parse(path: Path) -> dict[str, Any] | None:
    """What a manifest says, of whatever format; None when it is something else."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _no_kernel(path, f"cannot be read: {reason}") from None
    try:
        record = json.loads(data) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    if isinstance(record, dict) and "format" in record and "convdsl" in record:
        return record
    return None


def _check(record: Mapping[str, Any]) -> str:
    """A hash of all that the manifest says, however it is laid out."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _spare_others(path: Path) -> None:
    """Refuse to overwrite a manifest that is not one of ours."""
    if path.exists() and _parse(path) is None:
        raise CdslError(
            "E0361",
            f"`{path}` exists and is not the manifest of a saved kernel",
            help="choose another folder",
        )


# -- the files ----------------------------------------------------------------------------------
Parts = Iterable[bytes | memoryview]


def _facts(parts: Parts) -> dict[str, object]:
    count, digest = 0, hashlib.sha256()
    for part in parts:
        count += len(part)
        digest.update(part)
    return {"bytes": count, "sha256": digest.hexdigest()}


def _writer(parts: Parts) -> Callable[[IO[bytes]], object]:
    return lambda file: [file.write(part) for part in parts]


def _check_file(folder: Path, name: str, facts: Mapping[str, object]) -> None:
    path = folder / name
    if Path(name).name != name or name in ("..", MANIFEST):
        raise _no_kernel(folder / MANIFEST, f"names the file {name!r}")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CdslError(
            "E0362",
            f"`{path}` belongs to the saved kernel and cannot be read: {reason}",
            help="save the kernel again",
        ) from None
    if facts.get("sha256") != digest:
        raise _changed(path)


def _changed(path: Path) -> CdslError:
    return CdslError(
        "E0362",
        f"`{path}` was changed after the kernel was saved",
        help="compile with it and save again: `--schedule FILE`"
        if path.name.endswith(SCHEDULE)
        else "change the operator and save again; an edited module is run without convdsl",
    )


def _no_kernel(path: Path, why: str) -> CdslError:
    return CdslError(
        "E0361",
        f"`{path}` {why}",
        help="name a folder that `kernel.save` or `convdsl compile -o` wrote",
    )


def _another_text(path: Path, record: Mapping[str, Any]) -> CdslError:
    saved = str(record["convdsl"])
    if record["limits"] == "adapter":
        why = "it was generated for the limits of an adapter, perhaps another one than is used now"
    elif saved != __version__:
        why = f"it was saved by convdsl {saved}, this is {__version__}"
    else:
        why = f"it was saved by another build of convdsl {saved}"
    return CdslError(
        "E0363",
        f"`{path}` is not what this convdsl generates",
        notes=(why,),
        help="compile and save again: the operator's text is in the manifest under `program`",
    )
