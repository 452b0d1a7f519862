"""Both IRs as indented text. `convdsl.ir.reader` reads it back to the same value.

    func scale(N, L)                     system scale(N, L)
      buffer x: f32[N, L] input            tensor x: f32[N, L] input
      buffer y: f32[N, L] output           tensor y: f32[N, L] output
    kernel y  # y = gather               equation y
      for n in 0..N grid                   for n in 0..N, l in 0..L
        for l in 0..L serial                 y[n, l] = x[n, l] * 2.0
          y[n, l] = x[n, l] * 2.0

The body of a `let` is the rest of its block; when more statements follow that body, it is written
as `let a = b in` with the body indented. Long lines break inside brackets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from convdsl.ir.equation import Piece, System, Tensor
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, LoopProgram, Stmt, Store
from convdsl.ir.text_expr import (
    Dims,
    access_text,
    comma,
    expr_text,
    number_text,
    preds_text,
    var_text,
)

_INDENT = "  "
_WIDTH = 100


def print_program(program: LoopProgram) -> str:
    """The loop program as text."""
    lines = [f"func {program.name}({comma(program.sizes)})"]
    lines += [f"{_INDENT}let {name} = {value}" for name, value in program.definitions]
    lines += [
        f"{_INDENT}buffer {_buffer_text(b)} {b.memory}{_values_text(b.values)}"
        for b in program.buffers
    ]
    dims = {b.name: b.dims for b in program.buffers}
    for kernel in program.kernels:
        lines += _kernel_lines(kernel, dims)
    return _join(lines)


def print_kernel(kernel: Kernel, program: LoopProgram) -> str:
    """One kernel of a program as text."""
    return _join(_kernel_lines(kernel, {b.name: b.dims for b in program.buffers}))


def print_body(body: tuple[Stmt, ...], dims: Dims | None = None) -> str:
    """Statements as text. Without `dims` no access shows its view."""
    return _join(_block_lines(body, "", dims or {}))


def stmt_text(stmt: Stmt, dims: Dims | None = None) -> str:
    """The first line of a statement: what a message quotes."""
    match stmt:
        case For(var, level):
            return f"for {var_text(var)} {level}"
        case Let(name, value):
            return f"let {name} = {value}"
        case If(conditions):
            return f"if {preds_text(conditions)}"
        case Store(access, value, accumulate):
            target = access_text(access, dims or {})
            return f"{target} {accumulate or ''}= {expr_text(value, dims or {})}"


def print_system(system: System) -> str:
    """The equation system as text."""
    lines = [f"system {system.name}({comma(system.sizes)})"]
    lines += [f"{_INDENT}let {name} = {value}" for name, value in system.definitions]
    lines += [f"{_INDENT}tensor {_tensor_text(t)}" for t in system.tensors]
    dims = {t.name: t.dims for t in system.tensors}
    for equation in system.equations:
        lines.append(f"equation {equation.tensor}")
        for piece in equation.pieces:
            lines += [_INDENT + line for line in _piece_lines(piece, dims)]
    return _join(lines)


def print_piece(piece: Piece, dims: Dims | None = None) -> str:
    """One piece of an equation as text. Without `dims` no access shows its view."""
    return _join(_piece_lines(piece, dims or {}))


# -- lines ----------------------------------------------------------------------------------------
def _buffer_text(buffer: Buffer) -> str:
    dims = comma(buffer.dims)
    if buffer.thread_dims:
        mine, rest = buffer.dims[: buffer.thread_dims], buffer.dims[buffer.thread_dims :]
        dims = f"{comma(mine)} | {comma(rest)}" if rest else f"{comma(mine)} |"
    return f"{buffer.name}: {buffer.dtype}[{dims}]"


def _kernel_lines(kernel: Kernel, dims: Dims) -> Iterator[str]:
    comment = f"  {_comment(kernel.comment)}" if kernel.comment else ""
    yield f"kernel {kernel.name}{comment}"
    yield from (f"{_INDENT}{b.memory} {_buffer_text(b)}" for b in kernel.locals)
    yield from _block_lines(
        kernel.body, _INDENT, {**dims, **{b.name: b.dims for b in kernel.locals}}
    )


def _block_lines(body: tuple[Stmt, ...], indent: str, dims: Dims) -> Iterator[str]:
    for n, stmt in enumerate(body):
        line = indent + stmt_text(stmt, dims)
        if isinstance(stmt, Store):
            yield line
        elif isinstance(stmt, Let) and n == len(body) - 1:
            yield line
            yield from _block_lines(stmt.body, indent, dims)
        else:
            yield line + " in" if isinstance(stmt, Let) else line
            yield from _block_lines(stmt.body, indent + _INDENT, dims)


def _axis_text(axis: tuple[Index, ...]) -> str:
    return str(axis[0]) if len(axis) == 1 else f"({comma(axis)})"


def _tensor_text(tensor: Tensor) -> str:
    default = "" if tensor.default is None else f" = {number_text(tensor.default, 'f32')}"
    axes = comma(map(_axis_text, tensor.axes))
    values = _values_text(tensor.values)
    return f"{tensor.name}: {tensor.dtype}[{axes}] {tensor.role}{default}{values}"


def _values_text(values: tuple[Fraction, ...]) -> str:
    """The numbers of a constant, as exact quotients."""
    return f" = [{comma(values)}]" if values else ""


def _piece_lines(piece: Piece, dims: Dims) -> Iterator[str]:
    head = ["for" if piece.vars else "once"]
    if piece.vars:
        head.append(comma(map(var_text, piece.vars)))
    if piece.guards:
        head.append(f"if {preds_text(piece.guards)}")
    if piece.origin != "definition":
        head.append(f" {_comment(piece.origin)}")
    yield " ".join(head)
    yield f"{_INDENT}{access_text(piece.access, dims)} = {expr_text(piece.value, dims)}"


def _comment(text: str) -> str:
    """A comment that is part of the value: its line breaks are escaped, so that it reads back."""
    return "# " + text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _join(lines: Iterable[str]) -> str:
    return "".join(_wrap(line) + "\n" for line in lines)


def _wrap(line: str) -> str:
    """Break a long line at spaces inside brackets, where the reader takes no notice of lines."""
    if len(line) <= _WIDTH:
        return line
    hanging = " " * (len(line) - len(line.lstrip()) + 4)
    breaks = _breaks(line)
    out, start, room = "", 0, _WIDTH
    while len(line) - start > room:
        # The outermost bracket that leaves a line at least half full.
        fitting = [(depth, -at) for at, depth in breaks if start + room // 2 < at <= start + room]
        later = [(0, at) for at, _ in breaks if at > start + room]
        if not fitting and not later:
            break
        end = abs(min(fitting or later)[1])
        out += line[start:end] + "\n" + hanging
        start, room = end + 1, max(_WIDTH - len(hanging), _WIDTH // 2)
    return out + line[start:]


def _breaks(line: str) -> list[tuple[int, int]]:
    """The places of spaces inside brackets, each with its depth."""
    out: list[tuple[int, int]] = []
    depth, views, before = 0, 0, " "
    for at, char in enumerate(line):
        if char == "#":  # names and numbers hold none: the rest is a comment
            break
        # A view touches the name and the index; comparisons have spaces around them.
        depth += (char in "([{") - (char in ")]}")
        views += (char == "<" and before != " ") - (char == ">" and line[at + 1 : at + 2] == "[")
        if char == " " and depth:
            out.append((at, depth + views))
        before = char
    return out
