"""The head of an op: parameters, tensors, sizes, and what each `where` clause is.

A name's kind is told by its first letter; every declared name is taken once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from convdsl.diagnostics import CdslError, Note, Span
from convdsl.ir.equation import Role, Tensor
from convdsl.ir.expr import DType
from convdsl.ir.index import Index, sym
from convdsl.sema.integers import refs, to_index
from convdsl.sema.model import Parameter
from convdsl.sema.names import is_size, unknown
from convdsl.syntax import ast


@dataclass(slots=True)
class Head:
    """What the head of an op declares. `taken` maps each declared name to its place."""

    op: ast.Op
    parameters: dict[str, Parameter] = field(default_factory=dict)
    inputs: dict[str, Tensor] = field(default_factory=dict)
    input_sizes: tuple[str, ...] = ()
    definitions: dict[str, ast.Chain] = field(default_factory=dict)
    checks: tuple[ast.Chain, ...] = ()
    taken: dict[str, Span] = field(default_factory=dict)

    def is_known_size(self, name: str) -> bool:
        return name in self.input_sizes or name in self.definitions

    def integer(self, ref: ast.Ref) -> Index:
        """The meaning of a name in integer arithmetic: a size or an int parameter.

        Raises:
            CdslError: E0201 for an unknown name, E0215 for another kind of name.
        """
        name = ref.name
        parameter = self.parameters.get(name)
        if parameter is not None and parameter.kind == "int":
            return sym(name)
        if is_size(name) and self.is_known_size(name):
            return sym(name)
        if parameter is not None:
            raise CdslError(
                "E0215",
                f"`{name}` is a float parameter and cannot stand in integer arithmetic",
                ref.span,
                notes=(Note("it is declared here", parameter.span),),
                help=f"declare `{name}: int`",
            )
        if name in self.taken:
            raise CdslError("E0215", f"`{name}` is a tensor, not an integer", ref.span)
        known = [*self.input_sizes, *self.definitions, *(p for p in self.parameters)]
        if is_size(name):
            error = unknown("size", name, known, ref.span, "E0201")
            remedy = f"define it in `where`, like `{name} == ...`, or let an input axis have it"
            close = error.help if error.help and error.help.startswith("did") else None
            error.help = f"{remedy};\nor {close}" if close else remedy
            raise error
        raise unknown("name", name, known, ref.span, "E0201")

    def take(self, ref: ast.Ref) -> None:
        """Declare a lower-case name.

        Raises:
            CdslError: E0204 when it is spelt like a size, E0202 when it is taken.
        """
        if is_size(ref.name):
            raise CdslError(
                "E0204",
                f"`{ref.name}` is spelt like a size",
                ref.span,
                notes=("names of sizes start with an upper-case letter, all others do not",),
                help=f"write `{ref.name[0].lower()}{ref.name[1:]}`",
            )
        if ref.name in self.taken:
            raise CdslError(
                "E0202",
                f"`{ref.name}` is declared twice",
                ref.span,
                notes=(Note("the first one is here", self.taken[ref.name]),),
                help="rename one of them",
            )
        self.taken[ref.name] = ref.span


def read_head(op: ast.Op) -> Head:
    """All declarations of an op, checked.

    Raises:
        CdslError: a mistake in a declaration or in the shape of a `where` clause.
    """
    head = Head(op)
    for param in op.params:
        head.take(param.name)
        if isinstance(param, ast.ScalarDecl):
            head.parameters[param.name.name] = _parameter(param)
    head.take(op.output.name)
    for let in op.lets:
        if let.definition.tensor.name != op.output.name.name:  # that mistake has its own message
            head.take(let.definition.tensor)
    tensors = [p for p in op.params if isinstance(p, ast.TensorDecl)]
    factors = {t.name.name: [_factors(axis, t) for axis in t.axes] for t in tensors}
    head.input_sizes = tuple(
        dict.fromkeys(
            ref.name
            for axes in factors.values()
            for axis in axes
            for factor in axis
            for ref in refs(factor)
            if is_size(ref.name)
        )
    )
    _split_where(head)
    for decl in tensors:
        head.inputs[decl.name.name] = _tensor(
            head, decl, [*factors[decl.name.name]], "input", _default(decl)
        )
    return head


def output_tensor(head: Head) -> Tensor:
    """The tensor of the result; its axes may be any integer expressions."""
    decl = head.op.output
    return _tensor(head, decl, [_flatten(axis) for axis in decl.axes], "output", None)


def _tensor(
    head: Head,
    decl: ast.TensorDecl,
    axes: list[tuple[ast.Expr, ...]],
    role: Role,
    default: float | None,
) -> Tensor:
    indices = tuple(tuple(to_index(f, head.integer) for f in axis) for axis in axes)
    return Tensor(decl.name.name, decl.dtype, indices, role, default)


def _parameter(decl: ast.ScalarDecl) -> Parameter:
    value = None if decl.default is None else number(decl.default, decl.kind == "int")
    return Parameter(decl.name.name, decl.kind, value, decl.span)


def _default(decl: ast.TensorDecl) -> float | None:
    if decl.default is None:
        return None
    return number(decl.default, decl.dtype == "i32", decl.dtype)


def number(
    value: ast.Number | ast.Negate, integer: bool, dtype: DType | None = None
) -> int | float:
    """The value of a default.

    Raises:
        CdslError: E0220 for a float where an integer is wanted, or a value its type cannot hold.
    """
    digits = value.operand if isinstance(value, ast.Negate) else value
    assert isinstance(digits, ast.Number)
    sign = -1 if isinstance(value, ast.Negate) else 1
    if not integer:
        result = sign * float(digits.text)
        check_float(result, "f32" if dtype is None else dtype, value.span)
        return result
    if not digits.text.isdigit():
        raise CdslError("E0220", f"`{digits.text}` is not an integer", value.span)
    whole = sign * int(digits.text)
    if dtype is not None and not -(2**31) <= whole < 2**31:
        raise CdslError("E0220", f"{whole} does not fit {dtype}", value.span)
    return whole


_LARGEST = {"f32": 3.4028235677973366e38, "f16": 65520.0}  # from here on rounding gives infinity


def check_float(value: float, dtype: DType, span: Span) -> None:
    """Refuse a constant that would round to infinity.

    Raises:
        CdslError: E0220.
    """
    limit = _LARGEST.get(dtype)
    if limit is not None and not abs(value) < limit:
        shown = "65504" if dtype == "f16" else "about 3.4028e38"
        raise CdslError(
            "E0220",
            f"{value:g} is too large for {dtype}",
            span,
            notes=(f"the largest {dtype} is {shown}",) if math.isfinite(value) else (),
        )


def _flatten(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The factors of a product, the first one slowest."""
    if isinstance(expr, ast.Binary) and expr.op == "*":
        return _flatten(expr.left) + _flatten(expr.right)
    return (expr,)


def _factors(axis: ast.Expr, decl: ast.TensorDecl) -> tuple[ast.Expr, ...]:
    """The factors of an input axis: integers, parameters and sizes only."""
    factors = _flatten(axis)
    for factor in factors:
        if not isinstance(factor, ast.Number | ast.Ref):
            raise CdslError(
                "E0210",
                f"an axis of the input `{decl.name.name}` must be a product of integers, parameters"
                " and sizes",
                factor.span,
                notes=("sizes are found from the shapes of the inputs by division alone",),
                help="give the axis a size of its own and relate it in `where`, like `A == L + 2`",
            )
    return factors


def _split_where(head: Head) -> None:
    """Tell definitions (`NAME == expr`, NAME on no input axis) from checks."""
    checks: list[ast.Chain] = []
    for chain in head.op.where:
        first = chain.operands[0]
        defines = (
            chain.ops == ("==",)
            and isinstance(first, ast.Ref)
            and is_size(first.name)
            and first.name not in head.input_sizes
        )
        if not defines:
            checks.append(chain)
            continue
        assert isinstance(first, ast.Ref)
        if first.name in head.definitions:
            raise CdslError(
                "E0211",
                f"`{first.name}` is defined twice",
                first.span,
                notes=(Note("the first definition is here", head.definitions[first.name].span),),
                help=f"a check of it is written with its name last, like `... == {first.name}`",
            )
        head.definitions[first.name] = chain
    head.checks = tuple(checks)
    _order(head)
    for chain in (*head.definitions.values(), *head.checks):
        for operand in chain.operands:
            to_index(operand, head.integer)


def _order(head: Head) -> None:
    """Put the definitions in an order in which each uses only earlier ones."""
    ordered: dict[str, ast.Chain] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in ordered:
            return
        chain = head.definitions[name]
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            raise CdslError(
                "E0211",
                f"the definition of `{name}` needs its own value",
                chain.span,
                notes=(f"{cycle}",) if len(path) > 1 else (),
                help="a size is defined from the inputs' sizes and parameters, never solved for",
            )
        for ref in refs(chain.operands[1]):
            if ref.name in head.definitions:
                visit(ref.name, (*path, name))
        ordered[name] = chain

    for name in head.definitions:
        visit(name, ())
    head.definitions = ordered
