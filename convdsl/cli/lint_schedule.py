"""What `convdsl check` warns of in a schedule: it runs, but hardly as it was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convdsl.cli.lint import Warning
from convdsl.diagnostics import Span
from convdsl.ir.index import Index, product
from convdsl.ir.loop import LANES
from convdsl.report.steps import Shot
from convdsl.schedule.nest import Loop, Nest
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage

FEWEST = 32  # invocations that all GPUs run together at least
MOST_CALLS = 1000  # host iterations that are never worth a warning
LEAST_WORK = 2**14  # terms that take NumPy longer than the call


def schedule_warnings(schedule: Schedule, seen: Sequence[Shot]) -> list[Warning]:
    """All warnings for a schedule that was applied; `seen` begins with its steps."""
    found = [*_tiles(schedule, seen), *_pads(schedule, seen[-1]), *_nests(schedule, seen[-1])]
    return sorted(found, key=lambda w: w.span.start)


def _tiles(schedule: Schedule, seen: Sequence[Shot]) -> Iterator[Warning]:
    for before, step, span in zip(seen, schedule.steps, schedule.spans, strict=False):
        if not isinstance(step, Split) or span is None:
            continue
        extent = before.state.nest(step.equation).loop(step.loop).extent.as_int()
        if extent is not None and step.factor > extent:
            yield Warning(
                f"the tile of {step.factor} is larger than `{step.loop}`, which has {extent} "
                f"iteration{'' if extent == 1 else 's'}",
                span,
                f"split by at most {extent}, or leave the loop whole",
            )


def _pads(schedule: Schedule, last: Shot) -> Iterator[Warning]:
    """Rows that a pad keeps from being read as vectors."""
    for step, span in zip(schedule.steps, schedule.spans, strict=False):
        if not isinstance(step, Stage) or span is None or step.pad % LANES == 0:
            continue
        loops = last.state.nest(step.equation).loops
        if any(x.level == "vector" for x in loops):
            yield Warning(
                f"the rows of the tile of `{step.operand}` are widened by {step.pad}, so that they are "
                "read an element at a time",
                span,
                f"pad by a multiple of {LANES}, which keeps vectors whole",
            )


def _nests(schedule: Schedule, last: Shot) -> Iterator[Warning]:
    for name, nest in last.state.nests.items():
        span = _mapped(schedule, name)
        if span is None:
            continue
        if last.state.target == "numpy":
            yield from _hosts(name, nest, span)
            continue
        threads = product(x.extent for x in nest.loops if x.level == "thread").as_int()
        if threads is not None and threads < FEWEST:
            yield Warning(
                f"a workgroup of `{name}` has only {threads} thread{'' if threads == 1 else 's'}",
                span,
                f"a GPU runs at least {FEWEST} together; map larger loops to threads",
            )
        apart = _apart(nest)
        if apart is not None:
            yield Warning(
                f"neighbouring results of `{name}` are stored far apart in time: they lie along "
                f"`{apart.name}`, {_runs(apart)}",
                span,
                f"map `{apart.name}`, or an inner part of it, to threads or vectorize it",
            )


def _hosts(name: str, nest: Nest, span: Span) -> Iterator[Warning]:
    """Python loops that cost more than what they run."""
    hosts = [x for x in nest.loops if x.on_host]
    count = product(x.extent for x in hosts).as_int()
    each = product(x.extent for x in nest.loops if not x.on_host).as_int()
    if count is not None and each is not None and count > MOST_CALLS and each < LEAST_WORK:
        yield Warning(
            f"Python runs the host loops of `{name}` {count:,} times, for {each:,} terms each",
            span,
            "map larger loops to slice or gemm; a call of NumPy takes about a microsecond",
        )


def _mapped(schedule: Schedule, name: str) -> Span | None:
    """Where a schedule maps the loops of a piece."""
    found = None
    for step, span in zip(schedule.steps, schedule.spans, strict=False):
        if isinstance(step, Map) and step.equation == name:
            found = span
    return found


def _apart(nest: Nest) -> Loop | None:
    """The loop over neighbouring addresses of the result, where no threads or lanes run it."""
    index = next((i for i in reversed(nest.piece.access.index) if i.free), None)
    if index is None:
        return None
    placed = index.substitute(dict(nest.values))
    units = [x for x in nest.loops if not x.reduced and _steps(placed, x)]
    if not units or any(x.level in ("thread", "vector") for x in units):
        return None
    return units[0]


def _steps(index: Index, loop: Loop) -> bool:
    """Whether the next iteration of a loop is the next address."""
    if loop.extent == 1 or not index.is_affine_in([loop.name]):
        return False
    return index.coefficient(loop.name).as_int() in (1, -1)


def _runs(loop: Loop) -> str:
    return "a loop of the grid" if loop.level == "grid" else "a loop of one thread"
