"""Integer expressions as text, each part in the outermost loop that knows it, and once there.

Every division, remainder, minimum and maximum gets a `let`; so do the parts of an offset that an
inner loop does not change, and any sum of two or more operations. A `let` goes right before the
statement of its scope that is being built, so it is never computed earlier than it is needed.
"""

from __future__ import annotations

import re

from convdsl.backends.wgsl.functions import Helpers
from convdsl.backends.wgsl.lines import Block
from convdsl.backends.wgsl.literals import i32_text
from convdsl.backends.wgsl.names import Names
from convdsl.backends.wgsl.polynomial import Depths, Level, Term
from convdsl.backends.wgsl.ranges import Ranges
from convdsl.ir.atoms import Fn, Monomial, Sym
from convdsl.ir.expr import Pred
from convdsl.ir.index import Index

_SIMPLE = re.compile(r"[A-Za-z0-9_.]+")
_COSTLY = 2


class Scope:
    """A function body or loop body: its lines, and the values that have a name in it."""

    def __init__(self) -> None:
        self.block = Block()
        self.known: dict[Index, str] = {}
        self.texts: dict[tuple[Index, str], str] = {}
        self.truths: dict[tuple[Pred, ...], str] = {}


class IndexText:
    """Makes text of resolved indices. `used` collects the names that need a declaration outside."""

    def __init__(self, names: Names, ranges: Ranges, depths: Depths, helpers: Helpers) -> None:
        self.names, self.ranges, self.depths, self.helpers = names, ranges, depths, helpers
        self.scopes = [Scope()]
        self.used: set[str] = set()
        self.hints: dict[Index, str] = {}
        self._turned: dict[tuple[Index, ...], tuple[Fn | None]] = {}

    @property
    def depth(self) -> int:
        return len(self.scopes) - 1

    def value(self, index: Index, hint: str = "at") -> str:
        """A sum, or something simpler, for the place where text is being made now."""
        return self.value_at(index, self.depth, hint)

    def bound(self, index: Index, hint: str) -> str:
        """A name or number, evaluated once, where the index is known."""
        text = self.value_at(index, self.depths.of(index), hint)
        return (
            text
            if _SIMPLE.fullmatch(text)
            else self._name(self.depths.of(index), index, text, hint)
        )

    def direct(self, index: Index) -> str:
        """The text for a `let`: neither a sum nor an outermost function is named again."""
        single = len(index.terms) == 1 and len(index.terms[0][0]) == 1
        atom = index.terms[0][0][0] if single else None
        if isinstance(atom, Fn) and index.terms[0][1] == 1:
            return self._function(atom, self.depths.of_atom(atom))[0]
        parts: list[tuple[bool, str]] = []
        body, number = self.depths.split(index)
        for level in self.depths.levels(body):
            self._terms(level, parts)
        return _add(_join(parts), number)

    # -- sums -------------------------------------------------------------------------------------
    def value_at(self, index: Index, depth: int, hint: str) -> str:
        """The text of an index that is known in the scope of this depth, as it stands there."""
        texts = self.scopes[depth].texts
        found = texts.get((index, hint))
        if found is not None:
            return found
        body, number = self.depths.split(index)
        text = _add(self._sum(body, depth, hint), number) if body.terms else i32_text(number)
        texts[index, hint] = text
        return text

    def _sum(self, body: Index, depth: int, hint: str) -> str:
        levels = self.depths.levels(body)
        parts: list[tuple[bool, str]] = []
        start = 0
        for n in reversed(range(len(levels))):
            name = self.scopes[levels[n].depth].known.get(levels[n].sum)
            if name is not None:
                parts, start = [(True, name)], n + 1
                break
        cost = 0
        for level in levels[start:]:
            cost += self._terms(level, parts)
            if cost >= (1 if level.depth < depth else _COSTLY):
                parts = [(True, self._name(level.depth, level.sum, _join(parts), hint))]
                cost = 0
        return _join(parts)

    def _terms(self, level: Level, parts: list[tuple[bool, str]]) -> int:
        cost = 0
        for term in level.terms:
            positive, text, operations_ = self._term(term, level.depth)
            cost += operations_ + bool(parts)
            parts.append((positive, text))
        return cost

    def _term(self, term: Term, depth: int) -> tuple[bool, str, int]:
        texts: list[str] = []
        positive = True
        for atom in term.atoms:
            upward = self._upward(atom)
            positive = positive != (upward is not None)
            texts.append(self._atom(atom, depth) if upward is None else self._up(atom, upward))
        text, cost = "*".join(texts), len(texts) - 1
        number = term.factor.as_int()
        if number is None:
            outer = self.depths.of(term.factor)
            return positive, f"{text}*{self.bound_factor(term.factor, outer)}", cost + 1
        positive = positive == (number > 0)
        if abs(number) == 1:
            return positive, text, cost
        return positive, f"{text}*{i32_text(abs(number))}", cost + 1

    def bound_factor(self, factor: Index, depth: int) -> str:
        """A factor that an outer scope knows, as a name."""
        text = self.value_at(factor, depth, "step")
        return text if _SIMPLE.fullmatch(text) else self._name(depth, factor, text, "step")

    def _upward(self, atom: Sym | Fn) -> Fn | None:
        """For `(-a) // b` with `a` known not to be negative: its negation, `(a + b - 1) // b`."""
        if not isinstance(atom, Fn) or atom.op != "//":
            return None
        found = self._turned.get(atom.args)
        if found is None:
            a, b = -atom.args[0], atom.args[1]
            turned = self.ranges.natural(a) and not self.ranges.natural(atom.args[0])
            found = self._turned[atom.args] = (Fn("//", (a + b - 1, b)) if turned else None,)
        return found[0]

    def _up(self, atom: Sym | Fn, upward: Fn) -> str:
        key = Index({(atom,): -1})
        depth = self.depths.of_atom(atom)
        known = self.scopes[depth].known.get(key)
        return (
            known if known is not None else self._name(depth, key, *self._function(upward, depth))
        )

    def positive(self, monomial: Monomial, coefficient: int) -> bool:
        """The sign that a term is written with."""
        return (coefficient > 0) == (sum(self._upward(a) is not None for a in monomial) % 2 == 0)

    # -- atoms ------------------------------------------------------------------------------------
    def _atom(self, atom: Sym | Fn, depth: int) -> str:
        if isinstance(atom, Sym):
            self.used.add(atom.name)
            return atom.name
        key = Index({(atom,): 1})
        depth = self.depths.of_atom(atom)
        known = self.scopes[depth].known.get(key)
        return known if known is not None else self._name(depth, key, *self._function(atom, depth))

    def _function(self, fn: Fn, depth: int) -> tuple[str, str]:
        """The text and a name for it."""
        if fn.op in ("min", "max"):
            text = self.value_at(fn.args[0], depth, "at")
            for arg in fn.args[1:]:
                text = f"{fn.op}({text}, {self.value_at(arg, depth, 'at')})"
            return text, "low" if fn.op == "max" else "high"
        a, b = (self.value_at(arg, depth, "at") for arg in fn.args)
        divisor = fn.args[1].as_int()
        hint = f"{_main_name(fn.args[0])}_{'div' if fn.op == '//' else 'mod'}"
        if divisor is not None:
            hint += f"_{divisor}"
        if self.ranges.natural(fn.args[0]):
            return f"{_factor(a)} {'/' if fn.op == '//' else '%'} {_factor(b)}", hint
        if divisor is not None and divisor & (divisor - 1) == 0:  # exact for negative numbers too
            if fn.op == "//":
                return f"{_factor(a)} >> {divisor.bit_length() - 1}u", hint
            return f"{_factor(a)} & {divisor - 1}", hint
        helper = self.helpers.use("floor_div" if fn.op == "//" else "floor_mod")
        return f"{helper}({a}, {b})", hint

    def _name(self, depth: int, key: Index, text: str, hint: str) -> str:
        scope = self.scopes[depth]
        known = scope.known.get(key)
        if known is None:
            known = self.names.fresh(self.hints.get(key, hint))
            scope.block.line(f"let {known}: i32 = {text};")
            scope.known[key] = known
        return known


def _factor(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def _add(text: str, number: int) -> str:
    return f"{text} {'-' if number < 0 else '+'} {i32_text(abs(number))}" if number else text


def _join(parts: list[tuple[bool, str]]) -> str:
    """Terms with their signs, a positive one first where there is one."""
    first = next((n for n, (positive, _) in enumerate(parts) if positive), 0)
    ordered = [parts[first], *parts[:first], *parts[first + 1 :]]
    text = ("" if ordered[0][0] else "-") + ordered[0][1]
    return text + "".join(f" {'+' if positive else '-'} {t}" for positive, t in ordered[1:])


def _main_name(index: Index) -> str:
    """The name a quotient is called after: the innermost-looking plain symbol, or `q`."""
    for monomial, _ in index.terms:
        for atom in monomial:
            if isinstance(atom, Sym):
                return atom.name
    return "q"
