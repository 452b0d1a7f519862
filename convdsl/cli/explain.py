"""`convdsl explain`: what an error code means and what to do."""

from __future__ import annotations

import click

from convdsl.cli.options import json_option, suggestion
from convdsl.cli.output import out, out_json


@click.command("explain", short_help="Explain an error code.")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain an error code, like E0301; without one, list them all."""
    from convdsl.codes import CODES

    if code is None:
        if as_json:
            out_json({name: {"title": c.title, "text": c.text} for name, c in CODES.items()})
            return
        for name, known in CODES.items():
            out(f"{name}  {known.title}")
        return
    name = code.upper().removeprefix("ERROR").strip("[]: ")
    if name.removeprefix("E").isdecimal():  # 301 and E301 mean E0301
        name = "E" + name.removeprefix("E").zfill(4)
    if name not in CODES:
        raise click.BadParameter(f"There is no code '{code[:60]}'. {_closest(name)}")
    if as_json:
        out_json({"code": name, "title": CODES[name].title, "text": CODES[name].text})
    else:
        out(f"{name}: {CODES[name].title}\n\n{CODES[name].text.rstrip()}")


def _closest(name: str) -> str:
    """Codes look alike: offer the closest, or those of the same family."""
    from convdsl.codes import CODES

    family = [known for known in CODES if known[:3] == name[:3]]
    text = suggestion(name, CODES)
    if text.startswith("Did you mean") and len(name) == 5:
        return text + " `convdsl explain` lists them all."
    if family:
        return f"Codes like it go from {family[0]} to {family[-1]}."
    return "`convdsl explain` lists them all."
