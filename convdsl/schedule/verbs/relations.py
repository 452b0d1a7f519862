"""What the verbs on relations share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.text import print_piece
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, refuse_equation


def main_piece(step: Step, state: State, name: str) -> tuple[Piece, ...]:
    """The pieces of an equation that no loop verb has touched yet, the dense one first.

    E0667 for a verb that schedules for the target do not have.
    """
    step.check_target(state)
    known = {q.tensor: q.pieces for q in state.system.equations}
    if name not in known:
        refuse_equation(step, name, known)
    refuse_scheduled(step, state, name)
    return known[name]


def refuse_scheduled(step: Step, state: State, name: str) -> None:
    """E0625: a verb on the relations of a piece whose loops have been touched."""
    if name in state.nests or name in state.sites:
        raise CdslError(
            "E0625",
            f"`{step}`: the loops of `{name}` are scheduled already",
            help="put the verbs on relations (gather, solve, phases, columns) first",
        )


def refuse_relation(step: Step, piece: Piece, code: str, why: str, help: str | None) -> NoReturn:
    """Raise the error of a precondition, with the equation as it is now."""
    shown = Note(f"the equation here:\n{print_piece(piece, {}).rstrip()}")
    raise CdslError(code, f"`{step}`: {why}", None, notes=(shown,), help=help)


def with_made(
    system: System,
    name: str,
    tensors: Sequence[Tensor],
    made: Sequence[Equation],
    pieces: Sequence[Piece],
) -> System:
    """The system with new tensors, made in front of the equation that now reads them, by `pieces`."""
    equations: list[Equation] = []
    for equation in system.equations:
        mine = equation.tensor == name
        equations += [*made, Equation(name, tuple(pieces))] if mine else [equation]
    return replace(system, tensors=(*system.tensors, *tensors), equations=tuple(equations))
