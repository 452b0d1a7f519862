"""The pictures of every piece whose loops are arranged, with what they show in words and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convdsl.ir.index import product
from convdsl.ir.loop import LoopProgram
from convdsl.lowering.tiling import Tiling, tiling_of
from convdsl.report.markup import Child, Markup, tag
from convdsl.report.pictures import group_picture, product_picture, sum_picture
from convdsl.report.steps import Shot
from convdsl.schedule.nest import Nest

if TYPE_CHECKING:
    from convdsl.ir.loop import Kernel as Loops
    from convdsl.kernel import Kernel

TIMES = " \N{MULTIPLICATION SIGN} "
_BYTES = {"f32": 4, "f16": 2, "i32": 4}


def figures(kernel: Kernel, last: Shot) -> list[Markup]:
    """For each piece a heading, facts and pictures."""
    program = kernel.executable.trace.steps["lower"]
    assert isinstance(program, LoopProgram)
    host = last.state.target == "numpy"
    memory = dict(zip(last.state.pieces(), map(_tile_bytes, program.kernels), strict=False))
    out: list[Markup] = []
    for name in last.state.pieces():
        nest = last.state.nests.get(name)
        out.append(tag("h3", tag("code", name)))
        if nest is None:
            plain = "Slices over the taps." if host else "Every thread computes one result."
            out.append(tag("p", plain, class_="soft"))
        else:
            tiling = tiling_of(nest)
            facts = _host_facts(nest, tiling) if host else _facts(nest, tiling, memory[name])
            shown = [tag("div", tag("dt", what), tag("dd", text)) for what, text in facts.items()]
            out.append(tag("dl", *shown, class_="facts"))
            out.append(_figures(name, nest, tiling, host))
    return out


def _tile_bytes(loops: Loops) -> int:
    """The workgroup memory of a kernel."""
    tiles = [b for b in loops.locals if b.memory == "workgroup"]
    return sum((b.elements * _BYTES[b.dtype]).as_int() or 0 for b in tiles)


def _host_facts(nest: Nest, tiling: Tiling) -> dict[str, str]:
    hosts = [str(x.extent) for x in nest.loops if x.on_host]
    workers = [str(x.extent) for x in nest.loops if x.level == "worker"]
    inside = product(x.extent for x in nest.loops if x.reduced and not x.on_host)
    shared = {"of these on several threads": TIMES.join(workers)} if workers else {}
    return {
        "host iterations": TIMES.join(hosts) or "1",
        **shared,
        "results of an expression": f"{tiling.rows.tile}{TIMES}{tiling.columns.tile}",
        "terms of an expression": str(inside),
    }


def _facts(nest: Nest, tiling: Tiling, used: int) -> dict[str, str]:
    grid = [str(x.extent) for x in nest.loops if x.level == "grid"]
    threads = [str(x.extent) for x in nest.loops if x.level == "thread"]
    facts = {
        "workgroups": TIMES.join(grid) or "1",
        "threads in each": TIMES.join(threads)
        + (f" = {tiling.threads}" if len(threads) > 1 else ""),
        "results of a workgroup": f"{tiling.rows.tile}{TIMES}{tiling.columns.tile}",
        "results of a thread": f"{tiling.rows.own}{TIMES}{tiling.columns.own}",
        "workgroup memory": f"{used / 1024:.4g} KiB" if used else "none",
    }
    if tiling.depth is not None:
        facts["terms staged at a time"] = str(tiling.depth)
    return facts


def _figures(name: str, nest: Nest, tiling: Tiling, host: bool) -> Markup:
    result = nest.piece.access.tensor
    shown = [
        tag(
            "figure", product_picture(tiling, result), tag("figcaption", *_of_product(tiling, host))
        )
    ]
    group = None if host else group_picture(tiling)
    if group is not None:
        shown.append(tag("figure", group, tag("figcaption", *_of_group(tiling))))
    summed = sum_picture(nest)
    if summed is not None:
        shown.append(tag("figure", summed, tag("figcaption", *_of_sum(tiling))))
    return tag("div", *shown, class_="figures", aria_label=name)


def _of_product(tiling: Tiling, host: bool) -> list[Child]:
    who = "One expression" if host else "One workgroup"
    tiles = f"{tiling.rows.tile}{TIMES}{tiling.columns.tile}"
    out: list[Child] = [
        tag("b", "The result"), " in tiles. ", _key("mine"), f"{who} computes ",
        f"{tiles} results",
    ]  # fmt: skip
    names = [n for n in (tiling.a, tiling.b) if n]
    if names:
        out += [" from ", _key("band"), f"its part of {' and '.join(dict.fromkeys(names))}"]
    if tiling.depth is not None:
        out += [", ", _key("staged"), f"{tiling.depth} terms at a time"]
    return [*out, ". Terms are not to scale."]


def _of_group(tiling: Tiling) -> list[Child]:
    own = f"{tiling.rows.own}{TIMES}{tiling.columns.own}"
    return [
        tag("b", "One workgroup."), f" {tiling.threads} threads; each keeps {own} results in ",
        "registers: ", _key("mine"), "the first thread, ", _key("other"), "its neighbour.",
    ]  # fmt: skip


def _of_sum(tiling: Tiling) -> list[Child]:
    out: list[Child] = [
        tag("b", "The sum"),
        f" of {tiling.terms.extent} terms, loop by loop; ",
    ]
    out += ["one iteration of each is opened below it."]
    if tiling.depth is not None:
        out += [" ", _key("staged"), "Here operands are copied to workgroup memory."]
    if tiling.block is not None:
        out += [f" Every {tiling.block} terms the partial sums are added to the total."]
    return out


def _key(kind: str) -> Markup:
    return tag("span", "", class_=f"key k-{kind}")
