"""Indices, variables and conditions as text for isl, and sets of isl.

Sizes become isl parameters `p0, p1, ...`, variables `v0, v1, ...`: names of ours never reach isl.
A product of sizes alone becomes a parameter of its own: what is proved for every value of it holds
for the product. A product with a variable in it is not affine, nor is a division by a size.

Contexts of isl must not meet across threads, so each thread has its own (`context`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from convdsl.ir.atoms import Atom, Monomial, Sym
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index

if TYPE_CHECKING:
    import islpy as isl

_KIND = {"ge": ">=", "eq": "=", "ne": "!="}
_LOCAL = threading.local()


class NotAffineError(Exception):
    """An index that isl cannot express."""


class TooHardError(Exception):
    """isl needed more operations than it was given."""


def context() -> isl.Context:
    """This thread's isl context."""
    import islpy as isl

    if not hasattr(_LOCAL, "context"):
        _LOCAL.context = isl.Context()
    found: isl.Context = _LOCAL.context
    return found


@contextmanager
def limited(operations: int) -> Iterator[isl.Context]:
    """This thread's context with a bound on its work; TooHardError when that does not do.

    Make the sets before: inside, isl also reports the bound as a syntax error and the like.
    """
    import islpy as isl

    ctx = context()
    ctx.reset_operations()
    ctx.set_max_operations(operations)
    try:
        yield ctx
    except isl.Error as error:
        raise TooHardError(str(error)) from None
    finally:
        ctx.set_max_operations(0)
        ctx.reset_operations()


class Parameters:
    """The isl parameters met so far. Share one between the sets that are to be combined."""

    def __init__(self) -> None:
        self.sizes: dict[str, str] = {}
        self.products: dict[Monomial, str] = {}

    def size(self, name: str) -> str:
        return self.sizes.setdefault(name, f"p{len(self.sizes)}")

    def product(self, monomial: Monomial) -> str:
        return self.products.setdefault(monomial, f"q{len(self.products)}")

    def declaration(self) -> str:
        return f"[{', '.join([*self.sizes.values(), *self.products.values()])}]"

    def natural(self) -> list[str]:
        """Sizes are zero or more, and so are their products."""
        plain = [q for m, q in self.products.items() if all(isinstance(a, Sym) for a in m)]
        return [f"{p} >= 0" for p in (*self.sizes.values(), *plain)]

    def name_of(self, parameter: str) -> str:
        """What a parameter stands for, for messages."""
        for name, p in self.sizes.items():
            if p == parameter:
                return name
        return next(
            (str(Index({m: 1})) for m, q in self.products.items() if q == parameter), parameter
        )


class Space:
    """Text over some variables; every other name is a size."""

    def __init__(self, names: Iterable[str], parameters: Parameters) -> None:
        self.names = {name: f"v{n}" for n, name in enumerate(names)}
        self.parameters = parameters

    def index(self, index: Index) -> str:
        """A quasi-affine expression; NotAffineError when there is none."""
        if not index.terms:
            return "0"
        return " + ".join(f"{c}*{self._monomial(m)}" if m else str(c) for m, c in index.terms)

    def _monomial(self, monomial: Monomial) -> str:
        if len(monomial) == 1:
            return self._atom(monomial[0])
        if any(self._varies(atom) for atom in monomial):
            raise NotAffineError(str(Index({monomial: 1})))
        return self.parameters.product(monomial)

    def _varies(self, atom: Atom) -> bool:
        if isinstance(atom, Sym):
            return atom.name in self.names
        return any(a.free & self.names.keys() for a in atom.args)

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Sym):
            return self.names.get(atom.name) or self.parameters.size(atom.name)
        if atom.op in ("min", "max"):
            return f"{atom.op}({', '.join(map(self.index, atom.args))})"
        divisor = atom.args[1].as_int()
        if divisor is None or divisor <= 0:
            if self._varies(atom):
                raise NotAffineError(str(Index({(atom,): 1})))
            return self.parameters.product((atom,))
        inner = self.index(atom.args[0])
        return f"floor(({inner})/{divisor})" if atom.op == "//" else f"(({inner}) mod {divisor})"

    def pred(self, pred: Pred) -> str:
        return f"{self.index(pred.index)} {_KIND[pred.kind]} 0"

    def bounds(self, var: Var) -> str:
        name = self.names[var.name]
        return f"{self.index(var.low)} <= {name} and {name} < {self.index(var.high)}"

    def domain(self, variables: Iterable[Var], preds: Iterable[Pred]) -> str:
        """The conjunction of all bounds and conditions."""
        return " and ".join([*map(self.bounds, variables), *map(self.pred, preds)]) or "true"

    def tuple(self) -> str:
        return f"[{', '.join(self.names.values())}]"


def domain_set(
    variables: Sequence[Var], preds: Iterable[Pred], parameters: Parameters | None = None
) -> isl.Set:
    """The points of the variables at which all conditions hold."""
    import islpy as isl

    space = Space((v.name for v in variables), parameters or Parameters())
    domain = space.domain(variables, preds)
    text = f"{space.parameters.declaration()} -> {{ {space.tuple()} : {domain} }}"
    return isl.Set(text, context())


def access_map(
    variables: Sequence[Var],
    preds: Iterable[Pred],
    index: Sequence[Index],
    parameters: Parameters | None = None,
) -> isl.Map:
    """From each point of the domain to the element that `index` names there."""
    import islpy as isl

    space = Space((v.name for v in variables), parameters or Parameters())
    domain = space.domain(variables, preds)
    element = ", ".join(map(space.index, index))
    declaration = space.parameters.declaration()
    return isl.Map(f"{declaration} -> {{ {space.tuple()} -> [{element}] : {domain} }}", context())
