"""Lower a contraction to a tiled matrix product: grid tiles, workgroup staging, register tiles.

    for batch, m tiles, n tiles                          grid
      for taps, k tiles                                  serial
        stage a[k, m] and b[k, n] in workgroup memory    all threads, zero where a condition fails
        part[rows, columns] += a[k, rows] * b[k, columns]
      acc += part                                        at least every `FLUSH` terms
    result[...] = epilogue(acc)                          guarded at the edge

Edges are handled by reading zeros and by guards at the store, so one text serves all sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Var,
    ge,
    loads,
    map_access,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, ceildiv, const, floordiv, minimum, modulo, product, sym
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, Level, Stmt, Store, nest
from convdsl.passes.contraction import Contraction, Operand
from convdsl.passes.names import Names
from convdsl.passes.phases import replace_reduction
from convdsl.passes.reduce_loops import FLUSH
from convdsl.passes.tiles import Tiles

VECTOR = 4
_Value = Callable[[Callable[[Buffer], Access]], Expr]
_HOLE = Load(Access("<contraction>", (), ()), "f32")


def _zero(_: Callable[[Buffer], Access]) -> Expr:
    return Const(0.0, "f32")


def lower_gemm(
    name: str, gemm: Contraction, tiles: Tiles, taken: frozenset[str] = frozenset()
) -> Kernel:
    """The kernel of one contraction with the given tiles; `taken` as for `lower_gather`."""
    return _Builder(gemm, tiles, taken).kernel(name)


class _Builder:
    def __init__(self, gemm: Contraction, tiles: Tiles, taken: frozenset[str]) -> None:
        self.gemm = gemm
        self.tiles = tiles
        bound = {v.name for e in walk(gemm.piece.value) if isinstance(e, Reduce) for v in e.vars}
        self.names = names = Names({v.name for v in gemm.piece.vars} | bound | taken)
        self.tile_k, self.taps = _split_k(gemm.reduction)
        self.row_tile, self.column_tile = names.fresh("m_tile"), names.fresh("n_tile")
        rows, columns = tiles.m // tiles.rows, tiles.n // tiles.columns
        self.lanes = (
            Var(names.fresh("ty"), const(0), const(rows)),
            Var(names.fresh("tx"), const(0), const(columns)),
        )
        ty, tx = (sym(v.name) for v in self.lanes)
        self.thread = ty * columns + tx
        self.threads = rows * columns
        self.step = names.fresh("k_tile")
        lane_dims = (const(rows), const(columns))

        def register(wanted: str, *dims: int) -> Buffer:
            all_dims = lane_dims + tuple(const(d) for d in dims)
            return Buffer(names.fresh(wanted), "f32", all_dims, "register", 2)

        def workgroup(wanted: str, width: int) -> Buffer:
            return Buffer(names.fresh(wanted), "f32", (const(tiles.k), const(width)), "workgroup")

        self.a_tile, self.b_tile = workgroup("a_tile", tiles.m), workgroup("b_tile", tiles.n)
        self.acc = register("acc", tiles.rows, tiles.columns)
        self.part = register("part", tiles.rows, tiles.columns)
        self.a_row, self.b_row = register("a_row", tiles.rows), register("b_row", tiles.columns)

    # -- the kernel -------------------------------------------------------------------------------
    def kernel(self, name: str) -> Kernel:
        gemm, tiles = self.gemm, self.tiles
        m, n = (product(v.extent for v in group) for group in (gemm.m, gemm.n))
        body: tuple[Stmt, ...] = (
            self._on_tile([self._store(self.acc, _zero), self._store(self.part, _zero)]),
            *self._reduction(),
            self._on_threads(self._results(m, n)),
        )
        loops: list[tuple[Var, Level]] = []
        for var in gemm.batch:
            grid = var.name if var.low == 0 else self.names.fresh(f"{var.name}_at")
            loops.append((Var(grid, const(0), var.extent), "grid"))
            if var.low != 0:
                body = (Let(var.name, sym(grid) + var.low, body),)
        loops.append((Var(self.row_tile, const(0), ceildiv(m, tiles.m)), "grid"))
        loops.append((Var(self.column_tile, const(0), ceildiv(n, tiles.n)), "grid"))
        local = (self.a_tile, self.b_tile, self.acc, self.part, self.a_row, self.b_row)
        return Kernel(
            name, local, nest(loops, body), f"{gemm.piece.origin}: tiled product, {tiles}"
        )

    def _reduction(self) -> tuple[Stmt, ...]:
        tiles, k = self.tiles, self.tile_k
        flush = self._on_tile(
            [self._store(self.acc, lambda at: Load(at(self.part), "f32"), accumulate=True),
             self._store(self.part, _zero)]
        )  # fmt: skip
        count = ceildiv(k.extent, tiles.k)
        block = FLUSH // tiles.k
        step = (*self._stage(), self._multiply())
        known = count.as_int()
        if known is not None and known <= block:
            loop = For(Var(self.step, const(0), count), "serial", step)
            body: tuple[Stmt, ...] = (loop, flush)
        else:
            blocks = Var(self.names.fresh("k_block"), const(0), ceildiv(count, block))
            first = sym(blocks.name) * block
            loop = For(Var(self.step, first, minimum(first + block, count)), "serial", step)
            body = (For(blocks, "serial", (loop, flush)),)
        return nest([(v, "serial") for v in self.taps], body)

    # -- staging ----------------------------------------------------------------------------------
    def _stage(self) -> tuple[Stmt, ...]:
        gemm, tiles = self.gemm, self.tiles
        return (
            self._stage_one(gemm.a, gemm.m, self.a_tile, self.row_tile, tiles.m),
            self._stage_one(gemm.b, gemm.n, self.b_tile, self.column_tile, tiles.n),
        )

    def _stage_one(
        self, operand: Operand, group: tuple[Var, ...], tile: Buffer, at: str, width: int
    ) -> Stmt:
        """Each thread reads vectors of four neighbours along m (or n) into workgroup memory."""
        tiles, k = self.tiles, self.tile_k
        vectors = width // VECTOR
        each = ceildiv(const(tiles.k * vectors), self.threads).as_int() or 1
        u, v = self.names.fresh("u"), self.names.fresh("v")
        place = sym(u) * self.threads + self.thread
        if _runs_along(operand, k.name, group):
            kk, quad = modulo(place, const(tiles.k)), floordiv(place, const(tiles.k))
        else:
            kk, quad = floordiv(place, const(vectors)), modulo(place, const(vectors))
        digits = _digits(sym(at) * vectors + quad, sym(v), group)
        values = digits | {k.name: sym(self.step) * tiles.k + kk + k.low}
        extent = product(g.extent for g in group)
        conditions = [Pred(p.kind, p.index.substitute(values)) for p in operand.conditions]
        if not _divides(tiles.k, k.extent):
            conditions.insert(0, ge(k.high - 1 - values[k.name]))
        if not _divides(width, extent):
            conditions.insert(0, ge(extent - 1 - (sym(at) * width + quad * VECTOR + sym(v))))
        value = map_index(operand.value, lambda i: i.substitute(values))
        if conditions:
            value = Guard(tuple(conditions), value, Const(0.0, "f32"))
        target = Access(tile.name, (kk, quad * VECTOR + sym(v)), tile.dims)
        body: tuple[Stmt, ...] = (Store(target, value),)
        body = (For(Var(v, const(0), const(VECTOR)), "vector", body),)
        if (tiles.k * vectors) % self.threads:
            body = (If((ge(const(tiles.k * vectors - 1) - place),), body),)
        return self._on_threads(nest([(Var(u, const(0), const(each)), "unroll")], body))

    # -- arithmetic -------------------------------------------------------------------------------
    def _multiply(self) -> Stmt:
        tiles = self.tiles
        kk = self.names.fresh("kk")
        ty, tx = (sym(v.name) for v in self.lanes)
        rows, columns = (v.high for v in self.lanes)
        i, j, v = (self.names.fresh(x) for x in ("i", "j", "v"))

        def fetch(row: Buffer, tile: Buffer, lane: Index, lanes: Index, length: int) -> Stmt:
            source = Access(
                tile.name, (sym(kk), (sym(i) * lanes + lane) * VECTOR + sym(v)), tile.dims
            )
            target = Access(row.name, (ty, tx, sym(i) * VECTOR + sym(v)), row.dims)
            return nest(
                [(Var(i, const(0), const(length // VECTOR)), "unroll"),
                 (Var(v, const(0), const(VECTOR)), "vector")],
                (Store(target, Load(source, "f32")),),
            )[0]  # fmt: skip

        a = Load(Access(self.a_row.name, (ty, tx, sym(i)), self.a_row.dims), "f32")
        lane = sym(j) * VECTOR + sym(v)
        b = Load(Access(self.b_row.name, (ty, tx, lane), self.b_row.dims), "f32")
        into = Access(self.part.name, (ty, tx, sym(i), lane), self.part.dims)
        update = nest(
            [(Var(i, const(0), const(tiles.rows)), "unroll"),
             (Var(j, const(0), const(tiles.columns // VECTOR)), "unroll"),
             (Var(v, const(0), const(VECTOR)), "vector")],
            (Store(into, Binary("*", a, b), "+"),),
        )  # fmt: skip
        body = (
            fetch(self.a_row, self.a_tile, ty, rows, tiles.rows),
            fetch(self.b_row, self.b_tile, tx, columns, tiles.columns),
            *update,
        )
        return self._on_threads((For(Var(kk, const(0), const(tiles.k)), "serial", body),))

    # -- results ----------------------------------------------------------------------------------
    def _results(self, m: Index, n: Index) -> tuple[Stmt, ...]:
        gemm, tiles = self.gemm, self.tiles
        ty, tx = (sym(v.name) for v in self.lanes)
        rows, columns = (v.high for v in self.lanes)
        i, j, iv, jv = (self.names.fresh(x) for x in ("i", "j", "iv", "jv"))
        row_quad = sym(self.row_tile) * (tiles.m // VECTOR) + sym(i) * rows + ty
        column_quad = sym(self.column_tile) * (tiles.n // VECTOR) + sym(j) * columns + tx
        values = _digits(row_quad, sym(iv), gemm.m) | _digits(column_quad, sym(jv), gemm.n)

        def put(index: Index) -> Index:
            return index.substitute(values)

        lane = (ty, tx, sym(i) * VECTOR + sym(iv), sym(j) * VECTOR + sym(jv))
        acc = Load(Access(self.acc.name, lane, self.acc.dims), "f32")
        outside = replace_reduction(gemm.piece.value, lambda _: _HOLE)
        value = _fill(map_index(outside, put), acc)
        body: tuple[Stmt, ...] = (Store(map_access(gemm.piece.access, put), value),)
        conditions = [Pred(p.kind, put(p.index)) for p in gemm.piece.guards]
        if not _divides(tiles.n, n):
            conditions.insert(0, ge(n - 1 - (column_quad * VECTOR + sym(jv))))
        if not _divides(tiles.m, m):
            conditions.insert(0, ge(m - 1 - (row_quad * VECTOR + sym(iv))))
        if conditions:
            body = (If(tuple(conditions), body),)
        return nest(
            [(Var(i, const(0), const(tiles.rows // VECTOR)), "unroll"),
             (Var(iv, const(0), const(VECTOR)), "unroll"),
             (Var(j, const(0), const(tiles.columns // VECTOR)), "unroll"),
             (Var(jv, const(0), const(VECTOR)), "vector")],
            body,
        )  # fmt: skip

    # -- helpers ----------------------------------------------------------------------------------
    def _on_threads(self, body: tuple[Stmt, ...]) -> Stmt:
        return nest([(lane, "thread") for lane in self.lanes], body)[0]

    def _on_tile(self, stores: list[Stmt]) -> Stmt:
        return self._on_threads(tuple(stores))

    def _store(self, buffer: Buffer, value: _Value, accumulate: bool = False) -> Stmt:
        """`buffer[all of the thread's tile] = value`."""
        i, j, v = (self.names.fresh(x) for x in ("i", "j", "v"))
        ty, tx = (sym(lane.name) for lane in self.lanes)
        index = (ty, tx, sym(i), sym(j) * VECTOR + sym(v))
        target = Access(buffer.name, index, buffer.dims)
        source = value(lambda b: Access(b.name, index, b.dims))
        return nest(
            [(Var(i, const(0), const(self.tiles.rows)), "unroll"),
             (Var(j, const(0), const(self.tiles.columns // VECTOR)), "unroll"),
             (Var(v, const(0), const(VECTOR)), "vector")],
            (Store(target, source, "+" if accumulate else None),),
        )[0]  # fmt: skip


def _fill(value: Expr, by: Expr) -> Expr:
    return by if value == _HOLE else map_children(value, lambda e: _fill(e, by))


def _split_k(reduction: Reduce) -> tuple[Var, tuple[Var, ...]]:
    """The reduced variable that is tiled, and the taps looped around it: the longest one is tiled.

    With unknown sizes it is the first that no condition mentions: channels, not taps.
    """
    variables = reduction.vars
    if any(v.extent.as_int() is None for v in variables):
        tested = {n for p in reduction.constraints for n in p.index.free}
        chosen = next((v for v in variables if v.name not in tested), variables[0])
    else:
        chosen = max(variables, key=lambda v: v.extent.as_int() or 0)
    return chosen, tuple(v for v in variables if v is not chosen)


def _divides(tile: int, extent: Index) -> bool:
    known = extent.as_int()
    return known is not None and known % tile == 0


def _digits(quad: Index, lane: Index, group: tuple[Var, ...]) -> dict[str, Index]:
    """The variables of a merged dimension at position `quad*4 + lane`, the last one fastest."""
    out: dict[str, Index] = {}
    rest, within = quad * VECTOR + lane, True
    for at in reversed(range(len(group))):
        var, extent = group[at], group[at].extent
        known = extent.as_int()
        if at == 0:
            digit = rest
        elif within and known is not None and known % VECTOR == 0:
            # Four neighbours share every slower digit.
            digit = modulo(quad, const(known // VECTOR)) * VECTOR + lane
            rest = floordiv(quad, const(known // VECTOR))
        else:
            digit, rest = modulo(rest, extent), floordiv(rest, extent)
        within = False
        out[var.name] = digit + var.low
    return out


def _runs_along(operand: Operand, k: str, group: tuple[Var, ...]) -> bool:
    """Whether neighbours in memory lie along k rather than along the merged dimension."""
    for load in loads(operand.value):
        last = load.access.index[-1] if load.access.index else const(0)
        if k in last.free and not any(v.name in last.free for v in group):
            return True
    return False
