"""Which buffers become vec4s or named variables, and which vector loops stay whole.

Decided before any text is made, from all accesses of a kernel: an access is aligned when its linear
offset is a multiple of four plus the vector variable, and all lanes make it or none does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from convdsl.backends.wgsl.ranges import tighten
from convdsl.ir.expr import Access, Const, Expr, Guard, Load, Pred, children, loads
from convdsl.ir.index import Index
from convdsl.ir.loop import Accumulate, Buffer, For, If, Kernel, Let, Stmt, Store, statements

_IDENTITY: dict[Accumulate, float] = {"+": 0.0, "*": 1.0, "max": -math.inf, "min": math.inf}


def offset(access: Access, skip: int = 0) -> Index:
    """The linear offset without the first `skip` dims."""
    return Access(access.tensor, access.index[skip:], access.dims[skip:]).offset()


def aligned(index: Index, lane: str) -> bool:
    """Whether the index is a multiple of four plus `lane`."""
    if index.coefficient(lane) != 1:
        return False
    rest = index.without(lane)
    return lane not in rest.free and all(c % 4 == 0 for _, c in rest.terms)


def whole(loop: For) -> bool:
    """Whether a vector loop can run as vec4 operations; otherwise its lanes are written out."""
    if loop.var.low.as_int() != 0 or loop.var.high.as_int() != 4:
        return False
    lane = loop.var.name
    stores = [s for s in statements(loop.body) if isinstance(s, Store)]
    targets = {s.access.tensor: s.access for s in stores}
    if len(targets) < len({s.access for s in stores}):
        return False  # two places of one buffer: keep the order of the lanes
    for stmt in statements(loop.body):
        match stmt:
            case For(var, level):
                if level not in ("serial", "unroll") or lane in var.low.free | var.high.free:
                    return False
            case Let(_, value):
                if lane in value.free:
                    return False
            case Store(access, value):
                if lane not in access.free:
                    return False
                if any(targets.get(r.access.tensor, r.access) != r.access for r in loads(value)):
                    return False
    return True


def shared(pred: Pred, lane: str) -> bool:
    """Whether divisibility shows the condition to be the same one for all four lanes."""
    return len({tighten(Pred(pred.kind, pred.index.substitute({lane: n}))) for n in range(4)}) == 1


def as_branch(store: Store) -> If | None:
    """A store that adds (multiplies by, ...) nothing outside of conditions: as one under them."""
    value, how = store.value, store.accumulate
    if how is None or not isinstance(value, Guard) or not isinstance(value.otherwise, Const):
        return None
    if value.otherwise.value != _IDENTITY[how]:
        return None
    return If(value.conditions, (Store(store.access, value.value, how),))


@dataclass(frozen=True, slots=True)
class Use:
    """One access. `constant`: a number once unrolled. `aligned`: in a whole vector loop.

    `component`: a component of a vec4 that is known once unrolled, the same for all lanes or read
    under the same conditions.
    """

    store: bool
    constant: bool
    aligned: bool
    component: bool


@dataclass(frozen=True, slots=True)
class Form:
    """How a buffer is declared: as vec4s; as one variable for each element (or vec4)."""

    vector: bool
    named: bool


@dataclass(frozen=True, slots=True)
class _Lane:
    """The variable of a whole vector loop; not `together` where conditions part the lanes."""

    name: str
    together: bool


_UNROLLED = frozenset({"unroll", "vector"})


class _Uses:
    """A walk over all accesses, with the levels of the loops around and the values of the lets."""

    def __init__(self, kernel: Kernel) -> None:
        self._skip = {b.name: b.thread_dims for b in kernel.locals}
        self._levels: dict[str, bool] = {}  # is the variable a number once unrolled?
        self._lets: dict[str, Index] = {}
        self._uses: dict[str, list[Use]] = {}
        self._body(kernel.body, None)

    def of(self, buffer: Buffer) -> list[Use]:
        return self._uses.get(buffer.name, [])

    def _body(self, body: tuple[Stmt, ...], lane: _Lane | None) -> None:
        for stmt in body:
            match stmt:
                case For():
                    self._loop(stmt, lane)
                case Let(name, value):
                    self._lets[name] = value.substitute(self._lets)
                    self._body(stmt.body, lane)
                    del self._lets[name]
                case If(conditions):
                    self._body(stmt.body, self._under(conditions, lane))
                case Store(access, value):
                    branch = as_branch(stmt)
                    if branch is not None:
                        self._body((branch,), lane)
                    else:
                        self._note(access, True, lane)
                        self._value(value, lane)

    def _loop(self, stmt: For, lane: _Lane | None) -> None:
        var = stmt.var
        before = self._levels.get(var.name)
        single = var.extent.as_int() == 1 and var.low.as_int() is not None
        self._levels[var.name] = stmt.level in _UNROLLED or single
        if stmt.level == "vector":
            lane = _Lane(var.name, True) if whole(stmt) else None
        self._body(stmt.body, lane)
        if before is not None:
            self._levels[var.name] = before

    def _value(self, expr: Expr, lane: _Lane | None) -> None:
        match expr:
            case Load(access):
                self._note(access, False, lane)
            case Guard(conditions, value, otherwise):
                self._value(value, self._under(conditions, lane))
                self._value(otherwise, lane)
            case _:
                for child in children(expr):
                    self._value(child, lane)

    def _under(self, conditions: tuple[Pred, ...], lane: _Lane | None) -> _Lane | None:
        if lane is None:
            return None
        own = (Pred(p.kind, p.index.substitute(self._lets)) for p in conditions)
        return lane if all(shared(p, lane.name) for p in own) else _Lane(lane.name, False)

    def _note(self, access: Access, store: bool, lane: _Lane | None) -> None:
        index = offset(access, self._skip.get(access.tensor, 0)).substitute(self._lets)
        together = lane is not None and lane.together and aligned(index, lane.name)
        parted = lane is not None and not lane.together and lane.name in index.free
        use = Use(
            store,
            constant=self._number(index),
            aligned=together,
            component=not store and not parted and self._number(index % 4),
        )
        self._uses.setdefault(access.tensor, []).append(use)

    def _number(self, index: Index) -> bool:
        return all(self._levels.get(n, False) for n in index.free)


def forms(kernel: Kernel) -> dict[str, Form]:
    """The form of every local buffer."""
    uses = _Uses(kernel)
    return {b.name: _form(b, uses.of(b)) for b in kernel.locals}


def _form(buffer: Buffer, uses: list[Use]) -> Form:
    named = buffer.memory == "register" and all(u.constant for u in uses)
    own = buffer.dims[buffer.thread_dims :]
    last = own[-1].as_int() if own else None
    if last is None or last % 4 or not any(u.aligned for u in uses):
        return Form(False, named)
    if buffer.memory == "workgroup":
        # A component that one thread writes may overwrite those that others write.
        return Form(all(u.aligned for u in uses if u.store), False)
    return Form(True, named)


def storage_vectors(kernel: Kernel, buffers: tuple[Buffer, ...]) -> frozenset[str]:
    """The buffers in memory that a kernel reads and writes as vec4s.

    It stores whole ones only, and what it reads besides whole ones are components with a number.
    """
    uses = _Uses(kernel)
    return frozenset(b.name for b in buffers if _whole_vectors(b, uses.of(b)))


def _whole_vectors(buffer: Buffer, uses: list[Use]) -> bool:
    if any(c % 4 for _, c in buffer.elements.terms):
        return False
    return any(u.aligned for u in uses) and all(u.aligned or u.component for u in uses)
