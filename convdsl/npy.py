"""NumPy's .npy files, read with care: nothing is unpickled, nothing allocated on trust."""

from __future__ import annotations

import io
import math
import stat
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from convdsl.diagnostics import CdslError

Array = npt.NDArray[Any]
_PREFIX = b"\x93NUMPY"
_HEADER = 10_000  # bytes that a header may have: those of plain arrays have less than 200


def read_npy(path: str | PathLike[str]) -> Array:
    """The array in a file, in the order that it is stored in.

    Raises:
        CdslError: E0105 when the file cannot be read, E0364 when it holds no plain array.
    """
    where = Path(path)
    try:
        with where.open("rb") as file:
            facts = file.fileno()
            status = where.stat()
            if facts >= 0 and not stat.S_ISREG(status.st_mode):
                raise _refused(where, "it is no regular file")
            shape, fortran, dtype = _header(where, file)
            needed = math.prod(shape) * dtype.itemsize
            there = status.st_size - file.tell()
            if needed > there:
                raise _refused(
                    where, "it ends too early",
                    f"{dtype} {shape} takes {needed} bytes, there are {there}",
                )  # fmt: skip
            flat = np.fromfile(file, dtype, math.prod(shape))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CdslError("E0105", f"cannot read `{where}`: {reason}") from None
    if flat.size != math.prod(shape):
        raise _refused(where, "it ends too early")
    return flat.reshape(shape, order="F" if fortran else "C")


def npy_parts(array: Array) -> tuple[bytes, memoryview]:
    """The header and the data of a file for an array in C order."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue(), array.reshape(-1).view(np.uint8).data


def _header(path: Path, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    prefix = file.read(len(_PREFIX))
    if prefix != _PREFIX:
        if prefix.startswith(b"PK"):
            raise _refused(
                path, "it is an archive of arrays (.npz)", help="save the one array with numpy.save"
            )
        raise _refused(path, "it does not begin as such files do", help="write it with numpy.save")
    file.seek(0)
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(file, max_header_size=_HEADER)
    except OSError:
        raise
    except Exception:  # a header is a Python literal: whatever reading a broken one raises
        raise _refused(path, "its header is broken") from None
    if dtype.hasobject:
        raise _refused(
            path, "it holds Python objects, which are never unpickled",
            help="save an array of numbers",
        )  # fmt: skip
    if dtype.kind not in "biuf" or dtype.shape:
        raise _refused(path, f"it holds {str(dtype)[:60]}, which are no real numbers")
    if not all(isinstance(n, int) and 0 <= n < 2**63 for n in shape) or len(shape) > 32:
        raise _refused(path, f"its header has the shape {str(shape)[:60]}")
    return shape, fortran, dtype


def _refused(path: Path, why: str, *notes: str, help: str | None = None) -> CdslError:
    return CdslError("E0364", f"`{path}` is no array to use: {why}", notes=notes, help=help)
