"""The plan of a kernel in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convdsl.machine.facts import TYPICAL_CPU, TYPICAL_GPU

if TYPE_CHECKING:
    from convdsl.backends.base import Plan


def plan_line(plan: Plan) -> str:
    """What runs, in one line."""
    parts = [plan.algorithm]
    if plan.tiles:
        parts.append(f"tiles {plan.tiles}")
    if plan.dispatches is not None:
        parts.append(f"{plan.dispatches} dispatch{'' if plan.dispatches == 1 else 'es'}")
    if plan.flops is not None:
        parts.append(f"{quantity(plan.flops, 1000)}flop")
    if plan.temporary_bytes:
        parts.append(f"{quantity(plan.temporary_bytes, 1024)}B of temporaries")
    return ", ".join(parts)


def plan_lines(plan: Plan) -> list[str]:
    """What runs, and why, a line for each equation; and for what it was chosen, if not as usual."""
    reasons = [f"  {tensor}: {text}" for tensor, text in plan.equations.items()]
    lines = [f"plan: {plan_line(plan)}", *reasons]
    typical = plan.machine in (str(TYPICAL_CPU), str(TYPICAL_GPU))
    return lines if typical else [*lines, f"chosen for: {plan.machine}"]


def quantity(value: float, step: int) -> str:
    """A number with a prefix: `116.9 G`."""
    prefixes = ["", "K" if step == 1024 else "k", "M", "G", "T", "P", "E"]
    prefixes = [p + "i" if step == 1024 and p else p for p in prefixes]
    n = 0
    while value >= step and n < len(prefixes) - 1:
        value /= step
        n += 1
    return f"{value:.4g} {prefixes[n]}"


def seconds(value: float) -> str:
    """A time in a unit that fits: `12.3 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
