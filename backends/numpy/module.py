"""What the NumPy backend makes of a loop program: a standalone Python module as text."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from convdsl.ir.index import Index


@dataclass(frozen=True, slots=True)
class NumpyFold:
    """A function of the module that the main one calls, and whose results `bind` keeps.

    It takes arrays (inputs and results of earlier folds) and then numbers (sizes and definitions),
    and returns one array, or a tuple of them. `sizes` are those behind the numbers.
    """

    function: str
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    inputs: frozenset[str]
    sizes: frozenset[str]
    results: tuple[str, ...]
    key: str


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
    sizes: tuple[str, ...]
    definitions: tuple[tuple[str, Index], ...]
    folds: tuple[NumpyFold, ...]


def load(module: NumpyModule) -> Callable[..., Any]:
    """The main function of a generated module; tracebacks show the text."""
    function: Callable[..., Any] = namespace_of(module)[module.entry]
    return function


def namespace_of(module: NumpyModule) -> dict[str, Any]:
    """All names of a generated module."""
    filename = _register(module)
    namespace: dict[str, Any] = {"__name__": f"convdsl_{module.entry}"}
    exec(compile(module.text, filename, "exec"), namespace)
    return namespace


def _register(module: NumpyModule) -> str:
    """Tell `linecache` the text; another text under the same name gets another file name."""
    filename = f"<convdsl {module.name}>"
    known = linecache.cache.get(filename)
    lines = module.text.splitlines(keepends=True)
    if known is not None and len(known) == 4 and known[2] != lines:
        filename = f"<convdsl {module.name} {sha256(module.text.encode()).hexdigest()[:8]}>"
    linecache.cache[filename] = (len(module.text), None, lines, filename)
    return filename
