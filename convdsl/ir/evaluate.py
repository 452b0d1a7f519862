"""What an equation system means, in float64: the definition that everything else is compared with.

It shares nothing with the compiler's solver of relations. For each piece, and for each reduction in
it, it builds a *table* of the integer points at which all conditions hold, a column a variable: a
variable that an equation determines is divided out, the others are run through, smallest range
first. Variables that no condition names need no column; they are broadcast axes after the row axis.
So a value is an array [rows, axis, axis, ...], and tables are made in chunks, which bounds memory.

Numbers: float64 with IEEE special values; i32 tensors are exact integers; a store to an f16 tensor
rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convdsl.diagnostics import CdslError, InternalError, Span
from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.expr import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Param,
    Pred,
    Reduce,
    Scalar,
    Select,
    Var,
    eq,
    walk,
)
from convdsl.ir.functions import BINARY, COMPARE, FUNCTIONS, REDUCERS, Array, cast
from convdsl.ir.index import Index
from convdsl.ir.points import Table, expand

Places = Callable[[str, Reduce], Span]
ELEMENTS = 1 << 20  # of one intermediate array: 8 MB, of which a handful live at once


def evaluate_system(
    system: System,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    place: Places | None = None,
) -> dict[str, Array]:
    """All lets and outputs of a system, float64 (int64 for i32 tensors), in the tensors' shapes.

    `arrays` has the inputs, `sizes` a number for each symbol in `system.sizes`; `place` tells where
    in a source the reduction of a tensor stands.

    Raises:
        CdslError: E0306 for a max or min over no points that has no `else`.
        InternalError: the pieces of an equation do not cover its target exactly once, or something
            reads outside of a tensor.
    """
    env, memory = _begin(system, arrays, sizes)
    out: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for equation in system.equations:
            tensor = system.tensor(equation.tensor)
            flat = _Equation(equation, tensor, memory, env, place).run()
            memory[tensor.name] = flat
            out[tensor.name] = flat.reshape(_shape(tensor, env))
    return out


def evaluate_at(system: System, arrays: Mapping[str, Array], places: Sequence[int]) -> Array:
    """The output at some places of its flat form; everything before it is evaluated whole."""
    env, memory = _begin(system, arrays, None)
    *before, last = system.equations
    with np.errstate(all="ignore"):
        for equation in before:
            tensor = system.tensor(equation.tensor)
            memory[tensor.name] = _Equation(equation, tensor, memory, env, None).run()
        return _Equation(last, system.output, memory, env, None).at(places)


def _begin(
    system: System, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None
) -> tuple[dict[str, int], dict[str, Array]]:
    """Numbers for all sizes, and the inputs as flat arrays."""
    env = dict(sizes or {})
    for name, formula in system.definitions:
        env.setdefault(name, formula.evaluate(env))
    memory: dict[str, Array] = {}
    for tensor in system.inputs:
        shape = _shape(tensor, env)
        array = np.asarray(arrays[tensor.name])
        if array.shape != shape:
            raise InternalError(f"`{tensor.name}` has shape {array.shape}, not {shape}")
        memory[tensor.name] = array.astype(_numpy_type(tensor)).ravel()
    for tensor in system.constants:
        memory[tensor.name] = np.array([float(v) for v in tensor.values])
    return env, memory


def _shape(tensor: Tensor, env: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(s.evaluate(env)) for s in tensor.shape)


def _numpy_type(tensor: Tensor) -> type[np.generic]:
    return np.int64 if tensor.dtype == "i32" else np.float64


@dataclass(frozen=True, slots=True)
class Axis:
    """A broadcast variable over low..low + extent."""

    name: str
    low: int
    extent: int


@dataclass(frozen=True, slots=True)
class Context:
    """Where a value is evaluated: the rows of a table times the broadcast axes."""

    table: Table
    axes: tuple[Axis, ...]

    @property
    def volume(self) -> int:
        """Elements a row."""
        return math.prod(a.extent for a in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.table.rows, *(a.extent for a in self.axes))

    def names(self, env: Mapping[str, int], wanted: frozenset[str]) -> dict[str, Any]:
        """The wanted names as arrays of the context's rank, sizes as integers."""
        rank = 1 + len(self.axes)
        out: dict[str, Any] = {n: env[n] for n in wanted if n in env}
        for name in wanted & self.table.columns.keys():
            out[name] = self.table.columns[name].reshape(-1, *([1] * (rank - 1)))
        for position, axis in enumerate(self.axes, 1):
            if axis.name in wanted:
                shape = [1] * rank
                shape[position] = axis.extent
                out[axis.name] = np.arange(axis.low, axis.low + axis.extent).reshape(shape)
        return out


def conditioned(expr: Expr) -> frozenset[str]:
    """Names that conditions or the bounds of inner variables depend on: these need columns."""
    names: set[str] = set()
    for node in walk(expr):
        if isinstance(node, Guard):
            names.update(*(p.index.free for p in node.conditions))
        elif isinstance(node, Reduce):
            names.update(*(p.index.free for p in node.constraints))
            names.update(*(v.low.free | v.high.free for v in node.vars))
    return frozenset(names)


class _Equation:
    """Evaluates one equation into a flat array."""

    def __init__(
        self,
        equation: Equation,
        tensor: Tensor,
        memory: Mapping[str, Array],
        env: Mapping[str, int],
        place: Places | None,
    ) -> None:
        self.equation, self.tensor, self.memory, self.env = equation, tensor, memory, env
        self.place = place
        count = math.prod(_shape(tensor, env))
        self.out: Array = np.zeros(count, _numpy_type(tensor))
        self.written: Array = np.zeros(count, np.int32)

    def run(self) -> Array:
        for piece in self.equation.pieces:
            self._piece(piece)
        if not bool((self.written == 1).all()):
            where = int(np.flatnonzero(self.written != 1)[0])
            times = int(self.written[where])
            raise InternalError(
                f"element {where} of `{self.tensor.name}` is defined {times} times by "
                f"{len(self.equation.pieces)} pieces"
            )
        return self.out

    def at(self, places: Sequence[int]) -> Array:
        """The elements at some places; conditions on the variables leave only their points."""
        dims = [int(d.evaluate(self.env)) for d in self.tensor.dims]
        chosen = np.asarray(places, np.int64)
        for point in zip(*np.unravel_index(chosen, dims), strict=True) if dims else [()]:
            for piece in self.equation.pieces:
                here = zip(piece.access.index, point, strict=True)
                only = tuple(eq(index - int(number)) for index, number in here)
                self._piece(replace(piece, guards=(*piece.guards, *only)))
        return self.out[chosen]

    def _piece(self, piece: Piece) -> None:
        needed = conditioned(piece.value).union(*(p.index.free for p in piece.guards))
        needed = needed.union(*(v.low.free | v.high.free for v in piece.vars))
        outer = Context(Table.unit(), ())
        for context in self._points(outer, piece.vars, piece.guards, needed):
            value = np.broadcast_to(self.value(piece.value, context), context.shape)
            at = np.broadcast_to(self._flat(piece.access, context), context.shape).ravel()
            self.out[at] = self._rounded(value).ravel()
            np.add.at(self.written, at, np.int32(1))

    def _rounded(self, value: Array) -> Array:
        if self.tensor.dtype == "f16":
            return value.astype(np.float16).astype(np.float64)
        return value

    def _points(
        self,
        outer: Context,
        variables: tuple[Var, ...],
        conditions: tuple[Pred, ...],
        needed: frozenset[str],
    ) -> Iterator[Context]:
        """Contexts that together are the outer one extended by the variables' points.

        A variable gets a column when a name in `needed` says so or when the axes grow too large.
        Nothing is yielded for no points. Rows stay sorted by `parent`.
        """
        columns: list[Var] = []
        axes: list[Axis] = []
        for var in variables:
            if var.name in needed or not (var.low.free | var.high.free) <= self.env.keys():
                columns.append(var)
            else:
                low, high = int(var.low.evaluate(self.env)), int(var.high.evaluate(self.env))
                axes.append(Axis(var.name, low, max(0, high - low)))
        if any(a.extent == 0 for a in axes):
            return
        # Long axes become columns, which can be cut into chunks.
        while axes and outer.volume * math.prod(a.extent for a in axes) > ELEMENTS:
            longest = max(axes, key=lambda a: a.extent)
            axes.remove(longest)
            columns.append(next(v for v in variables if v.name == longest.name))
        joint = (*outer.axes, *axes)
        rows = max(1, ELEMENTS // max(1, math.prod(a.extent for a in joint)))
        for table in expand(outer.table, tuple(columns), conditions, self.env, ELEMENTS):
            for start in range(0, table.rows, rows):
                yield Context(table.slice(start, start + rows), joint)

    # -- reads -------------------------------------------------------------------------------------
    def _index(self, index: Index, context: Context) -> Any:
        return index.evaluate(context.names(self.env, index.free))

    def _flat(self, access: Access, context: Context) -> Any:
        """The element offsets of an access, with its bounds checked."""
        flat: Any = np.zeros((1,) * (1 + len(context.axes)), np.int64)
        for index, extent in zip(access.index, access.dims, strict=True):
            size = int(extent.evaluate(self.env))
            at = np.asarray(self._index(index, context))
            if at.size and (int(at.min()) < 0 or int(at.max()) >= size):
                raise InternalError(
                    f"`{access.tensor}` is read or written at {index} in "
                    f"{int(at.min())}..{int(at.max())}, outside of 0..{size - 1}"
                )
            flat = flat * size + at
        return flat

    # -- values ------------------------------------------------------------------------------------
    def value(self, expr: Expr, context: Context) -> Array:
        """An array that broadcasts to the context's shape and has its rank."""
        match expr:
            case Const(number, dtype):
                kind = np.int64 if dtype == "i32" else np.float64
                return np.full((1,) * (1 + len(context.axes)), number, kind)
            case Scalar(index, dtype):
                found = np.asarray(self._index(index, context))
                found = found.reshape(found.shape or (1,) * (1 + len(context.axes)))
                return found.astype(np.int64 if dtype == "i32" else np.float64)
            case Load(access, _):
                found = self.memory[access.tensor][self._flat(access, context)]
                return np.asarray(found)
            case Binary(op, a, b):
                return BINARY[op](self.value(a, context), self.value(b, context))
            case Call(name, args):
                return FUNCTIONS[name](*(self.value(a, context) for a in args))
            case Cast(to, a):
                return cast(to, self.value(a, context))
            case Select(op, a, b, yes, no):
                holds = COMPARE[op](self.value(a, context), self.value(b, context))
                return np.where(holds, self.value(yes, context), self.value(no, context))
            case Guard():
                return self._guard(expr, context)
            case Reduce():
                return self._reduce(expr, context)
            case Param(name):
                raise InternalError(f"the parameter `{name}` has no number")

    def _guard(self, guard: Guard, context: Context) -> Array:
        holds = context.table.holds(guard.conditions, self.env)
        if bool(holds.all()):
            return self.value(guard.value, context)
        if not bool(holds.any()):
            return self.value(guard.otherwise, context)
        kind = np.int64 if guard.dtype == "i32" else np.float64
        out: Array = np.empty(context.shape, kind)
        for mask, branch in ((holds, guard.value), (~holds, guard.otherwise)):
            part = Context(context.table.where(mask), context.axes)
            out[mask] = np.broadcast_to(self.value(branch, part), part.shape)
        return out

    def _reduce(self, reduce: Reduce, context: Context) -> Array:
        ufunc, start = REDUCERS[reduce.op]
        integer = reduce.dtype == "i32"
        if integer and not math.isfinite(start):
            start = np.iinfo(np.int64).min if start < 0 else np.iinfo(np.int64).max
        out: Array = np.full(context.shape, start, np.int64 if integer else np.float64)
        seen = np.zeros(context.table.rows, bool)
        needed = conditioned(reduce)
        numbered = Context(context.table.numbered(), context.axes)
        for part in self._points(numbered, reduce.vars, reduce.constraints, needed):
            value = np.broadcast_to(self.value(reduce.body, part), part.shape)
            own = tuple(range(len(context.axes) + 1, value.ndim))
            if own:
                value = ufunc.reduce(value, axis=own)
            parents = part.table.parents
            first = np.flatnonzero(np.diff(parents, prepend=-1))  # rows are sorted by parent
            if len(first) < len(parents):
                value = ufunc.reduceat(value, first, axis=0)
            rows = parents[first]
            out[rows] = ufunc(out[rows], value)
            seen[rows] = True
        if reduce.op in ("max", "min") and not bool(seen.all()):
            if reduce.otherwise is None:
                raise self._empty(reduce, context, int(np.flatnonzero(~seen)[0]))
            none = Context(context.table.where(~seen), context.axes)
            out[~seen] = np.broadcast_to(self.value(reduce.otherwise, none), none.shape)
        return out

    def _empty(self, reduce: Reduce, context: Context, row: int) -> CdslError:
        point = {n: int(c[row]) for n, c in context.table.columns.items()}
        point |= {a.name: a.low for a in context.axes}
        at = ", ".join(f"{n} = {v}" for n, v in point.items())
        names = ", ".join(v.name for v in reduce.vars)
        return CdslError(
            "E0306",
            f"`{reduce.op}[{names}]` in `{self.tensor.name}` is over no points"
            + (f" at {at}" if at else ""),
            self.place(self.tensor.name, reduce) if self.place is not None else None,
            help=f"write what it is then: `{reduce.op}[...] e else v`",
        )
