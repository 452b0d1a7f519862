"""Small clean-ups that make every later form shorter: axes of extent one and neutral constants go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Load,
    Pred,
    Reduce,
    Unit,
    Var,
    map_children,
    map_index,
)
from convdsl.ir.index import Index


def simplify(system: System) -> System:
    """The system with each piece simplified; tensors keep their axes, accesses see fewer dims."""
    equations = tuple(
        replace(q, pieces=tuple(simplify_piece(p) for p in q.pieces)) for q in system.equations
    )
    return replace(system, equations=equations)


def simplify_piece(piece: Piece) -> Piece:
    units = {v.name: v.low for v in piece.vars if v.extent == 1}

    def put(index: Index) -> Index:
        return index.substitute(units)

    return replace(
        piece,
        units=(*piece.units, *_dropped(piece.vars, units)),
        vars=tuple(v for v in piece.vars if v.name not in units),
        guards=tuple(Pred(p.kind, put(p.index)) for p in piece.guards),
        access=_narrow(piece.access, units),
        value=simplify_value(map_index(piece.value, put)),
    )


def simplify_value(value: Expr) -> Expr:
    """Drop reduced variables of extent one, dims of extent one, `+ 0` and `* 1`."""
    if isinstance(value, Reduce):
        # One that stands in an equation stays: it says how that equation can be solved.
        value = without_units(value, {n for p in value.constraints for n in p.index.free})
    if isinstance(value, Load):
        return Load(_narrow(value.access, {}), value.dtype)
    value = map_children(value, simplify_value)
    match value:
        case Binary("+", Const(zero, _), other) | Binary("+" | "-", other, Const(zero, _)) if (
            zero == 0
        ):
            return other
        case Binary("*", Const(one, _), other) | Binary("*" | "/", other, Const(one, _)) if (
            one == 1
        ):
            return other
    return value


def without_units(reduction: Reduce, needed: Collection[str]) -> Reduce:
    """The reduction without variables of one value, but for those that are needed."""
    units = {v.name: v.low for v in reduction.vars if v.extent == 1 and v.name not in needed}
    if not units:
        return reduction
    kept = tuple(v for v in reduction.vars if v.name not in units)
    dropped = (*reduction.units, *_dropped(reduction.vars, units))
    mapped = map_index(replace(reduction, vars=kept, units=dropped), lambda i: i.substitute(units))
    assert isinstance(mapped, Reduce)
    return mapped


def _dropped(variables: Sequence[Var], units: Mapping[str, Index]) -> tuple[Unit, ...]:
    """The names that go: a schedule may use them all the same."""
    out: list[Unit] = []
    for n, var in enumerate(variables):
        if var.name in units:
            out.append(Unit(var.name, variables[n - 1].name if n else None))
    return tuple(out)


def _narrow(access: Access, units: dict[str, Index]) -> Access:
    kept = [
        (i.substitute(units), d) for i, d in zip(access.index, access.dims, strict=True) if d != 1
    ]
    return Access(access.tensor, tuple(i for i, _ in kept), tuple(d for _, d in kept))
