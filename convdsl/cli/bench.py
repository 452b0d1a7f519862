"""`convdsl bench`: operators beside other libraries, with the error of every result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from convdsl.cli.options import (
    Numbers,
    accuracy_option,
    assign,
    cap_option,
    check_target,
    define_option,
    limits_option,
    machine_option,
    names_of,
    op_option,
    schedule_option,
    suggestion,
)
from convdsl.cli.output import err, out_json

if TYPE_CHECKING:
    from convdsl.bench.contestant import Settings
    from convdsl.bench.layer import Layer
    from convdsl.bench.record import Record
    from convdsl.bench.session import Session
    from convdsl.bench.timing import Rules


def _targets(ctx: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    return tuple(check_target(ctx, option, n) for n in names_of((value,), "--target"))


def _peers(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> list[str]:
    from convdsl.bench.peers import PEERS

    names = names_of(values, "--vs")
    for name in names:
        if name not in PEERS:
            message = f"There is no peer '{name}'. {suggestion(name, PEERS)}"
            raise click.BadParameter(message, ctx, option)
    return names


@click.command("bench", short_help="Measure operators beside other libraries.")
@click.argument("file", metavar="[OP.cdsl]", required=False)
@click.option(
    "--suite", metavar="FILE", type=click.Path(path_type=Path),
    help="A JSON file of layers; without it and without OP.cdsl, the suite that ships.",
)  # fmt: skip
@click.option("--layers", metavar="NAME,...", multiple=True, help="Only these layers of the suite.")
@op_option
@define_option
@click.option("--data", metavar="NAME,...", multiple=True,
              help="Inputs of OP.cdsl that differ from call to call; by default the first.")  # fmt: skip
@click.option("--bind", metavar="NAME,...", multiple=True,
              help="Inputs with a default that are there and constant, besides the others.")  # fmt: skip
@click.option("--target", "targets", metavar="numpy|wgsl,...", default="numpy", show_default=True,
              callback=_targets, help="What convdsl is measured on.")  # fmt: skip
@click.option("--vs", "peers", metavar="PEER,...", multiple=True, callback=_peers,
              help="torch, torch-cuda, onnxruntime, onnxruntime-webgpu, jax; matmul is the bare "
              "product.")  # fmt: skip
@click.option("--plans", is_flag=True, help="Measure every plan, not only the chosen one.")
@schedule_option
@accuracy_option
@cap_option
@limits_option
@machine_option
@click.option("--threads", metavar="N", type=click.IntRange(1, 4096),
              help="The same number of CPU threads for all.")  # fmt: skip
@click.option("--repeat", metavar="N", type=click.IntRange(1, 10_000), default=7,
              show_default=True, help="Rounds at most.")  # fmt: skip
@click.option("--seconds", metavar="S", type=click.FloatRange(0), default=10.0, show_default=True,
              help="No round of a layer begins after so long.")  # fmt: skip
@click.option("--json", "as_json", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True),
              help="Write everything as JSON; - prints it instead of the table.")  # fmt: skip
@click.option("--html", "page", metavar="FILE", type=click.Path(path_type=Path),
              help="Write a page with the roofline, bars and all numbers.")  # fmt: skip
def command(
    file: str | None,
    suite: Path | None,
    layers: tuple[str, ...],
    op_name: str | None,
    values: Numbers,
    data: tuple[str, ...],
    bind: tuple[str, ...],
    targets: tuple[str, ...],
    peers: list[str],
    plans: bool,
    schedule: Path | None,
    accuracy: str,
    cap: int,
    limits: str,
    machine: str | None,
    threads: int | None,
    repeat: int,
    seconds: float,
    as_json: Path | None,
    page: Path | None,
) -> int:  # fmt: skip
    """Measure operators beside other libraries.

    All are called in turn in one process, with constants bound and inputs that alternate; the error
    of each against float64 is shown. A peer that is wrong is not ranked.
    """
    chosen = names_of(layers, "--layers")
    if file is None:
        alone = {"--op": op_name, "-D": values, "--data": data, "--bind": bind}
        if given := [name for name, value in alone.items() if value]:
            raise click.UsageError(f"{given[0]} goes with OP.cdsl, not with a suite.")
    elif suite is not None or chosen:
        raise click.UsageError("--suite and --layers go without OP.cdsl.")
    from convdsl.bench.contestant import Settings
    from convdsl.bench.suite import choose, read_suite
    from convdsl.bench.threads import limited
    from convdsl.bench.timing import Rules
    from convdsl.cli.machine import machine_given

    if file is None:
        work = choose(read_suite(suite), chosen)
    else:
        work = [_layer(file, op_name, values, names_of(data, "--data"), names_of(bind, "--bind"))]
    facts, rules = machine_given(machine, targets), Rules(repeat, seconds)
    settings = Settings(targets, threads, accuracy, limits, cap, facts)
    with limited(threads):
        session = _run(work, settings, rules, peers, schedule, plans, str(as_json) != "-")
    _write(session.record, as_json, page)
    return _code(session)


def _layer(
    file: str, op_name: str | None, values: Numbers, data: list[str], bind: list[str]
) -> Layer:
    from convdsl.bench.layer import make_layer
    from convdsl.sema.resolve import resolve
    from convdsl.syntax.parser import load

    program = load(file)
    op = resolve(program, op_name)
    given = assign(op, values)
    return make_layer(
        op.name, file, program, given.params, given.sizes, op=op.name, varying=data, constant=bind
    )


def _run(
    work: list[Layer], settings: Settings, rules: Rules, peers: list[str],
    schedule: Path | None, plans: bool, shown: bool,
) -> Session:  # fmt: skip
    """Measure; Ctrl-C ends it, and what was measured until then is shown."""
    from rich.console import Console

    from convdsl.bench.progress import StderrProgress
    from convdsl.bench.session import Session
    from convdsl.cli import last_words

    with StderrProgress(Console(stderr=True, highlight=False)) as progress:
        session = Session(new_record(settings), rules, progress)

        def say() -> None:
            progress.close()
            if shown:
                _show(session.record)
            else:
                out_json(session.record.to_json())

        last_words.append(say)
        try:
            session.enter(settings, peers, schedule, plans)
            session.measure_ceilings()
            session.run(work)
        finally:
            last_words.remove(say)
    return session


def new_record(settings: Settings) -> Record:
    """What is known before anything was measured."""
    import platform
    import shlex
    import sys

    from convdsl._version import __version__
    from convdsl.bench.record import Record

    return Record(
        shlex.join(["convdsl", *sys.argv[1:]]), __version__, platform.python_version(),
        platform.platform(), settings.accuracy, settings.threads,
    )  # fmt: skip


def _show(record: Record) -> None:
    from rich.console import Console

    from convdsl.bench.table import WIDTH, show

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    show(console, record)


def _write(record: Record, as_json: Path | None, page: Path | None) -> None:
    """The results, and the files in one piece."""
    import json

    from convdsl.files import Content, write_files

    files: dict[Path, Content] = {}
    if as_json is not None and str(as_json) != "-":
        text = json.dumps(record.to_json(), indent=2, allow_nan=False)
        files[as_json] = f"{text}\n".encode()
    if page is not None:
        from convdsl.bench.page import page_of

        files[page] = page_of(record).encode()
    if str(as_json) == "-":
        out_json(record.to_json())
    else:
        _show(record)
    write_files(files)
    for path in files:
        err(f"written: {path}")


def _code(session: Session) -> int:
    """Say what failed of ours; the first of it is the exit code."""
    from convdsl.cli.failure import report

    codes = []
    for name, error in session.errors:
        err(f"{name}:")
        codes.append(report(error))
    return codes[0] if codes else 0
