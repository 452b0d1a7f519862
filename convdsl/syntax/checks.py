"""Rules of the syntax that the grammar leaves open because the message is better here.

Which names are types, what belongs to a tensor and what to a parameter, the order of statements;
expressions are in `convdsl.syntax.operands`. Names, scopes and shapes are checked later, in
`convdsl.sema`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from convdsl.diagnostics import CdslError, Note, Span
from convdsl.syntax import ast, operands

DTYPES: tuple[str, ...] = get_args(ast.DType)
SCALARS = ("int", "float")

_LONGER = {"f64": "f32", "float64": "f32", "double": "f32", "float32": "f32", "single": "f32"}
_LONGER |= {"float16": "f16", "half": "f16", "bf16": "f16", "bfloat16": "f16", "f8": "f16"}
_LONGER |= {"int32": "i32", "i64": "i32", "int64": "i32", "u32": "i32", "i8": "i32", "bool": "i32"}


@dataclass(frozen=True, slots=True)
class RawParam:
    """`name: type [sizes] = default` before its kind is known."""

    name: ast.Ref
    kind: ast.Ref
    sizes: tuple[ast.Expr, ...] | None
    default: ast.Number | ast.Negate | None
    span: Span


def dtype(name: ast.Ref) -> ast.DType:
    """The element type that a name stands for."""
    if name.name in DTYPES:
        return cast(ast.DType, name.name)
    known = ", ".join(f"`{t}`" for t in DTYPES)
    near = _LONGER.get(name.name)
    raise CdslError(
        "E0112",
        f"`{name.name}` is not an element type",
        name.span,
        notes=(f"the types of tensors are {known}",),
        help=f"write `{near}`" if near else None,
    )


def scalar_or_tensor(raw: RawParam) -> ast.TensorDecl | ast.ScalarDecl:
    """An input: a tensor when it has axes, else a number."""
    kind = raw.kind.name
    if raw.sizes is not None:
        if kind in SCALARS:
            raise CdslError(
                "E0112",
                f"`{kind}` is the type of a parameter and has no axes",
                raw.kind.span,
                help=f"a tensor is declared like `{raw.name.name}: f32[N, C]`",
            )
        return ast.TensorDecl(raw.name, dtype(raw.kind), raw.sizes, raw.default, span=raw.span)
    if kind in SCALARS:
        if kind == "int" and raw.default is not None:
            operands.whole(raw.default, raw.name.name)
        scalar = cast(Literal["int", "float"], kind)
        return ast.ScalarDecl(raw.name, scalar, raw.default, span=raw.span)
    if kind in DTYPES:
        raise CdslError(
            "E0112",
            f"`{raw.name.name}` has no axes",
            raw.span,
            help=f"write `{raw.name.name}: {kind}[N]` for a tensor, `{kind}[]` for one of rank 0,\n"
            "`int` or `float` for a parameter",
        )
    raise CdslError(
        "E0112",
        f"`{kind}` is not a type",
        raw.kind.span,
        notes=(
            "a parameter is `int` or `float`; a tensor is `f32[...]`, `f16[...]` or `i32[...]`",
        ),
    )


def output(raw: RawParam) -> ast.TensorDecl:
    """The result's declaration."""
    if raw.default is not None:
        raise CdslError(
            "E0101",
            "a result has no default",
            raw.default.span,
            help="only inputs may be absent; write the value in the definition",
        )
    if raw.sizes is None and raw.kind.name in SCALARS:
        raise CdslError(
            "E0112",
            "the result must be a tensor",
            raw.kind.span,
            help=f"a single number is a tensor of rank 0: `{raw.name.name}: f32[]`",
        )
    return cast(ast.TensorDecl, scalar_or_tensor(raw))


def lonely_composite(name: str, span: Span) -> CdslError:
    """The error for `(a)` on an axis."""
    return CdslError(
        "E0109",
        "a composite axis has two or more indices",
        span,
        help=f"write `{name}` without parentheses",
    )


def otherwise(reducer: str, value_: ast.Expr | None, span: Span) -> None:
    """`else` follows max and min only: the empty sum and product have values."""
    if value_ is not None and reducer in ("sum", "prod"):
        empty = "0" if reducer == "sum" else "1"
        raise CdslError(
            "E0115",
            f"`{reducer}[...]` has no `else`",
            span,
            notes=(f"the empty {reducer} is {empty}",),
            help="leave it out; `else` belongs to `max[...]` and `min[...]`",
        )


def statements(
    body: tuple[ast.Let | ast.Definition, ...], braces: Span
) -> tuple[tuple[ast.Let, ...], ast.Definition]:
    """Lets first, then exactly one definition of the result."""
    lets = tuple(s for s in body if isinstance(s, ast.Let))
    results = tuple(s for s in body if isinstance(s, ast.Definition))
    if not results:
        raise CdslError(
            "E0116",
            "the operator does not define its result",
            Span(braces.source, braces.end - 1, braces.end),
            help="after the lets, write the result like `y[n, o] = ...`",
        )
    first = results[0]
    if len(results) > 1:
        again = results[1]
        raise CdslError(
            "E0116",
            "an operator has one definition that is not a `let`",
            again.tensor.span,
            notes=(Note("the first one is here", first.tensor.span),),
            help=f"write `let {first.tensor.name}[...] = ...` for an intermediate tensor",
        )
    if body[-1] is not first:
        raise CdslError(
            "E0116",
            "a `let` comes before the result",
            lets[-1].span,
            notes=(Note("the result is here", first.tensor.span),),
            help="move the `let` up",
        )
    return lets, first


def operators(program: ast.Program) -> None:
    """A program has operators, and each has its own name."""
    if not program.ops:
        only = "only schedules" if program.items else "nothing to compile"
        raise CdslError(
            "E0118",
            f"the text holds {only}: it defines no operator",
            Span(program.source, 0, 0),
            help="an operator is written `op name(inputs) -> y: f32[...] { y[...] = ... }`",
        )
    seen: dict[str, ast.Ref] = {}
    for op in program.ops:
        if op.name.name in seen:
            raise CdslError(
                "E0117",
                f"the operator `{op.name.name}` is defined twice",
                op.name.span,
                notes=(Note("the first one is here", seen[op.name.name].span),),
                help="rename one of them",
            )
        seen[op.name.name] = op.name
