"""What must hold of loops whose iterations run on several threads of the host."""

from __future__ import annotations

from convdsl.ir.apart import Touch, apart
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import const
from convdsl.schedule.check import refuse
from convdsl.schedule.nest import Nest


def check_workers(equation: str, nest: Nest) -> None:
    """One worker loop around all that it makes, and no result made by two iterations."""
    workers = [x for x in nest.loops if x.level == "worker"]
    if not workers:
        return
    loop, *more = workers
    if more:
        refuse(
            equation, nest, "E0680", f"`{loop.name}` and `{more[0].name}` are both worker loops",
            more[0].name, f"fuse them, or `map {equation}: {more[0].name} -> host`",
        )  # fmt: skip
    summed = next((x for x in nest.loops[: nest.place(loop.name)] if x.reduced), None)
    if summed is not None:
        refuse(
            equation, nest, "E0680",
            f"the worker loop `{loop.name}` stands inside the summed loop `{summed.name}`: its "
            "threads would meet after each term", loop.name,
            f"put it outside: `order {equation}: {loop.name}, {summed.name}`",
        )  # fmt: skip
    if not apart([_store(nest, loop.name)]):
        refuse(
            equation, nest, "E0682",
            f"no proof that iterations of the worker loop `{loop.name}` make different results",
            loop.name, f"`map {equation}: {loop.name} -> host`, and another loop to worker",
        )  # fmt: skip


def _store(nest: Nest, loop: str) -> Touch:
    """The result that an iteration of the loop, and of those inside, makes."""
    at = nest.place(loop)
    loops = [(x.reduced, Var(x.name, const(0), x.extent)) for x in nest.loops]
    preds = [t.condition for t in nest.tails]
    preds += [Pred(p.kind, nest.put(p.index)) for p in nest.piece.guards]
    summed = {x.name for x in nest.loops if x.reduced}
    return Touch(
        tuple(map(nest.put, nest.piece.access.index)),
        nest.piece.access.dims,
        tuple(v for _, v in loops[:at]),
        tuple(v for reduced, v in loops[at:] if not reduced),
        tuple(p for p in preds if not p.index.free & summed),
        stored=True,
    )
