"""The state that loop verbs act on: one piece of an equation as a nest of named loops.

    nest  = piece, loop*, digit*, values, tail*, stage*, partial?, swizzle?
    loop  = name, extent, reduced?, level
    tail  = condition, policy
    stage = operand, at, memory, pad, ahead?, interior?

A fresh nest has one loop for each variable of the piece, free ones outside, reduced ones inside: serial
ones for WGSL, axes of one NumPy expression for NumPy.
Verbs replace loops by others; `values` keeps each variable of the piece as an expression of the loops,
and the tails say which iterations are none of the piece's. So a nest means the same as its piece,
whatever the verbs did; `convdsl.schedule.lower` turns it into loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from convdsl.diagnostics import Span
from convdsl.ir.atoms import Sym
from convdsl.ir.equation import Piece
from convdsl.ir.expr import Binary, Expr, Pred, Reduce, free_names, loads
from convdsl.ir.index import Index, const, sym
from convdsl.ir.loop import Level
from convdsl.passes.contraction import flat_factors, two_factors
from convdsl.passes.guards import read_guards
from convdsl.passes.names import Names
from convdsl.passes.phases import the_reduction
from convdsl.passes.relation import linear
from convdsl.schedule.rejoin import rejoin
from convdsl.schedule.swizzle import Swizzle

Target = Literal["wgsl", "numpy"]
Place = Level | Literal["gemm"]
Memory = Literal["workgroup", "register"]
Policy = Literal["guard", "cut", "pad"]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop from 0 to `extent`, which may depend on loops around it.

    `level` says where it runs; `gemm` is a role of a matrix product, which one its indices decide.
    """

    name: str
    extent: Index
    reduced: bool
    level: Place = "serial"

    @property
    def level_in_ir(self) -> Level:
        """The level in loop IR, of a loop that is not part of a matrix product."""
        assert self.level != "gemm", "its role is decided when it is lowered"
        return self.level

    @property
    def on_host(self) -> bool:
        """Whether Python runs it, on one thread or several."""
        return self.level in ("host", "worker")


@dataclass(frozen=True, slots=True)
class Tail:
    """An iteration counts only where `condition` holds.

    `guard` tests it, `cut` ends the loop before it fails, `pad` runs on over zeros in staged operands
    and tests it only where the result is stored.
    """

    condition: Pred
    policy: Policy


@dataclass(frozen=True, slots=True)
class Stage:
    """A copy of an operand in faster memory, refilled in every iteration of the loop `at`.

    `ahead`: what fills it is read an iteration earlier. `interior`: conditions are tested for a whole
    tile at once where they hold.
    """

    operand: str
    at: str
    memory: Memory
    pad: int = 0
    ahead: bool = False
    interior: bool = False

    @property
    def name(self) -> str:
        """The operand as a part of names."""
        return self.operand.replace(".", "_")


@dataclass(frozen=True, slots=True)
class Nest:
    """A scheduled piece. `digits` lists the loops in the order in which they make up the variables.

    `units` are loops of one iteration that no operand and no result depends on. `span` is the line of
    the last step that changed it.
    """

    piece: Piece
    loops: tuple[Loop, ...]
    digits: tuple[str, ...]
    values: Mapping[str, Index]
    tails: tuple[Tail, ...] = ()
    stages: tuple[Stage, ...] = ()
    partial: str | None = None
    swizzle: Swizzle | None = None
    units: frozenset[str] = frozenset()
    span: Span | None = field(default=None, compare=False, repr=False)

    def loop(self, name: str) -> Loop:
        return next(x for x in self.loops if x.name == name)

    def has(self, name: str) -> bool:
        return any(x.name == name for x in self.loops)

    def place(self, name: str) -> int:
        return [x.name for x in self.loops].index(name)

    @property
    def reduction(self) -> Reduce | None:
        return the_reduction(self.piece.value)

    def names(self) -> Names:
        """Fresh names beside those of the nest."""
        return Names(self.taken)

    @property
    def taken(self) -> set[str]:
        """The names of its loops and variables."""
        return {x.name for x in self.loops} | set(self.values)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do: some loop has no iterations."""
        # The extent of a sum that ends before it begins is negative.
        known = [x.extent.as_int() for x in self.loops]
        return any(n is not None and n <= 0 for n in known)

    def around(self, loop: Loop) -> frozenset[str]:
        """The loops that the extent of a loop depends on: they must stay around it."""
        free = loop.extent.free
        return frozenset(x.name for x in self.loops if x.name in free)

    @property
    def idle(self) -> frozenset[str]:
        """The loops of one iteration that mean nothing wherever they stand."""
        marks = {s.at for s in self.stages} | {self.partial}
        marks |= set(self.swizzle.loops) if self.swizzle is not None else set()
        return frozenset(x.name for x in self.loops if x.name in self.units) - marks

    @property
    def settled(self) -> Nest:
        """The nest without its idle loops; but one loop on threads stays."""
        idle, threads = self.idle, [x.name for x in self.loops if x.level == "thread"]
        kept = set(threads[:1]) if set(threads) <= idle else set()
        nest = self
        for name in idle - kept:
            nest = nest.fixed(name, const(0))
        return nest

    @property
    def weight(self) -> int:
        """How long its index expressions are, in names."""
        indices = [
            *self.values.values(),
            *(t.condition.index for t in self.tails),
            *(x.extent for x in self.loops),
        ]
        return sum(_weight(i) for i in indices)

    def replaced(
        self, gone: tuple[str, ...], made: tuple[Loop, ...], values: Mapping[str, Index]
    ) -> Nest:
        """Loops replaced by others in the place of the first; `values` gives the old by the new."""

        def put(index: Index) -> Index:
            return rejoin(index.substitute(values))

        at, where = self.place(gone[0]), self.digits.index(gone[0])
        loops = [replace(x, extent=put(x.extent)) for x in self.loops if x.name not in gone]
        loops[at:at] = made
        digits = [d for d in self.digits if d not in gone]
        digits[where:where] = [x.name for x in made]
        return replace(
            self,
            loops=tuple(loops),
            digits=tuple(digits),
            values={n: put(v) for n, v in self.values.items()},
            tails=tuple(
                replace(t, condition=Pred(t.condition.kind, put(t.condition.index)))
                for t in self.tails
            ),
        )

    def with_level(self, name: str, level: Place) -> Nest:
        loops = tuple(replace(x, level=level) if x.name == name else x for x in self.loops)
        return replace(self, loops=loops)

    def put(self, index: Index) -> Index:
        """An index over the piece's variables in terms of the loops."""
        return rejoin(index.substitute(self.values))

    def fixed(self, name: str, value: Index) -> Nest:
        """The nest with one iteration of a loop."""
        return self.replaced((name,), (), {name: value})

    def renamed(self, names: Mapping[str, str]) -> Nest:
        """The nest with some loops called otherwise."""
        values = {old: sym(new) for old, new in names.items()}

        def put(index: Index) -> Index:
            return index.substitute(values)

        return replace(
            self,
            loops=tuple(
                replace(x, name=names.get(x.name, x.name), extent=put(x.extent)) for x in self.loops
            ),
            digits=tuple(names.get(d, d) for d in self.digits),
            values={n: put(v) for n, v in self.values.items()},
            tails=tuple(
                replace(t, condition=Pred(t.condition.kind, put(t.condition.index)))
                for t in self.tails
            ),
            stages=tuple(replace(s, at=names.get(s.at, s.at)) for s in self.stages),
            partial=None if self.partial is None else names.get(self.partial, self.partial),
        )

    def neighbours(self, names: tuple[str, ...]) -> Nest | None:
        """The nest with idle loops out of the way of these; None where others stand between them."""
        idle = self.idle
        real = tuple(n for n in names if n not in idle)
        if not real:
            real = names[:1]
        others = [x.name for x in self.loops if x.name not in idle or x.name in real]
        first = others.index(real[0])
        if tuple(others[first : first + len(real)]) != real:
            return None
        rest = [x for x in self.loops if x.name not in names]
        at = sum(x.name not in names for x in self.loops[: self.place(real[0])])
        loops = (*rest[:at], *(self.loop(n) for n in names), *rest[at:])
        return replace(self, loops=loops)

    def depends_on(self, value: Expr) -> frozenset[str]:
        """The loops that an expression over the piece's variables depends on."""
        used = [self.values[n].free for n in free_names(value) if n in self.values]
        return frozenset().union(*used) & {x.name for x in self.loops}


def nest_of(piece: Piece, target: Target = "wgsl") -> Nest:
    """The plain nest of a piece whose reduction, if it has one, is solved and dense.

    For WGSL variables of extent one have loops too, so that steps may name them at any size.
    """
    reduction = the_reduction(piece.value)
    level: Place = "slice" if target == "numpy" else "serial"
    loops: list[Loop] = []
    values: dict[str, Index] = {}
    for var in (*piece.vars, *(reduction.vars if reduction is not None else ())):
        low, high = var.low.substitute(values), var.high.substitute(values)
        loops.append(Loop(var.name, high - low, len(loops) >= len(piece.vars), level))
        values[var.name] = sym(var.name) + low
    found = Nest(piece, tuple(loops), tuple(x.name for x in loops), values)
    return _with_units(found, piece, reduction) if target == "wgsl" else found


def _with_units(nest: Nest, piece: Piece, reduction: Reduce | None) -> Nest:
    """The nest with a loop for each variable of extent one, in the place that it had."""
    loops, values = list(nest.loops), dict(nest.values)
    free = [(u, False) for u in piece.units]
    summed = [(u, True) for u in (reduction.units if reduction is not None else ())]
    for unit, reduced in (*free, *summed):
        if unit.name in values:
            continue
        first = next((n for n, x in enumerate(loops) if x.reduced), len(loops)) if reduced else 0
        before = [n for n, x in enumerate(loops) if x.name == unit.after and x.reduced == reduced]
        loops.insert(before[0] + 1 if before else first, Loop(unit.name, const(1), reduced))
        values[unit.name] = sym(unit.name)
    digits = tuple(x.name for x in loops)
    units = frozenset(values) - frozenset(nest.values)
    return replace(nest, loops=tuple(loops), digits=digits, values=values, units=units)


def conditions_of(nest: Nest) -> list[Pred]:
    """What must hold of an iteration that counts, reads, and stores; over the loops."""
    reduction, piece = nest.reduction, nest.piece
    out = [t.condition for t in nest.tails]
    if reduction is None:
        return out
    out += [Pred(p.kind, nest.put(p.index)) for p in reduction.constraints]
    out += [Pred(p.kind, nest.put(p.index)) for p in read_guards(piece, reduction)]
    return out


def result_conditions(nest: Nest) -> list[Pred]:
    """What must hold of a result: the tails of free loops, and the guards of the piece."""
    free = {x.name for x in nest.loops if not x.reduced}
    every = {x.name for x in nest.loops}
    tails = [t.condition for t in nest.tails if t.condition.index.free & every <= free]
    return tails + [Pred(p.kind, nest.put(p.index)) for p in nest.piece.guards]


def unsolved(piece: Piece) -> Pred | None:
    """A relation that `gather` would solve; what it cannot solve is a condition like any other."""
    reduction = the_reduction(piece.value)
    for pred in reduction.constraints if reduction is not None else ():
        assert reduction is not None
        form = linear(pred.index, [v.name for v in reduction.vars]) if pred.kind == "eq" else None
        if form is not None and form.coefficients:
            return pred
    return None


def operands(reduction: Reduce) -> dict[str, Expr]:
    """What can be staged: the factors of a product, by the first tensor that each reads.

    A second factor that reads `x` is called `x.2`.
    """
    out: dict[str, Expr] = {}
    for factor in factors(reduction.body):
        reads = loads(factor)
        if not reads:
            continue
        tensor = reads[0].access.tensor
        same = sum(name.split(".")[0] == tensor for name in out)
        out[f"{tensor}.{same + 1}" if same else tensor] = factor
    return out


def product_factors(nest: Nest) -> tuple[Expr, Expr] | None:
    """The two operands of a sum of products; None for anything else."""
    reduction = nest.reduction
    if reduction is None or reduction.op != "sum":
        return None
    return two_factors(reduction.body, set(nest.values) & free_names(reduction.body))


def factors(body: Expr) -> list[Expr]:
    """The factors of a product, as two operands where it is one of two: `x * (basis * window)`."""
    if not (isinstance(body, Binary) and body.op == "*"):
        return [body]
    pair = two_factors(body, free_names(body))
    return list(pair) if pair is not None else flat_factors(body)


def _weight(index: Index) -> int:
    """The number of names in an index expression."""
    count = 0
    for monomial, _ in index.terms:
        for atom in monomial:
            count += 1 if isinstance(atom, Sym) else sum(_weight(a) for a in atom.args)
    return count
