"""Thresholds of the compiler, drawn so that tiny shapes take the plans of large ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from convdsl.budget import CAP
from convdsl.machine.facts import TYPICAL, Machine
from convdsl.passes import (
    numpy_cut,
    numpy_partial,
    plan,
    plan_toeplitz,
    plan_toom,
    plan_toom_cpu,
    sides,
    tiles,
    whole_matrix,
)
from convdsl.passes.tiles import Tiles
from convdsl.schedule import (
    chunks_numpy,
    columns_numpy,
    default,
    default_numpy,
    default_windows,
    numpy_results,
    slices_numpy,
)
from tests.strategies.machines import cpus, gpus

_TILES = (
    Tiles(8, 8, 4, 4, 4), Tiles(16, 8, 4, 8, 4), Tiles(8, 16, 4, 4, 8), Tiles(4, 16, 4, 4, 4),
    Tiles(16, 4, 4, 4, 4), Tiles(8, 8, 2, 4, 4),
)  # fmt: skip
_NUMPY: Mapping[str, tuple[float, ...]] = {
    "BLOCK": (1, 2, 3, columns_numpy.BLOCK), "ROWS": (1, 8, columns_numpy.ROWS),
    "BLOCKS": (1, columns_numpy.BLOCKS), "FEWEST_POSITIONS": (1, 3),
    "SHORT": (1, 2, 8, columns_numpy.SHORT), "LONG_PHASES": (1, 2, sides.LONG_PHASES),
    "TAPS": (1, 2, 3, numpy_partial.TAPS), "ROW": (1, 2, numpy_partial.ROW),
    "NARROW_PRODUCT": (1, numpy_cut.NARROW_PRODUCT), "VECTOR": (1, 3, numpy_cut.VECTOR),
    "SMALL_PRODUCT": (1, 8, numpy_cut.SMALL_PRODUCT), "TERMS": (1, 4, 16, numpy_cut.TERMS),
    "LEAST_ROWS": (1, plan_toom_cpu.LEAST_ROWS),
    "TERMS_BLOCK": (1, 2, 3, plan_toom_cpu.TERMS_BLOCK),
    "WASTE": (1e30, sides.WASTE),
    "FEWEST": (1, 2, chunks_numpy.FEWEST), "MOST": (1, 3, chunks_numpy.MOST),
    "FEWEST_OF_LARGE": (1, 3), "FEW_ROWS": (1, 64), "FEWEST_ROWS": (1, 2), "LINE": (1, 2, 16),
    "MOST_PASSES": (4, slices_numpy.MOST_PASSES), "TERM": (0.0, 1.0, whole_matrix.TERM),
    "WORTH": (0.0, 1e30, 1e30), "LONGEST": (1, 2, 4, 8, plan_toeplitz.LONGEST),
    "RUN": (0.0, plan_toeplitz.RUN), "MATRIX": (0.0, plan_toeplitz.MATRIX),
    "CPU_WIDTH": (1, plan.CPU_WIDTH), "CPU_DEPTH": (1, 2, plan.CPU_DEPTH),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Values by the name of a module's constant, wherever a module has that name, and a machine."""

    values: Mapping[str, Any]
    modules: tuple[ModuleType, ...]
    cap: int = CAP
    machine: Machine = TYPICAL

    @contextmanager
    def hold(self) -> Iterator[None]:
        """While these are the compiler's own."""
        with ExitStack() as stack:
            for module in self.modules:
                for name, value in self.values.items():
                    if hasattr(module, name):
                        stack.enter_context(mock.patch.object(module, name, value))
            yield


@st.composite
def for_wgsl(draw: st.DrawFn) -> Thresholds:
    tile = draw(st.sampled_from(_TILES))
    gpu = draw(gpus())
    values = {
        "GPU_DEPTH": draw(st.integers(1, 2)),
        "GPU_SIDE": draw(st.integers(1, 2)),
        "GAIN": draw(st.sampled_from([0.0, 1e30])),
        "CANDIDATES": ((tile, 1.0),),
        "LEAST_TERMS": 2,
        "LEAST_LENGTH": 1,
        "LONG": draw(st.sampled_from([2, 3, default.LONG])),
        "FEWEST_TERMS": draw(st.integers(1, 3)),
        "FLUSH": max(tile.k, draw(st.sampled_from([4, 8, 16]))),
    }
    return Thresholds(
        values, (plan, plan_toom, tiles, default, default_windows), machine=Machine(gpu=gpu)
    )


@st.composite
def for_numpy(draw: st.DrawFn) -> Thresholds:
    values: dict[str, Any] = {n: draw(st.sampled_from(some)) for n, some in _NUMPY.items()}
    values["GAIN"] = draw(st.sampled_from([0.9, 1e30]))
    cap = draw(st.sampled_from([1, 64, 256, 4096, CAP]))
    modules = (
        plan, plan_toom, plan_toom_cpu, sides, numpy_partial, numpy_cut, default_numpy, chunks_numpy,
        columns_numpy, slices_numpy, numpy_results, whole_matrix, plan_toeplitz,
    )  # fmt: skip
    return Thresholds(values, modules, cap, Machine(draw(cpus())))
