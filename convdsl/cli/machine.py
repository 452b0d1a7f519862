"""`--machine`: facts that plans are chosen for, measured where there are none, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from convdsl.cli.output import err

if TYPE_CHECKING:
    from rich.table import Table

    from convdsl.machine.facts import Cpu, Gpu, Machine, Part
    from convdsl.machine.timing import Say


def machine_given(text: str | None, targets: Sequence[str]) -> Machine:
    """The facts that `--machine` names, of what the targets run on; measuring is shown."""
    from convdsl.machine.given import HERE, machine_of
    from convdsl.registry import backend

    parts: list[Part] = [backend(target).part for target in targets]
    if text != HERE:
        return machine_of(text, *parts)
    from convdsl.machine.kept import here

    with measuring() as say:
        return here(parts, say)


@contextmanager
def measuring() -> Iterator[Say]:
    """Says what is measured on stderr: one line that changes on a terminal, else a line for each."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text: err(f"measuring {text} ...")
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(f"measuring {text}"))


def facts_table(facts: Cpu | Gpu) -> Table:
    """What was measured beside what is typical."""
    from rich.table import Table

    from convdsl.machine.facts import TYPICAL_CPU, TYPICAL_GPU, Cpu, numbers, units

    typical = numbers(TYPICAL_CPU if isinstance(facts, Cpu) else TYPICAL_GPU)
    table = Table(title=facts.name, title_justify="left", title_style="bold")
    table.add_column("fact")
    table.add_column("measured", justify="right")
    table.add_column("typical", justify="right")
    for (name, value), unit in zip(numbers(facts).items(), units(facts), strict=True):
        found = "-" if name in facts.origin.typical else _words(value, unit)
        table.add_row(name, found, _words(typical[name], unit))
    return table


def _words(value: float, unit: str) -> str:
    from convdsl.cli.plan_text import quantity, seconds

    match unit:
        case "s":
            return seconds(value)
        case "B":
            return f"{quantity(value, 1024)}B"
        case "":
            return f"{value:g}"
        case _:
            return f"{quantity(value, 1000)}{unit}"
