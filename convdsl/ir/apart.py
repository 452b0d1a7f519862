"""Proof that the iterations of a loop touch no common element, so that their order does not matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convdsl.ir.atoms import Fn
from convdsl.ir.expr import Pred, Var, ge
from convdsl.ir.index import Index, sym
from convdsl.ir.interval import Interval, ranges_of
from convdsl.ir.sets import NotAffineError, Parameters, Space, TooHardError, context, limited

if TYPE_CHECKING:
    import islpy as isl

_OPERATIONS = 1_000_000  # a proof for an axis, or for blocks and phases of it, takes 1,000 to 4,000


@dataclass(frozen=True, slots=True)
class Touch:
    """An element that is stored to, or read: where, over loops and conditions inside the loop.

    `vars` begins with the variable of the loop itself; those of loops `outside`, like sizes, have one
    value in all iterations.
    """

    index: tuple[Index, ...]
    dims: tuple[Index, ...]
    outside: tuple[Var, ...]
    vars: tuple[Var, ...]
    preds: tuple[Pred, ...]
    stored: bool


def apart(touches: Sequence[Touch]) -> bool:
    """Whether no iteration stores to an element of one tensor that another iteration touches.

    False also where that is not proved. An axis that isl cannot express tells nothing, and a condition
    that it cannot express is taken to hold.
    """
    import islpy as isl

    if not any(t.stored for t in touches):
        return True
    if len({t.dims for t in touches}) > 1:
        return False
    parameters = Parameters()
    spaces = [Space((v.name for v in t.vars), parameters) for t in touches]
    axes = [
        axis
        for axis in range(len(touches[0].index))
        if all(_text(s, t.index[axis]) is not None for s, t in zip(spaces, touches, strict=True))
    ]
    texts = [_relation(s, t, axes) for s, t in zip(spaces, touches, strict=True)]
    declaration = parameters.declaration()
    images = [isl.Map(f"{declaration} -> {text}", context()) for text in texts]
    same = isl.Map(f"{declaration} -> {{ [i] -> [i] }}", context())
    try:
        with limited(_OPERATIONS):
            return _meetings(touches, images).is_subset(same)
    except TooHardError:
        return False


def _meetings(touches: Sequence[Touch], images: Sequence[isl.Map]) -> isl.Map:
    """The pairs of iterations of which one stores to what the other one touches."""
    import islpy as isl

    alone = [m.project_out(isl.dim_type.in_, 1, m.dim(isl.dim_type.in_) - 1) for m in images]
    stored = _union(m for m, t in zip(alone, touches, strict=True) if t.stored)
    return stored.apply_range(_union(alone).reverse())


def _union(maps: Iterable[isl.Map]) -> isl.Map:
    first, *rest = maps
    for other in rest:
        first = first.union(other)
    return first


def _relation(space: Space, touch: Touch, axes: Sequence[int]) -> str:
    known = ranges_of((*touch.outside, *touch.vars))
    bounds = [pred for v in touch.vars for pred in _bounds(v, known[v.name])]
    conditions = [text for p in (*bounds, *touch.preds) if (text := _pred(space, p)) is not None]
    element = ", ".join(space.index(touch.index[axis]) for axis in axes)
    return f"{{ {space.tuple()} -> [{element}] : {' and '.join(conditions) or 'true'} }}"


def _bounds(var: Var, known: Interval) -> list[Pred]:
    """The range of a variable, a condition for each argument of a maximum or minimum.

    And in numbers, for bounds that isl cannot express.
    """
    at = sym(var.name)
    out = [ge(at - low) for low in _arguments(var.low, "max")]
    out += [ge(high - 1 - at) for high in _arguments(var.high, "min")]
    low, high = known
    out += [ge(at - low)] if low is not None else []
    out += [ge(high - at)] if high is not None else []
    return out


def _arguments(index: Index, op: str) -> tuple[Index, ...]:
    match index.terms:
        case [((Fn(op=found, args=args),), 1)] if found == op:
            return args
    return (index,)


def _text(space: Space, index: Index) -> str | None:
    try:
        return space.index(index)
    except NotAffineError:
        return None


def _pred(space: Space, pred: Pred) -> str | None:
    try:
        return space.pred(pred)
    except NotAffineError:
        return None
