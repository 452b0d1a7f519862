"""What semantic analysis makes of one op.

    resolved   = name, parameters*, inputs*, output, input_sizes, defined*, checks*, narrowings*,
                 system
    parameter  = name, int | float, default?
    narrowing  = an index whose written range must stay inside an axis

The `system` is the op's meaning with parameters and sizes still symbols; `convdsl.sema.instantiate`
puts numbers in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from convdsl.diagnostics import Span
from convdsl.ir.equation import System, Tensor
from convdsl.ir.index import Index
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Parameter:
    """An `int` or `float` parameter; without a default the user must give it."""

    name: str
    kind: Literal["int", "float"]
    default: int | float | None
    span: Span


@dataclass(frozen=True, slots=True)
class Narrowing:
    """`index in low..high` on an axis of `extent`: the range must be empty or inside 0..extent."""

    index: str
    low: Index
    high: Index
    tensor: str
    axis: int
    extent: Index
    span: Span


@dataclass(frozen=True, slots=True)
class ResolvedOp:
    """One op, its names resolved and its statements turned into equations.

    `input_sizes` stand on input axes, in order of appearance; `defined` are the sizes that a clause
    `where NAME == expr` defines, each using only earlier ones (`clauses` are those clauses, in the
    same order); `checks` are all other clauses. `binders` are the binders with a written range.
    """

    name: str
    syntax: ast.Op
    parameters: tuple[Parameter, ...]
    inputs: tuple[Tensor, ...]
    output: Tensor
    input_sizes: tuple[str, ...]
    defined: tuple[tuple[str, Index], ...]
    clauses: tuple[ast.Chain, ...]
    checks: tuple[ast.Chain, ...]
    binders: tuple[ast.Binder, ...]
    narrowings: tuple[Narrowing, ...]
    system: System

    @property
    def int_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "int")

    @property
    def float_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "float")

    def declaration(self, tensor: str) -> ast.TensorDecl:
        """The declaration of an input or of the output."""
        decls = [d for d in self.syntax.params if isinstance(d, ast.TensorDecl)]
        return next(d for d in (*decls, self.syntax.output) if d.name.name == tensor)
