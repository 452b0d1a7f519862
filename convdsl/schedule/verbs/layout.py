"""layout: an operand with zeros around it, in another layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.passes.layout import Axis, Line, laid_out, line_of
from convdsl.passes.phases import the_reduction
from convdsl.passes.reindex import indices_of
from convdsl.schedule.nest import operands
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, with_made
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Layout(Step):
    """Copy an operand with zeros around it, and read the copy without conditions.

    before:  y[n, t] = sum[j, c | 0 <= t - j < L] x[n, c, t - j] * w[c, j]
                                                              layout y: x by c, t over n -> xs
    after:   xs[c, u] = x[n, c, s] where u - 3 = n*T + s and 0 <= s < L, else 0        of four taps
             y[n, t] = sum[j, c] xs[c, n*T + t - j + 3] * w[c, j]

    An index stands for the sum that the operand is read along. `over`: rows follow each other, as far
    apart as the index has values, and share the zeros between them. `to` makes an axis longer. The sizes
    are known. Infinities in the other operands meet the zeros; WGSL assumes that there are none.
    """

    verb: ClassVar[str] = "layout"
    form: ClassVar[str] = "layout EQUATION: OPERAND by INDEX [over INDEX] [to NUMBER], ... -> NAME"
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    operand: str
    axes: tuple[Axis, ...]
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        operand = words.name("an operand")
        words.take("by")
        axes = [_axis(words)]
        while words.accept(","):
            axes.append(_axis(words))
        words.take("->")
        return cls(equation, operand, tuple(axes), words.name("a name for the copy"))

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.axes))
        return f"layout {self.equation}: {self.operand} by {axes} -> {self.name}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        piece = pieces[0]
        reduction = the_reduction(piece.value)
        known = operands(reduction) if reduction is not None and reduction.op == "sum" else {}
        if reduction is None or self.operand not in known or len(known) < 2:
            shown = f"its operands are: {shown_names(list(known))}" if known else None
            why = f"`{self.operand}` is no operand of a sum of products in `{self.equation}`"
            refuse_relation(self, piece, "E0683", why, shown)
        factor = known[self.operand]
        lines: list[Line] = []
        for axis in self.axes:
            line = line_of(piece, reduction, factor, axis)
            if isinstance(line, str):
                refuse_relation(self, piece, "E0690", line, None)
            lines.append(line)
        said = [n for x in lines for n in (*x.terms, *([x.axis.over] if x.axis.over else []))]
        used = indices_of(piece, reduction, factor)
        if sorted(said) != sorted(used):
            why = (
                f"`{self.operand}` depends on {shown_names(used)}; its axes on {shown_names(said)}"
            )
            refuse_relation(self, piece, "E0691", why, "name each index, or one of each sum, once")
        loops = set().union(*(state.nest(name).taken for name in state.pieces()))
        taken = why_not_new((self.name,), loops, state)
        if taken is not None:
            refuse_relation(self, piece, "E0605", taken, "choose another name")
        tensor, copy, rest = laid_out(self.name, piece, reduction, factor, lines)
        system = with_made(state.system, self.equation, [tensor], [copy], (rest, *pieces[1:]))
        return replace(state, system=system)


def _axis(words: Words) -> Axis:
    index = words.name("an index")
    over = words.name("an index") if words.accept("over") else None
    length = words.number("the number of elements") if words.accept("to") else 0
    return Axis(index, over, length)
