"""`convdsl fmt`: the canonical form of files, comments kept."""

from __future__ import annotations

from pathlib import Path

import click

from convdsl.cli.output import diagnostic, err, out


@click.command("fmt", short_help="Bring files into the canonical form.")
@click.argument("files", metavar="OP.cdsl...", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if a file would change.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the result and change nothing.")
def command(files: tuple[str, ...], check: bool, to_stdout: bool) -> int:
    """Bring files into the canonical form, in place; comments stay.

    A file that is right already is not touched, nor is one that does not parse.
    """
    if check and to_stdout:
        raise click.UsageError("--check and --stdout exclude each other.")
    from convdsl.diagnostics import CdslError
    from convdsl.syntax.parser import read_source
    from convdsl.syntax.printer import format_text

    failed = changed = False
    for name in files:
        try:
            after = format_text(read_source(name), name)
            if to_stdout:
                out(after, newline=False)
            elif Path(name).read_bytes() != after.encode():
                changed = True
                if check:
                    out(f"would change {name}")
                else:
                    from convdsl.files import write_files

                    write_files({Path(name): after.encode()})
                    err(f"changed {name}")
        except CdslError as error:
            failed = True
            diagnostic(str(error))
    return int(failed or (check and changed))
