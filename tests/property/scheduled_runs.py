"""Run a scheduled program in the interpreter, beside the definition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.verify import verify
from convdsl.lowering.kernels import lower_wgsl
from convdsl.passes.normalise import normalise
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.schedule import Schedule
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.syntax.parser import parse


def check_scheduled(text: str, schedule: str, sizes: Mapping[str, int]) -> None:
    """The scheduled program is sound, and gives the definition's values on integers."""
    system = normalise(instantiate(resolve(parse(text)), {}, sizes))
    program = lower_wgsl(Schedule.parse(schedule).replay(system), WorkgroupLimits(64, 16384))
    verify(program)
    random = np.random.default_rng(0)
    arrays = {
        t.name: random.integers(-3, 4, [d.as_int() or 0 for d in t.shape]).astype(np.float64)
        for t in system.inputs
    }
    found = run_program(program, arrays, {})["y"]
    want = np.asarray(evaluate_system(system, arrays, {})["y"])
    np.testing.assert_array_equal(found.reshape(-1), want.reshape(-1), err_msg=str(sizes))
