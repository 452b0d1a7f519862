"""Loops for one value computed by one thread: reductions become accumulators in registers.

Sums of floats go through a second accumulator: at most `FLUSH` terms are added up before the partial
sum is added to the total, which keeps the rounding error near that of a blocked sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Load,
    Pred,
    Reduce,
    Select,
    ValueType,
    Var,
    eq,
    ge,
    map_children,
    map_index,
)
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, modulo, sym
from convdsl.ir.interval import interval
from convdsl.ir.loop import Accumulate, Buffer, For, If, Stmt, Store
from convdsl.passes.names import Names
from convdsl.passes.phases import empty_value

FLUSH = 128
ACCUMULATE: dict[str, Accumulate] = {"sum": "+", "prod": "*", "max": "max", "min": "min"}


def most_parts(fewest: int, most: int) -> int:
    """In how many parts a sum of `fewest` to `most` terms may be taken and still be as good as blocked.

    An addition errs in proportion to the sum so far. So the variance of n equal terms, added up in p
    parts and then one part after the other, goes with p + n/p^2. A blocked sum has p = n/FLUSH; half
    as much again is allowed: 1.22 times its error.
    """
    # Of those counts the one that allows least.
    terms = max(1, fewest, min(round(FLUSH**1.5), most))
    return int(1.5 * (terms / FLUSH + FLUSH**2 / terms))


def identity(op: str, dtype: str) -> float | int:
    """The value that leaves others unchanged."""
    if dtype == "i32":
        return {"sum": 0, "prod": 1, "max": -(2**31), "min": 2**31 - 1}[op]
    return {"sum": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}[op]


@dataclass
class ThreadCode:
    """Collects the registers and statements that one thread runs; `threads` are its thread loops."""

    threads: tuple[Var, ...]
    names: Names
    locals: list[Buffer] = field(default_factory=list)

    def register(self, wanted: str, dtype: ValueType, dims: Sequence[int] = ()) -> Buffer:
        """A new register buffer, one set of `dims` for each thread."""
        lanes = tuple(v.high for v in self.threads)
        memory = tuple(const(d) for d in dims)
        made = Buffer(self.names.fresh(wanted), dtype, lanes + memory, "register", len(lanes))
        self.locals.append(made)
        return made

    def place(self, register: Buffer, index: Sequence[Index] = ()) -> Access:
        mine = tuple(sym(v.name) for v in self.threads)
        return Access(register.name, (*mine, *index), register.dims)

    def value(self, expr: Expr, out: list[Stmt]) -> Expr:
        """`expr` with reductions computed by statements added to `out`; equal ones only once."""
        done: dict[Reduce, Expr] = {}

        def visit(e: Expr) -> Expr:
            if isinstance(e, Reduce):
                if e not in done:
                    done[e] = self._reduce(e, out)
                return done[e]
            return map_children(e, visit)

        return visit(expr)

    def _reduce(self, r: Reduce, out: list[Stmt]) -> Expr:
        r = _without_units(r)
        total = self.register("acc", r.dtype)
        at = self.place(total)
        out.append(Store(at, Const(identity(r.op, r.dtype), r.dtype)))
        before: list[Stmt] = []
        body = self.value(r.body, before)
        if r.op == "sum" and r.dtype == "f32" and not _short(r.vars):
            out += self._blocked_sum(r, before, body, at)
            return Load(at, r.dtype)
        inner = [*before, Store(at, body, ACCUMULATE[r.op])]
        if r.otherwise is None:
            out += loops_around(r.vars, r.constraints, inner)
            return Load(at, r.dtype)
        hit = self.place(self.register("hit", "i32"))
        out.append(Store(hit, Const(0, "i32")))
        out += loops_around(r.vars, r.constraints, [*inner, Store(hit, Const(1, "i32"))])
        otherwise = self.value(empty_value(r), out)
        seen = Load(hit, "i32")
        return Select("!=", seen, Const(0, "i32"), Load(at, r.dtype), otherwise)

    def _blocked_sum(self, r: Reduce, before: list[Stmt], body: Expr, at: Access) -> list[Stmt]:
        part = self.place(self.register("part", "f32"))
        clear = Store(part, Const(0.0, "f32"))
        flush: tuple[Stmt, ...] = (Store(at, Load(part, "f32"), "+"), clear)
        inner = r.vars[-1]
        innermost: list[Stmt] = [*before, Store(part, body, "+")]
        own = [p for p in r.constraints if inner.name in p.index.free]
        rest = [p for p in r.constraints if p not in own]
        trips = _trips(inner)
        if trips is None or trips > FLUSH:
            block = Var(
                self.names.fresh(f"{inner.name}_block"), const(0), ceildiv(inner.extent, FLUSH)
            )
            start = inner.low + sym(block.name) * FLUSH
            run = loops_around(
                [Var(inner.name, start, minimum(start + FLUSH, inner.high))], own, innermost
            )
            between = If((ge(sym(block.name) - 1),), flush)
            step: list[Stmt] = [For(block, "serial", (between, *run))]
        else:
            step = loops_around([inner], own, innermost)
        if len(r.vars) > 1:
            outer = r.vars[-2]
            every = (
                maximum(1, floordiv(const(FLUSH), maximum(1, inner.extent)))
                if trips is None
                else const(max(1, FLUSH // max(1, trips)))
            )
            turn = modulo(sym(outer.name) - outer.low, every)
            step += flush if every == 1 else (If((eq(turn),), flush),)
        return [clear, *loops_around(r.vars[:-1], rest, step), *flush[:1]]


def loops_around(
    variables: Sequence[Var], conditions: Sequence[Pred], body: list[Stmt]
) -> list[Stmt]:
    """Serial loops around `body`, each condition tested as far outside as its names allow."""
    for at in range(len(variables), -1, -1):
        inner_names = {v.name for v in variables[:at]}
        last = variables[at - 1].name if at else None
        here = tuple(
            p for p in conditions
            if (last in p.index.free if last else not p.index.free & _names(variables))
            and p.index.free & _names(variables) <= inner_names
        )  # fmt: skip
        if here:
            body = [If(here, tuple(body))]
        if at:
            body = [For(variables[at - 1], "serial", tuple(body))]
    return body


def _names(variables: Sequence[Var]) -> set[str]:
    return {v.name for v in variables}


def _trips(var: Var) -> int | None:
    """An upper bound of the number of iterations, when one is known."""
    return interval(var.extent, {})[1] if not var.extent.free else None


def _short(variables: Sequence[Var]) -> bool:
    counts = [_trips(v) for v in variables]
    total = 1
    for count in counts:
        if count is None:
            return False
        total *= count
    return total <= FLUSH


def _without_units(r: Reduce) -> Reduce:
    """Loops of exactly one iteration replaced by their value."""
    values = {v.name: v.low for v in r.vars if v.extent == 1}
    if not values:
        return r
    kept = tuple(v for v in r.vars if v.name not in values)
    return map_reduce(replace(r, vars=kept), lambda i: i.substitute(values))


def map_reduce(r: Reduce, f: Callable[[Index], Index]) -> Reduce:
    mapped = map_index(r, f)
    assert isinstance(mapped, Reduce)
    return mapped
