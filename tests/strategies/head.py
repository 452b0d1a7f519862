"""What a program that is being drawn has declared so far: sizes, parameters, tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from hypothesis import strategies as st

from convdsl.syntax import ast
from tests.strategies.drawing import Drawing
from tests.strategies.trees import Bound, Extent, Index, clause, integer, number, ref

VOLUME = 2_000  # points of a statement, those of its reductions included
_SIZES = ("A", "B", "C", "D", "L", "K")
_PARAMETERS = ("p", "s", "d", "pad", "groups", "lambda")
_FLOATS = ("slope", "alpha", "inf")
# Among them are names that the compiler itself likes to give.
_TENSORS = ("x", "w", "b", "u", "columns", "blocks", "hit", "acc", "sum_", "max_1", "f", "np")
_LETS = ("v", "g_", "part", "out")
_INDICES = ("i", "j", "k", "l", "n", "m", "c", "o", "t", "r", "q", "h", "tile", "lane", "flat")


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or a let: each axis a row of factors, one extent each."""

    name: str
    dtype: str
    axes: tuple[tuple[Extent, ...], ...]
    bound: Bound
    default: int | None = None

    @property
    def kind(self) -> str:
        return "i32" if self.dtype == "i32" else "f32"

    def volume(self, env: dict[str, int]) -> int:
        return prod(e.count(env) for axis in self.axes for e in axis)


@dataclass
class Head(Drawing):
    """Draws declarations. `environments` has numbers for all sizes and parameters, once a call."""

    draw: st.DrawFn
    environments: list[dict[str, int]] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    parameters: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    defined: dict[str, ast.Expr] = field(default_factory=dict)
    checks: list[ast.Chain] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    lets: list[Tensor] = field(default_factory=list)
    loose: tuple[Index, ...] | None = None  # the left side of a let whose range its reader tells
    loose_let: Tensor | None = None

    # -- drawing -----------------------------------------------------------------------------------
    # -- declaring ---------------------------------------------------------------------------------
    def start(self, calls: int) -> None:
        self.environments = [{} for _ in range(calls)]
        for name in _SIZES[: self.number(1, 4)]:
            self.sizes.append(name)
            for env in self.environments:
                env[name] = self.number(0, 9) if self.chance(20) else self.number(1, 5)

    def parameter(self, value: int) -> str | None:
        """A new int parameter of this value; an old one where there is one, None without names."""
        for name, known in self.parameters.items():
            if known == value:
                return name
        left = [n for n in _PARAMETERS if n not in self.parameters]
        if not left:
            return None
        self.parameters[left[0]] = value
        for env in self.environments:
            env[left[0]] = value
        return left[0]

    def float_parameter(self) -> str:
        left = [n for n in _FLOATS if n not in self.floats]
        if not left or (self.floats and self.chance(50)):
            return self.pick(list(self.floats))
        self.floats[left[0]] = self.pick([2.0, -1.0, 0.5, 3.0, -1.5])
        return left[0]

    def extent(self) -> Extent:
        """A size most often; or a parameter, an integer, or a product of two."""
        kind = self.number(0, 9)
        if kind <= 5:
            return Extent((self.pick(self.sizes),))
        if kind == 6:
            return Extent((self.number(1, 5),))
        name = self.parameter(self.number(1, 3))
        if kind == 7 or name is None:
            return Extent((name or 2,))
        return Extent((name, self.pick(self.sizes)))

    def define(self, name: str, formula: ast.Expr) -> Extent:
        """A size that `where` defines; never negative."""
        if any(integer(formula, env) < 0 for env in self.environments):
            formula = ast.Call("max", (formula, number(0)), formula.span)
        self.defined[name] = formula
        for env in self.environments:
            env[name] = integer(formula, env)
        return Extent((name,))

    def positive(self, extents: Iterable[Extent]) -> bool:
        """Make it a precondition that they are not zero; False where they are."""
        names = {f for e in extents for f in e.factors if isinstance(f, str)}
        if any(env[name] < 1 for env in self.environments for name in names):
            return False
        for name in sorted(names):
            check = clause(ref(name), ">=", number(1))
            if check not in self.checks:
                self.checks.append(check)
        return True

    def volume(self, indices: Iterable[Index]) -> int:
        """The most points that these indices have in any call; an empty range counts as one."""
        every = list(indices)
        return max(prod(max(1, len(i.span(env))) for i in every) for env in self.environments)

    def index_name(self, scope: Iterable[Index]) -> str:
        taken = {i.name for i in scope} | self.parameters.keys() | self.floats.keys()
        left = [n for n in _INDICES if n not in taken]
        return self.pick(left[:4] if self.chance(70) else left)

    def tensor_name(self) -> str:
        taken = {t.name for t in self.inputs}
        return self.pick([n for n in _TENSORS if n not in taken][:3])

    def let_name(self) -> str:
        return _LETS[len(self.lets)]
