"""Facts of the CPU under NumPy, measured in a few seconds by what generated modules are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

from convdsl.machine.facts import TYPICAL_CPU, Cpu
from convdsl.machine.names import cores, identity
from convdsl.machine.timing import Say, plausible, seconds_of

ENOUGH = 0.15  # seconds of one measurement
SIDE = 1024  # of a large product
FEW, OTHERS = (8, 32, 64), 256  # rows of others, and their other sides
BATCH, SMALL = 64, 32  # products, and the side of each
PASS = 2**16  # elements that stay in a cache
MEMORY = 2**23  # elements that do not
POINTS, STEP, CHANNELS, TILES = 8, 4, 32, 2**11  # of transforms: STEP results by POINTS products
TOGETHER = 64  # results that are neighbours
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
OF_ALL = 16 * 2**20  # bytes of the common cache: others use it, too


def measure_cpu(say: Say, enough: float = ENOUGH) -> Cpu:
    """The facts of this machine's CPU.

    Raises:
        DeviceError: when a number cannot be right.
    """
    say("products of matrices")
    with _one_thread():
        rates = _products(enough)
        say("transforms")
        passes = _transforms(enough)
    flops = plausible("FLOP/s of a core", max(rates.values()), 1e8, 1e13)
    say("copies and additions")
    passes |= _passes(enough)
    say("calls and threads")
    call, wake = _call(enough), _wake(enough)
    near, far = _caches()
    rates |= {f"elements/s: {n}": 1 / s for n, s in passes.items()}
    rates |= {"calls/s": 1 / call, "threads woken/s": 1 / wake}
    found = replace(
        TYPICAL_CPU,
        threads=min(cores(), 1024),
        flops=flops,
        half=_half(rates, flops),
        copy=_element(passes, "copy"),
        add=_element(passes, "add"),
        transform=_element(passes, "transform"),
        store=_element(passes, "store"),
        scattered=_element(passes, "scattered"),
        call=plausible("seconds of a call", call, 1e-8, 1e-3),
        wake=plausible("seconds to wake a thread", wake, 1e-7, 1e-2),
    )
    typical: tuple[str, ...] = ("near", "far")
    if near and far:
        found, typical = replace(found, near=near, far=far), ()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    said = tuple(sorted(rates.items()))
    origin = replace(identity("cpu"), measured=when, rates=said, typical=typical)
    return replace(found, origin=origin)


def _element(passes: Mapping[str, float], name: str) -> float:
    return plausible(f"seconds of `{name}`", passes[name], 1e-12, 1e-6)


@contextmanager
def _one_thread() -> Iterator[None]:
    """BLAS on one thread, where it can be set, as in the worker loops of generated modules."""
    from convdsl.backends.numpy.threads import ON_THREADS, PRODUCTS_ON_THREADS, imports

    lines = imports({"_on_threads", "_products_on_threads"})
    helpers: dict[str, Any] = {"np": np}
    exec("\n".join([*lines, ON_THREADS, PRODUCTS_ON_THREADS]), helpers)  # our own text
    call = object()
    helpers["_hold"](call)
    try:
        yield
    finally:
        helpers["_let_go"](call)


def _name(batch: int, m: int, n: int, k: int) -> str:
    return f"FLOP/s: {f'{batch} times ' if batch > 1 else ''}{m}x{n}x{k}"


def _products(enough: float) -> dict[str, float]:
    """Rates of products: a large one, with few rows, and many small ones."""
    shapes = [(1, SIDE, SIDE, SIDE), *((1, m, OTHERS, OTHERS) for m in FEW)]
    rates = {}
    for shape in (*shapes, (BATCH, SMALL, SMALL, SMALL)):
        batch, m, n, k = shape
        a, b = np.ones((batch, m, k), np.float32), np.ones((batch, k, n), np.float32)
        out = np.empty((batch, m, n), np.float32)
        taken = seconds_of(lambda a=a, b=b, out=out: np.matmul(a, b, out=out), enough)  # type: ignore[misc]
        rates[_name(*shape)] = 2 * prod(shape) / taken
    return rates


def _half(rates: dict[str, float], flops: float) -> int:
    """The rows at which the rate is half, from those of products with few."""
    found = [m * (flops / rates[_name(1, m, OTHERS, OTHERS)] - 1) for m in FEW]
    return round(min(max(median(found), 1), 512))


def _transforms(enough: float) -> dict[str, float]:
    """Seconds an element of the transforms of data and of results, by the name of the fact.

    As in generated modules: windows are copied, and a small matrix is multiplied to them. Results that
    stay together are made by small products; others are made apart, and then put among each other.
    """
    matrix = np.ones((POINTS, POINTS), np.float32)
    data = np.ones((CHANNELS, STEP * TILES + POINTS), np.float32)
    rows = np.empty((POINTS, CHANNELS, TILES), np.float32)
    out = np.empty((POINTS, CHANNELS * TILES), np.float32)
    results = np.empty((STEP, CHANNELS * TILES), np.float32)
    among = np.empty((CHANNELS, STEP * TILES), np.float32)

    def transform() -> None:
        rows[...] = 0
        for u in range(POINTS):
            np.copyto(rows[u], data[:, u : u + STEP * TILES : STEP])
        np.matmul(matrix, rows.reshape(POINTS, -1), out=out)

    def store() -> None:
        products = out.reshape(POINTS, -1, TOGETHER).swapaxes(0, 1)
        np.matmul(matrix[:STEP], products, out=results.reshape(-1, STEP, TOGETHER))

    def scattered() -> None:
        apart = results.reshape(TILES, STEP, CHANNELS)
        into = apart.transpose(1, 2, 0).reshape(STEP, CHANNELS, 1, TILES)
        np.matmul(matrix[:STEP].reshape(STEP, 1, 1, POINTS), rows.swapaxes(0, 1), out=into)
        np.copyto(among, apart.reshape(-1, CHANNELS).T)

    return {
        "transform": seconds_of(transform, enough) / out.size,
        "store": seconds_of(store, enough) / results.size,
        "scattered": seconds_of(scattered, enough) / results.size,
    }


def _passes(enough: float) -> dict[str, float]:
    """Seconds an element of an addition, in the caches and in memory, by the name of the fact."""
    x, y = np.zeros(PASS, np.float32), np.zeros(PASS, np.float32)
    a, b = np.zeros(MEMORY, np.float32), np.zeros(MEMORY, np.float32)
    return {
        "copy": seconds_of(lambda: np.add(x, y, out=y), enough) / PASS,
        "add": seconds_of(lambda: np.add(a, b, out=b), enough) / MEMORY,
    }


def _call(enough: float) -> float:
    """Seconds that NumPy takes for next to nothing."""
    x = np.zeros(4, np.float32)
    return seconds_of(lambda: np.add(x, x, out=x), enough)


def _wake(enough: float) -> float:
    """Seconds until a thread that waits has done nothing and said so."""
    asked: SimpleQueue[bool] = SimpleQueue()
    answered: SimpleQueue[bool] = SimpleQueue()

    def serve() -> None:
        while asked.get():
            answered.put(True)

    thread = Thread(target=serve, daemon=True)
    thread.start()

    def work() -> None:
        asked.put(True)
        answered.get()

    try:
        return seconds_of(work, enough)
    finally:
        asked.put(False)
        thread.join()


def _caches() -> tuple[int, int]:
    """Bytes near a core and of all, as the system states them; zeros where it does not.

    Near are its own cache and as much of the common one, at most its share.
    """
    own, common, sharing = 0, 0, 1
    try:
        for folder in sorted(CACHES.glob("index*")):
            text = {n: (folder / n).read_text().strip() for n in ("level", "type", "size")}
            size = re.fullmatch(r"([0-9]+)K", text["size"])
            if text["type"] == "Instruction" or size is None:
                continue
            if text["level"] == "2":
                own = int(size[1]) * 1024
            elif text["level"] == "3":
                common = int(size[1]) * 1024
                sharing = _count((folder / "shared_cpu_list").read_text())
    except (OSError, ValueError):
        return 0, 0
    if not own:
        return 0, 0
    near = own + min(own, common // sharing)
    return near, max(near, min(common // 2, OF_ALL))


def _count(text: str) -> int:
    """How many processors a list like `0-3,8` has."""
    spans = [part.split("-") for part in text.strip().split(",")]
    return max(1, sum(int(s[-1]) - int(s[0]) + 1 for s in spans))
