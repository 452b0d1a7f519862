"""Whether an array holds nothing but finite numbers, which plans that put zeros for no terms rely on."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt


def all_finite(array: npt.NDArray[Any]) -> bool:
    """Whether no element is an infinity or no number."""
    if array.dtype == np.float32:
        flat = array.ravel(order="K")
        if isfinite(np.vdot(flat, flat)):  # the fastest look; large numbers overflow as well
            return True
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
