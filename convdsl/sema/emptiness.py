"""A max or min over no points has no value: prove that this cannot happen, or name such a point.

For each max or min without `else`, the points at which it is taken (the statement's indices and
those of reductions around it) are compared, as integer sets, with those at which it has something
to take. Sizes without a number are parameters, bounded by the affine clauses of `where`.

What is no integer set waits for numbers: a product of sizes that have none is never linearised, so
a reduction over `groups*C` points is decided only when both are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System
from convdsl.ir.expr import Expr, Pred, Reduce, Var, children, eq, ge
from convdsl.ir.index import Index, sym
from convdsl.ir.sets import NotAffineError, Parameters, TooHardError, domain_set, limited
from convdsl.sema.declarations import read_head
from convdsl.sema.integers import to_index
from convdsl.sema.model import ResolvedOp
from convdsl.sema.parameters import integers_of
from convdsl.sema.places import place_of
from convdsl.syntax import ast

_OPERATIONS = 20_000_000  # of isl: well under a second


@dataclass(frozen=True, slots=True)
class _Site:
    """A max or min without `else`, with the variables and conditions around it."""

    tensor: str
    reduce: Reduce
    variables: tuple[Var, ...]
    conditions: tuple[Pred, ...]


def check_reductions(op: ResolvedOp, parameters: Mapping[str, int | float], system: System) -> None:
    """Check every max and min of an instantiated system.

    `parameters` are those the system was instantiated with.

    Raises:
        CdslError: E0306 with a point, and the sizes that have no number, at which one is empty.
    """
    sites = [
        site
        for equation in system.equations
        for piece in equation.pieces
        for site in _sites(equation.tensor, piece.value, piece.vars, piece.guards)
    ]
    if not sites:
        return
    context = _context(op, parameters, system)
    for site in sites:
        try:
            found = _counterexample(site, context)
        except (NotAffineError, TooHardError):
            continue
        if found is not None:
            raise _error(op, site, found, system)


def _sites(
    tensor: str, expr: Expr, variables: tuple[Var, ...], conditions: tuple[Pred, ...]
) -> Iterator[_Site]:
    if isinstance(expr, Reduce):
        if expr.op in ("max", "min") and expr.otherwise is None and not _plain(expr):
            yield _Site(tensor, expr, variables, conditions)
        inside = (*variables, *expr.vars)
        yield from _sites(tensor, expr.body, inside, (*conditions, *expr.constraints))
        if expr.otherwise is not None:
            yield from _sites(tensor, expr.otherwise, variables, conditions)
        return
    for child in children(expr):
        yield from _sites(tensor, child, variables, conditions)


def _plain(reduce: Reduce) -> bool:
    """Whether it has no condition and only ranges that are numbers and not empty."""
    extents = [v.extent.as_int() for v in reduce.vars]
    return not reduce.constraints and all(e is not None and e > 0 for e in extents)


def _context(
    op: ResolvedOp, parameters: Mapping[str, int | float], system: System
) -> tuple[Pred, ...]:
    """What is known of the sizes that have no number."""
    head = read_head(op.syntax)
    values: dict[str, Index | int] = dict(integers_of(parameters))
    out = [ge(sym(name)) for name in _symbols(system)]
    out += [eq(sym(name) - formula) for name, formula in system.definitions]
    for chain in op.checks:
        sides = [to_index(o, head.integer).substitute(values) for o in chain.operands]
        for compare, left, right in zip(chain.ops, sides, sides[1:], strict=False):
            pred = _condition(compare, left, right)
            if pred.index.free <= set(_symbols(system)):
                out.append(pred)
    return tuple(out)


def _symbols(system: System) -> tuple[str, ...]:
    return (*system.sizes, *(name for name, _ in system.definitions))


def _condition(compare: ast.Compare, left: Index, right: Index) -> Pred:
    match compare:
        case "==":
            return eq(left - right)
        case "!=":
            return Pred("ne", left - right)
        case "<=":
            return ge(right - left)
        case "<":
            return ge(right - left - 1)
        case ">=":
            return ge(left - right)
        case ">":
            return ge(left - right - 1)


def _counterexample(site: _Site, context: tuple[Pred, ...]) -> dict[str, int] | None:
    """A point, with numbers for the symbols, at which the reduction is over nothing.

    Raises:
        NotAffineError: a condition is no integer set while sizes have no numbers.
        TooHardError: no answer within `_OPERATIONS`.
    """
    import islpy as isl

    parameters = Parameters()
    around = (*site.conditions, *context)
    inside = (*around, *site.reduce.constraints)
    dim, first, count = isl.dim_type.set, len(site.variables), len(site.reduce.vars)
    # The larger set first: then both declare the same parameters.
    full = domain_set((*site.variables, *site.reduce.vars), inside, parameters)
    taken = domain_set(site.variables, around, parameters)
    with limited(_OPERATIONS):
        empty = taken.subtract(full.project_out(dim, first, count))
        if empty.is_empty():
            return None
        if parameters.products:  # a product stands for any number, also for one it cannot be
            raise NotAffineError(", ".join(str(Index({m: 1})) for m in parameters.products))
        names = list(parameters.sizes)
        # The least point, sizes first: all are bounded below, and small numbers explain best.
        moved = empty.move_dims(dim, 0, isl.dim_type.param, 0, len(names))
        least = moved.lexmin().sample_point()
    values = [least.get_coordinate_val(dim, i).to_python() for i in range(len(names) + first)]
    return dict(zip((*names, *(v.name for v in site.variables)), values, strict=True))


def _error(op: ResolvedOp, site: _Site, found: Mapping[str, int], system: System) -> CdslError:
    reduce = site.reduce
    bound = ", ".join(v.name for v in reduce.vars)
    symbols = _symbols(system)
    at = ", ".join(f"{n} = {v}" for n, v in found.items() if n not in symbols)
    sizes = ", ".join(f"{n} = {v}" for n, v in found.items() if n in symbols)
    ranges = ", ".join(f"{v.name} in {v.low}..{v.high}" for v in reduce.vars)
    relations = ", ".join(f"{p.index} == 0" for p in reduce.constraints)
    ranged = {name for v in reduce.vars for name in (v.high - v.low).free}
    zeros = [n for n in symbols if found.get(n) == 0]
    zero = next((n for n in zeros if n in ranged), next(iter(zeros), None))
    return CdslError(
        "E0306",
        f"`{reduce.op}[{bound}]` can be over no points" + (f": at {at}" if at else ""),
        place_of(op, site.tensor, reduce),
        notes=tuple(
            note
            for note in (
                f"with {sizes}" if sizes else "",
                f"no point of {ranges}" + (f" has {relations}" if relations else ""),
            )
            if note
        ),
        help=f"say what it is then, `{reduce.op}[...] e else v`,\n"
        "or exclude it in `where`" + (f", like `{zero} >= 1`" if zero else ""),
    )
