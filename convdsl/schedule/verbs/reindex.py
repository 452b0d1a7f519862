"""reindex: an operand as a tensor with an axis for each index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.ir.expr import Expr, Reduce
from convdsl.passes.phases import the_reduction
from convdsl.passes.reindex import indices_of, inputs_of, reindexed
from convdsl.schedule.nest import operands
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, with_made
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Reindex(Step):
    """Copy an operand as the sum reads it, and read the copy; `reindex` (TVM), im2col for windows.

    before:  y[t] = sum[j, c | j <= t] x[c, t - j] * w[c, j]         reindex y: x by j, c, t -> xs
    after:   xs[j, c, t] = x[c, t - j] where j <= t, else 0
             y[t] = sum[j, c] xs[j, c, t] * w[c, j]

    The indices are those that the operand depends on, in the order of the copy's axes. Conditions of
    the operand become zeros in the copy, but not in class `strict`, nor of anything but a sum of
    products: there the sum keeps them.
    """

    verb: ClassVar[str] = "reindex"
    form: ClassVar[str] = "reindex EQUATION: OPERAND by INDEX, INDEX, ... -> NAME"
    equation: str
    operand: str
    indices: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        operand = words.name("an operand")
        words.take("by")
        indices = words.names()
        words.take("->")
        return cls(equation, operand, indices, words.name("a name for the copy"))

    def __str__(self) -> str:
        indices = ", ".join(self.indices)
        return f"reindex {self.equation}: {self.operand} by {indices} -> {self.name}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        piece = pieces[0]
        reduction = the_reduction(piece.value)
        known = operands(reduction) if reduction is not None else {}
        if reduction is None or self.operand not in known:
            shown = f"its operands are: {shown_names(list(known))}" if known else None
            why = f"`{self.operand}` is no operand of a reduction in `{self.equation}`"
            refuse_relation(self, piece, "E0683", why, shown)
        factor = known[self.operand]
        used = indices_of(piece, reduction, factor)
        units = {u.name for u in (*piece.units, *reduction.units)}
        order = [n for n in self.indices if n not in units]
        if sorted(used) != sorted(order):
            why = f"`{self.operand}` depends on {shown_names(used)}; name each of these once"
            refuse_relation(self, piece, "E0684", why, None)
        every = {v.name: v for v in (*piece.vars, *reduction.vars)}
        depends = {n for m in used for n in (every[m].low.free | every[m].high.free) & set(every)}
        if depends:
            why = f"the range of an index of `{self.operand}` depends on {shown_names(sorted(depends))}"
            help = "put it before the step that solved the relation, or use `phases`"
            refuse_relation(self, piece, "E0685", why, help)
        loops = set().union(*(state.nest(name).taken for name in state.pieces()))
        taken = why_not_new((self.name,), loops, state)
        if taken is not None:
            refuse_relation(self, piece, "E0605", taken, "choose another name")
        zeros = state.accuracy != "strict" and _of_products(reduction, known)
        tensor, copy, rest = reindexed(self.name, piece, reduction, factor, order, zeros)
        system = with_made(state.system, self.equation, [tensor], [copy], (rest, *pieces[1:]))
        left = the_reduction(rest.value)
        assert left is not None
        others = [f for n, f in known.items() if n != self.operand]
        if left.constraints != reduction.constraints:
            met = frozenset().union(*(inputs_of(state.system, f) for f in others))
            return replace(state, system=system, finite=state.finite | met)
        return replace(state, system=system)


def _of_products(reduction: Reduce, operands: dict[str, Expr]) -> bool:
    """Whether a zero in one operand makes a term zero."""
    return reduction.op == "sum" and len(operands) > 1
