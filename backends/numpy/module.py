"""What the NumPy backend makes of a loop program: a standalone Python module as text."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True, slots=True)
class NumpyModule:
    """A generated module that imports NumPy alone.

    `entry` is its function; `parameters` are the input buffers in the order of the positional
    arguments, `arguments` the identifiers those have in the text (the same unless mangled).
    """

    name: str
    text: str
    entry: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]


def load(module: NumpyModule) -> Callable[..., Any]:
    """The function of a generated module, in a namespace of its own; tracebacks show the text."""
    filename = _register(module)
    namespace: dict[str, Any] = {"__name__": f"convdsl_{module.entry}"}
    exec(compile(module.text, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[module.entry]
    return function


def _register(module: NumpyModule) -> str:
    """Tell `linecache` the text; another text under the same name gets another file name."""
    filename = f"<convdsl {module.name}>"
    known = linecache.cache.get(filename)
    lines = module.text.splitlines(keepends=True)
    if known is not None and len(known) == 4 and known[2] != lines:
        filename = f"<convdsl {module.name} {sha256(module.text.encode()).hexdigest()[:8]}>"
    linecache.cache[filename] = (len(module.text), None, lines, filename)
    return filename
