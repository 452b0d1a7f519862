"""Which local buffers become vec4s or named variables, and which vector loops stay whole.

Decided before any text is made, from all accesses of a kernel: an access is aligned when its linear
offset is a multiple of four plus the vector variable.
"""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.ir.expr import Access, loads
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, Stmt, Store, statements


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


@dataclass(frozen=True, slots=True)
class Use:
    """One access. `constant`: a number once unrolled. `aligned`: in a whole vector loop."""

    store: bool
    constant: bool
    aligned: bool


@dataclass(frozen=True, slots=True)
class Form:
    """How a local buffer is declared: as vec4s; as one variable for each element (or vec4)."""

    vector: bool
    named: bool


_UNROLLED = frozenset({"unroll", "vector"})


class _Uses:
    """A walk over all accesses, with the levels of the loops around and the values of the lets."""

    def __init__(self, kernel: Kernel) -> None:
        self._skip = {b.name: b.thread_dims for b in kernel.locals}
        self._levels: dict[str, bool] = {}  # is the variable a number once unrolled?
        self._lets: dict[str, Index] = {}
        self.uses: dict[str, list[Use]] = {b.name: [] for b in kernel.locals}
        self._body(kernel.body, None)

    def _body(self, body: tuple[Stmt, ...], lane: str | None) -> None:
        for stmt in body:
            match stmt:
                case For(var, level):
                    before = self._levels.get(var.name)
                    single = var.extent.as_int() == 1 and var.low.as_int() is not None
                    self._levels[var.name] = level in _UNROLLED or single
                    if level == "vector":
                        self._body(stmt.body, var.name if whole(stmt) else None)
                    else:
                        self._body(stmt.body, lane)
                    if before is not None:
                        self._levels[var.name] = before
                case Let(name, value):
                    self._lets[name] = value.substitute(self._lets)
                    self._body(stmt.body, lane)
                    del self._lets[name]
                case If(conditions):
                    single = any(lane in p.index.free for p in conditions)
                    self._body(stmt.body, None if single else lane)
                case Store(access, value):
                    self._note(access, True, lane)
                    for load in loads(value):
                        self._note(load.access, False, lane)

    def _note(self, access: Access, store: bool, lane: str | None) -> None:
        skip = self._skip.get(access.tensor)
        if skip is None:
            return
        index = offset(access, skip).substitute(self._lets)
        constant = all(self._levels.get(n, False) for n in index.free)
        self.uses[access.tensor].append(
            Use(store, constant, lane is not None and aligned(index, lane))
        )


def forms(kernel: Kernel) -> dict[str, Form]:
    """The form of every local buffer."""
    uses = _Uses(kernel).uses
    return {b.name: _form(b, uses[b.name]) for b in kernel.locals}


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
