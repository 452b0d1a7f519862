"""Loops and stores as text: what one invocation runs. `workgroup.py` puts barriers around."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.index_text import IndexText, Scope
from convdsl.backends.wgsl.lines import Block
from convdsl.backends.wgsl.memory import LANE, LANES, Memory, Place
from convdsl.backends.wgsl.value import Value
from convdsl.backends.wgsl.values import Values
from convdsl.backends.wgsl.vectors import as_branch, whole
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Access, Binary
from convdsl.ir.index import Index, sym
from convdsl.ir.loop import Accumulate, For, If, Let, Stmt, Store


class Statements:
    """Makes text of statements, one after the other, into `values.block`."""

    def __init__(self, env: Environment, index: IndexText, memory: Memory, values: Values) -> None:
        self.env, self.index, self.memory, self.values = env, index, memory, values
        self._whole: dict[int, bool] = {}

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case For(level="serial"):
                self.serial(stmt)
            case For(level="unroll"):
                self.unroll(stmt)
            case For(level="vector"):
                self._vector(stmt)
            case For(var, level):
                raise InternalError(f"a {level} loop over {var.name} inside a WGSL kernel")
            case Let():
                self.let(stmt)
            case If():
                self.branch(stmt)
            case Store():
                self._store(stmt)

    # -- blocks -----------------------------------------------------------------------------------
    def let(self, stmt: Let) -> None:
        """The value takes the place of the name; a part of it that is computed gets the name."""
        value = self.env.resolve(stmt.value)
        body, _ = self.index.depths.split(value)
        if body.terms:
            self.index.hints.setdefault(body, stmt.name)
        with self.env.bind(stmt.name, value):
            self.body(stmt.body)

    def branch(self, stmt: If) -> None:
        common, own = self.values.by_lane(stmt.conditions)
        if own:
            self._by_lane(stmt)
            return
        left = self.values.settle(common)
        if left is None:
            return
        if not left:
            self.body(stmt.body)
            return
        condition = self.values.condition(left)
        with self._block() as block:
            self.body(stmt.body)
        self.values.block.branch(condition, block)

    def _by_lane(self, stmt: Stmt) -> None:
        """The statement four times, outside of vector form."""
        lane, self.values.lane = self.values.lane, None
        if lane is None:
            raise InternalError("lanes outside a vector loop")
        for n in range(4):
            with self.env.bind(lane, n):
                self.statement(stmt)
        self.values.lane = lane

    def unroll(self, stmt: For) -> None:
        low, high = self.env.resolve(stmt.var.low), self.env.resolve(stmt.var.high)
        count = (high - low).as_int()
        if count is None:
            raise InternalError(f"unrolled loop over {stmt.var.name} in {low}..{high}")
        for n in range(count):
            with self.env.bind(stmt.var.name, low + n):
                self.body(stmt.body)

    def serial(self, stmt: For) -> None:
        low, high = self.env.resolve(stmt.var.low), self.env.resolve(stmt.var.high)
        count = (high - low).as_int()
        if count is not None and count <= 1:
            if count == 1:
                with self.env.bind(stmt.var.name, low):
                    self.body(stmt.body)
            return
        start = self.index.value(low, f"{stmt.var.name}_start")
        end = self.index.bound(high, f"{stmt.var.name}_end")
        name = self._loop_variable(stmt.var.name, low, high)
        scope = Scope()
        self.index.scopes.append(scope)
        with self._block(scope.block), self.env.bind(stmt.var.name, sym(name)):
            self.body(stmt.body)
        self.index.scopes.pop()
        self.values.block.nest(
            f"for (var {name}: i32 = {start}; {name} < {end}; {name}++)", scope.block
        )

    def _loop_variable(self, hint: str, low: Index, high: Index) -> str:
        name = self.index.names.fresh(hint)
        self.index.depths.of_name[name] = self.index.depth + 1
        self.index.ranges.bind(name, low, high)
        return name

    def _vector(self, stmt: For) -> None:
        if self.values.lane is not None:
            raise InternalError(f"vector loop over {stmt.var.name} inside another one")
        is_whole = self._whole.get(id(stmt))
        if is_whole is None:
            is_whole = self._whole[id(stmt)] = whole(stmt)
        if not is_whole:
            self.unroll(stmt)
            return
        self.values.lane = stmt.var.name
        with self.env.bind(stmt.var.name, sym(LANE)):
            self.body(stmt.body)
        self.values.lane = None

    @contextmanager
    def _block(self, block: Block | None = None) -> Iterator[Block]:
        """Lines go to this block inside the `with`."""
        outer, self.values.block = self.values.block, block if block is not None else Block()
        yield self.values.block
        self.values.block = outer

    # -- stores -----------------------------------------------------------------------------------
    def _store(self, stmt: Store) -> None:
        value = stmt.value
        branch = as_branch(stmt)
        if branch is not None:
            self.branch(branch)
            return
        if self.values.lane is not None:
            self._store_vector(stmt)
            return
        place = self.memory.place(stmt.access)
        product = _product(place, stmt)
        if product is not None:
            self._add(self._target(stmt.access), product, 1)
            return
        result = self.values.value(value)
        self._assign(place, self._target(stmt.access), result, stmt.accumulate)

    def _store_vector(self, stmt: Store) -> None:
        place = self.memory.place(stmt.access)
        target = self.memory.vector(stmt.access)
        if target is not None:
            product = _product(place, stmt)
            if product is not None:
                self._add(target, product, 4)
            else:
                self._assign(place, target, self.values.value(stmt.value), stmt.accumulate, 4)
            return
        result = self.values.value(stmt.value)
        if not (result.constant or result.text.isidentifier()):
            result = self.values.named(result, "four" if result.width == 4 else "value")
        lane, self.values.lane = self.values.lane, None
        if lane is None:
            raise InternalError("a vector store outside a vector loop")
        for n in range(4):
            part = result if result.width == 1 else Value(f"{result.text}.{LANES[n]}", result.dtype)
            with self.env.bind(lane, n):
                self._assign(place, self._target(stmt.access), part, stmt.accumulate)
        self.values.lane = lane

    def _add(self, target: str, product: Binary, width: int) -> None:
        """Add a product to an f32; one with a constant 0, 1 or -1 is no multiplication."""
        unit = self.values.unit(product)
        if unit is None:
            self._line(f"{target} = {self.values.fma(product, target, width)};")
        elif unit[0] != 0.0:
            term = self.values.value(unit[1])
            text = term.splat() if width == 4 else term.text
            self._line(f"{target} {'+' if unit[0] > 0 else '-'}= {text};")

    def _target(self, access: Access) -> str:
        """One element, to be assigned: never a part of a vec4 that other threads write too."""
        place = self.memory.place(access)
        if place.form.vector and place.buffer.memory != "register":
            raise InternalError(f"a part of a vec4 of {access.tensor} would be stored")
        return self.memory.element(access)

    def _assign(
        self, place: Place, target: str, value: Value, accumulate: Accumulate | None, width: int = 1
    ) -> None:
        text = value.splat() if width == 4 else value.text
        if place.buffer.dtype == "f16":
            self._line(f"{target} = {self._half(place, target, value, accumulate, width)};")
        elif accumulate is None:
            self._line(f"{target} = {text};")
        elif accumulate in ("+", "*"):
            self._line(f"{target} {accumulate}= {text};")
        else:
            self._line(f"{target} = {accumulate}({target}, {text});")

    def _half(
        self, place: Place, target: str, value: Value, accumulate: Accumulate | None, width: int
    ) -> str:
        """What is stored in an f16 buffer: the result in f32, rounded once."""
        old = (
            target if not place.half else f"vec4<f32>({target})" if width == 4 else f"f32({target})"
        )
        text = value.splat() if width == 4 else value.text
        if accumulate in ("+", "*"):
            text = f"{old} {accumulate} {value.within(2) if value.width == width else text}"
        elif accumulate is not None:
            text = f"{accumulate}({old}, {text})"
        text = f"{self.values.round_half(width)}({text})"
        return f"{place.element_type}({text})" if place.half else text

    def _line(self, text: str) -> None:
        self.values.block.line(text)


def _product(place: Place, stmt: Store) -> Binary | None:
    """The product that the store adds in f32, where `fma` does both."""
    value = stmt.value
    if stmt.accumulate != "+" or not isinstance(value, Binary) or value.op != "*":
        return None
    return value if value.dtype == place.buffer.dtype == "f32" else None
