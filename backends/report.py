"""The plan of a compiled variant, worked out from its equations and buffers."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from convdsl.backends.base import Fold, Plan
from convdsl.ir.equation import Equation, Piece, System
from convdsl.ir.expr import Reduce, walk
from convdsl.ir.loop import LoopProgram
from convdsl.lowering.pipeline import Lowered
from convdsl.machine.facts import Cpu, Gpu
from convdsl.passes.relation import linear

_BYTES = {"f32": 4, "f16": 2, "i32": 4}


def plan_of(
    lowered: Lowered, definition: System, dispatches: int | None, folds: Iterable[Fold]
) -> Plan:
    """The plan; the algorithm shown is that of the equation with the most work."""
    choice = lowered.choices[_main(lowered)]
    work = {q.tensor: _flops(q) for q in definition.equations}
    total = [w for w in work.values() if w is not None]
    known = not definition.sizes
    return Plan(
        algorithm=choice.algorithm,
        reason=choice.reason,
        tiles=next(iter(lowered.tiles.values()), ""),
        temporary_bytes=_temporaries(lowered.program, _threads(lowered.machine)),
        flops=sum(total) if known and len(total) == len(work) else None,
        bytes_moved=_moved(definition) if known else None,
        dispatches=dispatches,
        equations={t: f"{c.algorithm}: {c.reason}" for t, c in lowered.choices.items()},
        folds={name: tuple(sorted(f.inputs)) for f in folds for name in f.results},
        machine=str(lowered.machine),
    )


def _main(lowered: Lowered) -> str:
    """The equation with the most work, by its depth while sizes are symbols; the last among equals."""
    equations = {q.tensor: q for q in lowered.system.equations}
    order = list(lowered.choices)

    def work(tensor: str) -> tuple[int, int, int, int]:
        equation = equations.get(tensor)
        if equation is None:
            return 0, 0, 0, 0
        reductions = [
            len(piece.vars) + len(e.vars)
            for piece in equation.pieces
            for e in walk(piece.value)
            if isinstance(e, Reduce)
        ]
        flops = _flops(equation) or 0
        return int(bool(reductions)), flops, max(reductions, default=0), order.index(tensor)

    return max(order, key=work)


def _threads(machine: Cpu | Gpu) -> int:
    return machine.threads if isinstance(machine, Cpu) else 1


def _temporaries(program: LoopProgram, workers: int) -> int | None:
    """What is held at a time; buffers of worker loops for so many threads."""
    own = [b for k in program.kernels for b in k.locals if b.memory == "worker"]
    shared = [b for b in program.buffers if b.memory == "temp"]
    sizes = [(b.elements * _BYTES[b.dtype]).as_int() for b in (*shared, *own * workers)]
    known = [s for s in sizes if s is not None]
    return sum(known) if len(known) == len(sizes) else None


def _moved(system: System) -> int | None:
    sizes = [(t.elements * _BYTES[t.dtype]).as_int() for t in system.tensors if t.role != "let"]
    known = [s for s in sizes if s is not None]
    return sum(known) if len(known) == len(sizes) else None


def _flops(equation: Equation) -> int | None:
    """Two for each term of each reduction: the nominal count, whatever the plan saves or wastes."""
    count = 0
    for piece in equation.pieces:
        for e in walk(piece.value):
            if isinstance(e, Reduce):
                points = _points(e, piece)
                if points is None:
                    return None
                count += 2 * points
    return count


def _points(reduction: Reduce, piece: Piece) -> int | None:
    """Terms over all results: each equation determines its longest variable with coefficient 1."""
    extents = {v.name: v.extent.as_int() for v in (*piece.vars, *reduction.vars)}
    for pred in reduction.constraints:
        form = linear(pred.index, extents)
        if form is None:
            continue
        units = [n for n, c in form.coefficients.items() if abs(c) == 1]
        if units:
            del extents[max(units, key=lambda n: extents[n] or 0)]
    known = [e for e in extents.values() if e is not None]
    return prod(known) if len(known) == len(extents) else None
