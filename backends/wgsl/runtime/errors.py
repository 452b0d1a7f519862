"""Errors of wgpu told apart: the machine's (DeviceError) and ours (InternalError)."""

from __future__ import annotations

import re

from convdsl.diagnostics import DeviceError, InternalError

_PLACE = re.compile(r"wgsl:(\d+):\d+")
_AROUND = 4


def is_memory(error: BaseException) -> bool:
    """Whether an error of wgpu means that memory ran out."""
    return type(error).__name__ == "GPUOutOfMemoryError" or "out of memory" in str(error).lower()


def is_loss(error: BaseException) -> bool:
    """Whether an error of wgpu means that the device is gone."""
    text = str(error).lower()
    return "is lost" in text or "device lost" in text or "could not map buffer" in text


def out_of_memory(adapter: str, what: str, nbytes: int) -> DeviceError:
    """`what` (a tensor's name, or what is done) could not get `nbytes` bytes."""
    size = f" ({what}: {nbytes} bytes)" if nbytes else f" ({what})" if what else ""
    return DeviceError(
        f"out of memory on {adapter}{size}",
        help="release tensors that are no longer needed, or use smaller sizes",
    )


def device_lost(adapter: str, error: BaseException | None = None) -> DeviceError:
    """The device was lost in this call; the next call opens it again."""
    cause = f": {_last_line(error)}" if error is not None else ""
    return DeviceError(
        f"the device {adapter} was lost{cause}",
        help="call again: the device is opened anew; upload device tensors made before again.\n"
        "A dispatch of several seconds can trip the system's watchdog: then use smaller sizes",
    )


def too_large(adapter: str, what: str, nbytes: int, limit: int, kind: str) -> DeviceError:
    """`what` needs `nbytes` bytes, above a limit of the device in bytes."""
    return DeviceError(
        f"'{what}' needs {nbytes} bytes, but {adapter} allows {limit} bytes a {kind}",
        help="use a smaller batch, or split the tensor along an axis and run in parts",
    )


def invalid(error: BaseException, text: str = "", near: str = "") -> InternalError:
    """A validation error; with a WGSL text, the lines around the place the message names.

    `near` is looked for when the message names no line, for example the entry point's `fn main`.
    """
    message = f"{type(error).__name__}: {error}".rstrip()
    if not text:
        return InternalError(message)
    found = _PLACE.search(message)
    line = int(found.group(1)) if found else _line_with(text, near)
    return InternalError(f"{message}\n{numbered(text, line)}")


def numbered(text: str, line: int, around: int = _AROUND) -> str:
    """Lines of a text with their 1-based numbers, the given one marked with `>`."""
    lines = text.split("\n")
    first, last = max(1, line - around), min(len(lines), line + around)
    return "\n".join(
        f"{'>' if n == line else ' '}{n:5d} | {lines[n - 1]}" for n in range(first, last + 1)
    )


def _line_with(text: str, near: str) -> int:
    place = text.find(near) if near else -1
    return text.count("\n", 0, place) + 1 if place >= 0 else 1


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
