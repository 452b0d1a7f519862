"""convdsl itself: each target asked for, with the chosen plan and perhaps with all others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from convdsl.api import ALGORITHMS, compile
from convdsl.backends.base import NUMPY_TYPES
from convdsl.bench.ceilings import cpu_ceilings, wgsl_ceilings
from convdsl.bench.contestant import Calls, Contestant, Prepared, Settings, Unfit
from convdsl.bench.data import Data
from convdsl.bench.error import number
from convdsl.bench.layer import Layer
from convdsl.bench.machine import facts_of
from convdsl.bench.resident import Resident
from convdsl.kernel import Kernel
from convdsl.machine.names import cores


def ours(
    target: str, settings: Settings, schedule: Path | None = None, plans: bool = False
) -> list[Contestant]:
    """The rows of a target: the plan that is chosen, and with `plans` every other that is possible.

    Raises:
        DeviceError: when WGSL is asked for and there is no adapter.
    """
    facts = facts_of(target)
    threads = settings.threads or cores()
    ceilings = wgsl_ceilings if target == "wgsl" else partial(cpu_ceilings, threads)

    def prepare(layer: Layer, data: Data, algorithm: str | None) -> Prepared:
        given = schedule if algorithm is None else None
        kernel = _kernel(target, settings, given, layer, data, algorithm)
        if algorithm is not None:
            chosen = _kernel(target, settings, None, layer, data, None)
            if kernel.plan.algorithm != algorithm:
                raise Unfit("this plan is not possible")
            if schedule is None and kernel.plan.algorithm == chosen.plan.algorithm:
                raise Unfit("it is the chosen plan")
        if target == "wgsl":
            return Resident(kernel, data.sets, _plan(kernel))
        return _in_host_memory(kernel, data)

    def row(algorithm: str | None) -> Contestant:
        name = f"convdsl {target}" if algorithm is None else f"convdsl {target}, {algorithm}"
        return Contestant(
            name, facts, lambda layer, data: prepare(layer, data, algorithm), "ours",
            ceilings=ceilings if algorithm is None else None,
        )  # fmt: skip

    return [row(None), *(row(name) for name in ALGORITHMS if plans)]


def _kernel(
    target: str,
    settings: Settings,
    schedule: Path | None,
    layer: Layer,
    data: Data,
    algorithm: Any,
) -> Kernel:
    kernel = compile(
        layer.program, op=layer.op.name, target=target, sizes=layer.sizes, params=layer.params,
        schedule=schedule, accuracy=settings.accuracy, limits=settings.limits, cap=settings.cap,
        absent=layer.absent, algorithm=algorithm, machine=settings.machine,
    )  # fmt: skip
    return kernel.bind(**data.constants)


def _plan(kernel: Kernel) -> str:
    plan = kernel.plan
    return plan.algorithm + (f" {plan.tiles}" if plan.tiles else "")


def _in_host_memory(kernel: Kernel, data: Data) -> Prepared:
    """Called with arrays, the result into one that is there already."""
    names = [t.name for t in kernel.inputs if t.name in data.sets[0]]
    given = [[arrays[n] for n in names] for arrays in data.sets]
    first = kernel(*given[0])
    out = np.empty_like(first)
    prepared = Calls(
        lambda which: kernel(*given[which], out=out),
        lambda which: kernel(*given[which]),
        len(given),
        plan=_plan(kernel),
    )
    prepared.schedule = kernel.schedule
    return prepared


def nominal(layer: Layer) -> tuple[int, int]:
    """Operations of the definition, and bytes of inputs and result, each once."""
    plan = compile(
        layer.program, op=layer.op.name, target="numpy", sizes=layer.sizes, params=layer.params,
        absent=layer.absent,
    ).plan  # fmt: skip
    return plan.flops or 0, plan.bytes_moved or _bytes(layer)


def _bytes(layer: Layer) -> int:
    system = layer.system()
    tensors: Sequence[Any] = [t for t in system.tensors if t.role != "let"]
    return sum(number(t.elements) * NUMPY_TYPES[t.dtype].itemsize for t in tensors)
