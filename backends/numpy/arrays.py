"""The arrays of a generated function: temporaries, scratch arrays, and views."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set

from convdsl.backends.numpy import code
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.scope import Dims, Scope
from convdsl.ir.loop import Buffer


def empty(dims: Dims, dtype: ast.expr, scope: Scope) -> ast.expr:
    return code.call(code.np("empty"), scope.shape(dims), dtype)


def arrays(scope: Scope, used: set[str], given: Set[str]) -> list[Item]:
    """Temporaries but for `given` ones, scratch arrays, and the views that the kernels use."""
    program = scope.program
    out: list[Item] = []
    for buffer in program.buffers:
        if needed(buffer, scope, used):
            name = code.name(scope.names.get("buffer", buffer.name))
            if buffer.name in given:
                continue
            if scope.widened(buffer.name):
                out.append(code.assign(name, widen(buffer.name, scope)))
            elif buffer.memory == "temp":
                out.append(_make(buffer, scope))
    return [*out, *scratch(scope.scratch, scope, used), *_views(program.buffers, scope, used)]


def scratch(made: Mapping[tuple[str, Dims], str], scope: Scope, used: set[str]) -> list[Item]:
    out: list[Item] = []
    for (dtype, shape), text in made.items():
        if text in used:
            kind = code.np("int32" if dtype == "i32" else "float32")
            out.append(code.assign(code.name(text), empty(shape, kind, scope)))
    return out


def widen(buffer: str, scope: Scope) -> ast.expr:
    """A f16 input as float32."""
    return code.method(code.name(scope.names.get("buffer", buffer)), "astype", code.np("float32"))


def needed(buffer: Buffer, scope: Scope, used: set[str]) -> bool:
    """Whether the kernels mention the buffer or a view of it."""
    views = {a.name for a in scope.aliases.values() if a.buffer == buffer.name}
    return bool(used & (views | {scope.names.get("buffer", buffer.name)}))


def _make(buffer: Buffer, scope: Scope) -> ast.stmt:
    name = code.name(scope.names.get("buffer", buffer.name))
    return code.assign(name, empty(scope.shapes[buffer.name], scope.dtype(buffer.name), scope))


def _views(buffers: Sequence[Buffer], scope: Scope, used: set[str]) -> list[Item]:
    out: list[Item] = []
    for buffer in buffers:
        name = scope.names.get("buffer", buffer.name)
        if buffer.memory == "output" and name not in used and not scope.merges_output:
            name = "out"
        for alias in scope.aliases.values():
            if alias.buffer == buffer.name and not alias.base and alias.name in used:
                extents = [scope.integer(d) for d in alias.dims] or [code.sequence(())]
                view = code.method(code.name(name), "reshape", *extents)
                out.append(code.assign(code.name(alias.name), view))
    return out


def allocate(buffers: Sequence[Buffer], scope: Scope, used: set[str]) -> list[Item]:
    """The local buffers of a kernel and their views."""
    out: list[Item] = [_make(b, scope) for b in buffers if needed(b, scope, used)]
    return out + _views(buffers, scope, used)
