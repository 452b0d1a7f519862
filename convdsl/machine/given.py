"""What a caller says of the machine, as facts."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from convdsl.diagnostics import CdslError
from convdsl.machine.facts import TYPICAL, Machine, Part

HERE = "here"


def machine_of(given: Machine | str | PathLike[str] | None, *parts: Part) -> Machine:
    """The facts of these parts of a machine; typical ones for None, measured ones for "here".

    Raises:
        CdslError: E0910 to E0912 for a file that is not right, E0913 where it lacks a part, E0914
            for what is none of these.
        DeviceError: where a part is not here, or cannot be measured.
    """
    match given:
        case None:
            return TYPICAL
        case Machine():
            return given
        case str() | PathLike():
            if given == HERE:
                from convdsl.machine.kept import here

                return here(parts)
            from convdsl.machine.document import read

            return _with(parts, read(Path(given)), given)
        case _:
            raise CdslError(
                "E0914",
                f"`machine` is a {type(given).__name__}",
                help='give None, "here", the path of a file, or a `convdsl.machine.facts.Machine`',
            )


def _with(parts: tuple[Part, ...], machine: Machine, name: str | PathLike[str]) -> Machine:
    for part in parts:
        if getattr(machine, part) is getattr(TYPICAL, part):
            raise CdslError(
                "E0913",
                f"`{name}` has no facts of a {part.upper()}, which the target runs on",
                help="measure where there is one, with `convdsl devices --measure -o FILE`",
            )
    return machine
