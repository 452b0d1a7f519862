"""Whether arrays hold nothing but finite numbers, which plans that put zeros for no terms rely on."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Finite:
    """Looks through arrays; through those that nobody can write to, bound ones, only once."""

    def __init__(self) -> None:
        self._seen: dict[int, ref[Array]] = {}

    def __call__(self, array: Array) -> bool:
        seen = self._seen.get(id(array))
        if seen is not None and seen() is array:
            return True
        found = all_finite(array)
        if found and not array.flags.writeable and array.base is None:
            key = id(array)
            self._seen[key] = ref(array, lambda _: self._seen.pop(key, None))
        return found


def all_finite(array: Array) -> bool:
    """Whether no element is an infinity or no number."""
    if array.dtype.kind != "f":
        return True
    if array.dtype == np.float32:
        flat = array.ravel(order="K")
        with np.errstate(all="ignore"):
            if np.isfinite(np.dot(flat, flat)):  # the fastest look; large numbers overflow as well
                return True
    return bool(np.isfinite(array).all())
