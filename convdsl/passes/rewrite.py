"""Apply the chosen algorithms to the equations of a system: equations in, equations out."""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.equation import Equation, Piece, System
from convdsl.passes.contraction import contraction_of
from convdsl.passes.gather import gather_piece
from convdsl.passes.names import Names
from convdsl.passes.numpy_columns import column_equations, columns_of
from convdsl.passes.phases import phase_piece
from convdsl.passes.plan import Choice


def rewrite(system: System, choices: dict[str, Choice]) -> System:
    """The system in the form that the WGSL lowering reads: solved, dense or by columns."""
    data_first = [t.name for t in system.inputs]
    names = Names(t.name for t in system.tensors)
    tensors = list(system.tensors)
    equations: list[Equation] = []
    for equation in system.equations:
        (piece,) = equation.pieces
        algorithm = choices[equation.tensor].algorithm
        if algorithm == "columns":
            contraction = contraction_of(piece, related=True)
            columns = columns_of(contraction) if contraction is not None else None
            assert columns is not None
            tensor, product, piece = column_equations(names, piece, columns)
            tensors.append(tensor)
            equations.append(product)
        equations.append(replace(equation, pieces=_pieces(piece, algorithm, data_first)))
    return replace(system, tensors=tuple(tensors), equations=tuple(equations))


def _pieces(piece: Piece, algorithm: str, data_first: list[str]) -> tuple[Piece, ...]:
    if algorithm == "phases":
        pieces = phase_piece(piece, data_first)
        if pieces is not None:
            return pieces
    return (gather_piece(piece),)
