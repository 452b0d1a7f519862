"""Tensors that live on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from convdsl.backends.wgsl.runtime.errors import device_lost
from convdsl.backends.wgsl.runtime.memory import Block
from convdsl.backends.wgsl.runtime.session import Session
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import DType

NUMPY: dict[DType, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32),
}
_NAMES: dict[np.dtype[Any], DType] = {v: k for k, v in NUMPY.items()}


class DeviceTensor:
    """A row-major tensor on a device. Its memory is used again when the last reference goes."""

    __slots__ = ("__weakref__", "block", "dtype", "session", "shape")

    def __init__(
        self, session: Session, block: Block, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.session, self.block, self.shape, self.dtype = session, block, shape, dtype

    def __del__(self) -> None:
        self.session.pool.give(self.block)

    def __repr__(self) -> str:
        return f"DeviceTensor(shape={self.shape}, dtype={self.dtype}, device={self.device_name!r})"

    @property
    def device_name(self) -> str:
        """Name and backend of the adapter."""
        return self.session.name

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    def numpy(self) -> npt.NDArray[Any]:
        """Wait until it is computed and copy it to a new array; DeviceError after a device loss."""
        self.usable()
        out = np.empty(self.shape, self.dtype)
        if out.size:
            self.session.read(self.block.buffer, out.reshape(-1).view(np.uint8))
        return out

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a device cannot be seen as an array without a copy")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    def usable(self) -> None:
        """DeviceError when the device was lost since the tensor was made."""
        if self.session.lost:
            raise device_lost(self.device_name)


def upload(session: Session, array: npt.ArrayLike, what: str = "tensor") -> DeviceTensor:
    """A copy of an array (any strides; float32, float16 or int32) on the device.

    DeviceError, naming `what` and its bytes, when it does not fit.
    """
    data = np.asarray(array, order="C")
    if data.dtype not in _NAMES:
        raise InternalError(f"'{what}' has the dtype {data.dtype}, which no WGSL buffer holds")
    with session.guard(what, data.nbytes):
        tensor = DeviceTensor(session, session.pool.take(data.nbytes, what), data.shape, data.dtype)
        if data.size:
            session.write(tensor.block, data.reshape(-1).view(np.uint8))
    return tensor
