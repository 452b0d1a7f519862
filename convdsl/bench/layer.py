"""One layer to measure: an operator with numbers for everything, and what it is to other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from convdsl.cli.inputs import solved_sizes
from convdsl.ir.equation import System
from convdsl.ops.sources import program as shipped
from convdsl.sema.instantiate import instantiate
from convdsl.sema.model import ResolvedOp
from convdsl.sema.names import unknown
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes
from convdsl.sema.without import without
from convdsl.syntax import ast
from convdsl.syntax.printer import print_program

Number = int | float


@dataclass(frozen=True, slots=True)
class Convolution:
    """A 1-D convolution as frameworks have it: `x`, weights `w`, perhaps a bias `b`.

    `slope` is that of a leaky ReLU around each read of x, None where there is none.
    """

    transposed: bool
    stride: int
    dilation: int
    begin: int
    end: int
    out_pad: int
    groups: int
    slope: float | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product of `a` and `b`."""


Known = Convolution | Product


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator; `sizes` are numbers for all of its sizes.

    `varying` are the inputs that differ from call to call, `constant` those that are bound; others
    are absent. `known` is what it is in other libraries, None where they have no such layer.
    """

    name: str
    source: str
    program: ast.Program
    op: ResolvedOp
    params: Mapping[str, Number]
    sizes: Mapping[str, int]
    varying: tuple[str, ...]
    constant: tuple[str, ...]
    known: Known | None

    @property
    def absent(self) -> frozenset[str]:
        return frozenset(t.name for t in self.op.inputs) - {*self.varying, *self.constant}

    def system(self) -> System:
        """Its equations, with numbers for all sizes."""
        op = without(self.op, self.absent)
        return instantiate(op, self.params, self.sizes, self.absent)


def make_layer(
    name: str,
    source: str,
    program: ast.Program,
    params: Mapping[str, Number],
    sizes: Mapping[str, int],
    *,
    op: str | None = None,
    varying: Iterable[str] = (),
    constant: Iterable[str] = (),
) -> Layer:
    """A layer of an op of a program.

    By default the first input varies, and the others are constant unless they have a default.

    Raises:
        CdslError: for an op that is not there, parameters that do not fit it, sizes that are not
            given, and clauses that fail.
    """
    resolved = resolve(program, op)
    bound = bind_parameters(resolved, params)
    inputs = [t.name for t in resolved.inputs]
    needed = [t.name for t in resolved.inputs if t.default is None]
    moving = tuple(varying) or tuple(n for n in inputs[:1] if n not in constant)
    fixed = tuple(dict.fromkeys([*constant, *(n for n in needed if n not in moving)]))
    for given in (*moving, *fixed):
        if given not in inputs:
            raise unknown(f"input of `{resolved.name}`:", given, inputs, None, "E0311")
    absent = frozenset(inputs) - {*moving, *fixed}
    present = without(resolved, absent)
    solved = solved_sizes(present, bound, sizes, {}, [*moving, *fixed])
    numbers = complete_sizes(present, bound, solved, absent=absent)
    known = known_as(program, resolved, bound)
    return Layer(name, source, program, resolved, bound, numbers, moving, fixed, known)


def known_as(program: ast.Program, op: ResolvedOp, params: Mapping[str, Number]) -> Known | None:
    """What other libraries call an operator: it is one of ours, comments and layout aside."""
    (tree,) = (o for o in program.ops if o.name.name == op.name)
    text = print_program(replace(program, items=(tree,)))
    if text == print_program(shipped("matmul")):
        return Product()
    for name in ("conv_transpose1d", "conv1d"):
        for before in (None, "leaky_relu"):
            if text == print_program(shipped(name, before=before)):
                return _convolution(name == "conv_transpose1d", params)
    return None


def _convolution(transposed: bool, params: Mapping[str, Number]) -> Convolution:
    def number(name: str) -> int:
        return int(params.get(name, 0))

    slope = params.get("slope_before")
    return Convolution(
        transposed, number("stride"), number("dilation"), number("pad_begin"), number("pad_end"),
        number("out_pad"), number("groups"), None if slope is None else float(slope),
    )  # fmt: skip
