"""A compiled op: call it with arrays, bind constants, look at its text, stages and plan."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from convdsl.arguments import (
    Array,
    as_array,
    by_name,
    check_dtype,
    check_out,
    dtype_of,
    uploadable,
)
from convdsl.calls import Call, Calls, Signature, signature
from convdsl.constants import Constants
from convdsl.diagnostics import CdslError, Note
from convdsl.ir.equation import Tensor
from convdsl.sema.emptiness import check_reductions
from convdsl.sema.instantiate import instantiate
from convdsl.sema.model import ResolvedOp
from convdsl.sema.sizes import complete_sizes, solve_sizes
from convdsl.sema.without import without
from convdsl.variants import CACHE, Options, Variants

if TYPE_CHECKING:
    from os import PathLike

    from convdsl.backends.base import Executable, Plan
    from convdsl.backends.wgsl.runtime.timing import Stopwatch

_OF_ARGUMENTS = ("E0303", "E0304", "E0352", "E0354")


class Kernel:
    """What `convdsl.compile` returns. Calls are safe from several threads."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._variants = Variants(options)
        self._constants = Constants({})
        self._calls = Calls()
        self._known: OrderedDict[object, tuple[dict[str, int], frozenset[str]]] = OrderedDict()
        self._lock = Lock()

    def __repr__(self) -> str:
        o = self._options
        sizes = ", ".join(f"{n}={v}" for n, v in o.fixed.items())
        return f"<convdsl kernel {o.op.name} for {o.target}{': ' + sizes if sizes else ''}>"

    # -- calling ----------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, out: Array | None = None, **arrays: Any) -> Array:
        """Run on arrays in host memory: inputs by position or name, bound ones left out.

        Returns `out` when it is given, else a new array. Inputs are never written. An input that is
        named `out` is passed by position.

        Raises:
            CdslError: for arrays that do not fit the op (E03xx).
            DeviceError: when the machine cannot run it.
        """
        key = signature(args, arrays)
        call = self._calls.get(key) if key is not None else None
        if call is not None and self._variants.again(call.variant, call.executable):
            plain = (*args, *arrays.values()) if arrays else args
            if out is None or call.takes(out, plain):
                return call.run(plain, out)
        try:
            named = by_name(self._options.op.name, self._free, args, arrays, self._gone)
            given = self._checked(named)
            executable, sizes = self._variant({n: a.shape for n, a in given.items()})
        except CdslError as error:
            raise self._counting(error, args) from None
        if out is not None:
            # As given: a float16 input that was widened is not to be written either.
            inputs = {n: v if isinstance(v, np.ndarray) else given[n] for n, v in named.items()}
            out = check_out(self.output, out, self._shape(sizes), inputs | self._constants.arrays)
        constants = self._constants.of(executable, sizes)
        if key is not None and all(given[n] is a for n, a in named.items()):
            self._keep(key, executable, tuple(named), constants, sizes)
        return executable.run(given | constants, sizes, out)

    def bind(self, /, **arrays: Any) -> Kernel:
        """A kernel in which these inputs are constants, prepared once; also before sizes are known.

        What depends on constants alone is computed once: at the first call, and where it has sizes
        that are symbols, for each of their last numbers.
        """
        bound = Kernel.__new__(Kernel)
        bound.__init__(self._options)  # type: ignore[misc]
        bound._variants = self._variants
        checked = self._checked(by_name_partial(self._options.op, self._free, arrays, self._gone))
        copies = {n: np.array(a, order="C") for n, a in checked.items()}
        for copy in copies.values():
            copy.setflags(write=False)
        bound._constants = Constants(self._constants.arrays | copies)
        o = self._options
        known = solve_sizes(o.op, o.params, _shapes(bound._constants.arrays), o.fixed, partial=True)
        complete_sizes(o.op, o.params, known, partial=True)
        return bound

    # -- on a device ------------------------------------------------------------------------------
    def upload(self, array: Any) -> Any:
        """A copy of an array on the device that the kernel runs on (WGSL only).

        CdslError E0353 or E0354 for what is no float32, float16 or int32 array.
        """
        self._device_only("upload")
        from convdsl.backends.wgsl.runtime import get_device

        return get_device().upload(uploadable(array))

    def run(self, /, **tensors: Any) -> Any:
        """Run on device tensors (or arrays, uploaded first); returns a device tensor (WGSL only)."""
        executable, sizes, given = self._on_device("run", tensors)
        return executable.run_on_device(given, sizes)

    def time(self, /, *, repeat: int = 5, **tensors: Any) -> float:
        """Seconds of one run on the device: the median of `repeat` measurements (WGSL only).

        An input that is named `repeat` cannot be passed here; bind it.
        """
        executable, sizes, given = self._on_device("time", tensors)
        if repeat < 1:
            raise CdslError("E0358", f"`repeat` is {repeat}; it takes one measurement or more")
        return float(executable.runner.time(given, sizes, repeat))

    def stopwatch(self, sets: Sequence[Mapping[str, Any]]) -> Stopwatch:
        """Times back-to-back runs that take these sets of equal shapes in turn (WGSL only)."""
        given = [self._on_device("stopwatch", tensors) for tensors in sets]
        executable, sizes, _ = given[0]
        watch: Stopwatch = executable.runner.stopwatch([tensors for *_, tensors in given], sizes)
        return watch

    # -- looking ----------------------------------------------------------------------------------
    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The declared inputs, bound ones included."""
        return self._options.op.inputs

    @property
    def output(self) -> Tensor:
        return self._options.op.output

    @property
    def target(self) -> str:
        return self._options.target

    @property
    def source(self) -> str:
        """The generated text; CdslError E0356 before sizes are known."""
        return self._current.source

    @property
    def plan(self) -> Plan:
        """What runs and why; CdslError E0356 before sizes are known."""
        return self._current.plan

    @property
    def stages(self) -> Mapping[str, str]:
        """The text after each pass, by its name; CdslError E0356 before sizes are known."""
        trace = self._current.trace
        return {name: trace.text(name) for name in trace.steps}

    @property
    def schedule(self) -> str | None:
        """The text of the schedule that was applied, chosen or given; None for targets without."""
        return self._current.schedule

    @property
    def options(self) -> Options:
        return self._options

    @property
    def executable(self) -> Executable:
        """The compiled variant that `source` shows."""
        return self._current

    @property
    def constants(self) -> Mapping[str, Array]:
        """The bound inputs."""
        return dict(self._constants.arrays)

    @property
    def variant(self) -> tuple[dict[str, int], frozenset[str]]:
        """The sizes that are numbers in `source`, and the inputs that it goes without."""
        return self._variants.facts(self._current)

    def specialise(
        self, sizes: Mapping[str, int], absent: frozenset[str] = frozenset()
    ) -> Executable:
        """Compile for these sizes (but for dynamic ones) now; `source` then shows the result."""
        return self._variants.get(sizes, absent | self._options.absent)

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the generated files and a manifest, each in one piece or not at all."""
        from convdsl.artifact import save

        save(self, directory)

    # -- inside -----------------------------------------------------------------------------------
    @property
    def _free(self) -> list[Tensor]:
        return [t for t in self._options.op.inputs if t.name not in self._gone]

    @property
    def _gone(self) -> dict[str, str]:
        """The inputs that a call does not pass, with the reason."""
        absent = dict.fromkeys(self._options.absent, "is compiled in as absent")
        return absent | dict.fromkeys(self._constants.arrays, "is bound")

    def _counting(self, error: CdslError, args: tuple[Any, ...]) -> CdslError:
        """The error, with what positions count where that may be what was mistaken."""
        if not args or not self._gone or error.code not in _OF_ARGUMENTS:
            return error
        notes = tuple(
            Note(f"`{name}` {why}: pass the others") for name, why in sorted(self._gone.items())
        )
        return CdslError(
            error.code, error.message, error.span, notes=(*error.notes, *notes), help=error.help
        )

    @property
    def _current(self) -> Executable:
        latest = self._variants.latest
        if latest is not None:
            return latest
        o = self._options
        if not set(o.op.input_sizes) <= {*o.fixed, *o.dynamic}:
            missing = [n for n in o.op.input_sizes if n not in o.fixed]
            raise CdslError(
                "E0356",
                f"the sizes of `{o.op.name}` are not known yet: {', '.join(missing)}",
                help="call the kernel once, compile with `sizes={...}`, or name them in `dynamic`",
            )
        sizes = dict(o.fixed)
        if not o.dynamic:
            sizes = complete_sizes(o.op, o.params, sizes)
        return self._variants.get(sizes, o.absent)

    def _checked(self, given: Mapping[str, object]) -> dict[str, Array]:
        tensors = {t.name: t for t in self._options.op.inputs}
        return {name: as_array(tensors[name], value) for name, value in given.items()}

    def _variant(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Executable, dict[str, int]]:
        key = tuple(shapes.items())
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            sizes, absent = known
            return self._variants.get(sizes, absent), sizes
        o = self._options
        everything = {**shapes, **_shapes(self._constants.arrays)}
        absent = frozenset(t.name for t in o.op.inputs if t.name not in everything)
        op = without(o.op, absent)
        sizes = solve_sizes(op, o.params, everything, o.fixed)
        sizes = complete_sizes(op, o.params, {**o.fixed, **sizes}, absent=absent)
        if o.dynamic:  # the text holds for any sizes; whether every max has a term, only for these
            check_reductions(o.op, o.params, instantiate(o.op, o.params, sizes, absent))
        executable = self._variants.get(sizes, absent)
        with self._lock:
            self._known[key] = sizes, absent
            while len(self._known) > CACHE:
                self._known.popitem(last=False)
        return executable, sizes

    def _keep(
        self,
        key: Signature,
        executable: Executable,
        names: tuple[str, ...],
        constants: Mapping[str, Any],
        sizes: dict[str, int],
    ) -> None:
        """Remember a call that was checked, where its executable has a shorter way."""
        run = executable.ready(names, constants)
        if run is None:
            return
        absent = frozenset(t.name for t in self._options.op.inputs) - {*names, *constants}
        variant = self._variants.key(sizes, absent)
        shape, dtype = self._shape(sizes), dtype_of(self.output)
        self._calls.keep(key, Call(executable, variant, run, shape, dtype))

    def _shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        values = {**{n: v for n, v in self._options.params.items() if isinstance(v, int)}, **sizes}
        return tuple(int(e.evaluate(values)) for e in self.output.shape)

    def _device_only(self, what: str) -> None:
        if self._options.target != "wgsl":
            raise CdslError(
                "E0357",
                f"`{what}` needs a kernel on a device, this one is for {self._options.target}",
                help='compile with `target="wgsl"`, or just call the kernel',
            )

    def _on_device(self, what: str, tensors: Mapping[str, Any]) -> tuple[Any, dict[str, int], Any]:
        self._device_only(what)
        from convdsl.backends.wgsl.runtime import DeviceTensor

        named = by_name(self._options.op.name, self._free, (), tensors, self._gone)
        declared = {t.name: t for t in self._free}
        given: dict[str, Any] = {}
        for name, value in named.items():
            if isinstance(value, DeviceTensor):
                check_dtype(declared[name], value.dtype)
                given[name] = value
            else:
                given[name] = as_array(declared[name], value)
        executable, sizes = self._variant({n: tuple(v.shape) for n, v in given.items()})
        return executable, sizes, given | self._constants.of(executable, sizes)


def _shapes(arrays: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def by_name_partial(
    op: ResolvedOp,
    inputs: list[Tensor],
    arrays: Mapping[str, object],
    gone: Mapping[str, str],
) -> dict[str, object]:
    """Named arrays of some of the inputs; CdslError E0352 for a name that is none."""
    optional = [replace(t, default=t.default if t.default is not None else 0.0) for t in inputs]
    return by_name(op.name, optional, (), arrays, gone)
