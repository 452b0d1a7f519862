"""What a schedule has made of a program so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from convdsl.ir.equation import Equation, Piece, System
from convdsl.ir.expr import loads
from convdsl.schedule.nest import Nest, Target, nest_of


@dataclass(frozen=True, slots=True)
class Site:
    """Where an equation is computed: inside a loop of the one equation that reads it.

    Or of the one in whose loop that equation is computed, too.
    """

    reader: str
    loop: str


@dataclass(frozen=True, slots=True)
class State:
    """The rewritten system, and the nests of the pieces that loop verbs have touched.

    A piece is called by its tensor; the further pieces of an equation (holes, which hold the empty
    sum) are `y.hole`, `y.hole2`, ... An equation in `sites` is computed inside its reader, every
    other one as a whole, in order. `accuracy` is the class that the steps keep to. The inputs in
    `finite` are multiplied by zeros that stand for no term: what is not finite in them would spread.
    """

    system: System
    nests: Mapping[str, Nest]
    target: Target = "wgsl"
    sites: Mapping[str, Site] = field(default_factory=dict)
    accuracy: str = "standard"
    finite: frozenset[str] = frozenset()

    def pieces(self) -> dict[str, Piece]:
        """All pieces by name, in the order in which they run."""
        out: dict[str, Piece] = {}
        for equation in self.system.equations:
            for n, piece in enumerate(equation.pieces):
                hole = f".hole{n if n > 1 else ''}"
                out[equation.tensor + (hole if n else "")] = piece
        return out

    def nest(self, name: str) -> Nest:
        """The nest of a piece: as scheduled, or the plain one."""
        found = self.nests.get(name)
        return found if found is not None else nest_of(self.pieces()[name], self.target)

    def with_nest(self, name: str, nest: Nest) -> State:
        return replace(self, nests={**self.nests, name: nest})

    def with_pieces(self, tensor: str, pieces: tuple[Piece, ...]) -> State:
        """An equation's pieces replaced."""
        equations = tuple(
            Equation(tensor, pieces) if q.tensor == tensor else q for q in self.system.equations
        )
        return replace(self, system=replace(self.system, equations=equations))


def readers_of(state: State, tensor: str) -> list[str]:
    """The pieces that read a tensor."""
    pieces = state.pieces().items()
    return [n for n, p in pieces if any(e.access.tensor == tensor for e in loads(p.value))]


def is_read_at(state: State, tensor: str, site: Site) -> bool:
    """Whether a tensor is read there alone: by the reader, or by one equation computed at that loop."""
    readers = readers_of(state, tensor)
    return readers == [site.reader] or (
        len(readers) == 1 and state.sites.get(readers[0].split(".")[0]) == site
    )


def start(system: System, target: Target = "wgsl", accuracy: str = "standard") -> State:
    """The state before the first step."""
    return State(system, {}, target, accuracy=accuracy)
