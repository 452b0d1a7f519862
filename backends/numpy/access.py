"""From an access inside a nest to a NumPy view of the buffer, one axis a nest variable.

A dim with one variable is a slice, a dim with none an integer, a dim like `t*4 + r` is split into
two dims or reshaped; any other affine map is a view with computed strides. What is not affine is
gathered through index arrays. Views are right when every variable has at least one value;
`Nest.guard` collects the variables for which that has to be checked first.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from itertools import pairwise

from convdsl.backends.numpy import code
from convdsl.backends.numpy.integers import exact
from convdsl.backends.numpy.proof import Facts, divide
from convdsl.backends.numpy.scope import Scope
from convdsl.ir.expr import Access, Var
from convdsl.ir.index import ONE, ZERO, Index


class NotVector(Exception):
    """The nest is no single NumPy statement; one of `names` should become a Python loop."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


@dataclass
class Nest:
    """The variables that become array axes, and which of them may have no value."""

    scope: Scope
    vars: dict[str, Var]
    facts: Facts
    guard: set[str] = field(default_factory=set)

    def names(self, index: Index) -> list[str]:
        """Nest variables in an index, in nest order."""
        free = index.free
        return [n for n in self.vars if n in free]

    def used(self, access: Access) -> list[str]:
        free = access.free
        return [n for n in self.vars if n in free]

    def extent(self, name: str) -> Index:
        return self.vars[name].extent

    def require_values(self, names: list[str] | None = None) -> None:
        """The text is wrong unless these (all) variables have values."""
        for name in self.vars if names is None else names:
            if not self.scope.facts.nonempty(self.vars[name]):
                self.guard.add(name)

    def first(self, index: Index) -> Index:
        """The index with every nest variable at its low end."""
        return index.substitute({n: self.vars[n].low for n in self.names(index)})


@dataclass(frozen=True)
class View:
    """`base[items]`, an item a dim of `base`, whose axes are `vars`."""

    base: ast.expr
    items: tuple[ast.expr, ...]
    vars: tuple[str, ...]

    def node(self) -> ast.expr:
        items = list(self.items)
        while items and _is_full(items[-1]):
            items.pop()
        return code.subscript(self.base, items) if items else self.base

    def subscript(self) -> ast.expr:
        """A node that can be assigned to."""
        node = self.node()
        if isinstance(node, ast.Subscript):
            return node
        item = code.ellipsis() if self.items else code.sequence(())
        return code.subscript(node, [item])

    def transposed(self, order: tuple[str, ...]) -> View:
        """The axes in another order."""
        if order == self.vars:
            return self
        positions = [self.vars.index(v) for v in order]
        if len(order) == 2:
            base = code.attribute(self.node(), "T")
        else:
            base = code.method(self.node(), "transpose", *map(code.number, positions))
        return View(base, tuple(code.section() for _ in order), order)

    def aligned(self, order: tuple[str, ...]) -> ast.expr:
        """The view with the axes of `order`: extent 1 where it lacks a variable, none in front."""
        view = self.transposed(tuple(v for v in order if v in self.vars))
        items = list(view.items)
        out: list[ast.expr] = []
        for v in order:
            if v not in view.vars:
                if any(w in view.vars for w in order[: order.index(v)]):
                    out.append(code.none())
                continue
            while items and not isinstance(items[0], ast.Slice):
                out.append(items.pop(0))
            out.append(items.pop(0))
        return replace(view, items=(*out, *items)).node()


def _is_full(item: ast.expr) -> bool:
    return isinstance(item, ast.Slice) and item.lower is item.upper is item.step is None


def canonical(access: Access, nest: Nest) -> Access:
    """Without unit dims, and with dims split where the index is mixed radix."""
    index, dims = [], []
    for i, d in zip(access.index, access.dims, strict=True):
        if d.as_int() != 1:
            for i2, d2 in _split(i, d, nest):
                index.append(i2)
                dims.append(d2)
    return Access(access.tensor, tuple(index), tuple(dims))


def _split(index: Index, extent: Index, nest: Nest) -> list[tuple[Index, Index]]:
    """`t*4 + r` in 0..N*4 is (t, r) in 0..N, 0..4 when r is surely in 0..4."""
    names = nest.names(index)
    if len(names) < 2 or not index.is_affine_in(names):
        return [(index, extent)]
    for step in radices(index, names, nest.facts):
        outer_extent = exact(nest.facts.expand(extent), step)
        if step == ONE or outer_extent is None:
            continue
        outer, inner = divide(index, step)
        if not nest.names(outer) or not nest.names(inner):
            continue
        if nest.facts.holds(inner) and nest.facts.holds(step - 1 - inner):
            return [*_split(outer, outer_extent, nest), *_split(inner, step, nest)]
    return [(index, extent)]


def radices(index: Index, names: list[str], facts: Facts) -> list[Index]:
    """The coefficients of the nest variables, probably from the largest down."""
    factors = dict.fromkeys(index.coefficient(n) for n in names)
    return sorted(factors, key=lambda f: -abs(facts.guess(f)))


def view(access: Access, nest: Nest) -> View:
    """The view of an affine access; NotVector names the variables of another index."""
    used = nest.used(access)
    crooked = [i for i in access.index if not i.is_affine_in(used)]
    if crooked:
        raise NotVector(frozenset().union(*(nest.names(i) for i in crooked)))
    access = canonical(access, nest)
    base = nest.scope.array(access)
    dims = [nest.names(i) for i in access.index]
    flat = [n for names in dims for n in names]
    if len(set(flat)) < len(flat):
        return _strided(access, base, nest)
    items: list[ast.expr] = []
    flips, splits = set[str](), False
    order: list[str] = []
    for index, extent, names in zip(access.index, access.dims, dims, strict=True):
        if not names:
            if not (nest.scope.facts.holds(index) and nest.scope.facts.holds(extent - 1 - index)):
                nest.require_values()
            items.append(nest.scope.integer(index))
            continue
        steps = [(index.coefficient(n), n) for n in names]
        if len(names) == 1 and nest.facts.positive(-steps[0][0]):
            flips.add(names[0])
            low, step = nest.first(index) + steps[0][0] * (nest.extent(names[0]) - 1), -steps[0][0]
            span, ordered = step * nest.extent(names[0]), names
        else:
            found = _radix(steps, nest)
            if found is None:
                return _strided(access, base, nest)
            ordered, step, span = found
            low = nest.first(index)
        splits = splits or len(names) > 1
        order += ordered
        items.append(_slice(low, low + span, step, extent, names, nest))
    result = View(base, tuple(items), tuple(order))
    if splits:
        extents = [nest.scope.integer(nest.extent(n)) for n in order]
        base = code.method(result.node(), "reshape", *extents)
        result = View(base, tuple(code.section() for _ in order), tuple(order))
    if flips:
        turned = [
            code.section(step=code.number(-1)) if n in flips else code.section() for n in order
        ]
        result = View(result.node(), tuple(turned), tuple(order))
    return result


def _radix(steps: list[tuple[Index, str]], nest: Nest) -> tuple[list[str], Index, Index] | None:
    """(names from slowest, step, span) when the variables cover an arithmetic progression."""
    steps = sorted(steps, key=lambda s: -nest.facts.guess(s[0]))
    for (factor, _), (inner, name) in pairwise(steps):
        if not nest.facts.equal(factor, inner * nest.extent(name)):
            return None
    if not nest.facts.positive(steps[-1][0]):
        return None
    names = [n for _, n in steps]
    return names, steps[-1][0], steps[0][0] * nest.extent(names[0])


def _slice(
    low: Index, stop: Index, step: Index, extent: Index, names: list[str], nest: Nest
) -> ast.expr:
    """`low:stop:step`, ends left out where they are those of the dim."""
    facts = nest.scope.facts
    nest.require_values([n for n in names if not facts.holds(nest.extent(n))])
    if not (facts.holds(low) and facts.holds(extent - 1 - (stop - step))):
        nest.require_values()
    integer = nest.scope.integer
    whole = facts.holds(stop - extent)
    return code.section(
        None if facts.expand(low) == ZERO else integer(low),
        None if whole else integer(stop),
        None if step == ONE else integer(step),
    )


def _strided(access: Access, base: ast.expr, nest: Nest) -> View:
    """Any affine map, as a view with computed strides."""
    nest.require_values()
    scope = nest.scope
    order = nest.used(access)
    start = code.sequence(scope.integer(nest.first(i)) for i in access.index)
    shape = code.sequence(scope.integer(nest.extent(n)) for n in order)
    steps = code.sequence(
        code.sequence(scope.integer(i.coefficient(n)) for i in access.index) for n in order
    )
    node = code.call(scope.helper("_strided"), base, start, shape, steps)
    return View(node, tuple(code.section() for _ in order), tuple(order))


def arange(name: str, order: tuple[str, ...], nest: Nest) -> ast.expr:
    """The values of a nest variable along its axis of `order`."""
    var, scope = nest.vars[name], nest.scope
    bounds = [scope.integer(var.high)]
    if scope.facts.expand(var.low) != ZERO:
        bounds.insert(0, scope.integer(var.low))
    node = code.call(code.np("arange"), *bounds)
    after = len(order) - order.index(name) - 1
    if not after:
        return node
    return code.subscript(node, [code.section(), *(code.none() for _ in range(after))])
