"""`convdsl new`: a first text to work on."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

import click

from convdsl.cli.output import err, out

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*", re.ASCII)

SKELETON = """\
# What {name} computes, in one sentence, and what its axes count.
op {name}(
    x: f32[N, C, L],  # the signal
    w: f32[M, C, K],
    b: f32[M] = 0,  # may be left out
    stride: int = 1,
) -> y: f32[N, M, LO]
where LO == (L - K) // stride + 1,
      stride >= 1, K >= 1
{{
    # For each output point: the sum over all points at which the relation behind `|` holds.
    y[n, m, o] = b[m] + sum[c, k, l | o*stride + k == l] x[n, c, l] * w[m, c, k]
}}
"""


@click.command("new", short_help="Start a new operator.")
@click.argument("name", metavar="OP")
def command(name: str) -> None:
    """Write OP.cdsl, a text to start from; an existing file is never touched.

    Where OP is an operator that ships with convdsl, the file gets its text: conv1d, conv2d,
    conv_transpose1d, conv_transpose2d, istft, matmul, max_pool1d, softmax, vocoder_step.
    """
    from convdsl.files import create_file
    from convdsl.syntax.parser import parse

    if not _NAME.fullmatch(name) or len(name) > 100:
        raise click.BadParameter(
            f"'{name[:60]}' cannot name an operator: take letters, digits and _, a small one first."
        )
    shipped = _shipped(name)
    text = shipped if shipped is not None else SKELETON.format(name=name)
    if shipped is None:
        parse(text, f"{name}.cdsl")  # a word of the language cannot be a name
    path = Path(f"{name}.cdsl")
    create_file(path, text.encode())
    out(str(path))
    what = f"the text of the shipped operator {name}" if shipped else "a skeleton to change"
    err(f"{what}; next: convdsl check {path}, convdsl compile {path}")
    near = get_close_matches(name, _names(), 1) if shipped is None else []
    if near:
        err(f"({near[0]} ships: `convdsl new {near[0]}` would give its text)")


def _names() -> list[str]:
    """The operators that ship."""
    from importlib.resources import files

    texts = (Path(f.name) for f in files("convdsl.ops").iterdir())
    return sorted(t.stem for t in texts if t.suffix == ".cdsl")


def _shipped(name: str) -> str | None:
    from importlib.resources import files

    text = files("convdsl.ops").joinpath(f"{name}.cdsl")
    return text.read_text("utf-8") if text.is_file() else None
