"""toeplitz: a filter in blocks of results that share a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn, Self

from convdsl.ir.equation import Piece
from convdsl.passes.phases import equation_with, the_reduction
from convdsl.passes.toeplitz import Tie, tie_of, ties_of, toeplitz_piece, window_of
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation
from convdsl.schedule.words import Words

LONGEST = 65536


@dataclass(frozen=True, slots=True)
class Toeplitz(Step):
    """Cut an index of the result into blocks that all have the same relation to their window.

    before:  y[o] = sum[k, l | l*s + k == o + p] x[l] * w[k]
                                           toeplitz y over o, l by U -> q, u, a
    after:   y[U*q + u] = sum[k, a | a*s + k == u + p + F*s] x[V*q + a - F] * w[k]
                                           where 0 <= V*q + a - F < L

    A block of U results moves by V = U/s in the data; its window begins F before that. The relation no
    longer has q: after `solve y for k` an operand that is read at k is one matrix of u and a for all
    blocks, with zeros where the relation has no k (`reindex`), and the other one has a row for each q.
    """

    verb: ClassVar[str] = "toeplitz"
    form: ClassVar[str] = "toeplitz EQUATION over OUTPUT, DATA by NUMBER -> BLOCK, INSIDE, WINDOW"
    equation: str
    output: str
    data: str
    length: int
    block: str
    inside: str
    window: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("over")
        output = words.name("an output index")
        words.take(",")
        data = words.name("a summed index")
        words.take("by")
        length = words.number("how many results a block has")
        words.take("->")
        return cls(equation, output, data, length, *words.three())

    def __str__(self) -> str:
        new = f"{self.block}, {self.inside}, {self.window}"
        return f"toeplitz {self.equation} over {self.output}, {self.data} by {self.length} -> {new}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        piece, fresh = pieces[0], (self.block, self.inside, self.window)
        why = why_not_new(fresh, state.nest(self.equation).taken, state)
        if why is not None:
            refuse_relation(self, piece, "E0605", why, "choose another name")
        tie = tie_of(piece, self.output, self.data)
        if tie is None:
            self._refuse_tie(piece)
        self._check_length(piece, tie)
        window = window_of(piece, tie, self.length)
        if window is None:
            why = f"how much of `{self.data}` a block of {self.length} results needs is not a number yet"
            help = "give the sizes that the relation depends on numbers"
            refuse_relation(self, piece, "E0677", why, help)
        made = toeplitz_piece(piece, tie, self.length, window, fresh)
        return state.with_pieces(self.equation, (made, *pieces[1:]))

    def _check_length(self, piece: Piece, tie: Tie) -> None:
        if not 1 <= self.length <= LONGEST:
            why = f"{self.length} results, not 1 to {LONGEST}"
            refuse_relation(self, piece, "E0606", why, None)
        if self.length % tie.least:
            why = (
                f"{self.length} results are no whole number of steps along `{self.data}`: "
                f"in the relation `{self.output}` has the coefficient {tie.along}, `{self.data}` "
                f"{tie.against}"
            )
            less = self.length // tie.least * tie.least
            near = f"{less} or {less + tie.least}" if less else f"{tie.least}"
            help = f"use a multiple of {tie.least}, such as {near}"
            refuse_relation(self, piece, "E0676", why, help)

    def _refuse_tie(self, piece: Piece) -> NoReturn:
        why = (
            f"no relation of `{self.equation}` ties the output `{self.output}` to the summed index "
            f"`{self.data}`, both with integers as coefficients"
        )
        reduction = the_reduction(piece.value)
        if reduction is None:
            why = f"`{self.equation}` is no sum"
        can = [f"`{t.out.name}, {t.data.name}`" for t in ties_of(piece)]
        help = f"those that are tied: {'; '.join(can)}" if can else None
        if reduction is not None and equation_with(piece) is None:
            why = f"`{self.equation}` has no relation"
            help = "put it before the step that solves the relation, where there was one"
        refuse_relation(self, piece, "E0675", why, help)
