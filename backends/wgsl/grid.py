"""Grid loops as workgroup ids.

The innermost loop is x, the next one y, the rest is folded on z. Where that exceeds a limit, a
loop is split in two as evenly as it goes, so that folds follow real loop axes. With sizes that are
not known yet all workgroups are numbered in one row of rows, and those beyond the last do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod

from convdsl.backends.wgsl.module import Extent3, Limits
from convdsl.diagnostics import CdslError, InternalError
from convdsl.ir.expr import Pred, Var, ge
from convdsl.ir.index import ONE, Index, ceildiv, const, minimum, product, sym
from convdsl.ir.loop import For, Kernel, Let, Stmt, Store

AXES = ("wg_x", "wg_y", "wg_z")
"""The workgroup id, as names in a plan's values."""
NUMBER = "wg_number"
"""The number of the workgroup, counted along x and then y: only where sizes are symbolic."""


@dataclass(frozen=True, slots=True)
class GridPlan:
    """`values`: each grid variable over `AXES` and `NUMBER`. `guards`: true where there is work."""

    values: tuple[tuple[str, Index], ...]
    guards: tuple[Pred, ...]
    dispatch: Extent3


def grid_loops(kernel: Kernel) -> tuple[tuple[Var, ...], tuple[Stmt, ...]]:
    """The grid variables of a kernel, outermost first, and what is inside their loops.

    A `let` around a grid loop moves inside; bounds that name it get its value.
    """
    loops: list[Var] = []
    lets: list[Let] = []
    body = kernel.body
    while len(body) == 1 and _leads_to_grid(body[0]):
        stmt = body[0]
        if isinstance(stmt, Let):
            lets.append(stmt)
        elif isinstance(stmt, For):
            values: dict[str, Index | int] = {}
            for let in lets:
                values[let.name] = let.value.substitute(values)
            var = stmt.var
            low, high = var.low.substitute(values), var.high.substitute(values)
            if low != 0:
                raise InternalError(f"grid loop {var.name} of {kernel.name} starts at {low}")
            loops.append(Var(var.name, low, high))
            body = stmt.body
            continue
        body = body[0].body if not isinstance(body[0], Store) else ()
    for let in reversed(lets):
        body = (Let(let.name, let.value, body),)
    return tuple(loops), body


def _leads_to_grid(stmt: Stmt) -> bool:
    while isinstance(stmt, Let) and len(stmt.body) == 1:
        stmt = stmt.body[0]
    return isinstance(stmt, For) and stmt.level == "grid"


def plan_grid(kernel: Kernel, limits: Limits) -> GridPlan:
    """How the grid loops of a kernel become a dispatch."""
    loops, _ = grid_loops(kernel)
    extents = [var.high.as_int() for var in loops]
    names = [var.name for var in loops]
    if None in extents:
        return _linear(names, [var.high for var in loops], limits)
    numbers = [e for e in extents if e is not None]
    if 0 in numbers:  # never run, but the text has to be valid
        zero = tuple((name, const(0)) for name in names)
        return GridPlan(zero, (), (const(0), ONE, ONE))
    return _folded(kernel, names, numbers, limits)


def _linear(names: list[str], extents: list[Index], limits: Limits) -> GridPlan:
    most = limits.max_workgroups_per_dimension
    total = product(extents)
    place = sym(NUMBER)
    values: list[tuple[str, Index]] = []
    rest = place
    for n, (name, extent) in reversed(list(enumerate(zip(names, extents, strict=True)))):
        if extent == 0:  # no workgroup runs, whatever the others are
            extent = const(1)
        values.append((name, rest % extent if n else rest))
        rest = rest // extent
    dispatch = (minimum(total, most), ceildiv(total, most), ONE)
    return GridPlan(tuple(reversed(values)), (ge(total - place - 1),), dispatch)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A loop or a part of one: `stride` is its step in the loop variable `name`."""

    name: str
    extent: int
    stride: int


def _folded(kernel: Kernel, names: list[str], extents: list[int], limits: Limits) -> GridPlan:
    most = limits.max_workgroups_per_dimension
    pieces: list[_Piece] = []  # innermost first
    guards: list[Pred] = []
    tails: list[tuple[str, int]] = []
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        if extent <= most:
            pieces.append(_Piece(name, extent, 1))
            continue
        high, low = split(extent, most)
        pieces += [_Piece(name, low, 1), _Piece(name, high, low)]
        if high * low > extent:
            tails.append((name, extent))
    groups = _group(pieces, most)
    if groups is None:
        raise CdslError(
            "E0507",
            f"kernel {kernel.name} needs {prod(extents)} workgroups",
            notes=(
                f"{' x '.join(map(str, extents))}; at most {most} fit in each of three dimensions",
            ),
            help="use larger tiles, or split the operator over its outermost axis",
        )
    values = dict.fromkeys(names, const(0))
    for axis, group in zip(AXES, groups, strict=False):
        rest = sym(axis)
        for n, piece in enumerate(group):
            digit = rest if n == len(group) - 1 else rest % piece.extent
            values[piece.name] = values[piece.name] + digit * piece.stride
            rest = rest // piece.extent
    guards = [ge(const(extent - 1) - values[name]) for name, extent in tails]
    sizes = [prod(p.extent for p in group) for group in groups] + [1, 1, 1]
    dispatch = (const(sizes[0]), const(sizes[1]), const(sizes[2]))
    return GridPlan(tuple(values.items()), tuple(guards), dispatch)


def split(extent: int, most: int) -> tuple[int, int]:
    """The most even `(high, low)`: exact where a factor exists, else with a tail."""
    root = isqrt(extent)
    for low in range(root, 0, -1):
        if extent // low > most:
            break
        if extent % low == 0:
            return low, extent // low
    high = root if root * root == extent else root + 1
    return high, -(-extent // high)


def _group(pieces: list[_Piece], most: int) -> list[list[_Piece]] | None:
    """Pieces for x, y and z: one, one and the rest if it fits, else the most even choice."""
    count = len(pieces)
    cuts = [(min(1, count), min(2, count))]
    cuts += [(a, b) for a in range(1, count) for b in range(a, count)]
    best: tuple[int, list[list[_Piece]]] | None = None
    for n, (a, b) in enumerate(cuts):
        groups = [pieces[:a], pieces[a:b], pieces[b:]]
        largest = max(prod(p.extent for p in group) for group in groups)
        if largest <= most:
            if n == 0:
                return groups
            if best is None or largest < best[0]:
                best = (largest, groups)
    return best[1] if best is not None else None
