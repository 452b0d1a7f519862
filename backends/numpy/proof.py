"""What is known of the integers at a place of a program, and a small prover over it.

Sizes are not negative, a loop variable lies in its range, and conditions around hold. `holds`
answers "is this index >= 0 for certain?"; a False means only that no proof was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from convdsl.ir.atoms import Fn, Sym
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index, as_index, const, floordiv

GUESS = 64  # a size without a number, when only costs depend on it
BUDGET = 400  # steps of one proof: what is not proved by then is tested by the text instead


class _Guess(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return GUESS


class Facts:
    """Ranges of the loop variables in scope (outermost first), names, sizes, and conditions."""

    def __init__(self, sizes: frozenset[str]) -> None:
        self.sizes = sizes
        self.ranges: dict[str, tuple[Index, Index]] = {}
        self.lets: dict[str, Index] = {}
        self.assumed: list[Index] = []
        self._budget = BUDGET

    def copy(self) -> Facts:
        out = Facts(self.sizes)
        out.ranges, out.lets, out.assumed = dict(self.ranges), dict(self.lets), [*self.assumed]
        return out

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is learned inside is forgotten after."""
        ranges, lets, assumed = dict(self.ranges), dict(self.lets), list(self.assumed)
        try:
            yield
        finally:
            self.ranges, self.lets, self.assumed = ranges, lets, assumed

    def enter(self, var: Var) -> None:
        self.ranges.pop(var.name, None)
        self.ranges[var.name] = (self.expand(var.low), self.expand(var.high))

    def let(self, name: str, value: Index) -> None:
        self.lets[name] = self.expand(value)

    def assume(self, condition: Pred) -> None:
        index = self.expand(condition.index)
        if condition.kind in ("ge", "eq"):
            self.assumed.append(index)
        if condition.kind == "eq":
            self.assumed.append(-index)

    def expand(self, index: Index) -> Index:
        return index.substitute(self.lets)

    # -- questions --------------------------------------------------------------------------------
    def holds(self, index: Index) -> bool:
        """Whether index >= 0 is certain."""
        index = self.expand(index)
        for known in self.assumed:
            distance = (index - known).as_int()
            if distance is not None and distance >= 0:
                return True
        self._budget = BUDGET
        return self._holds(index, 12)

    def positive(self, index: Index) -> bool:
        return self.holds(index - 1)

    def equal(self, a: Index, b: Index) -> bool:
        return self.expand(a) == self.expand(b)

    def nonempty(self, var: Var) -> bool:
        return self.positive(var.extent)

    def guess(self, index: Index) -> int:
        """A likely value, for costs only."""
        env = _Guess()
        for name, (low, high) in self.ranges.items():
            try:
                env[name] = (low + high).evaluate(env) // 2
            except ZeroDivisionError:
                env[name] = 0
        try:
            return int(self.expand(index).evaluate(env))
        except ZeroDivisionError:
            return GUESS

    def bound(self, index: Index) -> Index | None:
        """An upper bound free of loop variables, or None."""
        self._budget = BUDGET
        return self._bound(self.expand(index), 8)

    # -- the prover -------------------------------------------------------------------------------
    def _holds(self, e: Index, depth: int) -> bool:
        value = e.as_int()
        if value is not None:
            return value >= 0
        self._budget -= 1
        if depth == 0 or self._budget < 0:
            return False
        for monomial, c in e.terms:
            if len(monomial) == 1 and isinstance(monomial[0], Fn):
                rest = e - Index({monomial: c})
                proof = self._function(monomial[0], c, rest, depth - 1)
                if proof:
                    return True
                if monomial[0].op in ("min", "max"):
                    return False
        for name in reversed(self.ranges):
            if name in e.free and e.is_affine_in([name]):
                low, high = self.ranges[name]
                factor = e.coefficient(name)
                if self._holds(factor, depth - 1):
                    return self._holds(e.without(name) + factor * low, depth - 1)
                if self._holds(-factor, depth - 1):
                    return self._holds(e.without(name) + factor * (high - 1), depth - 1)
                return False
        return all(c >= 0 and all(map(self._atom, m)) for m, c in e.terms)

    def _atom(self, atom: Sym | Fn) -> bool:
        if isinstance(atom, Sym):
            return atom.name in self.sizes
        match atom.op:
            case "max":
                return any(self._holds(a, 4) for a in atom.args)
            case "min":
                return all(self._holds(a, 4) for a in atom.args)
            case "//":
                return self._holds(atom.args[0], 4)
            case "%":
                return True

    def _function(self, fn: Fn, c: int, rest: Index, depth: int) -> bool:
        """Whether c*fn + rest >= 0."""
        if fn.op in ("min", "max"):
            every = (fn.op == "min") == (c > 0)
            combine: Callable[..., bool] = all if every else any
            return combine(self._holds(rest + c * a, depth) for a in fn.args)
        argument, divisor = fn.args
        if fn.op == "%":
            return self._holds(rest if c > 0 else rest + c * (divisor - 1), depth)
        d = divisor.as_int()
        if d is None or d <= 0:
            return False
        worst = argument - (d - 1) if c > 0 else argument
        return self._holds(d * rest + c * worst, depth)

    def _bound(self, e: Index, depth: int) -> Index | None:
        if not (e.free & self.ranges.keys()):
            return e
        if depth == 0:
            return None
        for monomial, c in e.terms:
            if len(monomial) == 1 and isinstance(monomial[0], Fn):
                fn = monomial[0]
                rest = e - Index({monomial: c})
                if fn.op != "min" or c < 0 or not any(a.free & self.ranges.keys() for a in fn.args):
                    continue
                for a in fn.args:
                    if not (a.free & self.ranges.keys()):
                        return self._bound(rest + c * a, depth - 1)
        for name in reversed(self.ranges):
            if name in e.free:
                if not e.is_affine_in([name]):
                    return None
                low, high = self.ranges[name]
                factor = e.coefficient(name)
                if self._holds(factor, 8):
                    return self._bound(e.without(name) + factor * (high - 1), depth - 1)
                if self._holds(-factor, 8):
                    return self._bound(e.without(name) + factor * low, depth - 1)
                return None
        return None


def divide(index: Index, divisor: Index) -> tuple[Index, Index]:
    """(q, r) with index == q*divisor + r, where q takes every term that `divisor` divides."""
    quotient, remainder = const(0), const(0)
    number = divisor.as_int()
    for monomial, c in index.terms:
        term = Index({monomial: c})
        if monomial == () and number is not None:
            quotient, remainder = quotient + c // number, remainder + c % number
            continue
        q = floordiv(term, divisor)
        if q * divisor == term:
            quotient = quotient + q
        else:
            remainder = remainder + term
    return quotient, remainder


def substitute_var(var: Var, values: Mapping[str, Index | int]) -> Var:
    """The variable with its bounds rewritten."""
    return Var(var.name, var.low.substitute(values), as_index(var.high).substitute(values))
