"""The shipped texts, and the variants of them that the functions of `convdsl.ops` run.

A variant is a program of the language like any other: axes moved, another dtype, an activation
around the result. It is made on the syntax tree, printed and parsed again: its text can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

from convdsl.diagnostics import CdslError
from convdsl.syntax import ast
from convdsl.syntax.parser import parse
from convdsl.syntax.printer import print_program

# Activations: functions of one value in the language, `leaky_relu` with its slope besides.
ACTIVATIONS = ("relu", "leaky_relu", "sigmoid", "tanh", "gelu", "exp", "abs", "sin", "cos")
SLOPE, SLOPE_BEFORE = "slope", "slope_before"

T = TypeVar("T")


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The names of the shipped operators."""
    folder = files("convdsl.ops")
    return tuple(
        sorted(f.name.removesuffix(".cdsl") for f in folder.iterdir() if f.name.endswith(".cdsl"))
    )


@lru_cache(maxsize=32)
def source(name: str) -> str:
    """The text of a shipped operator.

    Raises:
        CdslError: E0371 for a name that none has.
    """
    if name not in names():
        raise CdslError(
            "E0371",
            f"no operator `{name}` is shipped",
            help=f"there are: {', '.join(names())}",
        )
    return files("convdsl.ops").joinpath(f"{name}.cdsl").read_text("utf-8")


@lru_cache(maxsize=64)
def program(
    name: str,
    *,
    channels_last: bool = False,
    dtype: ast.DType = "f32",
    activation: str | None = None,
    before: str | None = None,
) -> ast.Program:
    """A shipped operator, or a variant of it.

    Args:
        name: the operator.
        channels_last: the channels of `x` and of the result are the last axis, not the second.
        dtype: of all tensors.
        activation: one of `ACTIVATIONS`, around the result; `leaky_relu` takes a parameter `slope`.
        before: one of them around each read of `x`, its parameter `slope_before`.

    Raises:
        CdslError: E0371 for a name that no operator has.
    """
    tree = parse(source(name), f"{name}.cdsl")
    (op,) = tree.ops
    if channels_last:
        op = _channels_last(op)
    if dtype != "f32":
        op = _typed(op, dtype)
    if activation is not None:
        op = _activated(op, activation)
    if before is not None:
        op = _activated_before(op, before)
    if op is tree.ops[0]:
        return tree
    return parse(print_program(replace(tree, items=(op,))), f"{name}.cdsl")


def _moved(axes: tuple[T, ...]) -> tuple[T, ...]:
    """N, C, spatial... as N, spatial..., C."""
    return (axes[0], *axes[2:], axes[1])


def _channels_last(op: ast.Op) -> ast.Op:
    def params(param: ast.TensorDecl | ast.ScalarDecl) -> ast.TensorDecl | ast.ScalarDecl:
        if isinstance(param, ast.TensorDecl) and param.name.name == "x":
            return replace(param, axes=_moved(param.axes))
        return param

    def moved(read: ast.Read) -> ast.Expr:
        return replace(read, axes=_moved(read.axes))

    result = op.result
    return replace(
        op,
        params=tuple(map(params, op.params)),
        output=replace(op.output, axes=_moved(op.output.axes)),
        result=replace(result, axes=_moved(result.axes), value=_reads(result.value, moved)),
    )


def _reads(node: Any, change: Callable[[ast.Read], ast.Expr]) -> Any:
    """The expression with each read of `x` changed."""
    match node:
        case ast.Read(ast.Ref("x")):
            return change(node)
        case ast.Binary():
            return replace(node, left=_reads(node.left, change), right=_reads(node.right, change))
        case ast.Reduce():
            return replace(node, body=_reads(node.body, change))
        case _:  # the shipped convolutions hold no other node with a read of x inside
            return node


def _typed(op: ast.Op, dtype: ast.DType) -> ast.Op:
    params = tuple(
        replace(p, dtype=dtype) if isinstance(p, ast.TensorDecl) else p for p in op.params
    )
    return replace(op, params=params, output=replace(op.output, dtype=dtype))


def _activated(op: ast.Op, activation: str) -> ast.Op:
    op, value = _applied(op, activation, op.result.value, SLOPE)
    return replace(op, result=replace(op.result, value=value))


def _activated_before(op: ast.Op, activation: str) -> ast.Op:
    with_slope, _ = _applied(op, activation, op.result.value, SLOPE_BEFORE)

    def applied(read: ast.Read) -> ast.Expr:
        return _applied(op, activation, read, SLOPE_BEFORE)[1]

    result = replace(op.result, value=_reads(op.result.value, applied))
    return replace(with_slope, result=result)


def _applied(op: ast.Op, activation: str, value: ast.Expr, slope: str) -> tuple[ast.Op, ast.Call]:
    """The op with the parameter that the activation needs, and the activation of a value."""
    if activation != "leaky_relu":
        return op, ast.Call(activation, (value,), value.span)
    name = ast.Ref(slope, value.span)
    declared = ast.ScalarDecl(name, "float", span=value.span)
    call = ast.Call(activation, (value, name), value.span)
    return replace(op, params=(*op.params, declared)), call
