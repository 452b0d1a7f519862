"""What one iteration of a loop reads of a tensor, as a box: for tensors that are computed there.

for t in 0..T/8                       reads col[l] with l = t*8 + ti - j, ti in 0..8, j in 0..3:
  for j, ti                           l in t*8 - 2 .. t*8 + 8
    y[t*8 + ti] += col[t*8 + ti - j]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from convdsl.ir.expr import Var, ge, loads
from convdsl.ir.index import Index, const, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.schedule.nest import Loop, Nest


@dataclass(frozen=True, slots=True)
class Region:
    """`extent` elements of an axis from `low` on; `inside`: surely all of them elements of the axis."""

    low: Index
    extent: Index
    inside: bool = False

    @property
    def single(self) -> bool:
        """One element of the axis."""
        return self.inside and self.extent == 1


def region_of(
    nest: Nest, tensor: str, at: str | None, limits: Mapping[str, Region]
) -> list[Region | None]:
    """For each axis of a tensor what one iteration of the loop `at` reads; None for all of it.

    Without `at` it is what all of the nest reads. All reads must see the tensor with the same axes.
    `limits` are the parts of its loops that a nest runs over which itself makes a part of a tensor only.
    """
    inner = nest.loops if at is None else nest.loops[nest.place(at) + 1 :]
    reads = [load.access for load in loads(nest.piece.value) if load.access.tensor == tensor]
    out: list[Region | None] = []
    for axis, dim in enumerate(reads[0].dims):
        found = {_range(nest.put(read.index[axis]), inner, limits) for read in reads}
        region = found.pop() if len(found) == 1 else None
        if region is None or _whole(region, dim, nest, limits):
            out.append(None)
        else:
            same = region in limits.values()
            out.append(region if same else replace(region, inside=_inside(region, dim, nest)))
    return out


def _range(index: Index, inner: tuple[Loop, ...], limits: Mapping[str, Region]) -> Region | None:
    for loop in inner:
        if index == sym(loop.name) and loop.name in limits:
            return limits[loop.name]
    low = high = index
    for loop in reversed(inner):
        if not (low.is_affine_in([loop.name]) and high.is_affine_in([loop.name])):
            return None
        part = limits.get(loop.name, Region(const(0), loop.extent))
        low, high = _least(low, loop, part, True), _least(high, loop, part, False)
        if loop.name in low.free | high.free:
            return None
    return Region(low, high - low + 1)


def _least(index: Index, loop: Loop, part: Region, least: bool) -> Index:
    """The index at the end of a part of the loop where it is least (or greatest), where known."""
    step = index.coefficient(loop.name).as_int()
    if step is None or step == 0:
        return index
    last = part.low + part.extent - 1
    return index.substitute({loop.name: part.low if (step > 0) == least else last})


def _whole(region: Region, dim: Index, nest: Nest, limits: Mapping[str, Region]) -> bool:
    """Whether the region is the whole axis, or of a length that is not the same in each iteration."""
    every = {x.name for x in nest.loops}.union(*(r.low.free for r in limits.values()))
    if region.extent.free & every or not region.low.free & every:
        return True
    length, axis = region.extent.as_int(), dim.as_int()
    return length is not None and axis is not None and length >= axis


def _inside(region: Region, dim: Index, nest: Nest) -> bool:
    """Whether the region never leaves the axis."""
    if any(region == Region(sym(x.name), const(1)) and x.extent == dim for x in nest.loops):
        return True
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    ends = region.low, dim - region.low - region.extent
    return all(always(ge(end), known) for end in ends)
