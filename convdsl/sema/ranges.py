"""The range of every index, and with it the shape of every let.

An index ranges over the axes it stands on. Inputs and the result have declared axes; the axes of a
let are the ranges of its own indices. A let's index that its own statement says nothing about (an
output position, which stands only in a relation) takes the range of the places that read it, and
where these have none but a written one, that. So ranges are found by going round the statements
until nothing changes; then all places are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from convdsl.diagnostics import CdslError, Note, Span
from convdsl.ir.equation import Tensor
from convdsl.ir.expr import Var
from convdsl.ir.index import ZERO, Index, product
from convdsl.ir.index_text import plain_text
from convdsl.sema.agree import Equalities
from convdsl.sema.declarations import Head
from convdsl.sema.integers import to_index
from convdsl.sema.model import Narrowing
from convdsl.sema.scopes import Statement
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Place:
    """An index at an axis: `factor` is its position in a composite, None over the whole axis."""

    statement: int
    index: str
    tensor: str
    axis: int
    factor: int | None
    span: Span


Extents = dict[tuple[int, str], Index]


@dataclass(slots=True)
class Ranges:
    """The variable of each (statement, index), the lets' tensors, and what to check later."""

    variables: dict[tuple[int, str], Var]
    lets: dict[str, Tensor]
    narrowings: list[Narrowing]


class _Solver:
    def __init__(
        self, head: Head, statements: tuple[Statement, ...], output: Tensor, equal: Equalities
    ) -> None:
        self.head, self.statements, self.equal = head, statements, equal
        self.shapes = {t.name: t.axes for t in (*head.inputs.values(), output)}
        self.lets = {s.target: n for n, s in enumerate(statements[:-1])}
        self.output = output
        self.extents: Extents = {}
        self.written: dict[tuple[int, str], tuple[Index, Index]] = {}
        for n, statement in enumerate(statements):
            for name, index in statement.indices.items():
                if index.binder is not None and index.binder.high is not None:
                    self.written[n, name] = self._written(statement, index.binder)
        self.places = list(self._places())

    # -- where indices stand -----------------------------------------------------------------------
    def _places(self) -> Iterator[Place]:
        for n, statement in enumerate(self.statements):
            if statement.target == self.output.name:
                left = ast.Read(
                    ast.Ref(statement.target, statement.span), statement.axes, statement.span
                )
                yield from self._read_places(n, left)
            for read in statement.reads:
                yield from self._read_places(n, read)

    def _read_places(self, n: int, read: ast.Read) -> Iterator[Place]:
        tensor = read.tensor.name
        shape = self._factor_counts(tensor)
        if len(shape) != len(read.axes):
            raise self._wrong_rank(read, len(shape))
        for number, axis in enumerate(read.axes):
            if len(axis.names) == 1:
                whole = None if shape[number] > 1 else 0
                yield Place(n, axis.names[0].name, tensor, number, whole, axis.span)
            elif len(axis.names) != shape[number]:
                raise self._wrong_factors(axis, tensor, number, shape[number])
            else:
                for factor, ref in enumerate(axis.names):
                    yield Place(n, ref.name, tensor, number, factor, ref.span)

    def _factor_counts(self, tensor: str) -> list[int]:
        if tensor in self.lets:
            return [len(axis.names) for axis in self.statements[self.lets[tensor]].axes]
        return [len(axis) for axis in self.shapes[tensor]]

    def _wrong_rank(self, read: ast.Read, rank: int) -> CdslError:
        name = read.tensor.name
        plural = "axis" if rank == 1 else "axes"
        return CdslError(
            "E0205",
            f"`{name}` has {rank} {plural}, but {len(read.axes)} "
            f"{'is' if len(read.axes) == 1 else 'are'} given",
            read.span,
            notes=(self._declared(name),),
            help=f"write `{name}[]`" if rank == 0 else None,
        )

    def _wrong_factors(self, axis: ast.Axis, tensor: str, number: int, count: int) -> CdslError:
        written = ", ".join(self._user(ref) for ref in axis.names)
        return CdslError(
            "E0206",
            f"`({written})` has {len(axis.names)} indices, but axis {number} of `{tensor}` has "
            + ("1 factor" if count == 1 else f"{count} factors"),
            axis.span,
            notes=(self._declared(tensor),),
            help="write one bare index over the whole axis"
            if count == 1
            else f"write {count} indices, one a factor, or one bare index over the whole axis",
        )

    def _declared(self, tensor: str) -> Note:
        return Note(f"`{tensor}` is declared here", self.head.taken[tensor])

    @staticmethod
    def _user(ref: ast.Ref) -> str:
        return ref.span.source.text[ref.span.start : ref.span.end] or ref.name

    # -- solving -----------------------------------------------------------------------------------
    def solve(self) -> Ranges:
        changed = True
        while changed:
            changed = False
            for place in self.places:
                changed |= self._learn(place)
            changed = changed or self._learn_written()
        for n, statement in enumerate(self.statements):
            for name in statement.indices:
                if (n, name) not in self.extents and (n, name) not in self.written:
                    raise self._no_range(n, name)
        narrowings = [found for place in self.places for found in self._compare(place)]
        lets = {
            name: Tensor(name, s.dtype, self._let_axes(n), "let")
            for name, n in self.lets.items()
            for s in (self.statements[n],)
        }
        return Ranges(self._variables(), lets, narrowings)

    def _learn(self, place: Place) -> bool:
        """Take the index's extent from the axis, or the other way round for a let's axis."""
        key = (place.statement, place.index)
        extent = self._extent_at(place)
        if extent is not None:
            if key in self.extents or key in self.written:
                return False
            self.extents[key] = extent
            return True
        if place.factor is None or place.tensor not in self.lets or key not in self.extents:
            return False
        let = self.lets[place.tensor]
        own = self.statements[let].axes[place.axis].names[place.factor].name
        self.extents[let, own] = self.extents[key]
        return True

    def _learn_written(self) -> bool:
        """Give one let's index that nothing else tells the written range of all that read it."""
        readers: dict[tuple[int, str], list[Place]] = {}
        for place in self.places:
            if place.factor is not None and (place.statement, place.index) in self.written:
                let = self.lets.get(place.tensor)
                if let is not None and self._extent_at(place) is None:
                    own = self.statements[let].axes[place.axis].names[place.factor].name
                    readers.setdefault((let, own), []).append(place)
        for key, places in readers.items():
            first, *others = [(p, *self.written[p.statement, p.index]) for p in places]
            for other in others:
                if not all(
                    self.equal.agree(a, b) for a, b in zip(first[1:], other[1:], strict=True)
                ):
                    raise self._readers_differ(key, first, other)
            if self.equal.normal(first[1]) == ZERO:
                self.extents[key] = first[2]
                return True
        return False

    def _readers_differ(
        self, key: tuple[int, str], a: tuple[Place, Index, Index], b: tuple[Place, Index, Index]
    ) -> CdslError:
        name, let = self.statements[key[0]].indices[key[1]], self.statements[key[0]].target
        return CdslError(
            "E0208",
            f"`{name.name}` of `{let}` has two ranges: {a[1]}..{a[2]} and {b[1]}..{b[2]}",
            name.span,
            notes=tuple(
                Note(f"`{let}` is read here at an index in {low}..{high}", place.span)
                for place, low, high in (a, b)
            ),
            help="nothing else gives its range, so all that read it must have the same one",
        )

    def _extent_at(self, place: Place) -> Index | None:
        """The extent of the axis (or factor) at a place; None while it is not known."""
        if place.tensor in self.lets:
            let = self.lets[place.tensor]
            names = [ref.name for ref in self.statements[let].axes[place.axis].names]
            known = [self.extents.get((let, name)) for name in names]
        else:
            known = list(self.shapes[place.tensor][place.axis])
        if place.factor is not None:
            return known[place.factor]
        factors = [k for k in known if k is not None]
        return product(factors) if len(factors) == len(known) else None

    def _let_axes(self, let: int) -> tuple[tuple[Index, ...], ...]:
        return tuple(
            tuple(self.extents[let, ref.name] for ref in axis.names)
            for axis in self.statements[let].axes
        )

    def _variables(self) -> dict[tuple[int, str], Var]:
        out: dict[tuple[int, str], Var] = {}
        for n, statement in enumerate(self.statements):
            for name in statement.indices:
                low, high = self.written.get((n, name)) or (ZERO, self.extents[n, name])
                out[n, name] = Var(name, low, high)
        return out

    # -- written ranges ----------------------------------------------------------------------------
    def _written(self, statement: Statement, binder: ast.Binder) -> tuple[Index, Index]:
        assert binder.low is not None
        assert binder.high is not None

        own = statement.indices[binder.name.name].name

        def lookup(ref: ast.Ref) -> Index:
            if ref.name in statement.indices:
                raise CdslError(
                    "E0215",
                    f"the range of `{own}` depends on an index",
                    ref.span,
                    notes=("a range is made of integers, sizes and int parameters",),
                    help="for all k up to n, bind one more index for the difference,\n"
                    "`sum[k, d in 0..N | k + d == n]`, or multiply by a mask tensor",
                )
            return self.head.integer(ref)

        return to_index(binder.low, lookup), to_index(binder.high, lookup)

    # -- comparing ---------------------------------------------------------------------------------
    def _compare(self, place: Place) -> Iterator[Narrowing]:
        """Check that the index fits the axis here; what only numbers can tell is yielded."""
        key = (place.statement, place.index)
        extent = self._extent_at(place)
        assert extent is not None
        if key not in self.written:
            if not self.equal.agree(self.extents[key], extent):
                raise self._disagree(place, extent)
            return
        low, high = self.written[key]
        below = self.equal.normal(low).as_int()
        above = (self.equal.normal(high) - self.equal.normal(extent)).as_int()
        name = self.statements[place.statement].indices[place.index]
        if (below is not None and below < 0) or (above is not None and above > 0):
            raise CdslError(
                "E0208",
                f"`{name.name}` ranges over {low}..{high}, but axis {place.axis} of "
                f"`{place.tensor}` has {self._subject(place, extent)}",
                name.binder.span if name.binder else name.span,
                notes=(Note(f"`{name.name}` stands on that axis here", place.span),),
                help="a written range may narrow an axis; padding needs none: a point outside the"
                "\nrelation contributes nothing",
            )
        if below is None or above is None:
            span = name.binder.span if name.binder else name.span
            yield Narrowing(name.name, low, high, place.tensor, place.axis, extent, span)

    def _subject(self, place: Place, extent: Index) -> str:
        if place.factor is None or self._factor_counts(place.tensor)[place.axis] == 1:
            return f"the range 0..{extent}"
        return f"the range 0..{extent} at this factor"

    def _disagree(self, place: Place, extent: Index) -> CdslError:
        key = (place.statement, place.index)
        name = self.statements[place.statement].indices[place.index].name
        first = next(
            p
            for p in self.places
            if (p.statement, p.index) == key and self._extent_at(p) == self.extents[key]
        )
        have = self.extents[key]
        return CdslError(
            "E0208",
            f"`{name}` has two ranges: 0..{have} and 0..{extent}",
            place.span,
            notes=(
                f"axis {place.axis} of `{place.tensor}` gives 0..{extent}",
                Note(f"axis {first.axis} of `{first.tensor}` gives 0..{have}", first.span),
            ),
            help=f"if they are equal, say so: `where {plain_text(have)} == {plain_text(extent)}`; "
            "else use two indices",
        )

    def _no_range(self, n: int, name: str) -> CdslError:
        index = self.statements[n].indices[name]
        if index.binder is None:
            return CdslError(
                "E0207",
                f"nothing gives the range of `{index.name}`",
                index.span,
                notes=("no tensor is read at it here, and no reader of the `let` tells either",),
                help=f"read a tensor at `{index.name}`, or the `let` at an index of known range:\n"
                "one that stands on another axis too, or has its range written from 0",
            )
        return CdslError(
            "E0207",
            f"nothing gives the range of `{index.name}`",
            index.span,
            notes=("it stands on no axis in this reduction",),
            help=f"write it: `{index.name} in 0..{index.name.upper()}`",
        )


def solve_ranges(
    head: Head, statements: tuple[Statement, ...], output: Tensor, equal: Equalities
) -> Ranges:
    """All ranges of an op.

    Raises:
        CdslError: E0205 wrong rank, E0206 wrong number of factors, E0207 no range, E0208 two ranges
            that differ or a written range outside its axis, E0215 a range over an index.
    """
    return _Solver(head, statements, output, equal).solve()


def equalities(head: Head) -> Equalities:
    """What the definitions and the `==` of the checks make equal."""
    definitions: Mapping[str, ast.Chain] = head.definitions
    equal = Equalities(
        (name, to_index(chain.operands[1], head.integer)) for name, chain in definitions.items()
    )
    for chain in head.checks:
        for op, left, right in zip(chain.ops, chain.operands, chain.operands[1:], strict=False):
            if op == "==":
                equal.add(to_index(left, head.integer), to_index(right, head.integer))
    return equal
