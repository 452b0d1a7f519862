"""Bring equations into the form the later passes expect.

* `inline`: a let without reductions disappears into its readers; one with reductions stays a tensor,
  and so does one that a schedule keeps.
* `from_zero`: every variable runs from zero.
* `simplify`: axes of extent one and neutral constants are dropped.
* `materialise`: reductions inside reductions, and all but one of several, become tensors of their own,
  so that each equation has at most one reduction and it is not nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.expr import (
    Access,
    Call,
    Expr,
    Load,
    Pred,
    Reduce,
    Unit,
    Var,
    free_names,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, as_name, const, sym
from convdsl.passes.names import Names
from convdsl.passes.simplify import simplify


def normalise(system: System, kept: Iterable[str] = ()) -> System:
    """The system in normal form; the lets in `kept` stay tensors."""
    return materialise(simplify(from_zero(inline(system, frozenset(kept)))))


def inline(system: System, kept: frozenset[str]) -> System:
    """Fuse lets into the equations that read them, where that repeats no work worth keeping.

    A let without reductions is fused when it is read once or is cheap; one with a reduction when a
    single equation reads it, outside of reductions, at all of its own indices: then it is a prologue of
    that equation's epilogue and both run in one loop nest. All others stay tensors.
    """
    equations = list(system.equations)
    lets = [t for t in system.tensors if t.role == "let" and t.name not in kept]
    for name in [t.name for t in lets if t.dtype != "f16"]:
        at = next(n for n, q in enumerate(equations) if q.tensor == name)
        readers = [n for n, q in enumerate(equations) if reads_of(q, name)]
        if len(equations[at].pieces) != 1 or not readers:
            continue
        body = equations[at].pieces[0]
        if all(_may_fuse(body, equations[n], len(readers)) for n in readers):
            for n in readers:
                equations[n] = fused(equations[n], name, body, body.value)
            del equations[at]
    left = {q.tensor for q in equations}
    tensors = tuple(t for t in system.tensors if t.role == "input" or t.name in left)
    return replace(system, tensors=tensors, equations=tuple(equations))


def reads_of(equation: Equation, name: str) -> list[Load]:
    """The reads of a tensor in an equation."""
    return [
        e
        for piece in equation.pieces
        for e in walk(piece.value)
        if isinstance(e, Load) and e.access.tensor == name
    ]


_CHEAP = ("abs", "relu", "leaky_relu")
_LONGEST = 200  # nodes of a fused value: a let that is read twice doubles, and so may its readers


def _may_fuse(body: Piece, reader: Equation, readers: int) -> bool:
    name, dims = body.access.tensor, body.access.dims
    reads = reads_of(reader, name)
    if any(r.access.dims != dims for r in reads):
        return False
    if len(reads) > 1 and len(reads) * sum(1 for _ in walk(body.value)) > _LONGEST:
        return False
    if any(isinstance(e, Reduce) for e in walk(body.value)):
        own = [sorted(v.name for v in p.vars) for p in reader.pieces]
        inner = [
            e
            for p in reader.pieces
            for r in _outermost(p.value)
            for e in walk(r)
            if isinstance(e, Load) and e.access.tensor == name
        ]
        at_own = all(sorted(map(str, r.access.index)) in own for r in reads)
        return readers == 1 and not inner and at_own
    cheap = not any(isinstance(e, Call) and e.name not in _CHEAP for e in walk(body.value))
    return cheap or (readers == 1 and len(reads) == 1)


def fused(reader: Equation, name: str, body: Piece, value: Expr) -> Equation:
    """The reader with `value` in the place of each read of `name`, whose one piece is `body`.

    Each index of the access of `body` is a variable, and all reads are through its view.
    """
    variables = [as_name(i) or "" for i in body.access.index]

    def fuse(piece: Piece) -> Piece:
        own = {v.name for v in (*body.vars, *piece.vars)}
        names = Names(own | _bound(piece.value))
        fresh = {b: sym(names.fresh(b)) for b in sorted(_bound(value))}
        renamed = _renamed(value, fresh)

        def visit(e: Expr) -> Expr:
            if isinstance(e, Load) and e.access.tensor == name:
                values = dict(zip(variables, e.access.index, strict=True))
                return map_index(renamed, lambda i: i.substitute(values))
            return map_children(e, visit)

        return replace(piece, value=visit(piece.value))

    return replace(reader, pieces=tuple(fuse(p) for p in reader.pieces))


def _bound(value: Expr) -> set[str]:
    return {v.name for e in walk(value) if isinstance(e, Reduce) for v in e.vars}


def _renamed(value: Expr, fresh: dict[str, Index]) -> Expr:
    """The value with its bound variables renamed."""
    value = map_children(value, lambda e: _renamed(e, fresh))
    if isinstance(value, Reduce):
        variables = tuple(Var(str(fresh[v.name]), v.low, v.high) for v in value.vars)
        value = replace(value, vars=variables)
        return map_index(value, lambda i: i.substitute(fresh))
    return value


def from_zero(system: System) -> System:
    return _map_values(system, lambda value: _shift(value))


def _shift(expr: Expr) -> Expr:
    expr = map_children(expr, _shift)
    if not isinstance(expr, Reduce) or all(v.low == 0 for v in expr.vars):
        return expr
    values = {v.name: sym(v.name) + v.low for v in expr.vars if v.low != 0}

    def put(i: Index) -> Index:
        return i.substitute(values)

    return replace(
        expr,
        vars=tuple(Var(v.name, const(0), v.high - v.low) for v in expr.vars),
        constraints=tuple(Pred(p.kind, put(p.index)) for p in expr.constraints),
        body=map_index(expr.body, put),
    )


def materialise(system: System) -> System:
    """Give reductions that stand inside others, or beside others, tensors of their own."""
    names = Names([t.name for t in system.tensors])
    tensors = list(system.tensors)
    equations: list[Equation] = []
    for equation in system.equations:
        pieces = []
        for piece in equation.pieces:
            extra: list[tuple[Tensor, Equation]] = []
            value = _extract(piece.value, piece.vars, names, extra, keep_one=True)
            extra = [(t, _with_units(q, piece.units)) for t, q in extra]
            pieces.append(replace(piece, value=value))
            for tensor, made in extra:
                tensors.append(tensor)
                equations.append(made)
        equations.append(replace(equation, pieces=tuple(pieces)))
    return replace(system, tensors=tuple(tensors), equations=tuple(equations))


def _with_units(equation: Equation, units: tuple[Unit, ...]) -> Equation:
    return replace(equation, pieces=tuple(replace(p, units=units) for p in equation.pieces))


def _extract(
    value: Expr,
    scope: Sequence[Var],
    names: Names,
    out: list[tuple[Tensor, Equation]],
    keep_one: bool,
) -> Expr:
    outermost = _outermost(value)
    keep = outermost[0] if keep_one and len(outermost) == 1 else None

    made: dict[Reduce, Expr] = {}

    def visit(expr: Expr) -> Expr:
        if not isinstance(expr, Reduce):
            return map_children(expr, visit)
        if expr not in made:
            made[expr] = separate(expr)
        return made[expr]

    def separate(expr: Reduce) -> Expr:
        inner = [*scope, *expr.vars]
        body = _extract(expr.body, inner, names, out, keep_one=False)
        otherwise = expr.otherwise
        if otherwise is not None:
            otherwise = _extract(otherwise, scope, names, out, keep_one=False)
        reduction = replace(expr, body=body, otherwise=otherwise)
        if expr == keep:
            return reduction
        return _as_tensor(reduction, scope, names, out)

    return visit(value)


def _outermost(value: Expr) -> list[Reduce]:
    found: list[Reduce] = []

    def visit(e: Expr) -> Expr:
        if isinstance(e, Reduce):
            if e not in found:
                found.append(e)
            return e
        return map_children(e, visit)

    visit(value)
    return found


def _as_tensor(
    reduction: Reduce, scope: Sequence[Var], names: Names, out: list[tuple[Tensor, Equation]]
) -> Load:
    used = free_names(reduction)
    own = [v for v in scope if v.name in used]
    name = names.fresh(f"{reduction.op}_term")  # the bare word is no name
    dims = tuple(v.high for v in own)
    index = tuple(sym(v.name) for v in own)
    tensor = Tensor(name, reduction.dtype, tuple((d,) for d in dims), "let")
    access = Access(name, index, dims)
    piece = Piece(tuple(own), (), access, reduction, origin="materialise")
    out.append((tensor, Equation(name, (piece,))))
    return Load(access, reduction.dtype)


def _map_values(system: System, f: Callable[[Expr], Expr]) -> System:
    return replace(
        system,
        equations=tuple(
            replace(q, pieces=tuple(replace(p, value=f(p.value)) for p in q.pieces))
            for q in system.equations
        ),
    )
