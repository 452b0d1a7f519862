"""Matrix products in worker loops of generated NumPy modules, and the threads of BLAS meanwhile."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.backends.numpy.backend import NumpyExecutable
from convdsl.backends.numpy.module import NumpyModule, namespace_of
from tests.unit.api_programs import Array

UP = """
op up(x: f32[N, C, L], w: f32[C, M, K]) -> y: f32[N, M, O]
where O == (L - 1)*4 + K,
      K >= 1
{
    y[n, m, o] = sum[c, k, l | l*4 + k == o] x[n, c, l] * w[c, m, k]
}

schedule up for numpy {
    STEPS
}
"""
INSIDE = """\
phases y over o, k -> t, r, j
    order y: n, j, m, r, t, c
    map y: n -> worker, j -> host, m -> gemm, r -> gemm, t -> gemm, c -> gemm"""
COMPUTED = """\
columns y -> col
    phases y over o, k -> t, r, j
    order col: n, m, k, l, c
    map col: n -> gemm, m -> gemm, k -> gemm, l -> gemm, c -> gemm
    split y: t by 8 -> tb, ti
    order y: tb, n, j, m, r, ti
    map y: tb -> worker, n -> host, j -> host
    compute col at y: n"""
SIZES = {"N": 12, "C": 5, "M": 3, "L": 40, "K": 9}


def _module(steps: str = COMPUTED, sizes: dict[str, int] | None = None) -> NumpyModule:
    kernel = convdsl.compile(UP.replace("STEPS", steps), sizes=SIZES if sizes is None else sizes)
    executable = kernel.executable
    assert isinstance(executable, NumpyExecutable)
    return executable.module


def _arrays() -> tuple[Array, Array]:
    """Small whole numbers, so that sums are exact in any order."""
    generator = np.random.default_rng(3)
    x = generator.integers(-9, 9, (12, 5, 40)).astype(np.float32)
    return x, generator.integers(-9, 9, (5, 3, 9)).astype(np.float32)


class Blas:
    """Stands in for OpenBLAS: its number of threads, and all that it was set to."""

    def __init__(self, count: int) -> None:
        self.count, self.puts = count, list[int]()

    def get(self) -> int:
        return self.count

    def put(self, count: int) -> None:
        self.count = count
        self.puts.append(count)


Names = dict[str, Any]


def _load(
    patch: pytest.MonkeyPatch, module: NumpyModule, blas: Blas | None, processors: int = 4
) -> Names:
    """The first module of a process with such a BLAS (None: with one that cannot be set)."""
    patch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    patch.delitem(sys.modules, "_convdsl_threads", raising=False)
    names = namespace_of(module)
    names["_SHARED"].blas = () if blas is None else (blas.get, blas.put)
    return names


def _run(names: Names, function: Callable[[int], Any], count: int = 8) -> None:
    names["_products_on_threads"](lambda: function, range(count))


def _threads_of(names: Names, count: int) -> int:
    """How many threads a call takes that could use `count`; each waits a while for all to come."""
    found, barrier = set[int](), threading.Barrier(count)

    def function(i: int) -> None:
        found.add(threading.get_ident())
        try:
            barrier.wait(2)
        except threading.BrokenBarrierError:
            return

    _run(names, function, count)
    return len(found)


@pytest.mark.parametrize("steps", [INSIDE, COMPUTED])
def test_results_are_those_of_the_loop_on_the_host(
    steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serial = _module(steps.replace("-> worker", "-> host"))
    assert "_on_threads" not in serial.text
    arrays = _arrays()
    want = namespace_of(serial)["up"](*arrays)
    module = _module(steps)
    assert "_products_on_threads(each_" in module.text
    for count in (1, 2, 3, 8):
        blas = Blas(count)
        names = _load(monkeypatch, module, blas, 8)
        for _ in range(5):
            assert names["up"](*arrays).tobytes() == want.tobytes()
        assert blas.count == count


def test_the_same_with_the_blas_of_numpy() -> None:
    """As it is on this machine; it has its threads again afterwards."""
    names = namespace_of(_module())
    found = names["_find_blas"]()
    before = found and found[0]()
    arrays = _arrays()
    want = namespace_of(_module(COMPUTED.replace("tb -> worker", "tb -> host")))["up"](*arrays)
    assert names["up"](*arrays).tobytes() == want.tobytes()
    assert (found and found[0]()) == before


def test_the_openblas_of_a_wheel_is_found() -> None:
    package = Path(np.__file__).parent
    files = [*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]
    found = namespace_of(_module())["_find_blas"]()
    assert bool(found) == bool(files)
    assert not found or found[0]() >= 1


def test_blas_has_one_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    blas, seen = Blas(4), list[int]()
    names = _load(monkeypatch, _module(), blas)
    _run(names, lambda i: seen.append(blas.count))
    assert seen == [1] * 8
    assert blas.puts == [1, 4]


@pytest.mark.parametrize(("allowed", "processors"), [(3, 8), (8, 3), (8, 8)])
def test_as_many_threads_as_blas_and_the_process_may_have(
    allowed: int, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = _load(monkeypatch, _module(), Blas(allowed), processors)
    most = min(allowed, processors)
    assert _threads_of(names, most) == most
    assert names["_SHARED"].threads == most - 1


@pytest.mark.parametrize(
    ("blas", "processors"), [(Blas(1), 8), (Blas(8), 1), (None, 8)], ids=["limit", "one", "fixed"]
)
def test_one_thread_runs_in_order_and_sets_nothing(
    blas: Blas | None, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = _load(monkeypatch, _module(), blas, processors)
    ran = list[tuple[int, int]]()
    _run(names, lambda i: ran.append((i, threading.get_ident())))
    assert ran == [(i, threading.get_ident()) for i in range(8)]
    assert names["_SHARED"].threads == 0
    assert blas is None or blas.puts == []


def test_one_iteration_keeps_the_threads_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    blas, seen = Blas(4), list[int]()
    _run(_load(monkeypatch, _module(), blas), lambda i: seen.append(blas.count), 1)
    assert (seen, blas.puts) == ([4], [])


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", [0, 5])
def test_an_error_gives_the_threads_back(
    error: type[BaseException], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blas = Blas(4)
    names = _load(monkeypatch, _module(), blas)

    def function(i: int) -> None:
        if i == at:
            raise error

    with pytest.raises(error):
        _run(names, function)
    with pytest.raises(MemoryError):
        names["_products_on_threads"](_no_room, range(5))
    assert blas.count == 4
    assert not names["_SHARED"].holders


def _no_room() -> Callable[[int], None]:
    raise MemoryError


def test_calls_at_once_share_one_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several modules too: the first sets, the last gives back, and all may have threads."""
    blas = Blas(3)
    first = _load(monkeypatch, _module(), blas)
    second = namespace_of(_module(INSIDE))
    assert second["_SHARED"] is first["_SHARED"]
    inside, leave = threading.Event(), threading.Event()

    def wait(i: int) -> None:
        inside.set()
        leave.wait(60)

    with ThreadPoolExecutor(1) as other:
        call = other.submit(_run, first, wait, 2)
        assert inside.wait(60)
        seen = list[int]()
        _run(second, lambda i: seen.append(blas.count))
        assert _threads_of(second, 2) == 2
        assert seen == [1] * 8
        assert blas.puts == [1]
        leave.set()
        call.result(60)
    assert blas.puts == [1, 3]


def test_many_calls_at_once_and_inside_of_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    blas, arrays = Blas(3), _arrays()
    names = _load(monkeypatch, _module(), blas)
    want = names["up"](*arrays)

    def check(_: int) -> None:
        assert (names["up"](*arrays) == want).all()

    with ThreadPoolExecutor(8) as callers:
        for done in [callers.submit(check, i) for i in range(60)]:
            done.result(timeout=60)
    _run(names, lambda i: _run(names, check, 3), 6)
    assert blas.count == 3
    assert not names["_SHARED"].holders


def test_a_limit_that_others_set_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    blas = Blas(4)
    names = _load(monkeypatch, _module(), blas)
    _run(names, lambda i: blas.put(2))
    assert blas.count == 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_interrupts_at_any_moment_give_the_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    blas, caught = Blas(4), 0
    names = _load(monkeypatch, _module(), blas)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.disable()  # what it calls would swallow an interrupt
    try:
        for number in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + number % 50 * 0.00004)
                _run(names, lambda i: time.sleep(0.0002))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                caught += 1
            assert blas.count == 4
            assert not names["_SHARED"].holders
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert caught


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_during_a_call_has_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of another thread does not go on in the child."""
    blas, arrays = Blas(3), _arrays()
    names = _load(monkeypatch, _module(), blas)
    want = names["up"](*arrays)
    inside, leave = threading.Event(), threading.Event()

    def wait(i: int) -> None:
        inside.set()
        leave.wait(60)

    def child() -> None:
        assert blas.count == 3
        assert not names["_SHARED"].holders
        assert _threads_of(names, 3) == 3
        assert (names["up"](*arrays) == want).all()
        assert blas.count == 3

    with ThreadPoolExecutor(1) as other:
        call = other.submit(_run, names, wait)
        assert inside.wait(60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
        process.join(timeout=120)
        leave.set()
        call.result(60)
    assert process.exitcode == 0
    assert blas.count == 3


ALONE = """
import os, sys
os.sched_getaffinity = lambda _: {0, 1, 2}
sys.path = [p for p in sys.path if not p.endswith("convdsl")]
sys.modules["convdsl"] = None
import numpy as np
import one, two
found = one._find_blas()
before = found and found[0]()
g = np.random.default_rng(0)
x, w = g.integers(-9, 9, (12, 5, 40)).astype("f4"), g.integers(-9, 9, (5, 3, 9)).astype("f4")
assert (one.up(x, w) == two.up(x, w)).all()
assert (found and found[0]()) == before
assert one._SHARED is two._SHARED
if found and before > 1:
    assert one._SHARED.threads
print("done")
"""


def test_modules_run_alone(tmp_path: Path) -> None:
    """Two of them in one process, where convdsl cannot be imported."""
    (tmp_path / "one.py").write_text(_module(INSIDE).text, "utf-8")
    (tmp_path / "two.py").write_text(_module(COMPUTED).text, "utf-8")
    (tmp_path / "alone.py").write_text(ALONE, "utf-8")
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stderr, done.returncode, done.stdout.split()) == ("", 0, ["done"])


def test_each_thread_has_arrays_of_its_own() -> None:
    """The array for products of the loop around is another one than that of the threads."""
    text = _module(INSIDE).text
    head, rest = text.split("def each_n():")
    made = rest.split("def run_n(n):")[0]
    assert made.count("np.empty") == text.count("np.empty") - 1  # the output
    assert head.count("np.empty") == 1
