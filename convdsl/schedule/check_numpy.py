"""What must hold of a nest before it can be lowered to a host program, each rule with a code."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from convdsl.ir.expr import Pred
from convdsl.ir.text_expr import pred_text
from convdsl.schedule.check import refuse
from convdsl.schedule.check_workers import check_workers
from convdsl.schedule.nest import Nest, conditions_of, product_factors
from convdsl.schedule.numpy_operands import filled_operand
from convdsl.schedule.show import shown_names


def check_numpy(equation: str, nest: Nest, constants: Collection[str]) -> None:
    """CdslError for a nest that is no host program as it is mapped; `constants` are tensors."""
    for tail in nest.tails:
        if tail.policy == "pad":
            free = tail.condition.index.free
            refuse(
                equation, nest, "E0634",
                f"`tail pad` for {pred_text(tail.condition)}: nothing holds zeros there",
                next((x.name for x in reversed(nest.loops) if x.name in free), None),
                "use `tail guard`: a range ends there, and no term is computed in vain",
            )  # fmt: skip
    _check_order(equation, nest)
    check_workers(equation, nest)
    _check_products(equation, nest)
    _check_axes(equation, nest, constants)


def _check_order(equation: str, nest: Nest) -> None:
    """Host loops stand around the axes of an expression; partial sums are those of a host loop."""
    last = next((x for x in reversed(nest.loops) if x.on_host), None)
    axis = next((x for x in nest.loops if not x.on_host), None)
    if last is not None and axis is not None and nest.place(axis.name) < nest.place(last.name):
        refuse(
            equation, nest, "E0668",
            f"the {last.level} loop `{last.name}` stands inside `{axis.name}`, an axis of an expression",
            last.name, f"put it outside: `order {equation}: {last.name}, {axis.name}`",
        )  # fmt: skip
    if nest.partial is not None and nest.loop(nest.partial).level != "host":
        refuse(
            equation, nest, "E0671", f"`{nest.partial}` has partial sums, and is no host loop",
            nest.partial, f"`map {equation}: {nest.partial} -> host`",
        )  # fmt: skip


def _check_products(equation: str, nest: Nest) -> None:
    """With one gemm loop all axes are, each with a role in a product of two factors."""
    roles = [x for x in nest.loops if x.level == "gemm"]
    if not roles:
        return
    other = next((x for x in nest.loops if x.level == "slice"), None)
    if other is not None:
        refuse(
            equation, nest, "E0669", f"`{other.name}` is an axis of no matrix product", other.name,
            f"`map {equation}: {other.name} -> gemm`, or `-> host`",
        )  # fmt: skip
    pair = product_factors(nest)
    if pair is None:
        refuse(
            equation, nest, "E0669", "it is no sum of products of two operands", roles[0].name,
            f"`map {equation}: {roles[0].name} -> slice`",
        )  # fmt: skip
    a, b = (nest.depends_on(factor) for factor in pair)
    for loop in roles:
        one, two = loop.name in a, loop.name in b
        if not (one and two if loop.reduced else one or two):
            where = "both operands" if loop.reduced else "an operand"
            refuse(
                equation, nest, "E0669",
                f"`{loop.name}` has no role in a matrix product: it is not an index of {where}",
                loop.name, f"`map {equation}: {loop.name} -> host`",
            )  # fmt: skip
    if not any(x.reduced for x in roles):
        refuse(
            equation, nest, "E0669", "no summed loop is part of the matrix product", roles[0].name,
            f"map a summed loop to gemm, or `map {equation}: {shown_names([x.name for x in roles])} "
            "-> slice`",
        )  # fmt: skip


def _check_axes(equation: str, nest: Nest, constants: Collection[str]) -> None:
    """Each axis of an expression has a range of its own, but for an operand that is filled."""
    axes = {x.name for x in nest.loops if not x.on_host}
    for loop in nest.loops:
        tied = loop.extent.free & axes
        if tied and not loop.on_host:
            refuse(
                equation, nest, "E0670",
                f"the range of `{loop.name}` depends on `{min(tied)}`, an axis of the same expression",
                loop.name, f"`map {equation}: {min(tied)} -> host`",
            )  # fmt: skip
    if nest.reduction is None:
        return
    conditions = conditions_of(nest)
    filled = filled_operand(nest, conditions, constants)
    for pred in conditions:
        if filled is not None and pred in filled.conditions:
            continue
        tied = pred.index.free & axes
        plain = all(pred.index.is_affine_in([n]) for n in tied)
        if len(tied) > 1 or not plain or (tied and pred.kind != "ge"):
            refuse_condition(equation, nest, pred)


def refuse_condition(equation: str, nest: Nest, pred: Pred) -> NoReturn:
    """E0670: a condition that is no range of one axis."""
    tied = [x.name for x in nest.loops if not x.on_host and x.name in pred.index.free]
    many = len(tied) > 1
    why = f"ties the axes {shown_names(tied)}" if many else f"is no range of `{tied[0]}`"
    refuse(
        equation, nest, "E0670", f"the condition {pred_text(pred)} {why}", tied[0],
        f"`map {equation}: {tied[0]} -> host`" + (", or another of them" if many else ""),
    )  # fmt: skip
