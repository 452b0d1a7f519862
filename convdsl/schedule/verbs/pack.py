"""pack: an operand in another order of its axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.expr import Access, Expr, Load, ValueType, Var, loads, map_children
from convdsl.ir.index import const, sym
from convdsl.passes.names import Names
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, with_made
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Pack(Step):
    """Copy a tensor with its axes in another order, and read the copy; `cache_read` with a layout (TVM).

    before:  y[n, m] = sum[k] a[m, k] * b[n, k]          pack y: b by 1, 0 -> b_packed
    after:   b_packed[i1, i0] = b[i0, i1]
             y[n, m] = sum[k] a[m, k] * b_packed[k, n]

    The numbers are axes of the tensor as the equation sees it (a composite axis counts as its factors,
    an axis of extent one not at all), in the order in which the copy has them.
    """

    verb: ClassVar[str] = "pack"
    form: ClassVar[str] = "pack EQUATION: TENSOR by NUMBER, NUMBER, ... -> NAME"
    equation: str
    tensor: str
    axes: tuple[int, ...]
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        tensor = words.name("a tensor")
        words.take("by")
        axes = [words.number("the number of an axis")]
        while words.accept(","):
            axes.append(words.number("the number of an axis"))
        words.take("->")
        return cls(equation, tensor, tuple(axes), words.name("a name for the copy"))

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.axes))
        return f"pack {self.equation}: {self.tensor} by {axes} -> {self.name}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        reads = [e.access for e in loads(pieces[0].value) if e.access.tensor == self.tensor]
        if not reads:
            known = sorted({e.access.tensor for e in loads(pieces[0].value)})
            why = f"`{self.equation}` does not read `{self.tensor}`, but {', '.join(known) or 'nothing'}"
            refuse_relation(self, pieces[0], "E0635", why, None)
        views = {a.dims for a in reads}
        if len(views) > 1:
            why = f"`{self.tensor}` is read with its axes split in {len(views)} ways"
            refuse_relation(self, pieces[0], "E0636", why, None)
        (dims,) = views
        if sorted(self.axes) != list(range(len(dims))):
            why = f"`{self.tensor}` has the axes 0 to {len(dims) - 1} here; name each one once"
            refuse_relation(self, pieces[0], "E0637", why, None)
        loops = (state.nest(name).taken for name in state.pieces())
        taken = why_not_new((self.name,), set().union(*loops), state)
        if taken is not None:
            refuse_relation(self, pieces[0], "E0605", taken, "choose another name")
        packed = replace(pieces[0], value=self._repacked(pieces[0].value))
        return replace(state, system=self._with_copy(state.system, reads[0], (packed, *pieces[1:])))

    def _repacked(self, value: Expr) -> Expr:
        if isinstance(value, Load) and value.access.tensor == self.tensor:
            return Load(self._permuted(value.access), value.dtype)
        return map_children(value, self._repacked)

    def _permuted(self, access: Access) -> Access:
        index = tuple(access.index[a] for a in self.axes)
        return Access(self.name, index, tuple(access.dims[a] for a in self.axes))

    def _with_copy(self, system: System, read: Access, pieces: tuple[Piece, ...]) -> System:
        """The system with the copy made just before the equation that reads it."""
        source = system.tensor(self.tensor)
        names = Names({t.name for t in system.tensors} | {*system.sizes, self.name})
        own = tuple(Var(names.fresh(f"i{n}"), const(0), d) for n, d in enumerate(read.dims))
        plain = Access(self.tensor, tuple(sym(v.name) for v in own), read.dims)
        target = self._permuted(plain)
        dtype: ValueType = "i32" if source.dtype == "i32" else "f32"
        copy = Piece(
            tuple(own[a] for a in self.axes), (), target, Load(plain, dtype), origin="pack"
        )
        tensor = Tensor(self.name, source.dtype, tuple((d,) for d in target.dims), "let")
        return with_made(system, self.equation, [tensor], [Equation(self.name, (copy,))], pieces)
