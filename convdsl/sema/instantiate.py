"""Numbers into a resolved op: the system that the passes work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import Equation, Piece, System, map_system
from convdsl.ir.expr import Const, Expr, Load, Param, Reduce, Var, map_children
from convdsl.ir.index import Index
from convdsl.sema.model import ResolvedOp
from convdsl.sema.names import unknown
from convdsl.sema.parameters import integers_of


def instantiate(
    op: ResolvedOp,
    parameters: Mapping[str, int | float],
    sizes: Mapping[str, int],
    absent: frozenset[str] = frozenset(),
) -> System:
    """The op's system with parameters and the given sizes as numbers.

    Sizes that are not given stay symbols; a defined size is a number when all it uses are. Absent
    inputs become their defaults and lose their tensors. Checks are made elsewhere: see
    `bind_parameters` and `complete_sizes`.

    Raises:
        CdslError: E0311 for an absent input that has no default, E0308 for a divisor that is zero.
    """
    check_absent(op, absent)
    values: dict[str, Index | int] = {**integers_of(parameters), **sizes}
    try:
        definitions = []
        for name, formula in op.defined:
            formula = formula.substitute(values)
            number = formula.as_int()
            if name in values:
                continue
            if number is None:
                definitions.append((name, formula))
            else:
                values[name] = number
        memo: dict[Index, Index] = {}

        def put(index: Index) -> Index:
            found = memo.get(index)
            if found is None:
                found = memo[index] = index.substitute(values)
            return found

        system = map_system(replace(op.system, definitions=()), put)
    except ZeroDivisionError as error:
        raise CdslError("E0308", f"division by zero: {error}", op.syntax.name.span) from None
    defaults = {
        t.name: _constant(t.default, t.dtype == "i32") for t in op.inputs if t.name in absent
    }
    floats = {n: float(parameters[n]) for n in (p.name for p in op.float_parameters)}
    if defaults or floats or op.binders:
        system = replace(
            system,
            tensors=tuple(t for t in system.tensors if t.name not in defaults),
            equations=tuple(_equation(e, defaults, floats) for e in system.equations),
        )
    return replace(
        system,
        sizes=tuple(name for name in op.input_sizes if name not in values),
        definitions=tuple(definitions),
    )


def check_absent(op: ResolvedOp, absent: frozenset[str]) -> None:
    """Check that inputs may be left out.

    Raises:
        CdslError: E0311 for an input that has no default.
    """
    inputs = {t.name: t for t in op.inputs}
    for name in sorted(absent):
        if name not in inputs:
            raise unknown(f"input of `{op.name}`:", name, inputs, None, "E0311")
        if inputs[name].default is None:
            raise CdslError(
                "E0311",
                f"the input `{name}` is missing",
                op.declaration(name).span,
                help="only inputs with a default, like `b: f32[M] = 0`, may be left out",
            )


def _constant(default: float | None, integer: bool) -> Const:
    assert default is not None
    return Const(int(default), "i32") if integer else Const(float(default), "f32")


def _equation(
    equation: Equation, defaults: Mapping[str, Const], floats: Mapping[str, float]
) -> Equation:
    def put(expr: Expr) -> Expr:
        match expr:
            case Load(access, _) if access.tensor in defaults:
                return defaults[access.tensor]
            case Param(name):
                return Const(floats[name], "f32")
            case Reduce():
                expr = replace(expr, vars=tuple(_clamped(v) for v in expr.vars))
        return map_children(expr, put)

    def piece(old: Piece) -> Piece:
        return replace(old, value=put(old.value))

    return replace(equation, pieces=tuple(piece(p) for p in equation.pieces))


def _clamped(var: Var) -> Var:
    """An empty written range like 1..0 as 1..1, so that no extent is negative."""
    low, high = var.low.as_int(), var.high.as_int()
    return (
        Var(var.name, var.low, var.low)
        if low is not None and high is not None and high < low
        else var
    )
