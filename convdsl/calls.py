"""Calls like earlier ones: what one with arrays of these shapes needs is looked up, not found again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from convdsl.arguments import Array

if TYPE_CHECKING:
    from convdsl.backends.base import Executable
    from convdsl.variants import Key

KEPT = 16  # calls kept for one kernel; each holds what its executable made of constants

Signature = tuple[object, ...]
Run = Callable[[Sequence[Array], Array | None], Array]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was checked: `run` takes arrays of the same shapes and dtypes in the same order."""

    executable: Executable
    variant: Key
    run: Run
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def takes(self, out: object, given: Sequence[Array]) -> bool:
        """Whether the result surely fits into `out`; where it is not plain, other checks tell.

        What can be written shares no memory with constants, which cannot.
        """
        if type(out) is not np.ndarray or out.shape != self.shape or out.dtype != self.dtype:
            return False
        flags = out.flags
        if not (flags.c_contiguous and flags.writeable):
            return False
        return True not in [np.may_share_memory(out, a) for a in given]


def signature(args: Sequence[object], named: Mapping[str, object]) -> Signature | None:
    """How arrays are passed, their shapes and dtypes; None where one is no plain NumPy array."""
    parts: list[object] = [len(args), *named]
    for array in (*args, *named.values()) if named else args:
        if type(array) is not np.ndarray:
            return None
        parts += (array.shape, array.dtype)
    return tuple(parts)


class Calls:
    """The last calls by their signatures; any thread may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Signature, Call] = OrderedDict()

    def get(self, key: Signature) -> Call | None:
        return self._known.get(key)

    def keep(self, key: Signature, call: Call) -> None:
        with self._lock:
            self._known[key] = call
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
