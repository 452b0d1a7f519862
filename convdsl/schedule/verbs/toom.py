"""toom: a dense filter by fewer products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self

from convdsl.ir.equation import Piece
from convdsl.ir.expr import loads
from convdsl.ir.index import Index, const
from convdsl.ir.text_expr import pred_text
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.names import Names
from convdsl.passes.toom import Filter, NewNames, filter_of, steps_of, toom_equations
from convdsl.passes.toom_accuracy import ALLOWED, error_multiple, most_results, within
from convdsl.passes.toom_groups import group_of, grouped
from convdsl.passes.toom_points import LEAST, MOST_RESULTS
from convdsl.schedule.nest import unsolved
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, with_made
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Toom(Step):
    """Make several results of a dense filter at a time by fewer products; Toom-Cook, Winograd.

    before:  y[t] = e(sum[c, j] x[c, t - j] * w[c, j])
                                           toom y over t, j by 4 -> xt, wt, zt: tile, u, z
    after:   wt[z, c]       = sum[j] G[z, j] * w[c, j]
             xt[z, c, tile] = sum[u] B[z, u] * x[c, tile*4 + u - (J - 1)]
             zt[z, tile]    = sum[c] xt[z, c, tile] * wt[z, c]
             y[tile*4 + u]  = e(sum[z] A[u, z] * zt[z, tile])

    J taps and M results take M + J - 1 products instead of M*J. The matrices A, B and G are constants
    of the program. One operand is read at BLOCK - TAP or BLOCK + TAP, the other one at TAP. More than 5
    taps are cut into groups of at most 4, counted by `TAP_group`, which `zt` sums over too.

    Changes the rounding: the error grows with M and J, and the accuracy class `strict` allows none.
    The classes count on sums of `zt` in blocks of 32 terms, or 64 where there are more than 1024
    (`partial`).
    """

    verb: ClassVar[str] = "toom"
    form: ClassVar[str] = (
        "toom EQUATION over BLOCK, TAP by NUMBER -> DATA, TAPS, PRODUCT: TILE, INSIDE, POINT"
    )
    equation: str
    block: str
    tap: str
    results: int
    tensors: tuple[str, str, str]
    loops: tuple[str, str, str]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("over")
        block = words.name("an index of the result")
        words.take(",")
        tap = words.name("a summed index")
        words.take("by")
        results = words.number("how many results at a time")
        words.take("->")
        tensors = words.three()
        words.take(":")
        return cls(equation, block, tap, results, tensors, words.three())

    def __str__(self) -> str:
        new = f"{', '.join(self.tensors)}: {', '.join(self.loops)}"
        return f"toom {self.equation} over {self.block}, {self.tap} by {self.results} -> {new}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        nests = [state.nest(name).taken for name in state.pieces()]
        fresh = (*self.tensors, *self.loops)
        why = why_not_new(self.loops, state.nest(self.equation).taken, state)
        why = why or why_not_new(self.tensors, {*self.loops}.union(*nests), state)
        if why is not None:
            refuse_relation(self, pieces[0], "E0605", why, "choose another name")
        system = state.system
        sizes = {*system.sizes, *(n for n, _ in system.definitions)}
        names = Names({t.name for t in system.tensors}.union(sizes, fresh, *nests))
        found = self._filter(pieces[0])
        self._check_size(found)
        if found.tap.extent != group_of(found.tap.extent.as_int() or 0):
            group = names.fresh(f"{self.tap}_group")
            found = self._filter(grouped(pieces[0], found.block, found.tap, found.step, group))
        self._check_error(found, state.accuracy)
        data, taps, _ = self.tensors
        a, b, g = (names.fresh(f"{n}_matrix") for n in (self.equation, data, taps))
        tensors, made, result = toom_equations(
            found, self.results, NewNames(*self.tensors, *self.loops, (a, b, g))
        )
        system = with_made(system, self.equation, tensors, made, (result, *pieces[1:]))
        return replace(state, system=system)

    def _filter(self, piece: Piece) -> Filter:
        """The equation as a filter along the block."""
        relation = unsolved(piece)
        if relation is not None:
            why = f"the relation {pred_text(relation)} of `{self.equation}` is not solved yet"
            help = f"begin with `phases {self.equation} ...` or `solve {self.equation} ...`"
            refuse_relation(self, piece, "E0661", why, help)
        product = contraction_of(piece)
        if product is None or product.reduction.dtype != "f32":
            why = f"`{self.equation}` is no sum of products of two operands of floats over fixed ranges"
            refuse_relation(self, piece, "E0661", why, None)
        free = {v.name: v for v in piece.vars}
        summed = {v.name: v for v in product.reduction.vars}
        if self.tap in {u.name for u in product.reduction.units}:
            self._refuse_taps(piece, const(1))
        for name, known, what in ((self.block, free, "the result"), (self.tap, summed, "the sum")):
            if name not in known:
                why = f"`{name}` is no index of {what} of `{self.equation}`"
                refuse_relation(
                    self, piece, "E0662", why, f"its indices are: {shown_names(list(known))}"
                )
        found = filter_of(product, free[self.block], summed[self.tap])
        if found is None:
            self._refuse_reads(product)
        if not isinstance(found, Filter):
            why = f"the condition {pred_text(found)} belongs to neither of the operands alone"
            refuse_relation(self, piece, "E0665", why, None)
        return found

    def _refuse_reads(self, product: Contraction) -> NoReturn:
        """E0664 where an operand is read at other steps, E0663 where none moves with both."""
        block, tap = self.block, self.tap
        for load in loads(product.reduction.body):
            for index in load.access.index:
                if {block, tap} <= index.free and index.is_affine_in([block, tap]):
                    along, step = index.coefficient(block), index.coefficient(tap)
                    why = (
                        f"`{load.access.tensor}` is read at {index}: it moves by {along} with "
                        f"`{block}` and by {step} with `{tap}`"
                    )
                    if not steps_of(product, block, tap):
                        refuse_relation(self, product.piece, "E0664", why, None)
        why = (
            f"no operand is read at `{block}` - `{tap}` or `{block}` + `{tap}`, and one at `{tap}`"
        )
        refuse_relation(self, product.piece, "E0663", why, None)

    def _refuse_taps(self, piece: Piece, taps: Index) -> NoReturn:
        why = f"the extent of `{self.tap}` is {taps}, not a number from {LEAST} on"
        help = "give the sizes that it depends on numbers" if taps.as_int() is None else None
        refuse_relation(self, piece, "E0666", why, help)

    def _check_size(self, found: Filter) -> None:
        piece, taps = found.product.piece, found.tap.extent.as_int()
        if taps is None or taps < LEAST:
            self._refuse_taps(piece, found.tap.extent)
        if not LEAST <= self.results <= MOST_RESULTS:
            why = f"{self.results} results at a time, not {LEAST} to {MOST_RESULTS}"
            refuse_relation(self, piece, "E0606", why, None)

    def _check_error(self, found: Filter, accuracy: str) -> None:
        terms = found.terms.as_int()
        if terms is None:
            why = f"how many terms there are for each tap, {found.terms}, is not a number yet"
            help = "the error depends on it: give the sizes numbers"
            refuse_relation(self, found.product.piece, "E0673", why, help)
        if not within(self.results, found.tap.extent.as_int() or 0, terms, accuracy):
            self._refuse_error(found, terms, accuracy)

    def _refuse_error(self, found: Filter, terms: int, accuracy: str) -> NoReturn:
        taps = found.tap.extent.as_int() or 0
        error = error_multiple(self.results, taps, terms)
        why = (
            f"F({self.results}, {taps}) errs {error} times as much as the sum of {terms} terms a tap, "
            f"and the accuracy class `{accuracy}` allows {ALLOWED[accuracy]}"
        )
        help = "leave this step out"
        most = most_results(taps, terms, accuracy)
        if accuracy == "strict":
            why = "the accuracy class `strict` allows other orders of a sum, and no other terms"
            help = 'compile with accuracy "standard" or "fast", or leave this step out'
        elif most is not None:
            help = f"at most {most} results at a time"
        if accuracy == "standard" and within(self.results, taps, terms, "fast"):
            help += ', or accuracy "fast"'
        refuse_relation(self, found.product.piece, "E0673", why, help)
