"""Facts of machines: any that are legal, and those at which plans change on tiny shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from convdsl.machine.facts import Cpu, Gpu

# Values at which tiny shapes take the plans of large ones.
_CPU: Mapping[str, tuple[float, ...]] = {
    "threads": (1, 2, 3), "flops": (1e3, 1.0), "copy": (0.0, 1.0), "add": (0.0,),
    "transform": (0.0,), "store": (0.0,), "scattered": (0.0,), "near": (1, 64, 512, 4096),
    "far": (1, 8, 64, 512, 4096), "call": (0.0,), "wake": (0.0,),
}  # fmt: skip
_GPU: Mapping[str, tuple[float, ...]] = {
    "units": (1, 2), "flops": (1e3,), "bandwidth": (1e30, 1.0), "launch": (0.0,), "busy": (1,),
    "single": (1.0,), "full": (1, 64),
}  # fmt: skip


def cpus() -> st.SearchStrategy[Cpu]:
    return _facts(Cpu, _CPU)


def gpus() -> st.SearchStrategy[Gpu]:
    return _facts(Gpu, _GPU)


def _facts(kind: Any, some: Mapping[str, tuple[float, ...]]) -> st.SearchStrategy[Any]:
    """Records with facts that are typical, at the edges, or anything."""
    drawn = {f.name: _fact(f, some.get(f.name, ())) for f in fields(kind) if f.name != "origin"}
    return st.builds(kind, **drawn)


def _fact(field: Any, some: tuple[float, ...]) -> st.SearchStrategy[float]:
    least, most = field.metadata["least"], field.metadata["most"]
    legal: st.SearchStrategy[float] = st.floats(least, most)
    if isinstance(field.default, int):
        legal = st.integers(least, most)
    return st.sampled_from((field.default, *some, *some)) | legal
