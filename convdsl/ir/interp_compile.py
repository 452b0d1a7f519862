"""A kernel of the loop IR as a Python function, for the interpreter.

Sizes are numbers here, so most accesses are proved in bounds by interval arithmetic; the others
carry their check in the subscript: `x[l*4 if 0 <= l < 9 else fail(3, l)]`. Buffers are flat lists.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, NoReturn

from convdsl.diagnostics import InternalError
from convdsl.ir import interp_tree as tree
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
)
from convdsl.ir.index import Index, sym
from convdsl.ir.interp_values import CALLS, POISON_INT, divide, half, maximum, minimum, to_i32
from convdsl.ir.interval import UNBOUNDED, Interval, interval
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, Memory, Stmt, Store, statements
from convdsl.ir.text import stmt_text

Storage = Mapping[str, list[Any]]

_MAX_BLOCKS = 18  # Python allows 20 statically nested loops in a function
_KIND = {"ge": ">=", "eq": "==", "ne": "!="}
_RUNTIME: dict[str, Any] = {
    "divide": divide, "half": half, "maximum": maximum, "minimum": minimum, "to_i32": to_i32,
    "float": float, "range": range, "min": min, "max": max,
    **{f"call_{name}": function for name, function in CALLS.items()},
}  # fmt: skip


def compile_kernel(
    kernel: Kernel, buffers: Iterable[Buffer], env: Mapping[str, int]
) -> Callable[[Storage], None]:
    """A function that runs the kernel on the flat lists of the program's buffers."""
    shared = {b.name: b for b in buffers}
    code = _Compiler(kernel, {**shared, **{b.name: b for b in kernel.locals}}, env)
    body = code.fresh_locals() + code.block(kernel.body)
    identifiers = [code.storage[name] for name in shared]
    module = ast.Module([tree.function("kernel", identifiers, body)], [])
    namespace: dict[str, Any] = {"__builtins__": {}, "fail": code.fail, **code.poison, **_RUNTIME}
    namespace |= {code.sizes[name]: value for name, value in env.items()}
    exec(compile(ast.fix_missing_locations(module), "<kernel>", "exec"), namespace)
    run = namespace["kernel"]
    return lambda storage: run(*(storage[name] for name in shared))


class _Compiler:
    """State: the Python name and interval of each name in scope, and the thread loops around."""

    def __init__(
        self, kernel: Kernel, buffers: Mapping[str, Buffer], env: Mapping[str, int]
    ) -> None:
        self.kernel = kernel
        self.buffers = buffers
        self.env = env
        self.storage = {name: f"b{n}" for n, name in enumerate(buffers)}
        self.sizes = {name: f"s{n}" for n, name in enumerate(env)}
        self.names: dict[str, str] = dict(self.sizes)
        self.ranges: dict[str, Interval] = {}
        self.threads: list[str] = []
        self.blocks = 0
        self.serial = count()
        self.sites: list[tuple[Stmt, Access]] = []
        self.poison = {f"p{self.storage[b.name]}": self._garbage(b) for b in kernel.locals}

    def _garbage(self, buffer: Buffer) -> list[Any]:
        size = math.prod(self._number(extent) for extent in buffer.dims)
        return [POISON_INT if buffer.dtype == "i32" else math.nan] * size

    def fresh_locals(self) -> list[ast.stmt]:
        """Every local buffer as a new list of garbage."""
        return [
            tree.assign(name, ast.Subscript(tree.name(f"p{name}"), ast.Slice(), ast.Load()))
            for name in (self.storage[b.name] for b in self.kernel.locals)
        ]

    def _spoil(self, *memories: Memory) -> list[ast.stmt]:
        """Garbage again in the buffers that live no longer than a workgroup, or an iteration."""
        kept = [b for b in self.kernel.locals if b.memory in memories]
        return [
            tree.assign(
                ast.Subscript(tree.name(name), ast.Slice(), ast.Load()), tree.name(f"p{name}")
            )
            for name in (self.storage[b.name] for b in kept)
        ]

    def fail(self, site: int, *index: int) -> NoReturn:
        """Called by a kernel whose access is out of bounds or in another thread's register."""
        stmt, access = self.sites[site]
        buffer = self.buffers[access.tensor]
        dims = tuple(map(self._number, access.dims))
        inside = all(0 <= i < d for i, d in zip(index, dims, strict=True))
        why = "is a register of another thread" if inside else f"is outside {list(dims)}"
        raise self._error(stmt, f"{buffer.name}{list(index)} {why}")

    def _error(self, stmt: Stmt, why: str) -> InternalError:
        return InternalError(f"kernel {self.kernel.name}: {why}\n  in: {stmt_text(stmt)}")

    # -- integers ----------------------------------------------------------------------------------
    def _number(self, index: Index) -> int:
        value = index.substitute(self.env).as_int()
        if value is None:
            raise InternalError(f"kernel {self.kernel.name}: the extent {index} is not a size")
        return value

    def _index(self, index: Index) -> ast.expr:
        for name in index.free:
            if name not in self.names:
                raise InternalError(f"kernel {self.kernel.name}: {name} has no value in {index}")
        return tree.integer(self._known(index), self.names)

    def _known(self, index: Index) -> Index:
        """With numbers for sizes; as it is where that divides by zero: it may never be reached."""
        try:
            return index.substitute(self.env)
        except ZeroDivisionError:
            return index

    def _condition(self, conditions: Iterable[Pred]) -> ast.expr:
        return tree.both(
            [
                tree.compare(self._index(p.index), (_KIND[p.kind], tree.number(0)))
                for p in conditions
            ]
        )

    def _bind(self, name: str, bounds: Interval) -> str:
        identifier = f"v{next(self.serial)}"
        self.names[name], self.ranges[name] = identifier, bounds
        return identifier

    def _range(self, index: Index) -> Interval:
        known = self._known(index)
        # A name without a range would count as a size of any value, so what is left is unknown.
        return interval(known, self.ranges) if known.free <= self.ranges.keys() else UNBOUNDED

    # -- statements --------------------------------------------------------------------------------
    def block(self, body: tuple[Stmt, ...]) -> list[ast.stmt]:
        return [line for stmt in body for line in self._stmt(stmt)]

    def _stmt(self, stmt: Stmt) -> list[ast.stmt]:
        names, ranges = self.names.copy(), self.ranges.copy()
        match stmt:
            case Store():
                return self._store(stmt)
            case If(conditions, body):
                return [ast.If(self._condition(conditions), self.block(body) or [ast.Pass()], [])]
            case Let(name, value, body):
                known = self._index(value)
                out = [tree.assign(self._bind(name, self._range(value)), known), *self.block(body)]
            case For():
                out = self._for(stmt)
        self.names, self.ranges = names, ranges
        return out

    def _for(self, loop: For) -> list[ast.stmt]:
        low, high = self._index(loop.var.low), self._index(loop.var.high)
        once = self._known(loop.var.extent).as_int() == 1
        top = self._range(loop.var.high)[1]
        bounds = self._range(loop.var.low)[0], None if top is None else top - 1
        identifier = self._bind(loop.var.name, bounds)
        if loop.level == "thread":
            self.threads.append(loop.var.name)
        self.blocks += not once
        outlined, blocks = self.blocks > _MAX_BLOCKS, self.blocks
        if outlined:
            self.blocks = 1
        body = self.block(loop.body)
        if loop.level == "worker":
            body = [*self._spoil("worker"), *body]
        elif loop.level == "grid" and not any(_is_grid(s) for s in statements(loop.body)):
            body = [*self._spoil("workgroup", "register"), *body]
        self.blocks = blocks - (not once)
        if loop.level == "thread":
            self.threads.pop()
        if once:
            return [tree.assign(identifier, low), *body]
        target = ast.Name(identifier, ast.Store())
        out: ast.stmt = ast.For(target, tree.call("range", low, high), body or [ast.Pass()], [])
        if not outlined:
            return [out]
        helper = f"f{next(self.serial)}"
        return [tree.function(helper, [], [out]), ast.Expr(tree.call(helper))]

    def _store(self, stmt: Store) -> list[ast.stmt]:
        buffer = self.storage[stmt.access.tensor]
        at, value = self._place(stmt.access, stmt), self._expr(stmt.value, stmt)
        narrow = self.buffers[stmt.access.tensor].dtype == "f16"
        if stmt.accumulate is None:
            value = tree.call("half", value) if narrow else value
            return [tree.assign(tree.element(buffer, at), value)]
        if stmt.accumulate in ("+", "*") and not narrow:
            target = ast.Subscript(tree.name(buffer), at, ast.Store())
            return [ast.AugAssign(target, tree.operator(stmt.accumulate), value)]
        place = f"t{next(self.serial)}"
        old = tree.element(buffer, tree.name(place))
        new = _combine(stmt.accumulate, old, value)
        new = tree.call("half", new) if narrow else new
        return [tree.assign(place, at), tree.assign(old, new)]

    # -- accesses and values -----------------------------------------------------------------------
    def _place(self, access: Access, stmt: Stmt) -> ast.expr:
        """The flat offset, with the checks that intervals leave open."""
        buffer = self.buffers.get(access.tensor)
        if buffer is None:
            raise self._error(stmt, f"no buffer {access.tensor}")
        dims = [self._number(extent) for extent in access.dims]
        if len(dims) != len(access.index) or math.prod(dims) != self._number(buffer.elements):
            raise self._error(stmt, f"the view {dims} does not fit {buffer.name}")
        offset, checks, stride = Index({}), self._owner_checks(buffer, access, stmt), 1
        for index, extent in zip(reversed(access.index), reversed(dims), strict=True):
            offset, stride = offset + index * stride, stride * extent
            low, high = self._range(index)
            if low is None or high is None or low < 0 or high >= extent:
                inside = ("<=", self._index(index)), ("<", tree.number(extent))
                checks.append(tree.compare(tree.number(0), *inside))
        if not checks:
            return self._index(offset)
        site = tree.number(len(self.sites))
        self.sites.append((stmt, access))
        failure = tree.call("fail", site, *map(self._index, access.index))
        return ast.IfExp(tree.both(checks), self._index(offset), failure)

    def _owner_checks(self, buffer: Buffer, access: Access, stmt: Stmt) -> list[ast.expr]:
        """The first indices of a register are the numbers of the thread that touches it."""
        if buffer.memory != "register":
            return []
        own = buffer.thread_dims
        if own != len(self.threads):
            why = f"{buffer.name} has {own} thread dims inside {len(self.threads)} thread loops"
            raise self._error(stmt, why)
        if [self._number(d) for d in access.dims[:own]] != [
            self._number(d) for d in buffer.dims[:own]
        ]:
            raise self._error(stmt, f"the view of {buffer.name} changes its thread dims")
        return [
            tree.compare(self._index(index), ("==", self._index(sym(thread))))
            for index, thread in zip(access.index, self.threads, strict=False)
            if index != sym(thread)
        ]

    def _expr(self, expr: Expr, stmt: Stmt) -> ast.expr:
        def sub(e: Expr) -> ast.expr:
            return self._expr(e, stmt)

        match expr:
            case Const(value, dtype):
                return tree.number(int(value) if dtype == "i32" else float(value))
            case Scalar(index, dtype):
                whole = self._index(index)
                return whole if dtype == "i32" else tree.call("float", whole)
            case Load(access):
                place = self._place(access, stmt)
                return tree.element(self.storage[access.tensor], place)
            case Binary(op, left, right):
                return _combine(op, sub(left), sub(right))
            case Call(name, args):
                return tree.call(f"call_{name}", *map(sub, args))
            case Cast(to, value):
                if to == "i32":
                    return sub(value) if value.dtype == "i32" else tree.call("to_i32", sub(value))
                as_float = tree.call("float", sub(value)) if value.dtype == "i32" else sub(value)
                return tree.call("half", as_float) if to == "f16" else as_float
            case Select(op, left, right, yes, no):
                # Both values are computed, as on every target.
                pair = ast.Tuple([sub(no), sub(yes)], ast.Load())
                return ast.Subscript(pair, tree.compare(sub(left), (op, sub(right))), ast.Load())
            case Guard(conditions, value, otherwise):
                return ast.IfExp(self._condition(conditions), sub(value), sub(otherwise))
            case Param() | Reduce():
                raise self._error(stmt, f"{type(expr).__name__} does not belong in the loop IR")


def _combine(op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    match op:
        case "/":
            return tree.call("divide", left, right)
        case "max" | "min":
            return tree.call(f"{op}imum", left, right)
        case _:
            return tree.binary(op, left, right)


def _is_grid(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.level == "grid"
