"""The group of commands; each is imported when it is used."""

from __future__ import annotations

from importlib import import_module

import click

from convdsl._version import __version__

# The command's module in this package, and its line in `convdsl --help`.
COMMANDS = {
    "compile": ("compile", "Make WGSL or NumPy from an operator."),
    "run": ("run", "Run an operator on .npy files or random data."),
    "show": ("show", "Show the loops that a schedule makes."),
    "bench": ("bench", "Measure operators beside other libraries."),
    "check": ("check", "Check files and warn of what looks unintended."),
    "fmt": ("fmt", "Bring files into the canonical form."),
    "explain": ("explain", "Explain an error code."),
    "devices": ("devices", "List the devices that WGSL can run on."),
    "new": ("new", "Start a new operator."),
}


class Commands(click.Group):
    """A group whose help needs none of its commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"convdsl.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from convdsl.cli.options import suggestion

            ctx.fail(f"There is no command '{name}'. {suggestion(name, COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`convdsl COMMAND --help` says more of a command.",
)
@click.version_option(__version__, prog_name="convdsl", message="%(prog)s %(version)s")
def app() -> None:
    """State a tensor operator once, in mathematical notation; get fast WGSL and fast NumPy."""
