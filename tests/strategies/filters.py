"""Draws sums of products under relations of an output, a data and a tap index: filters of any kind."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.syntax import ast
from tests.strategies.head import VOLUME, Head
from tests.strategies.trees import HERE, Index, binary, integer, number, ref

Scope = tuple[Index, ...]
# (data, tap): a stride and a dilation, some of them with a common factor, some negative.
_STEPS = (
    (1, 1), (2, 1), (3, 1), (5, 1), (1, 2), (2, 2), (3, 2), (2, 3), (4, 2), (6, 4), (4, 6), (2, 4),
    (-1, 1), (1, -1), (-2, 1), (2, -1), (-3, 2), (3, -2), (-4, -2), (4, -6),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filter:
    """What is bound, how it is related, and the indices of the two factors."""

    bound: Scope
    relations: tuple[ast.Relation, ...]
    data: Scope
    taps: Scope


def draw_filter(head: Head, scope: Scope, readable: Scope) -> Filter | None:
    """One relation or two, each with an output index of its own; None where there is no room."""
    bound: list[Index] = []
    relations: list[ast.Relation] = []
    x: list[Index] = []
    w: list[Index] = []
    outputs = [i for i in scope if i.low is None]
    for _ in range(2 if head.chance(25) else 1):
        if not outputs:
            break
        output = outputs.pop(head.number(0, len(outputs) - 1))
        data = _fresh(head, (*scope, *bound))
        tap = _fresh(head, (*scope, *bound, data))
        if head.volume((*scope, *bound, data, tap)) > VOLUME:
            break
        bound += [data, tap]
        x.append(data)
        w.append(tap)
        relations.append(_relation(head, output, data, tap))
    if not relations:
        return None
    for _ in range(head.number(0, 2)):  # channels
        channel = _fresh(head, (*scope, *bound))
        if head.volume((*scope, *bound, channel)) <= VOLUME:
            bound.insert(head.number(0, len(bound)), channel)
            x.append(channel)
            w.append(channel)
    for index in readable:
        alone = _stands(index, relations) and not head.chance(15)
        role = 0 if alone else head.number(1, 3)
        x += [index] if role in (1, 3) else []
        w += [index] if role in (2, 3) else []
    return Filter(tuple(bound), tuple(relations), tuple(x), tuple(w))


def _fresh(head: Head, scope: Scope) -> Index:
    return Index(head.index_name(scope), head.extent())


def _stands(index: Index, relations: list[ast.Relation]) -> bool:
    text = repr(relations)
    return f"Ref(name={index.name!r})" in text


def _relation(head: Head, output: Index, data: Index, tap: Index) -> ast.Relation:
    """`data*a + tap*b == output + pad`, or `output*a + tap*b == data + pad`, sides changed at times."""
    a, b = head.pick(_STEPS)
    first, alone = (data, output) if head.chance(65) else (output, data)
    # At times there is no unit coefficient anywhere.
    own = head.pick([2, 3, -2]) if head.chance(10) else head.pick([1, 1, 1, -1])
    left = binary("+", _times(head, first, a), _times(head, tap, b))
    right: ast.Expr = _times(head, alone, own)
    pad = head.number(-4, 6)
    if pad:
        name = head.parameter(pad) if head.chance(40) else None
        right = binary("+", right, number(pad) if name is None else ref(name))
    if head.chance(30):
        left, right = right, left  # type: ignore[assignment]
    return ast.Relation(left, right, HERE)


def _times(head: Head, index: Index, factor: int) -> ast.Expr:
    if factor == 1:
        return ref(index.name)
    name = head.parameter(factor) if head.chance(40) else None
    tree = number(factor) if name is None else ref(name)
    sizes = [n for n in head.sizes if integer(ref(n), head.environments[0]) == factor]
    if sizes and head.chance(15):  # a size as a coefficient: `l*C + c == q`
        tree = ref(sizes[0])
    return binary("*", ref(index.name), tree)
