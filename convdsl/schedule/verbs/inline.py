"""inline: the expression of a tensor where it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import Cast, Expr, Reduce, walk
from convdsl.ir.index import as_name
from convdsl.passes.normalise import fused, reads_of
from convdsl.passes.phases import the_reduction
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, refuse_scheduled
from convdsl.schedule.words import Words

LONGEST = 500  # nodes of an expression: each that is read twice doubles


@dataclass(frozen=True, slots=True)
class Inline(Step):
    """Compute a tensor anew wherever it is read, and store it no more; `compute_inline` (TVM).

    before:  e[n, c] = exp(x[n, c] - top[n])               inline e
             norm[n] = sum[c] e[n, c]
    after:   norm[n] = sum[c] exp(x[n, c] - top[n])

    It saves the memory and a kernel, and costs the work again at each read. An equation keeps at most
    one reduction, which is not inside another. A stored f16 was rounded, and so is the expression.
    """

    verb: ClassVar[str] = "inline"
    form: ClassVar[str] = "inline EQUATION"
    equation: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        return cls(words.name("an equation"))

    def __str__(self) -> str:
        return f"inline {self.equation}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        tensor = state.system.tensor(self.equation)
        if tensor.role == "output":
            why = f"`{self.equation}` is the result, which is stored"
            refuse_relation(self, pieces[0], "E0656", why, None)
        for label, piece in state.pieces().items():
            if reads_of(Equation(self.equation, (piece,)), self.equation):
                refuse_scheduled(self, state, label)
        self._plain(pieces)
        equations: list[Equation] = []
        for equation in state.system.equations:
            if equation.tensor != self.equation:
                equations.append(self._in(equation, tensor, pieces[0]))
        tensors = tuple(t for t in state.system.tensors if t != tensor)
        system = replace(state.system, tensors=tensors, equations=tuple(equations))
        return replace(state, system=system)

    def _plain(self, pieces: tuple[Piece, ...]) -> None:
        """One expression for all elements, each index of which is a variable."""
        piece = pieces[0]
        names = [as_name(i) for i in piece.access.index]
        free = [v.name for v in piece.vars]
        whole = not piece.guards and all(v.low == 0 for v in piece.vars)
        if len(pieces) > 1 or not whole or sorted(map(str, names)) != sorted(free):
            why = f"`{self.equation}` is written in blocks, and no one expression stands for it"
            help = f"put it before the `phases` of `{self.equation}`"
            refuse_relation(self, piece, "E0657", why, help)

    def _in(self, reader: Equation, tensor: Tensor, body: Piece) -> Equation:
        """The reader with the expression in it, where the result can be written."""
        reads = reads_of(reader, self.equation)
        if not reads:
            return reader
        if any(r.access.dims != body.access.dims for r in reads):
            why = f"`{reader.tensor}` reads `{self.equation}` with its axes split in another way"
            refuse_relation(self, reader.pieces[0], "E0657", why, None)
        size = sum(1 for p in reader.pieces for _ in walk(p.value))
        size += len(reads) * sum(1 for _ in walk(body.value))
        if size > LONGEST:
            why = f"the expression of `{reader.tensor}` would have {size} parts, at most {LONGEST}"
            refuse_relation(self, reader.pieces[0], "E0659", why, "leave one of them stored")
        out = fused(reader, self.equation, body, _as_stored(body.value, tensor))
        for piece in out.pieces:
            if not _has_one_reduction(piece.value):
                why = f"`{reader.tensor}` would have a reduction inside or beside another one"
                refuse_relation(self, reader.pieces[0], "E0658", why, None)
        return out


def _as_stored(value: Expr, tensor: Tensor) -> Expr:
    """The value with the rounding of the tensor that held it."""
    return Cast("f16", value) if tensor.dtype == "f16" else value


def _has_one_reduction(value: Expr) -> bool:
    """Whether there is at most one reduction, and none in it."""
    found = [e for e in walk(value) if isinstance(e, Reduce)]
    return not found or (the_reduction(value) is not None and len(set(found)) == 1)
