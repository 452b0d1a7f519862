"""How far results are from float64: from the whole definition where it is small, else at places.

The places are the corners of the result, random ones, and those at which the contestants differ the
most: who is wrong in a corner of its own is found out by the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import inf, isfinite, prod
from typing import Any

import numpy as np

from convdsl.arguments import Array
from convdsl.bench.layer import Layer
from convdsl.ir.evaluate import evaluate_at, evaluate_system
from convdsl.ir.index import Index

WHOLE = 20_000_000  # operations up to which the definition is evaluated everywhere
PLACES = 256  # random places otherwise
DIFFERENT = 4  # places of the largest differences between each two
# Relative L2 error that nothing comes near unless it is wrong; the largest error may be SPREAD
# times as much, since it is one of many.
BOUND = {"f32": 1e-4, "tf32": 5e-3, "f16": 1e-2, "i32": 0.0}
SPREAD = 50


@dataclass(frozen=True, slots=True)
class Error:
    """Against float64: the L2 norm of the difference over that of the result, the largest difference
    over the result's root mean square, and at how many places.
    """

    l2: float
    largest: float
    places: int

    def within(self, kind: str) -> bool:
        """Whether a result of this precision may have it."""
        return self.l2 <= BOUND[kind] and self.largest <= SPREAD * BOUND[kind]

    def to_json(self) -> dict[str, Any]:
        """JSON has no infinity: null stands for it."""
        return {n: v if isfinite(v) else None for n, v in asdict(self).items()}


def worst(errors: Sequence[Error]) -> Error:
    """The largest of each."""
    return Error(
        max(e.l2 for e in errors), max(e.largest for e in errors), sum(e.places for e in errors)
    )


def difference(result: Array, wanted: Array) -> Error:
    """The error of a result; infinite for another shape, and where what is no number differs."""
    places = wanted.size
    finite = np.isfinite(wanted)
    if result.shape != wanted.shape or not np.array_equal(
        result[~finite], wanted[~finite].astype(result.dtype), equal_nan=True
    ):
        return Error(inf, inf, places)
    off = np.abs(result[finite].astype(np.float64) - wanted[finite])
    if not off.size:
        return Error(0.0, 0.0, places)
    if not np.isfinite(off).all():
        return Error(inf, inf, places)
    norm, size = float(np.linalg.norm(wanted[finite])), off.size
    scale = (norm or 1.0) / (size**0.5 if norm else 1.0)
    return Error(float(np.linalg.norm(off)) / (norm or 1.0), float(off.max()) / scale, places)


def errors_of(
    layer: Layer, arrays: Mapping[str, Array], flops: int, results: Mapping[str, Array]
) -> dict[str, Error]:
    """The error of each result of the layer on these arrays, by name."""
    system = layer.system()
    shape = tuple(number(e) for e in system.output.shape)
    if not prod(shape):
        return {
            name: Error(0.0 if r.shape == shape else inf, 0.0, 0) for name, r in results.items()
        }
    right = {name: r for name, r in results.items() if r.shape == shape}
    whole = flops <= WHOLE
    if whole:
        wanted = evaluate_system(system, arrays)[system.output.name].ravel()
        places = np.arange(wanted.size)
    else:
        places = _places(shape, list(right.values()))
        wanted = evaluate_at(system, arrays, places.tolist())
    return {
        name: difference(r.ravel()[places], wanted) if name in right else Error(inf, inf, 0)
        for name, r in results.items()
    }


def _places(shape: tuple[int, ...], results: list[Array]) -> Array:
    size = prod(shape)
    corners = [np.ravel_multi_index(c, shape) for c in product(*({0, s - 1} for s in shape))]
    random = np.random.default_rng(2).integers(0, size, PLACES)
    apart: list[int] = []
    for result in results[1:]:
        with np.errstate(all="ignore"):
            off = np.abs(result.ravel().astype(np.float64) - results[0].ravel())
        off[~np.isfinite(off)] = inf
        count = min(DIFFERENT, size)
        apart += np.argpartition(off, size - count)[size - count :].tolist()
    return np.unique(np.array([*corners, *random.tolist(), *apart], np.int64))


def number(index: Index) -> int:
    """An extent whose sizes all have numbers."""
    value = index.as_int()
    assert value is not None
    return value
