"""split: one loop into two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from convdsl.ir.expr import ge
from convdsl.ir.index import ceildiv, const, sym
from convdsl.schedule.nest import Loop, Nest, Tail
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words

MOST = 65536  # iterations of an inner loop: rounded up to one, no extent leaves 31 bits


@dataclass(frozen=True, slots=True)
class Split(LoopStep):
    """Split a loop by a factor; also called `divide_loop` (Exo), `tile` of one loop (TVM).

    before:  for c in 0..N
    after:   for co in 0..ceil(N / f)
               for ci in 0..f              with c = co*f + ci

    Where f does not divide N the last iterations are no terms; `tail` says what becomes of them:
    `guard` tests each (the default), `cut` ends the inner loop early, `pad` runs on over zeros in staged
    operands, `perfect` states that there are none.
    """

    verb: ClassVar[str] = "split"
    form: ClassVar[str] = (
        "split EQUATION: LOOP by NUMBER -> OUTER, INNER [tail guard|cut|pad|perfect]"
    )
    equation: str
    loop: str
    factor: int
    outer: str
    inner: str
    tail: Literal["guard", "cut", "pad", "perfect"] = "guard"

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        loop = words.name("a loop")
        words.take("by")
        factor = words.number()
        words.take("->")
        outer = words.name()
        words.take(",")
        inner = words.name()
        tail = words.choice("guard", "cut", "pad", "perfect") if words.accept("tail") else "guard"
        return cls(equation, loop, factor, outer, inner, tail)  # type: ignore[arg-type]

    def __str__(self) -> str:
        tail = "" if self.tail == "guard" else f" tail {self.tail}"
        names = f"{self.outer}, {self.inner}"
        return f"split {self.equation}: {self.loop} by {self.factor} -> {names}{tail}"

    def made(self) -> tuple[str, ...]:
        return self.outer, self.inner

    def on(self, nest: Nest) -> Nest:
        loop = self.find(nest, self.loop)
        self.plain(nest, loop)
        if not 1 <= self.factor <= MOST:
            self.refuse(nest, "E0606", f"a factor is a number from 1 to {MOST}", self.loop)
        known = loop.extent.as_int()
        exact = known is not None and known % self.factor == 0
        if self.tail == "perfect" and not exact:
            self._refuse_perfect(nest, known)
        if self.tail == "pad" and not exact and nest.reduction is None:
            self.refuse(
                nest, "E0607", "there is nothing to pad without a sum", self.loop, (),
                "use `tail guard` or `tail cut`",
            )  # fmt: skip
        value = sym(self.outer) * self.factor + sym(self.inner)
        made = (
            Loop(self.outer, ceildiv(loop.extent, self.factor), loop.reduced, loop.level),
            Loop(self.inner, const(self.factor), loop.reduced, loop.level),
        )
        out = nest.replaced((self.loop,), made, {self.loop: value})
        if exact or self.tail == "perfect":
            return out
        tail = Tail(ge(loop.extent - 1 - value), self.tail)
        return replace(out, tails=(*out.tails, tail))

    def _refuse_perfect(self, nest: Nest, extent: int | None) -> None:
        if extent is None:
            known = nest.loop(self.loop).extent
            why = f"`{self.loop}` has {known} iterations, which {self.factor} may not divide"
            self.refuse(nest, "E0608", why, self.loop, (), "use `tail guard`, `cut` or `pad`")
        rest = extent % self.factor
        near = min(self.factor * 4, 1024, extent - 1)
        divisors = [d for d in range(near, 1, -1) if extent % d == 0][:6]
        shown = f", or a divisor of {extent}: {', '.join(map(str, divisors))}" if divisors else ""
        self.refuse(
            nest, "E0608", f"{self.factor} does not divide {extent}", self.loop,
            (f"{extent} % {self.factor} = {rest}",), f"use `tail guard`{shown}",
        )  # fmt: skip
