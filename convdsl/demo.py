"""`python -m convdsl.demo`: the headline layer on every target of this machine, as a table.

The layer is the inverse STFT that made convdsl: x[8, 4098, 435], w[4098, 1, 4096], stride 1024. A
software adapter gets a scaled twin; it is there to show that the WGSL runs, not how fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from convdsl.cli import guarded, reported

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from convdsl.kernel import Kernel

    Array = np.ndarray[Any, np.dtype[Any]]

POSITIONS = 2000  # of the result, that are compared with float64
ROUNDS, ENOUGH = 5, 12.0  # measurements at most, and the seconds after which no more is begun


@dataclass(frozen=True, slots=True)
class Layer:
    """A transposed convolution with one output channel."""

    n: int
    c: int
    l: int  # noqa: E741, the operator's own name
    k: int
    stride: int

    def __str__(self) -> str:
        return f"x[{self.n},{self.c},{self.l}] w[{self.c},1,{self.k}] stride {self.stride}"

    @property
    def flops(self) -> int:
        return 2 * self.n * self.c * self.l * self.k

    @property
    def sizes(self) -> dict[str, int]:
        return {"N": self.n, "C": self.c, "L": self.l, "M": 1, "K": self.k}

    @property
    def length(self) -> int:
        return (self.l - 1) * self.stride + self.k

    def data(self) -> tuple[Array, Array]:
        """Random x and w, the same at every run."""
        import numpy as np

        generator = np.random.default_rng(0)
        x = generator.standard_normal((self.n, self.c, self.l), dtype=np.float32)
        return x, generator.standard_normal((self.c, 1, self.k), dtype=np.float32)


HEADLINE = Layer(8, 4098, 435, 4096, 1024)
TWIN = Layer(2, 258, 27, 256, 64)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; without seconds, `plan` says why."""

    where: str
    layer: str
    plan: str
    seconds: float | None = None
    flops: int = 0
    error: float | None = None


def main() -> int:
    """Print the operator, the table, and where to go next; returns the exit code."""
    return guarded(lambda: reported(_demo))


def _demo() -> int:
    from importlib.resources import files

    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 132
    text = files("convdsl.ops").joinpath("conv_transpose1d.cdsl").read_text("utf-8")
    console.print("[bold]The whole operator[/bold], convdsl/ops/conv_transpose1d.cdsl:\n")
    console.print(text, markup=False, soft_wrap=True)
    rows = [*numpy_rows(console), *wgsl_rows(console)]
    show(console, rows)
    return 0


def numpy_rows(console: Console) -> Iterator[Row]:
    """The layer by NumPy, and the bare matrix product in it, measured in turn."""
    import numpy as np

    from convdsl.machine.names import cores

    layer = HEADLINE
    where = f"numpy: CPU, {cores()} cores"
    with _doing(console, f"making the data of {layer}"):
        x, w = layer.data()
        matrix, product = w[:, 0, :].T, np.empty((layer.n, layer.k, layer.l), np.float32)
    with _doing(console, "compiling for NumPy"):
        kernel = _compile(layer, "numpy")
        out = np.empty((layer.n, 1, layer.length), np.float32)
    with _doing(console, "running on the CPU"):
        kernel(x, w, out=out)
        times = _in_turn(lambda: kernel(x, w, out=out), lambda: np.matmul(matrix, x, out=product))
    with _doing(console, "comparing with float64"):
        error = sampled_error(layer, x, w, out)
    yield Row(where, str(layer), _plan(kernel), times[0], layer.flops, error)
    bare = "bare np.matmul of the same size"
    yield Row(where, f"[{layer.k},{layer.c}] x {layer.n} x [{layer.c},{layer.l}]", bare,
              times[1], layer.flops)  # fmt: skip


def wgsl_rows(console: Console) -> Iterator[Row]:
    """The layer by WGSL on the preferred adapter; what to install where there is none."""
    from convdsl.backends.wgsl.runtime import get_device
    from convdsl.diagnostics import DeviceError

    layer, where = HEADLINE, "wgsl"
    try:
        with _doing(console, "looking for a device"):
            device = get_device()
        where = f"wgsl: {device.name}{', software' if device.info.is_software else ''}"
        layer = TWIN if device.info.is_software else HEADLINE
        with _doing(console, f"compiling to WGSL for {layer}"):
            x, w = layer.data()
            kernel = _compile(layer, "wgsl").bind(w=w)
        with _doing(console, f"running on {device.name}"):
            signal = kernel.upload(x)
            result = kernel.run(x=signal).numpy()
            seconds = kernel.time(repeat=ROUNDS, x=signal)
        error = sampled_error(layer, x, w, result)
    except DeviceError as error_:
        yield Row(where, str(layer), f"not run: {error_.message}\n{error_.help or ''}".rstrip())
        return
    yield Row(where, str(layer), _plan(kernel), seconds, layer.flops, error)


def sampled_error(layer: Layer, x: Array, w: Array, y: Array) -> float:
    """The relative L2 error of a result at up to `POSITIONS` positions, the edges among them."""
    import numpy as np

    last = layer.length - 1
    edge = {0, 1, layer.stride - 1, layer.stride, last - layer.stride + 1, last}
    edge &= set(range(layer.length))
    inside = np.setdiff1d(np.arange(layer.length), list(edge))
    count = min(inside.size, POSITIONS // layer.n - len(edge))
    chosen = np.random.default_rng(1).choice(inside, count, replace=False)
    positions = np.unique([*edge, *chosen.tolist()])
    wanted = np.empty((layer.n, positions.size))
    for place, o in enumerate(positions.tolist()):
        first, last = (
            max(0, -(-(o - layer.k + 1) // layer.stride)),
            min(layer.l - 1, o // layer.stride),
        )
        taps = np.arange(first, last + 1)
        signal = x[:, :, taps].astype(np.float64)
        wanted[:, place] = np.einsum("ncl,cl->n", signal, w[:, 0, o - taps * layer.stride])
    found = y[:, 0, positions].astype(np.float64)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def show(console: Console, rows: list[Row]) -> None:
    """The table, what its columns mean, and where to go next."""
    from rich.table import Table

    from convdsl.cli.plan_text import seconds

    table = Table(title="The headline layer: an inverse STFT, random float32", title_justify="left")
    for name in ("target", "layer", "plan"):
        table.add_column(name, overflow="fold")
    for name in ("time", "GFLOP/s", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        known = row.seconds is not None
        table.add_row(
            row.where,
            row.layer,
            row.plan,
            seconds(row.seconds) if row.seconds is not None else "-",
            f"{row.flops / row.seconds / 1e9:.4g}" if row.seconds else "-",
            f"{row.error:.2g}" if known and row.error is not None else "-",
        )
    console.print(table)
    console.print(
        "time: the median of a few calls; WGSL by the device's clock, weights bound, without\n"
        "      transfers\n"
        "GFLOP/s: nominal, 2 N C L K operations whatever the plan saves\n"
        f"error: relative L2, against float64 at {POSITIONS} of the result's positions, chosen at\n"
        "       random, with its edges and all batch entries\n"
    )
    console.print(
        "next:  convdsl new my_op                   a text to change\n"
        "       convdsl compile my_op.cdsl          its WGSL; --target numpy for NumPy\n"
        "       convdsl run my_op.cdsl --random x,w -D N=1 ...\n"
        "       README.md, docs/                    the language, and how it gets fast",
        markup=False,
    )


def _compile(layer: Layer, target: str) -> Kernel:
    from importlib.resources import files

    import convdsl

    text = files("convdsl.ops").joinpath("conv_transpose1d.cdsl").read_text("utf-8")
    params = {"stride": layer.stride}
    return convdsl.compile(text, target=target, sizes=layer.sizes, params=params)


def _plan(kernel: Kernel) -> str:
    plan = kernel.plan
    return plan.algorithm + (f", {plan.tiles}" if plan.tiles else "")


def _in_turn(*calls: Callable[[], object]) -> list[float]:
    """The median seconds of some calls, measured in turn."""
    from convdsl.bench.timing import Entrant, HostTimed, Rules, measure, seconds_of

    entrants = [Entrant(HostTimed(lambda _, call=call: call())) for call in calls]  # type: ignore[misc]
    measure(entrants, Rules(ROUNDS, ENOUGH))
    for entrant in entrants:
        if entrant.failure is not None:
            raise entrant.failure
    return [seconds_of(entrant.samples)[0] or 0.0 for entrant in entrants]


@contextmanager
def _doing(console: Console, what: str) -> Iterator[None]:
    """Say what goes on: a spinner on a terminal, else a line."""
    if not console.is_terminal:
        print(f"{what} ...", file=sys.stderr, flush=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


if __name__ == "__main__":
    sys.exit(main())
