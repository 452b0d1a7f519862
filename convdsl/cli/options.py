"""Options that several commands share, and what they mean for an operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from convdsl.budget import CAP

if TYPE_CHECKING:
    from convdsl.sema.model import ResolvedOp

F = TypeVar("F", bound=Callable[..., Any])
Numbers = dict[str, int | float]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|nan)", re.ASCII | re.IGNORECASE
)
_LONGEST = 400  # characters of a value; a float of more digits says no more


def suggestion(name: str, known: Iterable[str]) -> str:
    """`Did you mean ...?`, or all that there is."""
    names = list(known)
    close = closest(name, names)
    return f"Did you mean '{close}'?" if close else f"Choose one of: {', '.join(names)}."


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=1) or [n for n in names if n.lower() == name.lower()]
    return close[0] if close else None


def numbers(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Numbers:
    """The values of all `-D NAME=VALUE`, by name."""
    found: Numbers = {}
    for text in values:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not value or not _NAME.fullmatch(name):
            raise click.BadParameter(
                f"'{_short(text)}' is not NAME=VALUE, like stride=2.", ctx, option
            )
        if name in found:
            raise click.BadParameter(f"'{name}' is given twice.", ctx, option)
        found[name] = _number(ctx, option, name, value)
    return found


def _number(ctx: click.Context, option: click.Parameter, name: str, text: str) -> int | float:
    if len(text) <= _LONGEST and _INTEGER.fullmatch(text):
        return int(text)
    if len(text) <= _LONGEST and _FLOAT.fullmatch(text):
        return float(text)
    message = f"'{_short(text)}' is no number, so it cannot be the value of '{name}'."
    raise click.BadParameter(message, ctx, option)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class Given:
    """The numbers of `-D` for one operator."""

    params: dict[str, int | float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


def assign(op: ResolvedOp, values: Numbers) -> Given:
    """Tell parameters from sizes.

    Raises:
        CdslError: E0302 for a name that the operator does not have, E0309 for a size that is no
            integer.
    """
    from convdsl.diagnostics import CdslError
    from convdsl.sema.names import is_size

    parameters = [p.name for p in op.parameters]
    sizes = [*op.input_sizes, *(name for name, _ in op.defined)]
    given = Given()
    for name, value in values.items():
        if name in parameters:
            given.params[name] = value
        elif name not in sizes:
            close = closest(name, [*parameters, *sizes])
            kind, code = ("size", "E0309") if is_size(name) else ("parameter", "E0302")
            raise CdslError(
                code,
                f"`{op.name}` has no {kind} `{name}`, which `-D` gives",
                notes=(
                    f"its parameters: {', '.join(parameters) or 'none'}",
                    f"its sizes: {', '.join(sizes) or 'none'}",
                ),
                help=f"did you mean `{close}`?" if close else None,
            )
        elif isinstance(value, int):
            given.sizes[name] = value
        else:
            raise CdslError("E0309", f"the size `{name}` must be an integer, not {value!r}")
    return given


def names_of(values: tuple[str, ...], option: str) -> list[str]:
    """`--random a,b --random c` as names, each once."""
    names = [part.strip() for text in values for part in text.split(",")]
    for n, name in enumerate(names):
        if not name:
            raise click.BadParameter(f"{option} takes names, like w,b.")
        if name in names[:n]:
            raise click.BadParameter(f"'{name}' is given twice.")
    return names


def check_target(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """A target that exists, without loading it."""
    if value in ("wgsl", "numpy"):
        return value
    from convdsl.registry import targets

    known = targets()
    if value not in known:
        raise click.BadParameter(
            f"There is no target '{_short(value)}'. {suggestion(value, known)}", ctx, option
        )
    return value


define_option = click.option(
    "-D", "values", metavar="NAME=VALUE", multiple=True, callback=numbers,
    help="The number of a parameter or size; may repeat.",
)  # fmt: skip
op_option = click.option(
    "--op", "op_name", metavar="NAME", help="Which operator of the file, where it has several."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
accuracy_option = click.option(
    "--accuracy", type=click.Choice(["strict", "standard", "fast"]), default="standard",
    show_default=True,
    help="How much rounding plans and schedules may add: strict only reorders sums, standard and "
    "fast allow Toom-Cook too.",
)  # fmt: skip
limits_option = click.option(
    "--limits", type=click.Choice(["webgpu", "adapter", "software"]), default="webgpu",
    show_default=True,
    help="What WGSL is made for: any browser, this machine's adapter, or any browser on an adapter "
    "that runs on the CPU.",
)  # fmt: skip
cap_option = click.option(
    "--cap", type=click.FloatRange(0.001), default=CAP / 2**20, show_default="64", metavar="MIB",
    callback=lambda context, option, value: round(value * 2**20),
    help="Temporaries that a chosen plan for NumPy keeps to as far as it can.",
)  # fmt: skip
machine_option = click.option(
    "--machine", metavar="here|FILE.json",
    help="Choose plans for this machine (measured once and kept), or for the one in a file; "
    "otherwise for a typical one, with the same text everywhere.",
)  # fmt: skip
schedule_option = click.option(
    "--schedule", metavar="FILE", type=click.Path(path_type=Path),
    help="A file with a schedule for the operator and target, instead of the one that is chosen.",
)  # fmt: skip
file_argument = click.argument("file", metavar="OP.cdsl")


def target_option(default: str) -> Callable[[F], F]:
    """`--target`, with the default of a command."""
    return click.option(
        "--target", metavar="wgsl|numpy", default=default, show_default=True,
        callback=check_target, help="What to make.",
    )  # fmt: skip
