"""The specification of well-formed equation systems. Covers are proved in `convdsl.ir.cover`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from convdsl.diagnostics import InternalError
from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import Access, Expr, Guard, Load, Pred, Reduce, Scalar, Var, children, loads
from convdsl.ir.index import Index
from convdsl.ir.text import print_piece
from convdsl.ir.verify_site import is_name
from convdsl.ir.verify_values import access_fault, constant_fault, value_dtype, value_fault


def verify_system(system: System) -> None:
    """Raise InternalError with the equation, the piece and the rule that it breaks."""
    check_sizes(system)
    check_tensors(system)
    check_order(system)
    for equation in system.equations:
        for piece in equation.pieces:
            place = _Place(system, equation.tensor, piece)
            check_scopes(place)
            check_access(place)
            check_values(place)


@dataclass(frozen=True, slots=True)
class _Place:
    system: System
    tensor: str
    piece: Piece

    def fail(self, rule: str, why: str) -> NoReturn:
        text = print_piece(self.piece, {t.name: t.dims for t in self.system.tensors})
        raise InternalError(
            f"equation {self.tensor} breaks the rule {rule}: {why}\n  in: {text.rstrip()}"
        )

    def sizes(self) -> set[str]:
        return {*self.system.sizes, *(name for name, _ in self.system.definitions)}


def _fail(system: System, rule: str, why: str) -> NoReturn:
    raise InternalError(f"system {system.name} breaks the rule {rule}: {why}")


def check_sizes(system: System) -> None:
    """Sizes and definitions have different names, and a definition uses earlier ones only."""
    defined: set[str] = set()
    for size in system.sizes:
        if size in defined or not is_name(size):
            _fail(system, "sizes", f"{size} is no new name")
        defined.add(size)
    for name, value in system.definitions:
        if name in defined or not is_name(name) or not value.free <= defined:
            _fail(system, "sizes", f"let {name} = {value}")
        defined.add(name)


def check_tensors(system: System) -> None:
    """Tensors are declared once, one is the output; inputs have defaults, constants have values."""
    sizes = {*system.sizes, *(name for name, _ in system.definitions)}
    names = [t.name for t in system.tensors]
    for t in system.tensors:
        if names.count(t.name) > 1 or not is_name(t.name):
            _fail(system, "tensors", f"{t.name} is no new name")
        if any(not factor.free <= sizes for factor in t.dims):
            _fail(system, "tensors", f"the extents of {t.name} are not made of sizes")
        if t.default is not None and t.role != "input":
            _fail(system, "tensors", f"{t.name} has a default and is no input")
        fault = constant_fault(t.values, t.elements, t.dtype, t.role == "constant")
        if fault is not None:
            _fail(system, "tensors", f"{t.name} {fault}")
    if [t.role for t in system.tensors].count("output") != 1:
        _fail(system, "tensors", "not exactly one output")


def check_order(system: System) -> None:
    """Each tensor but inputs and constants has one equation, which reads those and earlier ones only."""
    known = {t.name for t in (*system.inputs, *system.constants)}
    for equation in system.equations:
        if equation.tensor in known or equation.tensor not in {t.name for t in system.tensors}:
            _fail(system, "order", f"{equation.tensor} is an input, unknown or has two equations")
        for piece in equation.pieces:
            for load in loads(piece.value):
                if load.access.tensor not in known:
                    _fail(
                        system, "order", f"{equation.tensor} reads {load.access.tensor} too early"
                    )
        known.add(equation.tensor)
    missing = {t.name for t in system.tensors} - known
    if missing:
        _fail(system, "order", f"no equation for {sorted(missing)}")


def check_scopes(place: _Place) -> None:
    """Names are defined around their use; no variable hides another."""
    scope = _bind(place, place.piece.vars, place.sizes())
    _check_preds(place, place.piece.guards, scope)
    _check_access_names(place, place.piece.access, scope)
    _check_value_names(place, place.piece.value, scope)


def _bind(place: _Place, variables: tuple[Var, ...], scope: set[str]) -> set[str]:
    scope = set(scope)
    for var in variables:
        _check_defined(place, var.low, scope)
        _check_defined(place, var.high, scope)
        if var.name in scope or not is_name(var.name):
            place.fail("scopes", f"{var.name} is no new name")
        scope.add(var.name)
    return scope


def _check_defined(place: _Place, index: Index, scope: set[str]) -> None:
    for name in index.free - scope:
        place.fail("scopes", f"{name} is not defined in {index}")


def _check_preds(place: _Place, preds: tuple[Pred, ...], scope: set[str]) -> None:
    for pred in preds:
        _check_defined(place, pred.index, scope)


def _check_access_names(place: _Place, access: Access, scope: set[str]) -> None:
    for index in (*access.index, *access.dims):
        _check_defined(place, index, scope)


def _check_value_names(place: _Place, value: Expr, scope: set[str]) -> None:
    match value:
        case Scalar(index):
            _check_defined(place, index, scope)
        case Load(access):
            _check_access_names(place, access, scope)
        case Guard(conditions):
            _check_preds(place, conditions, scope)
        case Reduce():
            inner = _bind(place, value.vars, scope)
            _check_preds(place, value.constraints, inner)
            _check_value_names(place, value.body, inner)
            if value.otherwise is not None:
                _check_value_names(place, value.otherwise, scope)
            return
        case _:
            pass
    for child in children(value):
        _check_value_names(place, child, scope)


def check_access(place: _Place) -> None:
    """Pieces write their own tensor; an access has one index a dim, its view the right elements."""

    def known(index: Index) -> Index:
        for name, value in reversed(place.system.definitions):
            index = index.substitute({name: value})
        return index

    if place.piece.access.tensor != place.tensor:
        place.fail("access", f"it writes {place.piece.access.tensor}")
    for access in (place.piece.access, *(load.access for load in loads(place.piece.value))):
        fault = access_fault(access, place.system.tensor(access.tensor).dims, known)
        if fault is not None:
            place.fail("access", fault)


def check_values(place: _Place) -> None:
    """Values are well typed and of the dtype of their tensor."""
    dtypes = {t.name: t.dtype for t in place.system.tensors}
    fault = value_fault(place.piece.value, dtypes)
    if fault is not None:
        place.fail("values", fault)
    if place.piece.value.dtype != value_dtype(dtypes[place.tensor]):
        place.fail("values", f"a value of {place.piece.value.dtype}")
