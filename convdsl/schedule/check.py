"""What must hold of a nest before it can be lowered: each rule with a code and the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.expr import Pred
from convdsl.ir.index import product
from convdsl.ir.text_expr import pred_text
from convdsl.schedule.extents import extent_of, moving_loops
from convdsl.schedule.filling import WRITTEN_OUT, steps_of
from convdsl.schedule.nest import Loop, Nest, conditions_of
from convdsl.schedule.show import show_nest, shown_names

REGISTERS = 512  # accumulators of one thread above which no GPU keeps them in registers
TILE = 65536  # elements of a tile above which no GPU has the workgroup memory
WRITTEN = 4096  # copies of a statement above which unrolled text is of no use to anybody


def check_nest(equation: str, nest: Nest) -> None:
    """CdslError E0630 to E0642 for a nest that no GPU can run as it is mapped."""
    if nest.empty:
        return
    nest = nest.settled
    threads = [x for x in nest.loops if x.level == "thread"]
    rest = [x for x in nest.loops if x.level not in ("grid", "thread")]
    first = next((n for n, x in enumerate(rest) if x.reduced), len(rest))
    _check_threads(equation, nest, threads)
    _check_registers(equation, nest, [x for x in rest[first:] if not x.reduced])
    _check_written_out(equation, nest, rest)
    _check_tiles(equation, nest, threads)
    _check_workgroup(equation, nest, rest[first:], threads)


def _check_threads(equation: str, nest: Nest, threads: Sequence[Loop]) -> None:
    """One to three loops run on threads; a result without axes needs none."""
    free = [x.name for x in nest.loops if not x.reduced]
    if not threads and free:
        refuse(
            equation, nest, "E0630", "no loop of it runs on threads", None,
            f"map one to three of its free loops ({shown_names(free)}): "
            f"`map {equation}: {free[-1]} -> thread`",
        )  # fmt: skip
    if len(threads) > 3:
        refuse(
            equation, nest, "E0630", f"{len(threads)} loops run on threads, at most 3 can",
            threads[3].name, "fuse some of them before they are mapped",
        )  # fmt: skip


def _check_registers(equation: str, nest: Nest, registers: Sequence[Loop]) -> None:
    """Free loops inside the sum are accumulators: a number of them, and not too many."""
    for loop in registers:
        if loop.extent.as_int() is None:
            refuse(
                equation, nest, "E0631",
                f"the free loop `{loop.name}` inside the sum has {loop.extent} iterations, not a "
                "number: its accumulators cannot be registers",
                loop.name, "split it by a number, or order it outside the summed loops",
            )  # fmt: skip
    count = product(x.extent for x in registers).as_int()
    if count is not None and count > REGISTERS:
        refuse(
            equation, nest, "E0632",
            f"each thread would keep {count} accumulators, at most {REGISTERS} can be registers",
            registers[0].name, "split the free loops inside the sum and map a part to threads",
        )  # fmt: skip


def _check_written_out(equation: str, nest: Nest, rest: Sequence[Loop]) -> None:
    """A vector loop is innermost; unrolled loops together leave a text that can be read."""
    for loop in rest:
        if loop.level == "vector" and rest[-1].name != loop.name:
            refuse(
                equation, nest, "E0633", f"the vector loop `{loop.name}` is not the innermost one",
                loop.name, f"order it last: `order {equation}: {rest[-1].name}, {loop.name}`"
                if rest[-1].level != "vector" else "vectorize one loop only",
            )  # fmt: skip
    unrolled = [x for x in rest if x.level == "unroll"]
    count = product(x.extent for x in unrolled).as_int()
    if count is not None and count > WRITTEN:
        refuse(
            equation, nest, "E0618",
            f"the unrolled loops together write {count} copies, at most {WRITTEN} are allowed",
            unrolled[0].name, "unroll fewer loops",
        )  # fmt: skip


def _check_tiles(equation: str, nest: Nest, threads: Sequence[Loop]) -> None:
    """A copy has a number of elements, which registers or a workgroup can hold."""
    for stage in nest.stages:
        for loop in moving_loops(nest, stage, threads):
            if not loop.extent.as_int():
                refuse(
                    equation, nest, "E0641",
                    f"`{stage.operand}` is staged at `{stage.at}`, and the loop `{loop.name}` inside "
                    f"has {loop.extent} iterations: the copy needs a number above 0",
                    loop.name, "split that loop by a number, and stage at its outer part",
                )  # fmt: skip
        extent = extent_of(nest, stage, threads, conditions_of(nest))
        count = product(x.extent for x in extent.loops).as_int() or 1
        most = TILE if stage.memory == "workgroup" else REGISTERS
        if count > most:
            refuse(
                equation, nest, "E0642",
                f"the copy of `{stage.operand}` in {stage.memory} memory has {count} elements, "
                f"at most {most} can be held",
                stage.at, "stage it further inside, or split the loops inside",
            )  # fmt: skip
        steps = steps_of(extent, threads)
        if stage.ahead and steps > WRITTEN_OUT:
            refuse(
                equation, nest, "E0645",
                f"a thread would read {steps} parts of the tile of `{stage.operand}` ahead, at most "
                f"{WRITTEN_OUT} can be registers",
                stage.at, "stage a smaller tile, or map more loops to threads",
            )  # fmt: skip


def _check_workgroup(
    equation: str, nest: Nest, inner: Sequence[Loop], threads: Sequence[Loop]
) -> None:
    """Loops around a tile are run by all threads together, so none of them knows its thread."""
    marks = {s.at for s in nest.stages if s.memory == "workgroup"}
    if not marks:
        return
    marks |= {nest.partial} if nest.partial is not None else set()
    deep = max((n for n, x in enumerate(inner) if x.name in marks), default=-1)
    for loop in inner[: deep + 1]:
        own = nest.around(loop) & {x.name for x in threads}
        if own:
            refuse(
                equation, nest, "E0640",
                f"all threads run `{loop.name}` together, around a tile, but its extent depends on "
                f"the thread loop `{min(own)}`",
                loop.name, "stage in registers, or use `phases` instead of `gather`",
            )  # fmt: skip


def refuse_tail(equation: str, nest: Nest, pred: Pred, policy: str) -> NoReturn:
    """E0634: a tail that cannot be treated as it says."""
    why = {
        "cut": "no serial loop can end where it fails",
        "pad": "an operand that depends on its loops is not staged, so nothing holds zeros there",
    }[policy]
    mark = next((x.name for x in reversed(nest.loops) if x.name in pred.index.free), None)
    refuse(
        equation, nest, "E0634", f"`tail {policy}` for {pred_text(pred)}: {why}", mark,
        "use `tail guard`" if policy == "cut" else "stage all operands of the sum, or use `tail guard`",
    )  # fmt: skip


def refuse(equation: str, nest: Nest, code: str, why: str, mark: str | None, help: str) -> NoReturn:
    """Raise the error of a rule, at the last step that changed the nest."""
    shown = Note(f"the loops of `{equation}` here:\n{show_nest(nest, mark)}")
    text = f"the schedule of `{equation}`: {why}"
    raise CdslError(code, text, nest.span, notes=(shown,), help=help)
