"""What all that draws from Hypothesis by hand shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Drawing:
    """Numbers, items, and chances, by `draw`."""

    draw: st.DrawFn

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """True rarely or often; shrinks to False."""
        return self.number(0, 99) >= 100 - percent
