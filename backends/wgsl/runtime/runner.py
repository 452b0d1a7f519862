"""Running a module: `Runner(module).run({"x": x, "w": w}, sizes).numpy()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from convdsl.backends.wgsl.module import WgslModule
from convdsl.backends.wgsl.runtime.device import Device, get_device
from convdsl.backends.wgsl.runtime.plan import Part, Slot, only, whole
from convdsl.backends.wgsl.runtime.prepared import Prepared, Ready
from convdsl.backends.wgsl.runtime.session import Session
from convdsl.backends.wgsl.runtime.tensor import DeviceTensor, upload
from convdsl.backends.wgsl.runtime.timing import Stopwatch, Timing
from convdsl.diagnostics import DeviceError, InternalError

Tensors = Mapping[str, DeviceTensor | npt.ArrayLike]
Made = dict[str, DeviceTensor]


class Runner:
    """A module on a device, by default the preferred one. Safe to use from several threads.

    `checks=False` leaves out the run-time checks of the WGSL implementation where it can.
    `kernels_a_submit` bounds the work that is handed to the queue at once (0: a whole run), so that
    no submission takes seconds. Shapes and dtypes are the caller's to check; a wrong one is
    InternalError.
    """

    def __init__(
        self,
        module: WgslModule,
        device: Device | None = None,
        *,
        checks: bool = True,
        kernels_a_submit: int = 0,
    ) -> None:
        self.module = module
        self.device = device if device is not None else get_device()
        self._checks, self._kernels_a_submit = checks, kernels_a_submit
        self._prepared: Prepared | None = None
        self._parts: dict[frozenset[int], Part] = {}

    def prepare(self) -> None:
        """Make the pipelines now, so that the first run makes none; DeviceError if it cannot be."""
        session = self.device.session()
        with session.guard(self.module.name):
            self._on(session)

    def upload(self, array: npt.ArrayLike, what: str = "tensor") -> DeviceTensor:
        """A copy of an array on the runner's device; DeviceError when it does not fit."""
        return self.device.upload(array, what)

    def run(self, tensors: Tensors, sizes: Mapping[str, int]) -> DeviceTensor:
        """Start one run and return its output, without waiting for it.

        Arrays among `tensors` are uploaded first, and folds whose results are among them are left
        out. DeviceError when the device is lost (the next call works), or its memory or limits do
        not suffice.
        """
        (output,) = self._run(self._rest(tensors), tensors, sizes).values()
        return output

    def fold(self, number: int, tensors: Tensors, sizes: Mapping[str, int]) -> Made:
        """Start a run of one of the module's folds and return its results by name."""
        fold = self.module.folds[number]
        made = self._run(only(self.module, fold), tensors, sizes)
        return {name: made[name] for name in fold.results}

    def measure(self, tensors: Tensors, sizes: Mapping[str, int], repeat: int = 5) -> Timing:
        """Time runs on the device, transfers left out; the median of `repeat` measurements."""
        return self.stopwatch([tensors], sizes).measure(repeat)

    def stopwatch(self, sets: Sequence[Tensors], sizes: Mapping[str, int]) -> Stopwatch:
        """What times runs on these tensors, each set in its turn."""
        session = self.device.session()
        with session.guard(self.module.name):
            prepared = self._on(session)
            ready = prepared.ready(self._rest(sets[0]), sizes)
            pairs = [self._tensors(session, ready, tensors) for tensors in sets]
        (output,) = pairs[0][1].values()
        return Stopwatch(prepared, ready, [inputs for inputs, _ in pairs], output)

    def time(self, tensors: Tensors, sizes: Mapping[str, int], repeat: int = 5) -> float:
        """Seconds of one run on the device; see `measure`."""
        return self.measure(tensors, sizes, repeat).seconds

    def _run(self, part: Part, tensors: Tensors, sizes: Mapping[str, int]) -> Made:
        session = self.device.session()
        with session.guard(self.module.name):
            prepared = self._on(session)
            ready = prepared.ready(part, sizes)
            inputs, made = self._tensors(session, ready, tensors)
            blocks = [t.block for t in inputs], [t.block for t in made.values()]
            prepared.submit(ready, *blocks, self._kernels_a_submit)
        return made

    def _rest(self, tensors: Tensors) -> Part:
        """What is to run when there are these tensors."""
        folds = self.module.folds
        done = frozenset(n for n, f in enumerate(folds) if tensors.keys() >= set(f.results))
        found = self._parts.get(done)
        if found is None:
            found = self._parts[done] = whole(self.module, [folds[n] for n in sorted(done)])
        return found

    def _on(self, session: Session) -> Prepared:
        prepared = self._prepared
        if prepared is None or prepared.session is not session:
            prepared = self._prepared = Prepared(session, self.module, self._checks)
        return prepared

    def _tensors(
        self, session: Session, ready: Ready, tensors: Tensors
    ) -> tuple[list[DeviceTensor], Made]:
        inputs = [_input(session, slot, tensors) for slot in ready.plan.inputs]
        made = {
            slot.name: DeviceTensor(
                session, session.pool.take(slot.nbytes, slot.name), slot.shape, slot.dtype
            )
            for slot in ready.plan.outputs
        }
        return inputs, made


def _input(session: Session, slot: Slot, tensors: Tensors) -> DeviceTensor:
    given = tensors.get(slot.name)
    if given is None:
        raise InternalError(f"the tensor '{slot.name}' was not given")
    tensor = given if isinstance(given, DeviceTensor) else None
    if tensor is None:
        array = np.asarray(given)
        _check(slot, array.shape, array.dtype)
        return upload(session, array, slot.name)
    _check(slot, tensor.shape, tensor.dtype)
    if tensor.session is not session:
        tensor.usable()
        raise DeviceError(
            f"the tensor '{slot.name}' is on {tensor.device_name}, the kernel on {session.name}",
            help="upload it with the kernel that uses it",
        )
    return tensor


def _check(slot: Slot, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    if shape != slot.shape or dtype != slot.dtype:
        raise InternalError(
            f"the tensor '{slot.name}' has shape {shape} and dtype {dtype}, but the module was "
            f"made for shape {slot.shape} and dtype {slot.dtype}"
        )
