"""What users pass to a kernel, as NumPy arrays: checked, never copied without need, never written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import Tensor

Array = npt.NDArray[Any]
_WANTED: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "i32": np.dtype(np.int32),
}  # fmt: skip


def by_name(
    op: str,
    inputs: Sequence[Tensor],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    gone: Mapping[str, str],
) -> dict[str, object]:
    """Positional and keyword arguments by the names of the inputs; None stands for absent.

    `gone` says of inputs that are not among these why they are not.

    Raises:
        CdslError: E0352 for too many, unknown, doubled or missing arguments.
    """
    names = [t.name for t in inputs]
    if len(args) > len(names):
        raise CdslError(
            "E0352",
            f"`{op}` takes {len(names)} arrays, {len(args)} were given",
            notes=(f"its inputs: {', '.join(names) or 'none'}",),
        )
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in gone and value is None:
            continue
        if name not in names:
            raise CdslError(
                "E0352",
                f"`{name}` {gone[name]}, so it cannot be given"
                if name in gone
                else f"`{op}` has no input `{name}` to give",
                notes=(f"its inputs: {', '.join(names) or 'none'}",),
            )
        if name in given:
            raise CdslError("E0352", f"`{name}` was given twice, by position and by name")
        given[name] = value
    out = {name: value for name, value in given.items() if value is not None}
    for tensor in inputs:
        if tensor.name not in out and tensor.default is None:
            raise CdslError(
                "E0352",
                f"the input `{tensor.name}` of `{op}` was not given",
                help=f"pass it by position or as `{tensor.name}=...`",
            )
    return out


def dtype_of(tensor: Tensor) -> np.dtype[Any]:
    """The dtype of arrays for a tensor."""
    return _WANTED[tensor.dtype]


def as_array(tensor: Tensor, value: object) -> Array:
    """The value as an array of the tensor's dtype, by `__array__`, the buffer protocol or DLPack.

    Raises:
        CdslError: E0353 for something that is no array or not on the CPU, E0354 for another dtype.
    """
    array = import_array(tensor.name, value)
    wanted = _WANTED[tensor.dtype]
    if array.dtype == wanted:
        return array
    if array.dtype.newbyteorder("=") == wanted:
        raise CdslError(
            "E0354",
            f"`{tensor.name}` is big-endian ({array.dtype.str})",
            help=f"convert it: `{tensor.name}.astype(numpy.{wanted.name})`",
        )
    if array.dtype == np.float16 and wanted == np.float32:
        return array.astype(np.float32)
    check_dtype(tensor, array.dtype)
    return array


def check_dtype(tensor: Tensor, dtype: np.dtype[Any]) -> None:
    """Refuse a dtype that is not the tensor's: CdslError E0354."""
    wanted = _WANTED[tensor.dtype]
    if dtype != wanted:
        raise CdslError(
            "E0354",
            f"`{tensor.name}` has dtype {dtype}, the op declares {tensor.dtype}",
            help=f"convert it: `{tensor.name}.astype(numpy.{wanted.name})`",
        )


def import_array(name: str, value: object) -> Array:
    """The value as an array of any dtype; CdslError E0353 when it is none or not on the CPU."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            return _from_dlpack(name, value)
        if hasattr(value, "__array__") or isinstance(value, (bytes, bytearray, memoryview)):
            return np.asarray(value)
        return np.asarray(memoryview(value))  # type: ignore[arg-type]
    except CdslError:
        raise
    except Exception as error:  # the protocols run the value's own code, which may raise anything
        raise CdslError(
            "E0353",
            f"`{name}` is a {type(value).__name__}, not an array",
            notes=(str(error),) if str(error) else (),
            help="pass a NumPy array, or anything with __array__, the buffer protocol or DLPack",
        ) from None


_DLPACK_CPU = (1, 3)  # plain and page-locked host memory


def _from_dlpack(name: str, value: Any) -> Array:
    kind, _ = value.__dlpack_device__()
    if int(kind) not in _DLPACK_CPU:
        raise CdslError(
            "E0353",
            f"`{name}` is not in host memory (DLPack device {int(kind)})",
            help="copy it to the CPU first, for example with `x.cpu()`",
        )
    if hasattr(value, "detach"):  # a tensor that records gradients refuses to be exported
        value = value.detach()
    return np.from_dlpack(value)


def uploadable(value: object) -> Array:
    """The value as an array of a dtype that tensors have; CdslError E0353 or E0354."""
    array = import_array("array", value)
    if array.dtype not in _WANTED.values():
        names = ", ".join(d.name for d in _WANTED.values())
        raise CdslError(
            "E0354",
            f"the array has dtype {array.dtype.str if array.dtype.kind in 'fiu' else array.dtype}",
            notes=(f"tensors are native {names}",),
            help="convert it, for example `x.astype(numpy.float32)`",
        )
    return array


def check_out(
    tensor: Tensor, out: object, shape: tuple[int, ...], inputs: Mapping[str, Any]
) -> Array:
    """`out` as given, when it can take the result.

    Raises:
        CdslError: E0355 for another shape or dtype, a read-only array, or memory shared with an input.
    """
    wanted = _WANTED[tensor.dtype]
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != wanted:
        what = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise CdslError("E0355", f"`out` must be a {wanted} array of shape {shape}, not {what}")
    if not out.flags.writeable:
        raise CdslError("E0355", "`out` is read-only")
    if _overlaps_itself(out):
        raise CdslError(
            "E0355",
            "elements of `out` share memory with each other",
            notes=(f"its shape is {out.shape}, its strides are {out.strides}",),
            help="pass an array in which every element has a place of its own",
        )
    for name, array in inputs.items():
        if isinstance(array, np.ndarray) and _overlap(out, array):
            raise CdslError(
                "E0355",
                f"`out` shares memory with the input `{name}`",
                help="pass an array of its own; inputs are never written",
            )
    return out


def _overlaps_itself(array: Array) -> bool:
    """Whether elements may share memory: an axis steps less far than the faster ones reach."""
    reach = array.itemsize
    for stride, extent in sorted(
        (abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1
    ):
        if stride < reach:
            return array.size > 0
        reach += stride * (extent - 1)
    return False


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=cast(Any, 100_000))
    except np.exceptions.TooHardError:
        return True
