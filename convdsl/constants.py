"""What a bound kernel keeps: its constants, and what depends on them alone, each made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from convdsl.arguments import Array

if TYPE_CHECKING:
    from convdsl.backends.base import Executable

KEPT = 16  # results of folds (by their text, and the numbers of their sizes) kept for one kernel

_Key = tuple[str, tuple[int, ...]]


class Constants:
    """Bound arrays of one kernel, prepared for its target at the first call. Any thread may ask."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = dict(arrays)
        self._lock = Lock()
        self._prepared: dict[str, Any] | None = None
        self._results: OrderedDict[_Key, Mapping[str, Any]] = OrderedDict()

    def of(self, executable: Executable, sizes: Mapping[str, int]) -> dict[str, Any]:
        """The constants and the results of folds by name, as `executable.run` takes them."""
        if not self.arrays:
            return {}
        with self._lock:
            if self._prepared is None or not executable.usable(self._prepared):
                self._results.clear()
                self._prepared = {n: executable.prepare(n, a) for n, a in self.arrays.items()}
            out = dict(self._prepared)
            for number, fold in enumerate(executable.folds):
                if fold.inputs <= self.arrays.keys():
                    out |= self._results_of(executable, number, out, sizes)
            return out

    def _results_of(
        self,
        executable: Executable,
        number: int,
        arrays: Mapping[str, Any],
        sizes: Mapping[str, int],
    ) -> Mapping[str, Any]:
        fold = executable.folds[number]
        key = fold.key, tuple(sizes[name] for name in sorted(fold.sizes))
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = executable.fold(number, arrays, sizes)
            while len(self._results) > KEPT:
                self._results.popitem(last=False)
        else:
            self._results.move_to_end(key)
        return found
