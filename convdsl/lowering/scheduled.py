"""The choices under a given schedule: a plan says what runs, not what would have been chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from convdsl.ir.index import product
from convdsl.lowering.tiling import tiling_of
from convdsl.passes.plan import Algorithm, Choice
from convdsl.schedule.nest import Nest
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State
from convdsl.schedule.transforms import transform_of
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.toom import Toom

SAID = "as the schedule says"
_INSTEAD = {
    "columns": "all products first",
    "phases": "a matrix product for each tap",
    "gather": "slices over the taps",
}


def choices_of(
    names: Iterable[str], choices: Mapping[str, Choice], given: Schedule | None
) -> Mapping[str, Choice]:
    """The choices of some equations, those that the schedule names replaced by what it says."""
    out = {name: choices[name] for name in names if name in choices}
    if given is None:
        return out
    for name in list(out):
        verbs = _verbs(given, name)
        if verbs:
            out[name] = Choice(_algorithm(verbs, choices[name].algorithm), SAID)
    return out


def _verbs(schedule: Schedule, name: str) -> set[str]:
    """The verbs of an equation and its pieces."""
    return {s.verb for s in schedule.steps if getattr(s, "equation", "").split(".")[0] == name}


def _algorithm(verbs: set[str], otherwise: Algorithm) -> Algorithm:
    if "toom" in verbs:
        return "toom"
    if "columns" in verbs:
        return "columns"
    if verbs & {"phases", "solve", "toeplitz"}:
        return "phases"
    return "gather" if verbs & {"gather", "taps"} else otherwise


def with_slices(choices: Mapping[str, Choice], schedule: Schedule) -> Mapping[str, Choice]:
    """The choices for NumPy as they are carried out.

    Where no loops do what was chosen, it is what the steps say; phases without a matrix product are a
    gather by slices.
    """
    out = dict(choices)
    for name, choice in choices.items():
        if choice.algorithm in ("columns", "toom"):
            run = _algorithm(_verbs(schedule, name), "gather")
            if run != choice.algorithm:
                reason = f"no loops for {choice.algorithm}, which was chosen: {_INSTEAD[run]}"
                choice = out[name] = Choice(run, reason)
        maps = [s for s in schedule.steps if isinstance(s, Map) and s.equation == name]
        places = {where for step in maps for _, where in step.places}
        if choice.algorithm == "phases" and places and "gemm" not in places:
            reason = SAID if choice.reason == SAID else "no matrix product: multiply-adds on slices"
            out[name] = replace(choice, algorithm="gather", reason=reason)
    return out


def with_parts(
    choices: Mapping[str, Choice], state: State, schedule: Schedule, given: Schedule | None
) -> Mapping[str, Choice]:
    """The choices, with in how many parts sums are cut beyond what a given schedule says."""
    tensors = {t.name: t for t in state.system.tensors}
    origin: dict[str, str] = {}  # tensors that steps made, to the equation they were made of
    out = dict(choices)
    for number, step in enumerate(schedule.steps):
        name = origin.get(step.equation, step.equation)
        match step:
            case Toom(tensors=made):
                origin |= dict.fromkeys(made, name)
            case Columns(name=made):
                origin[made] = name
            case Rfactor(name=made) if name in out:
                origin[made] = name
                if number >= (0 if given is None else len(given.steps)):
                    reason = f"{out[name].reason}; sums in {tensors[made].shape[0]} parts"
                    out[name] = replace(out[name], reason=reason)
            case _:
                pass
    return out


def tiles_of(state: State) -> dict[str, str]:
    """The tiles of every sum whose loops are arranged, in words; small transforms have none."""
    sums = {
        name: nest
        for name, nest in state.nests.items()
        if nest.reduction is not None and transform_of(nest.piece, state.system) is None
    }
    return {name: _words(nest) for name, nest in sums.items()}


def _words(nest: Nest) -> str:
    """The tile of a workgroup; where none is in its memory, what a thread keeps in registers."""
    if nest.stages and all(s.memory == "register" for s in nest.stages):
        inside = [x for x in nest.loops if not x.reduced and x.level not in ("grid", "thread")]
        return f"{product(x.extent for x in inside)} a thread"
    return tiling_of(nest).words
