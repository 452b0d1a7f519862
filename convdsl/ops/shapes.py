"""What the shapes of a convolution's arrays must be, checked before anything is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from convdsl.arguments import Array, import_array
from convdsl.diagnostics import CdslError
from convdsl.syntax.ast import DType


def arrays(**values: Any) -> tuple[dict[str, Array], DType]:
    """The given values as arrays, without copies, and the dtype they call for.

    All f16 runs in f16 (sums in f32, one rounding); else f16 is widened. The kernel refuses other
    dtypes.

    Raises:
        CdslError: E0353 for a value that is no array in host memory.
    """
    given = {name: import_array(name, v) for name, v in values.items() if v is not None}
    half = all(a.dtype == np.float16 and a.dtype.isnative for a in given.values())
    return given, "f16" if half else "f32"


def batched(op: str, x: Array, axes: str) -> tuple[Array, bool]:
    """The data with a batch axis, and whether it had none. `axes` is the layout: "NCL".

    Raises:
        CdslError: E0374 for another rank.
    """
    if x.ndim == len(axes):
        return x, False
    if x.ndim == len(axes) - 1:
        return x[None], True
    raise CdslError(
        "E0374",
        f"`x` of `{op}` has rank {x.ndim}: {list(x.shape)}",
        help=f"allowed: [{', '.join(axes)}], or [{', '.join(axes[1:])}] without the batch axis",
    )


def check_convolution(
    op: str, channels: int, w: Array, b: Array | None, groups: int, *, transposed: bool, rank: int
) -> None:
    """Weights, bias and groups fit the channels of the data.

    Raises:
        CdslError: E0374 with the numbers that disagree.
    """

    def wrong(message: str, help: str | None = None) -> CdslError:
        order = "channels in, channels out" if transposed else "channels out, channels in"
        taps = "kernel" if rank == 1 else "kernel height, kernel width"
        note = f"x has {channels} channels, w is {list(w.shape)}, groups = {groups}"
        help = help or f"`w` is [{order} / groups, {taps}], as in PyTorch"
        return CdslError("E0374", message, notes=(note,), help=help)

    if w.ndim != rank + 2:
        raise wrong(f"`w` of `{op}` has rank {w.ndim}: {list(w.shape)}")
    if 0 in w.shape[2:]:
        raise wrong(f"the kernel of `{op}` has no taps: `w` is {list(w.shape)}")
    if channels % groups:
        raise wrong(
            f"`groups` of `{op}` is {groups}, which does not divide the {channels} channels of `x`",
            f"allowed: {_divisors(channels)}",
        )
    taken = w.shape[0] if transposed else w.shape[1] * groups
    if taken != channels:
        raise wrong(f"`w` of `{op}` takes {taken} channels, `x` has {channels}")
    out = w.shape[1] * groups if transposed else w.shape[0]
    if out % groups:
        raise wrong(
            f"`groups` of `{op}` is {groups}, which does not divide the {out} channels out of `w`",
            f"allowed: {_divisors(out)}",
        )
    if b is not None and b.shape != (out,):
        raise wrong(
            f"`b` of `{op}` is {list(b.shape)}, the channels out are {out}",
            f"allowed: [{out}], one number for each channel out",
        )


def _divisors(channels: int) -> str:
    found = [str(g) for g in range(1, min(channels, 4096) + 1) if channels % g == 0]
    return ", ".join(found) or "none"
