"""Taps on the host whose terms NumPy adds up one after the other: long sums in blocks."""

from __future__ import annotations

from convdsl.passes.numpy_partial import TAPS
from convdsl.schedule.builder import Builder
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.split import Split


def partial_sums(builder: Builder, name: str, taps: list[str]) -> list[str]:
    """Taps whose terms are added up in blocks of `TAPS`: a longer sum loses accuracy."""
    nest = builder.state.nest(name)
    if nest.reduction is None or nest.reduction.dtype != "f32":
        return taps
    lengths = [(n, nest.loop(n).extent.as_int()) for n in taps]
    long = next((n for n, length in reversed(lengths) if length is None or length > TAPS), None)
    if long is None:
        return taps
    fresh = builder.names(name).fresh
    block, inside = fresh(f"{long}_block"), fresh(f"{long}_in")
    builder.do(Split(name, long, TAPS, block, inside))
    builder.do(Partial(name, block))
    at = taps.index(long)
    return [*taps[:at], block, inside, *taps[at + 1 :]]
