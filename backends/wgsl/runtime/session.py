"""One opened device: its lock, queue, buffers and pipelines, until it is closed or lost."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from convdsl.backends.wgsl.runtime.adapter import (
    FEATURES,
    AdapterInfo,
    import_wgpu,
    required_limits,
)
from convdsl.backends.wgsl.runtime.errors import (
    device_lost,
    invalid,
    is_loss,
    is_memory,
    out_of_memory,
)
from convdsl.backends.wgsl.runtime.memory import Block, Pool, Staging
from convdsl.backends.wgsl.runtime.shader import Pipelines, timestamp_period
from convdsl.diagnostics import DeviceError, InternalError

UPLOAD = 32 * 2**20  # bytes a write: the driver copies each into memory of its own
Bytes = npt.NDArray[np.uint8]


class Session:
    """What belongs to one opened device. All calls into wgpu are made inside `guard`.

    `lost` turns true when a call finds the device gone; whoever holds a tensor of it can tell.
    """

    def __init__(self, info: AdapterInfo) -> None:
        wgpu = import_wgpu()
        self.info, self.name = info, str(info)
        self.features = frozenset(f for f in FEATURES if f in info.features)
        try:
            self.gpu: Any = info.handle.request_device_sync(
                required_features=sorted(self.features),
                required_limits=required_limits(info.limits),
            )
        except (RuntimeError, wgpu.GPUError) as error:
            raise DeviceError(f"{self.name} cannot be opened: {error}") from error
        self.lock = threading.RLock()
        self._idle = threading.Condition(self.lock)
        self._reading = 0
        self.lost = False
        self.pid = os.getpid()
        self.queue: Any = self.gpu.queue
        self.pool = Pool(self.gpu, info.limits, self.name)
        self.staging = Staging(self.gpu)
        self.pipelines = Pipelines(self.gpu)
        self.period = timestamp_period(self.queue) if "timestamp-query" in self.features else None
        self._read_mode: int = wgpu.MapMode.READ
        self._timestamps: OrderedDict[str, Any] = OrderedDict()

    def close(self) -> None:
        """Destroy the device, once no thread waits for it any more: nothing would wake that one."""
        with self.guard():
            self.lost = True
            self._idle.wait_for(lambda: not self._reading)
            self.gpu.destroy()

    def guard(self, what: str = "", nbytes: int = 0) -> Guard:
        """A context: holds the lock and tells errors apart; messages name `what` and `nbytes`."""
        return Guard(self, what, nbytes)

    def translate(self, error: Exception, what: str, nbytes: int) -> Exception | None:
        """The error to raise instead, or None when it is none of wgpu's."""
        if isinstance(error, DeviceError | InternalError):
            return None
        if self.lost or is_loss(error):
            self.lost = True
            return device_lost(self.name, error)
        if is_memory(error):
            return out_of_memory(self.name, what, nbytes)
        return invalid(error) if type(error).__name__.startswith("GPU") else None

    def write(self, block: Block, data: Bytes) -> None:
        """Copy bytes to the start of a block; under the lock."""
        buffer, whole = block.buffer, data.size & ~3
        for start in range(0, whole, UPLOAD):
            if start:
                self.queue.submit([])  # hands the earlier part over, so its copy is freed
            self.queue.write_buffer(buffer, start, data[start : min(start + UPLOAD, whole)])
        if whole < data.size:
            tail = np.zeros(4, np.uint8)
            tail[: data.size - whole] = data[whole:]
            self.queue.write_buffer(buffer, whole, tail)

    def read(self, buffer: Any, out: Bytes) -> None:
        """Wait for the queue, then copy the first bytes of a buffer; without the lock."""
        for start in range(0, out.size, Staging.LARGEST):
            self._read_part(buffer, start, out[start : start + Staging.LARGEST])

    def _read_part(self, buffer: Any, start: int, out: Bytes) -> None:
        size = (out.size + 3) & ~3
        with self.guard("reading a tensor back", out.size):
            staging = self.staging.take(size)
            encoder = self.gpu.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer, start, staging, 0, size)
            self.queue.submit([encoder.finish()])
            promise = staging.map_async(self._read_mode, 0, size)
            self._reading += 1
        try:
            promise.sync_wait()
        except Exception as error:
            with self.guard():
                raise error
        finally:
            with self._idle:
                self._reading -= 1
                self._idle.notify_all()
        with self.guard():
            out[...] = np.frombuffer(staging.read_mapped(0, size, copy=False), np.uint8, out.size)
            staging.unmap()
            self.staging.give(staging)


class Guard:
    """`with session.guard(): ...`: the lock, a check of the process, and error translation."""

    __slots__ = ("_nbytes", "_session", "_what")

    def __init__(self, session: Session, what: str, nbytes: int) -> None:
        self._session, self._what, self._nbytes = session, what, nbytes

    def __enter__(self) -> None:
        session = self._session
        if session.pid != os.getpid():
            raise DeviceError(
                f"{session.name} was opened by the parent of this forked process",
                help="start worker processes with the method 'spawn', or use devices only in them",
            )
        session.lock.acquire()
        if session.lost:  # another thread found out while this one waited
            session.lock.release()
            raise device_lost(session.name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.lock.release()
        if isinstance(error, Exception):
            other = self._session.translate(error, self._what, self._nbytes)
            if other is not None:
                raise other from error
