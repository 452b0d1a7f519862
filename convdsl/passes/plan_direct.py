"""Whether a product of few terms is faster without workgroup memory, each thread for itself, on a GPU.

A tile has to be filled before the first term is added; where there are few that takes as long as adding
them up. The constants are fitted to ten layers on one large GPU, where the way that was chosen took at
most 1.03 of the time of the other one.
"""

from __future__ import annotations

from convdsl.machine.facts import Gpu
from convdsl.passes.contraction import Contraction
from convdsl.passes.plan_toom import ToomPlan
from convdsl.passes.tiles import estimate, reads_of, shape_of, stores_apart

MOST_TERMS = 128
# Of the rate of tiles, where results are stored as vectors, or one at a time.
RATE, RATE_APART = 0.3, 0.5
WAIT = 25e-9  # seconds a term of a thread, which waits for what it reads
TRANSFORM = 1.2  # the time of a transform of few terms over the estimated one


def direct_pays(gemm: Contraction, gpu: Gpu, toom: ToomPlan | None) -> bool:
    """Whether neither tiles nor the transform, where there is one, are estimated to be as fast."""
    shape = shape_of(gemm)
    if shape is None or shape.k > MOST_TERMS or gemm.reduction.dtype != "f32":
        return False
    apart = stores_apart(gemm.piece)
    tiled = estimate(gpu, shape, reads_of(gemm), apart)
    others = [tiled, *([TRANSFORM * toom.ratio * tiled] if toom is not None else [])]
    work = 2 * shape.batch * shape.m * shape.n * shape.k
    rate = gpu.flops * (RATE_APART if apart else RATE)
    return gpu.launch / 2 + work / rate + WAIT * shape.k < min(others)
