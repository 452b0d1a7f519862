"""Helpers of generated modules that run the iterations of worker loops on several threads."""

from __future__ import annotations

ON_THREADS = '''
def _on_threads(make, numbers, most=None):
    """run(i) for all numbers, each thread with a `run` from make() of its own.

    `most` threads, or one for each of up to 8 processors: this one and others of the pool. Raises
    the first error.
    """
    most = _processors(8) if most is None else most
    if most < 2 or len(numbers) < 2:
        run = make() if numbers else None
        for i in numbers:
            run(i)
        return
    left, errors, begun, ended, told = list(reversed(numbers)), [], [], [], SimpleQueue()

    def work():
        try:
            with np.errstate(all="ignore"):  # each thread has its own
                run = make() if left else None
                while left:
                    try:
                        i = left.pop()
                    except IndexError:  # another thread took it
                        break
                    run(i)
        except BaseException as error:
            left.clear()
            errors.append(error)

    def beside():
        begun.append(None)
        work()
        ended.append(None)
        told.put(None)

    def wait():  # a thread that comes later finds nothing left
        left.clear()
        while len(ended) < len(begun):
            told.get()

    try:
        tasks = _tasks(most - 1)
        for _ in range(min(most, len(numbers)) - 1):
            tasks.put(beside)
        work()
    finally:
        try:
            wait()
        except BaseException as error:  # an interrupt, but others still write to the arrays
            errors.append(error)
            wait()
    if errors:
        raise errors[0]


def _processors(most):
    """How many processors the process has, at most so many."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), most)
    return min(os.cpu_count() or 1, most)


def _tasks(count):
    """The queue of functions that the pool calls, with so many threads or more."""
    with _SHARED.lock:
        try:
            while _SHARED.threads < count:
                threading.Thread(target=_serve, args=(_SHARED.tasks,), daemon=True).start()
                _SHARED.threads += 1
        except RuntimeError:  # no new threads any more, as at exit
            pass
        return _SHARED.tasks


def _serve(tasks):
    while True:
        tasks.get()()


def _shared():
    """The state that all generated modules of a process share.

    `blas` are the functions that tell and set its number of threads, None while they are not looked
    up; `holders` the calls that keep it at one thread, `before` what it had before them.
    """
    new = types.ModuleType("_convdsl_threads")
    new.blas, new.holders, new.before = None, set(), None

    def begin():
        new.lock, new.tasks, new.threads = threading.Lock(), SimpleQueue(), 0

    def forked():  # without the threads of its parent, and their calls
        begin()
        new.holders.clear()
        before, new.before = new.before, None
        if before is not None:
            new.blas[1](before)

    begin()
    state = sys.modules.setdefault(new.__name__, new)
    if state is new and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)
    return state


_SHARED = _shared()
'''

PRODUCTS_ON_THREADS = '''
def _products_on_threads(make, numbers):
    """_on_threads for iterations with matrix products, each on one thread of BLAS.

    As many threads as BLAS is allowed. Where that cannot be set, and for one iteration, BLAS runs
    on its threads in this one.
    """
    call = object()
    try:
        _on_threads(make, numbers, _hold(call) if len(numbers) > 1 else 1)
    finally:
        try:
            _let_go(call)
        except BaseException:  # an interrupt; what was done is not done again
            _let_go(call)
            raise


def _hold(call):
    """Keep BLAS at one thread for a call: the number of threads that there may be instead."""
    with _SHARED.lock:
        if _SHARED.blas is None:
            _SHARED.blas = _find_blas()
        if not _SHARED.blas:
            return 1
        get, put = _SHARED.blas
        allowed = get() if _SHARED.before is None else _SHARED.before
        most = _processors(allowed)
        if most > 1:
            _SHARED.before = allowed
            _SHARED.holders.add(call)
            if get() != 1:
                put(1)
        return most


def _let_go(call):
    """The end of a call: behind the last one BLAS has its threads again."""
    with _SHARED.lock:
        _SHARED.holders.discard(call)
        if _SHARED.before is not None and not _SHARED.holders:
            get, put = _SHARED.blas
            if get() == 1:  # else someone has set it since
                put(_SHARED.before)
            _SHARED.before = None


def _find_blas():
    """How to get and set the number of threads of the OpenBLAS in NumPy's wheel; () without it."""
    package = os.path.dirname(np.__file__)
    for folder in (package + ".libs", os.path.join(package, ".dylibs")):
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*openblas*"))):
            try:
                library = ctypes.CDLL(path)
            except OSError:
                continue
            for prefix in ("scipy_", ""):
                for suffix in ("64_", ""):
                    get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                    put = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                    if get and put:
                        return get, put
    return ()
'''

# The further helpers that one calls.
NEEDS: dict[str, tuple[str, ...]] = {"_products_on_threads": ("_on_threads",)}

# What a helper needs besides NumPy, all of it in the standard library.
IMPORTS: dict[str, tuple[str, ...]] = {
    "_on_threads": (
        "import os",
        "import sys",
        "import threading",
        "import types",
        "from queue import SimpleQueue",
    ),
    "_products_on_threads": ("import ctypes", "import glob"),
}


def imports(used: set[str]) -> list[str]:
    """The import lines of helpers, in order."""
    lines = {line for name in used for line in IMPORTS.get(name, ())}
    return sorted(lines, key=lambda line: (line.startswith("from"), line))
