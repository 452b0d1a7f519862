"""Fresh names that read well and never clash."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Hands out names: the wanted one when it is free, else `name_1`, `name_2`, ..."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def fresh(self, wanted: str) -> str:
        name, n = wanted, 0
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name)
        return name
