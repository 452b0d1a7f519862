"""Parse trees of `grammar/loop.lark` to loop programs and equation systems."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import cast

from lark import Token

from convdsl.ir.equation import Equation, Piece, Role, System, Tensor
from convdsl.ir.expr import DType
from convdsl.ir.index import Index
from convdsl.ir.loop import (
    Accumulate,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Level,
    LoopProgram,
    Memory,
    Stmt,
    Store,
)
from convdsl.ir.reader_expr import ExprReader, Node, of_kind, parts, word


def build_program(reader: ExprReader, tree: Node) -> LoopProgram:
    """The program of a `program` node."""
    name, sizes, definitions = _head(reader, tree)
    buffers = tuple(_buffer(reader, b) for b in of_kind(tree.children, "buffer"))
    declared = {b.name: (b.dims, b.dtype) for b in buffers}
    kernels: list[Kernel] = []
    for node in of_kind(tree.children, "kernel"):
        locals_ = tuple(_local(reader, b) for b in of_kind(node.children, "local"))
        reader.storage = {**declared, **{b.name: (b.dims, b.dtype) for b in locals_}}
        body = _body(reader, [n for n in parts(node)[1:] if _is_stmt(n)])
        kernels.append(Kernel(word(parts(node)[0]), locals_, body, _comment(node) or ""))
    return LoopProgram(name, sizes, definitions, buffers, tuple(kernels))


def build_system(reader: ExprReader, tree: Node) -> System:
    """The system of a `system` node."""
    name, sizes, definitions = _head(reader, tree)
    tensors = tuple(_tensor(reader, t) for t in of_kind(tree.children, "tensor"))
    reader.storage = {t.name: (t.dims, t.dtype) for t in tensors}
    equations = tuple(
        Equation(
            word(parts(node)[0]),
            tuple(_piece(reader, p) for p in of_kind(node.children, "piece")),
        )
        for node in of_kind(tree.children, "equation")
    )
    return System(name, sizes, definitions, tensors, equations)


def _head(
    reader: ExprReader, tree: Node
) -> tuple[str, tuple[str, ...], tuple[tuple[str, Index], ...]]:
    name = word(parts(tree)[0])
    sizes = tuple(word(s) for group in of_kind(tree.children, "names") for s in parts(group))
    lets = (parts(d) for d in of_kind(tree.children, "definition"))
    return name, sizes, tuple((word(n), reader.index(value)) for n, value in lets)


# -- declarations ---------------------------------------------------------------------------------
def _buffer(reader: ExprReader, node: Node) -> Buffer:
    name, dtype, dims, memory, *values = parts(node)
    return replace(_declared(reader, name, dtype, dims, memory), values=_values(reader, values))


def _local(reader: ExprReader, node: Node) -> Buffer:
    memory, name, dtype, dims = parts(node)
    return _declared(reader, name, dtype, dims, memory)


def _declared(reader: ExprReader, name: Node, dtype: Node, dims: Node, memory: Node) -> Buffer:
    first = [i for sums in of_kind(dims.children, "sums") for i in reader.indices(sums)]
    rest: list[Index] = []
    bars = of_kind(dims.children, "thread_bar")
    for bar in bars:
        rest += [i for sums in parts(bar) for i in reader.indices(sums)]
    kind, memory_ = cast(DType, word(dtype)), cast(Memory, word(memory))
    return Buffer(word(name), kind, (*first, *rest), memory_, len(first) if bars else 0)


def _tensor(reader: ExprReader, node: Node) -> Tensor:
    name, dtype, *rest = parts(node)
    axes = tuple(reader.indices(n) for n in rest if n.data in ("axis", "factors"))
    (role,) = of_kind(rest, "role")
    default = [float(reader.number(n).value) for n in of_kind(rest, "number")]
    return Tensor(
        word(name),
        cast(DType, word(dtype)),
        axes,
        cast(Role, word(role)),
        default[0] if default else None,
        _values(reader, rest),
    )


def _values(reader: ExprReader, nodes: list[Node]) -> tuple[Fraction, ...]:
    """The numbers of a constant; none where none are written."""
    return tuple(reader.quotient(n) for v in of_kind(nodes, "values") for n in parts(v))


# -- statements -----------------------------------------------------------------------------------
def _is_stmt(node: object) -> bool:
    return getattr(node, "data", "") in ("for", "let", "let_in", "if", "store")


def _body(reader: ExprReader, nodes: list[Node]) -> tuple[Stmt, ...]:
    """The statements of a block; the body of a plain `let` is what follows it."""
    out: list[Stmt] = []
    for n, node in enumerate(nodes):
        if node.data == "let":
            name, value = parts(node)
            rest = _body(reader, nodes[n + 1 :])
            return (*out, Let(word(name), reader.index(value), rest))
        out.append(_stmt(reader, node))
    return tuple(out)


def _stmt(reader: ExprReader, node: Node) -> Stmt:
    body = [stmt for block in of_kind(node.children, "block") for stmt in parts(block)]
    match node.data:
        case "for":
            var, level = parts(node)[:2]
            return For(reader.var(var), cast(Level, word(level)), _body(reader, body))
        case "let_in":
            name, value = parts(node)[:2]
            return Let(word(name), reader.index(value), _body(reader, body))
        case "if":
            return If(reader.preds(node.children), _body(reader, body))
        case _:
            access, assign, value = parts(node)
            accumulate = word(assign).removesuffix("=") or None
            return Store(
                reader.access(access), reader.expr(value), cast("Accumulate | None", accumulate)
            )


def _piece(reader: ExprReader, node: Node) -> Piece:
    access, value = parts(node)[-2:]
    conditions = [p for c in of_kind(node.children, "condition") for p in parts(c)]
    origin = _comment(node)
    return Piece(
        reader.vars(parts(node)),
        reader.preds(conditions),
        reader.access(access),
        reader.expr(value),
        "definition" if origin is None else origin,
    )


def _comment(node: Node) -> str | None:
    """The comment that is part of the value, its line breaks put back."""
    for child in node.children:
        if isinstance(child, Token) and child.type == "COMMENT":
            text = child.removeprefix("#").removeprefix(" ")
            return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), text)
    return None
