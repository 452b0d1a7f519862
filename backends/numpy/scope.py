"""What the emitter knows while it walks a program: names, facts, and the arrays at hand.

Every access goes through an *alias*: a name for a buffer seen through a row-major view. The shape
of the array itself needs none; the rest become `x_2d = x.reshape(...)` lines, before the first
kernel (or, for a local, at the start of its kernel).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from convdsl.backends.numpy import code
from convdsl.backends.numpy.integers import integer
from convdsl.backends.numpy.names import Names
from convdsl.backends.numpy.proof import Facts
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Access
from convdsl.ir.index import Index, product
from convdsl.ir.loop import Buffer, LoopProgram

Dims = tuple[Index, ...]
DTYPES = {"f32": "float32", "f16": "float16", "i32": "int32"}


@dataclass(frozen=True, slots=True)
class Alias:
    """`name = buffer.reshape(dims)`; the base name when `dims` is the shape of the array itself."""

    name: str
    buffer: str
    dims: Dims
    base: bool


class Scope:
    def __init__(self, program: LoopProgram, axes: Mapping[str, tuple[int, ...]]) -> None:
        self.program = program
        self.sizes = frozenset(program.sizes) | {name for name, _ in program.definitions}
        self.buffers = {b.name: b for b in program.buffers}
        self.shapes = {b.name: _shape(b, axes) for b in program.buffers}
        self.names = Names()
        self.facts = Facts(self._known_sizes())
        for b in program.buffers:  # arguments keep their names if anything does
            self.names.get("buffer", b.name)
        for size in (*program.sizes, *(n for n, _ in program.definitions)):
            self.names.get("integer", size)
        for name, value in program.definitions:
            self.facts.let(name, value)
            if name in self.facts.sizes:  # the text checks it
                self.facts.assumed.append(self.facts.expand(value))
        self.aliases: dict[tuple[str, Dims], Alias] = {}
        self.helpers: set[str] = set()
        self.scratch: dict[tuple[str, Dims], str] = {}
        self._worker = ""
        self.prepared: dict[str, tuple[str, ast.expr]] = {}
        self.host_depth = 0
        self.merges_output = False

    def _known_sizes(self) -> frozenset[str]:
        """Symbols that are not negative: sizes of inputs, and definitions that are extents."""
        extents = frozenset().union(*(d.free for b in self.program.buffers for d in b.dims))
        return frozenset(self.program.sizes) | (extents & self.sizes)

    # -- names ------------------------------------------------------------------------------------
    def identifier(self, name: str) -> str:
        """The Python variable of an integer."""
        return self.names.get("integer", name)

    def working(self, name: str) -> str:
        """A variable of the emitter itself."""
        return self.names.get("working", name)

    def integer(self, index: Index, arrays: Mapping[str, ast.expr] | None = None) -> ast.expr:
        return integer(index, lambda n: code.name(self.identifier(n)), arrays)

    def shape(self, dims: Dims) -> ast.expr:
        return code.sequence(self.integer(d) for d in dims)

    def helper(self, name: str) -> ast.expr:
        """A function of `helpers`, to be placed in the text."""
        self.helpers.add(name)
        return code.name(name)

    def widened(self, buffer: str) -> bool:
        """Whether an array has been converted to float32 before the first kernel."""
        return self.buffers[buffer].dtype == "f16" and self.buffers[buffer].memory == "input"

    def dtype(self, buffer: str) -> ast.expr:
        return code.np(DTYPES[self.buffers[buffer].dtype])

    # -- buffers ----------------------------------------------------------------------------------
    def add_local(self, buffer: Buffer) -> None:
        self.buffers[buffer.name] = buffer
        self.shapes[buffer.name] = squeezed(buffer.dims)
        for key in [k for k in self.aliases if k[0] == buffer.name]:
            del self.aliases[key]

    def array(self, access: Access) -> ast.expr:
        """The array in which `access.index` (with unit dims dropped) is a subscript."""
        buffer = self.buffers.get(access.tensor)
        if buffer is None:
            raise InternalError(f"access to an unknown buffer {access.tensor!r}")
        dims = access.dims
        base = self.names.get("buffer", buffer.name)
        if not frozenset().union(*(d.free for d in dims)) <= self.sizes:
            self.note_merge(buffer.name, dims)
            return code.method(code.name(base), "reshape", *(self.integer(d) for d in dims))
        key = (buffer.name, dims)
        alias = self.aliases.get(key)
        if alias is None:
            if dims == self.shapes[buffer.name]:
                alias = Alias(base, buffer.name, dims, True)
            else:
                wanted = f"{base}_{len(dims)}d" if dims else f"{base}_item"
                name = self.names.get("alias", f"{access.tensor} {dims}", wanted)
                alias = Alias(name, buffer.name, dims, False)
                self.note_merge(buffer.name, dims)
            self.aliases[key] = alias
        return code.name(alias.name)

    def base(self, name: str) -> str:
        """The array that a name is a view of, itself where it is none."""
        views = (a for a in self.aliases.values() if a.name == name)
        return next((self.names.get("buffer", a.buffer) for a in views), name)

    def scratch_array(self, dtype: str, shape: Dims) -> str:
        """An array made once at the start of the function; its content lasts for one statement."""
        key = (dtype, shape)
        if key not in self.scratch:
            name = f"{self._worker} {dtype} {shape}"
            self.scratch[key] = self.names.get("scratch", name, "scratch")
        return self.scratch[key]

    @contextmanager
    def worker(self, loop: str) -> Iterator[dict[tuple[str, Dims], str]]:
        """The scratch arrays of what is emitted inside a worker loop, which each thread makes."""
        outside = self.scratch, self._worker
        self.scratch, self._worker = {}, loop
        try:
            yield self.scratch
        finally:
            self.scratch, self._worker = outside

    def prepare(self, node: ast.expr, tensor: str) -> ast.expr:
        """A name for a value that is computed once, before the first kernel."""
        key = ast.dump(node)
        if key not in self.prepared:
            wanted = f"{self.names.get('buffer', tensor)}_matrix"
            self.prepared[key] = (self.names.get("prepared", key, wanted), node)
        return code.name(self.prepared[key][0])

    def note_merge(self, buffer: str, dims: Dims) -> None:
        """A view of the output that joins its axes needs an output without gaps."""
        if self.buffers[buffer].memory == "output" and not splits(
            tuple(map(self.facts.expand, self.shapes[buffer])), tuple(map(self.facts.expand, dims))
        ):
            self.merges_output = True


def squeezed(dims: Dims) -> Dims:
    return tuple(d for d in dims if d.as_int() != 1)


def splits(shape: Dims, dims: Dims) -> bool:
    """Whether `dims` only splits axes of `shape`, so that reshaping is a view for any strides."""
    rest = list(squeezed(dims))
    for extent in squeezed(shape):
        part = product(())
        while part != extent:
            if not rest:
                return False
            part = part * rest.pop(0)
    return not rest


def _shape(buffer: Buffer, axes: Mapping[str, tuple[int, ...]]) -> Dims:
    """The shape of the array: one extent an axis for inputs and the output."""
    if buffer.memory not in ("input", "output"):
        return squeezed(buffer.dims)
    counts = axes.get(buffer.name, (1,) * len(buffer.dims))
    if sum(counts) != len(buffer.dims):
        raise InternalError(f"axes of {buffer.name!r} do not match its dims")
    out, at = [], 0
    for count in counts:
        out.append(product(buffer.dims[at : at + count]))
        at += count
    return tuple(out)
