"""Whole well-formed programs of the exact fragment, with parameters and sizes for several calls.

Everything is an integer, or one divided by a small power of two, and no partial result reaches
2**24 of its unit: so whatever the order of operations, float32 has no rounding to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from convdsl.diagnostics import Source
from convdsl.syntax import ast
from convdsl.syntax.printer import print_program
from tests.strategies.head import VOLUME, Head, Tensor
from tests.strategies.trees import (
    HERE,
    Bound,
    Extent,
    Index,
    Value,
    axis,
    binary,
    call,
    clause,
    number,
    ref,
)
from tests.strategies.values import Values


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """A program, and what it is called with: sizes a call, parameters, the inputs left out."""

    tree: ast.Program
    params: Mapping[str, int | float]
    inputs: tuple[Tensor, ...]
    calls: tuple[Mapping[str, int], ...]
    absent: frozenset[str]

    def __repr__(self) -> str:
        """What a failing example shows: all that is needed to write it down as a test."""
        rows = [f"params={dict(self.params)}", *map(str, map(dict, self.calls))]
        return "\n".join([print_program(self.tree), *rows, f"absent={sorted(self.absent)}"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self!r}\n")

    @property
    def sizes(self) -> list[str]:
        """The names that the shapes of the inputs give numbers to."""
        return [n for n in self.calls[0] if n[0].isupper()]

    def shapes(self, call: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs that are given."""
        env = dict(self.calls[call])
        return {
            t.name: tuple(sum(a[1:], start=a[0]).count(env) for a in t.axes)
            for t in self.inputs
            if t.name not in self.absent
        }


@st.composite
def programs(draw: st.DrawFn, calls: int = 3, halves: bool = True) -> Drawn:
    """Programs; without `halves` no tensor is f16."""
    head = Head(draw)
    head.start(calls)
    for name in ("LO", "HO"):
        if head.chance(50):
            head.define(name, _formula(head))
    lets = [_let(head) for _ in range(head.pick([0, 0, 0, 1, 1, 2]))]
    output, result = _result(head)
    return _assemble(head, lets, output, result, halves)


def _assemble(
    head: Head, lets: list[ast.Let], output: ast.TensorDecl, result: ast.Definition, halves: bool
) -> Drawn:
    absent = _determined(head)
    declared: list[ast.TensorDecl | ast.ScalarDecl] = [
        ast.TensorDecl(
            ref(t.name),
            "f32" if t.dtype == "f16" and not halves else t.dtype,  # type: ignore[arg-type]
            tuple(sum(a[1:], start=a[0]).tree for a in t.axes),
            None if t.default is None else number(t.default),
            span=HERE,
        )
        for t in head.inputs
    ]
    params: dict[str, int | float] = {**head.parameters, **head.floats}
    given: dict[str, int | float] = {}
    for name, value in params.items():
        default = value if head.chance(30) else value + 1 if head.chance(20) else None
        if default != value:
            given[name] = value
        kind = "int" if name in head.parameters else "float"
        declared.append(
            ast.ScalarDecl(
                ref(name),
                kind,  # type: ignore[arg-type]
                None if default is None else number(default),
                span=HERE,
            )
        )
    where = [clause(ref(name), "==", formula) for name, formula in head.defined.items()]
    op = ast.Op(
        ref(head.pick(["f0", "op", "lambda_", "main"])), tuple(declared), output,
        (*where, *head.checks), tuple(lets), result, HERE,
    )  # fmt: skip
    every = [{n: v for n, v in e.items() if n not in head.defined} for e in head.environments]
    plain = tuple(
        t if halves or t.dtype != "f16" else Tensor(t.name, "f32", t.axes, t.bound, t.default)
        for t in head.inputs
    )
    return Drawn(ast.Program((op,), Source("")), given, plain, tuple(every), absent)


def _determined(head: Head) -> frozenset[str]:
    """The inputs to leave out; a further input tells the sizes that no shape would."""
    absent = {t.name for t in head.inputs if t.default is not None and head.chance(50)}
    present = [t for t in head.inputs if t.name not in absent]
    known = [_told(present, head.sizes, env) for env in head.environments]
    missing = [n for n in head.sizes if any(n not in k for k in known)]
    if missing:
        extents = tuple((Extent((n,)),) for n in missing)
        head.inputs.append(Tensor("unread", "f32", extents, Bound(1)))
    return frozenset(absent)


def _told(present: list[Tensor], sizes: list[str], env: dict[str, int]) -> set[str]:
    """The sizes that the language finds: an axis with one unknown size and no zero beside it."""
    known: set[str] = set()
    axes = [[f for e in a for f in e.factors] for t in present for a in t.axes]
    for _ in sizes:
        for factors in axes:
            unknown = {f for f in factors if isinstance(f, str) and f in sizes and f not in known}
            rest = [env[f] if isinstance(f, str) else f for f in factors if f not in unknown]
            if len(unknown) == 1 and 0 not in rest:  # more than once: by a root
                known |= unknown
    return known


# -- statements ------------------------------------------------------------------------------------
def _left(head: Head, most: int, start: tuple[Index, ...] = ()) -> tuple[Index, ...]:
    out = list(start)
    for _ in range(head.number(0, most - len(start))):
        defined = head.defined and head.chance(40)
        extent = Extent((head.pick(list(head.defined)),)) if defined else head.extent()
        new = Index(head.index_name(out), extent)
        if head.volume((*out, new)) * 16 <= VOLUME:
            out.append(new)
    return tuple(out)


def _grouped(head: Head, left: tuple[Index, ...], plain: bool = False) -> list[tuple[Index, ...]]:
    """The indices as axes, some composite; when `plain`, of extents with one factor only."""
    groups: list[tuple[Index, ...]] = []
    rest = list(left)
    while rest:
        fits = len(rest) > 1 and not (plain and any(_is_product(i) for i in rest[:2]))
        count = 2 if fits and head.chance(25) else 1
        groups.append(tuple(rest[:count]))
        rest = rest[count:]
    return groups


def _is_product(index: Index) -> bool:
    return index.extent is not None and len(index.extent.factors) > 1


def _value(head: Head, kind: str, left: tuple[Index, ...], anchored: bool) -> Value:
    values = Values(head)
    values.reductions = head.pick([1, 1, 2, 2, 3])
    value = values.value(kind, left, 3)
    if values.reductions and not _has_reduce(value.tree) and head.chance(80):
        more = values.reduction(kind, left, 2)
        total = value.bound + more.bound
        if total.exact:
            joined = value.kind if more.kind == "int" else more.kind
            value = Value(binary("+", value.tree, more.tree), total, joined)
    loose = [i for i in left if i.name not in values.standing]
    if anchored and values.readable(tuple(loose)):  # nothing tells their range
        value = _joined(value, values.new_read(kind, list(values.readable(tuple(loose)))))
    if anchored and any(i not in values.readable(left) for i in loose):
        head.loose = left  # the result reads it there, which tells the range
    return value


def _joined(value: Value, more: Value) -> Value:
    total = value.bound + more.bound
    kind = value.kind if more.kind == "int" else more.kind
    if total.exact:
        return Value(binary("+", value.tree, more.tree), total, kind)
    return Value(call("max", value.tree, more.tree), value.bound | more.bound, kind)


def _has_reduce(tree: ast.Expr | ast.Comparison) -> bool:
    match tree:
        case ast.Reduce():
            return True
        case ast.Binary(_, left, right) | ast.Comparison(_, left, right):
            return _has_reduce(left) or _has_reduce(right)
        case ast.Negate(operand):
            return _has_reduce(operand)
        case ast.Call(_, args):
            return any(map(_has_reduce, args))
        case _:
            return False


def _typed(value: Value, kind: str) -> Value:
    """A value of the kind that is stored."""
    return (
        value if value.kind in (kind, "int") else Value(call(kind, value.tree), value.bound, kind)
    )


def _let(head: Head) -> ast.Let:
    # One let at most has an index that only its reader gives a range.
    defined, head.defined = head.defined, {} if head.loose is not None else head.defined
    left = _left(head, 3)
    head.defined = defined
    before = head.loose
    kind = "i32" if head.chance(15) else "f32"
    value = _typed(_value(head, kind, left, anchored=True), kind)
    groups = _grouped(head, left)
    dtype = "i32" if kind == "i32" else None
    if kind == "f32" and head.chance(30):
        dtype = "f16" if value.bound.half and head.chance(50) else "f32"
    name = head.let_name()
    axes = tuple(tuple(i.extent for i in g if i.extent is not None) for g in groups)
    head.lets.append(Tensor(name, dtype or "f32", axes, value.bound))
    if head.loose is not before:
        head.loose_let = head.lets[-1]
    return ast.Let(
        dtype,  # type: ignore[arg-type]
        ast.Definition(
            ref(name), tuple(axis([i.name for i in g]) for g in groups), value.tree, HERE
        ),
        HERE,
    )


def _result(head: Head) -> tuple[ast.TensorDecl, ast.Definition]:
    left = _left(head, 4, head.loose or ())
    loose = head.loose_let
    kind = loose.kind if loose is not None else "i32" if head.chance(15) else "f32"
    value = _value(head, kind, left, anchored=False)
    if loose is not None:
        more = Values(head).read_of(loose, head.loose or ())
        assert more is not None
        value = _joined(_typed(value, kind), more)
    value = _typed(value, kind)
    half = kind == "f32" and value.bound.half and head.chance(15)
    groups = _grouped(head, left, plain=True)
    shape = tuple(
        sum((i.extent for i in g[1:] if i.extent), start=g[0].extent or Extent((1,))).tree
        for g in groups
    )
    output = ast.TensorDecl(
        ref("y"),
        "f16" if half else kind,  # type: ignore[arg-type]
        shape,
        None,
        span=HERE,
    )
    axes = tuple(axis([i.name for i in g]) for g in groups)
    return output, ast.Definition(ref("y"), axes, value.tree, HERE)


def _formula(head: Head) -> ast.Expr:
    """What an output size may be: affine in the sizes, as convolutions have it."""
    size = ref(head.pick(head.sizes))
    stride = head.parameter(head.number(1, 3))
    scaled = binary("*", size, ref(stride) if stride and head.chance(60) else number(1))
    offset = head.number(-3, 4)
    if head.chance(40):
        return binary("+", scaled, ref(head.pick(head.sizes)))
    return binary("+" if offset >= 0 else "-", scaled, number(abs(offset)))
