"""What must hold of a nest before it can be lowered: each rule with a code and the numbers."""

from __future__ import annotations

from typing import NoReturn

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.expr import Pred
from convdsl.ir.index import product
from convdsl.ir.text_expr import pred_text
from convdsl.schedule.nest import Nest
from convdsl.schedule.show import show_nest

REGISTERS = 512  # accumulators of one thread above which no GPU keeps them in registers


def check_nest(equation: str, nest: Nest) -> None:
    """CdslError E0630 to E0634 for a nest that no GPU can run as it is mapped."""
    threads = [x for x in nest.loops if x.level == "thread"]
    if not threads:
        _refuse(
            equation, nest, "E0630", "no loop of it runs on threads", None,
            f"map one or two free loops: `map {equation}: LOOP -> thread`",
        )  # fmt: skip
    if len(threads) > 3:
        _refuse(
            equation, nest, "E0630", f"{len(threads)} loops run on threads, at most 3 can",
            threads[3].name, "fuse some of them",
        )  # fmt: skip
    rest = [x for x in nest.loops if x.level not in ("grid", "thread")]
    first = next((n for n, x in enumerate(rest) if x.reduced), len(rest))
    registers = [x for x in rest[first:] if not x.reduced]
    for loop in registers:
        if loop.extent.as_int() is None:
            _refuse(
                equation, nest, "E0631",
                f"the free loop `{loop.name}` inside the sum has {loop.extent} iterations, not a number: "
                "its accumulators cannot be registers",
                loop.name, "split it by a number, or order it outside the summed loops",
            )  # fmt: skip
    count = product(x.extent for x in registers).as_int() or 1
    if count > REGISTERS:
        _refuse(
            equation, nest, "E0632",
            f"each thread would keep {count} accumulators, at most {REGISTERS} can be registers",
            registers[0].name, "split the free loops inside the sum and map a part to threads",
        )  # fmt: skip
    for loop in nest.loops:
        if loop.level == "vector" and (not rest or rest[-1].name != loop.name):
            _refuse(
                equation, nest, "E0633", f"the vector loop `{loop.name}` is not the innermost one",
                loop.name, f"order it last: `order {equation}: ..., {loop.name}`",
            )  # fmt: skip


def refuse_tail(equation: str, nest: Nest, pred: Pred, policy: str) -> NoReturn:
    """E0634: a tail that cannot be treated as it says."""
    why = {
        "cut": "no serial loop can end where it fails",
        "pad": "no operand that depends on all its loops is staged, so nothing holds zeros there",
    }[policy]
    mark = next((x.name for x in reversed(nest.loops) if x.name in pred.index.free), None)
    _refuse(
        equation, nest, "E0634", f"`tail {policy}` for {pred_text(pred)}: {why}", mark,
        "use `tail guard`",
    )  # fmt: skip


def _refuse(
    equation: str, nest: Nest, code: str, why: str, mark: str | None, help: str
) -> NoReturn:
    shown = Note(f"the loops of `{equation}` here:\n{show_nest(nest, mark)}")
    raise CdslError(code, f"the schedule of `{equation}`: {why}", notes=(shown,), help=help)
