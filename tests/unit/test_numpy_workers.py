"""Worker loops of generated NumPy modules: which threads run them, and what can go wrong there."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.backends.numpy.backend import NumpyExecutable
from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.module import NumpyModule, namespace_of
from convdsl.ir.reader import read_program
from convdsl.ir.verify import verify
from tests.unit.api_programs import Array

UP = """
op up(x: f32[N, C, L], w: f32[C, K]) -> y: f32[N, O]
where O == (L - 1)*4 + K,
      K >= 1
{
    y[n, o] = sum[c, k, l | l*4 + k == o] exp(x[n, c, l]) * w[c, k]
}

schedule up for numpy {
    columns y -> col
    phases y over o, k -> t, r, j
    order col: k, n, l, c
    map col: k -> host
    order y: n, j, t, r
    map y: n -> worker, j -> host
    compute col at y: n
}
"""
SIZES = {"N": 12, "C": 5, "L": 40, "K": 9}


def _module(text: str = UP, sizes: dict[str, int] | None = None) -> NumpyModule:
    kernel = convdsl.compile(text, sizes=SIZES if sizes is None else sizes)
    executable = kernel._current
    assert isinstance(executable, NumpyExecutable)
    return executable.module


def _arrays() -> tuple[Array, Array]:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((12, 5, 40)).astype(np.float32)
    return x, generator.standard_normal((5, 9)).astype(np.float32)


def _with_threads(
    module: NumpyModule, monkeypatch: pytest.MonkeyPatch, count: int
) -> dict[str, Any]:
    """The module as on a machine with so many processors, the first one of its process."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)), raising=False)
    monkeypatch.delitem(sys.modules, "_convdsl_threads", raising=False)
    return namespace_of(module)


def _call_each(names: dict[str, Any], function: Callable[[int], Any], count: int) -> None:
    names["_on_threads"](lambda: function, range(count))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_iterations_run_on_several_threads(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once: none goes on before each thread has come."""
    names = _with_threads(_module(), monkeypatch, count)
    barrier = threading.Barrier(count, timeout=60)
    found: set[int] = set()

    def function(i: int) -> None:
        found.add(threading.get_ident())
        barrier.wait()

    _call_each(names, function, count)
    assert len(found) == count
    assert threading.get_ident() in found


def test_each_iteration_runs_once_in_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of the kernel is given to the pool, and each thread makes its temporaries once."""
    names = _with_threads(_module(), monkeypatch, 3)
    shares, ran, made = names["_on_threads"], list[int](), list[int]()

    def counted(make: Callable[[], Callable[[int], None]], numbers: range) -> None:
        def one() -> Callable[[int], None]:
            made.append(threading.get_ident())
            function = make()

            def run(i: int) -> None:
                ran.append(i)
                function(i)

            return run

        shares(one, numbers)

    names["_on_threads"] = counted
    names["up"](*_arrays())
    assert sorted(ran) == list(range(12))
    assert 1 <= len(made) == len(set(made)) <= 3


def test_no_more_threads_than_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    names = _with_threads(_module(), monkeypatch, 500)
    pool = _Busy()
    names["_tasks"] = lambda count: pool
    _call_each(names, lambda i: None, 100)
    assert pool.asked == 7


def test_results_are_the_same_for_every_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    serial = _module(UP.replace("n -> worker", "n -> host"))
    assert "_on_threads" not in serial.text
    arrays = _arrays()
    want = namespace_of(serial)["up"](*arrays)
    module = _module()
    for count in (1, 2, 3, 8):
        names = _with_threads(module, monkeypatch, count)
        for _ in range(5):
            assert names["up"](*arrays).tobytes() == want.tobytes()


def test_one_processor_or_iteration_makes_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    names = _with_threads(_module(), monkeypatch, 1)
    names["up"](*_arrays())
    assert names["_SHARED"].threads == 0
    names = _with_threads(_module(), monkeypatch, 8)
    _call_each(names, lambda i: None, 1)
    _call_each(names, lambda i: None, 0)
    assert names["_SHARED"].threads == 0
    monkeypatch.undo()
    text = _module(sizes={**SIZES, "N": 2}).text
    assert "_on_threads" in text
    split = UP.replace("    order y", "    split y: n by 16 -> no, ni\n    order y")
    split = split.replace("n, j, t, r", "no, ni, j, t, r").replace("n -> w", "ni -> host, no -> w")
    split = split.replace("at y: n", "at y: ni")
    assert "_on_threads" not in _module(split).text  # one block of 16, known beforehand


def test_the_first_error_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = _with_threads(_module(), monkeypatch, 4)
    barrier, ran = threading.Barrier(4, timeout=60), list[int]()

    def function(i: int) -> None:
        ran.append(i)
        if i < 4:
            barrier.wait()  # three of them are in other threads
            raise KeyError(f"of {threading.get_ident()}")

    with pytest.raises(KeyError, match="of "):
        _call_each(names, function, 100)
    assert set(ran[:4]) == {0, 1, 2, 3}
    ran.clear()
    _call_each(names, ran.append, 10)
    assert sorted(ran) == list(range(10))


class _Busy:
    """A pool whose threads never get to it."""

    asked = 0

    def put(self, task: Callable[[], None]) -> None:
        self.asked += 1


def test_the_caller_alone_gets_it_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves what comes after an error."""
    names = _with_threads(_module(), monkeypatch, 4)
    names["_tasks"] = lambda count: _Busy()
    ran = list[int]()
    _call_each(names, ran.append, 10)
    assert ran == list(range(10))

    def function(i: int) -> None:
        ran.append(i)
        if i == 3:
            raise KeyError("three")

    ran.clear()
    with pytest.raises(KeyError, match="three"):
        _call_each(names, function, 10)
    assert ran == [0, 1, 2, 3]


def test_without_new_threads_the_caller_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    names = _with_threads(_module(), monkeypatch, 4)
    monkeypatch.setattr(threading.Thread, "start", start)
    ran = list[int]()
    _call_each(names, ran.append, 10)
    assert ran == list(range(10))


def test_no_call_returns_before_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with an error: what has begun still writes to its arrays."""
    names = _with_threads(_module(), monkeypatch, 2)
    barrier, end, done = threading.Barrier(2, timeout=60), threading.Event(), list[int]()
    caller = threading.get_ident()

    def function(i: int) -> None:
        barrier.wait()
        if threading.get_ident() == caller:
            threading.Timer(0.2, end.set).start()
            raise KeyError("first")
        end.wait(60)
        done.append(i)

    with pytest.raises(KeyError, match="first"):
        _call_each(names, function, 2)
    assert len(done) == 1


def test_an_error_of_what_makes_the_arrays_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = _with_threads(_module(), monkeypatch, 2)

    def make() -> Callable[[int], None]:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        names["_on_threads"](make, range(5))


def test_special_values_raise_no_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has an error state of its own, and every thread takes part."""
    names = _with_threads(_module(), monkeypatch, 4)
    x, w = _arrays()
    x[...] = 1e30
    w[0] = -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = names["up"](x, w)
        barrier, states = threading.Barrier(4, timeout=60), list[dict[str, str]]()

        def function(i: int) -> None:
            barrier.wait()
            states.append({name: str(state) for name, state in np.geterr().items()})

        _call_each(names, function, 4)
    assert not np.isfinite(found[:, :4]).any()
    assert [set(s.values()) for s in states] == [{"ignore"}] * 4


def test_many_callers_and_callers_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls at once than threads, and calls inside of calls: none waits for a free thread."""
    names = _with_threads(_module(), monkeypatch, 2)
    arrays = _arrays()
    want = names["up"](*arrays)

    def check(_: int) -> None:
        assert (names["up"](*arrays) == want).all()

    with ThreadPoolExecutor(8) as callers:
        for done in [callers.submit(check, i) for i in range(40)]:
            done.result(timeout=60)
    _call_each(names, lambda i: _call_each(names, check, 3), 6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_has_a_pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = _with_threads(_module(), monkeypatch, 3)
    arrays = _arrays()
    want = names["up"](*arrays)  # the threads are there now

    def child() -> None:
        barrier, waited = threading.Barrier(3, timeout=60), list[int]()
        _call_each(names, lambda i: waited.append(barrier.wait()), 3)
        assert sorted(waited) == [0, 1, 2]
        assert (names["up"](*arrays) == want).all()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(timeout=120)
    assert process.exitcode == 0


EXIT = """
import atexit, os, threading
os.sched_getaffinity = lambda _: {0, 1, 2, 3}
import numpy as np
import up
g = np.random.default_rng(0)
x, w = g.random((12, 5, 40), np.float32), g.random((5, 9), np.float32)
want = up.up(x, w)
def last():
    assert (up.up(x, w) == want).all()
    print("last")
atexit.register(last)
class Late:
    def __del__(self, up=up.up, want=want):
        assert (up(x, w) == want).all()
        print("late")
late = Late()
print("first")
"""


def test_calls_at_exit(tmp_path: Path) -> None:
    """With the pool shut down the calling thread does it all; and the process ends."""
    (tmp_path / "up.py").write_text(_module().text, "utf-8")
    (tmp_path / "alone.py").write_text(EXIT, "utf-8")
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.split()[:2] == ["first", "last"]


SHARED = """
func shared(N)
  buffer x: f32[N, 6] input
  buffer y: f32[N, 6] output
kernel y
  temp t: f32[N, 6]
  worker a: f32[6]
  worker s: f32[]
  for n in 0..N worker
    for m in 0..6 slice
      a[m] = x[n, m]
    s[] = 0.0
    for m in 0..6 slice
      s[] += a[m]
    for m in 0..6 slice
      t[n, m] = a[m] - s[]
    for m in 0..6 slice
      a<2, 3>[m // 3, m % 3] += t[n, m]
    for m in 0..6 slice
      a[m] += t[n, m]
    for m in 0..6 slice
      y[n, m] = a[m]
"""


def test_each_thread_makes_its_buffers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector, a scalar and a view, beside a temporary that all threads share."""
    program = read_program(SHARED)
    verify(program)
    module = emit_module(program)
    head, rest = module.text.split("def each_n():")
    made, inside = rest.split("def run_n(n):")
    lines = [
        "a = np.empty((6,), np.float32)", "s = np.empty((), np.float32)", "a_2d = a.reshape(2, 3)",
    ]  # fmt: skip
    assert all(x in made and x not in head and x not in inside for x in lines)
    assert "t = np.empty((N, 6), np.float32)" in head
    x = np.random.default_rng(1).integers(-9, 9, (50, 6)).astype(np.float32)
    for count in (1, 2, 8):
        names = _with_threads(module, monkeypatch, count)
        assert (names["shared"](x) == 3 * x - 2 * x.sum(axis=1, keepdims=True)).all()


def test_only_modules_with_workers_import_more_than_numpy() -> None:
    lines = [line for line in _module().text.splitlines() if line.startswith(("import", "from"))]
    assert lines == [
        "import os",
        "import sys",
        "import threading",
        "import types",
        "from queue import SimpleQueue",
        "import numpy as np",
    ]
