"""Proof that the pieces of an equation define every element of its tensor, each exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NoReturn

from convdsl.diagnostics import InternalError
from convdsl.ir.equation import Piece, System, Tensor, map_piece
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import ZERO, Index, as_name, product
from convdsl.ir.sets import (
    NotAffineError,
    Parameters,
    Space,
    TooHardError,
    access_map,
    domain_set,
    limited,
)

if TYPE_CHECKING:
    import islpy as isl

_OPERATIONS = 1_000_000  # a proof of phases takes 1,000 to 3,000


class Verdict(Enum):
    """What is known of a cover.

    `UNPROVED`: an index is not quasi-affine, or a view joins axes; nothing was refuted.
    """

    PROVED = "proved"
    UNPROVED = "unproved"


def prove_cover(
    tensor_dims: tuple[Index, ...],
    pieces: tuple[Piece, ...],
    *,
    definitions: Sequence[tuple[str, Index]] = (),
    assume: Iterable[Pred] = (),
) -> Verdict:
    """Prove that the pieces write each element of the box 0..dims exactly once.

    For all sizes >= 0 for which no dim is negative and the conditions `assume` hold. InternalError
    with an element and sizes when the proof fails.
    """

    def known(index: Index) -> Index:
        for name, value in reversed(definitions):
            index = index.substitute({name: value})
        return index

    dims = tuple(map(known, tensor_dims))
    mapped = [map_piece(piece, known) for piece in pieces]
    if len(mapped) == 1 and _is_whole(dims, mapped[0]):
        return Verdict.PROVED
    if any(piece.access.dims != dims for piece in mapped):
        return Verdict.UNPROVED
    try:
        return _Proof(dims, [Pred(p.kind, known(p.index)) for p in assume]).run(mapped)
    except (NotAffineError, TooHardError):
        return Verdict.UNPROVED


def prove_covers(system: System, assume: Iterable[Pred] = ()) -> dict[str, Verdict]:
    """The verdict on each equation of a system, over the view that its pieces share."""
    conditions = tuple(assume)
    return {
        e.tensor: prove_cover(
            _view(system.tensor(e.tensor), e.pieces),
            e.pieces,
            definitions=system.definitions,
            assume=conditions,
        )
        for e in system.equations
    }


def _view(tensor: Tensor, pieces: tuple[Piece, ...]) -> tuple[Index, ...]:
    """The dims that all pieces write through, if those are the whole tensor; else its own."""
    views = {p.access.dims for p in pieces}
    shared = len(views) == 1 and product(next(iter(views))) == tensor.elements
    return views.pop() if shared else tensor.dims


def _is_whole(dims: tuple[Index, ...], piece: Piece) -> bool:
    """Whether the piece runs over the box in the plainest way: one variable an axis, no guards."""
    ranges = {v.name: (v.low, v.high) for v in piece.vars}
    names = [as_name(index) for index, extent in zip(piece.access.index, dims, strict=False)]
    axes = [
        (name, extent)
        for name, index, extent in zip(names, piece.access.index, dims, strict=False)
        if not (index == 0 and extent == 1)
    ]
    return (
        not piece.guards
        and piece.access.dims == dims
        and sorted(str(name) for name, _ in axes) == sorted(ranges)
        and all(ranges[str(name)] == (ZERO, extent) for name, extent in axes)
    )


class _Proof:
    def __init__(self, dims: tuple[Index, ...], assume: list[Pred]) -> None:
        self.parameters = Parameters()
        self.dims = dims
        self.assume = assume

    def run(self, pieces: list[Piece]) -> Verdict:
        maps = [access_map(p.vars, p.guards, p.access.index, self.parameters) for p in pieces]
        box = self._box()
        sizes = self._sizes()
        with limited(_OPERATIONS):
            origins = [piece.origin for piece in pieces]
            return self._check(origins, [m.intersect_params(sizes) for m in maps], box, sizes)

    def _check(
        self, origins: list[str], maps: list[isl.Map], box: isl.Set, sizes: isl.Set
    ) -> Verdict:
        box = box.intersect_params(sizes)
        covered = box.subtract(box)
        for origin, image in zip(origins, maps, strict=True):
            if not image.is_injective():
                return self._refuted(self._doubles(image), f"twice ({origin})")
            points = image.range()
            if not points.is_disjoint(covered):
                twice = points.intersect(covered)
                return self._refuted(twice, f"twice (once in {origin})")
            covered = covered.union(points)
        if not covered.is_subset(box):
            return self._refuted(covered.subtract(box), "outside the tensor")
        if not box.is_subset(covered):
            return self._refuted(box.subtract(covered), "by no piece")
        return Verdict.PROVED

    def _box(self) -> isl.Set:
        variables = [Var(f"axis{n}", ZERO, extent) for n, extent in enumerate(self.dims)]
        return domain_set(variables, (), self.parameters)

    def _sizes(self) -> isl.Set:
        """The sizes that can occur, as a set of parameters."""
        import islpy as isl

        space = Space((), self.parameters)
        conditions = [space.pred(Pred("ge", extent)) for extent in self.dims]
        conditions += [space.pred(p) for p in self.assume]
        conditions += self.parameters.natural()
        text = " and ".join(conditions) or "true"
        box = self._box()
        return isl.Set(f"{self.parameters.declaration()} -> {{ : {text} }}", box.get_ctx())

    def _doubles(self, image: isl.Map) -> isl.Set:
        """Elements that the piece writes at two of its points."""
        import islpy as isl

        pairs = image.apply_range(image.reverse())
        different = pairs.subtract(isl.Map.identity(pairs.get_space()))
        return different.domain().apply(image)

    def _refuted(self, points: isl.Set, how: str) -> Verdict:
        """Fail with one of the points, unless it may not exist: a product stood for any number."""
        if self.parameters.products:
            return Verdict.UNPROVED
        self._fail(points, how)

    def _fail(self, points: isl.Set, how: str) -> NoReturn:
        import islpy as isl

        point = points.sample_point()
        count = points.dim(isl.dim_type.set)
        element = [point.get_coordinate_val(isl.dim_type.set, n).to_python() for n in range(count)]
        sizes = ", ".join(
            f"{self.parameters.name_of(points.get_dim_name(isl.dim_type.param, n) or '')} = "
            f"{point.get_coordinate_val(isl.dim_type.param, n).to_python()}"
            for n in range(points.dim(isl.dim_type.param))
        )
        at = f" at {sizes}" if sizes else ""
        dims = ", ".join(map(str, self.dims))
        raise InternalError(f"element {element} of [{dims}] is written {how}{at}")
