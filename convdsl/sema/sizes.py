"""Numbers for sizes: from the shapes of inputs, by definitions, and all checks.

    bind_parameters -> solve_sizes -> complete_sizes -> instantiate

Everything is exact integer arithmetic, done before anything is allocated or divided.
"""

from __future__ import annotations

from collections.abc import Mapping

from convdsl.diagnostics import CdslError
from convdsl.ir.atoms import Sym
from convdsl.ir.index import Index
from convdsl.sema.checks import check_numbers
from convdsl.sema.clauses import check_clause
from convdsl.sema.integers import INT64, evaluate, names_of, show
from convdsl.sema.model import ResolvedOp
from convdsl.sema.names import quoted, unknown
from convdsl.sema.parameters import bind_parameters, check_parameters, integers_of
from convdsl.sema.shapes import Axis, bad_axis, inexact, input_axes, undetermined

__all__ = ["bind_parameters", "complete_sizes", "solve_sizes"]


def solve_sizes(
    op: ResolvedOp,
    parameters: Mapping[str, int | float],
    shapes: Mapping[str, tuple[int, ...]],
    given: Mapping[str, int] | None = None,
    *,
    partial: bool = False,
) -> dict[str, int]:
    """A number for every size on an input axis: given, or found from the shapes of present inputs.

    Defined sizes that are given are handed on, for `complete_sizes` to compare. With `partial`,
    sizes that nothing determines yet are left out.

    Raises:
        CdslError: E0301 for a failing clause over parameters, E0303 for a shape that does not fit,
            E0304 for a size that is not an integer or that nothing determines, E0309 for a wrong
            name in `given`, E0311 for a wrong name in `shapes`.
    """
    check_parameters(op, parameters)
    given = given or {}
    _check_given(op, given)
    known = integers_of(parameters)
    sizes = {name: int(given[name]) for name in op.input_sizes if name in given}
    open_axes = input_axes(op, shapes)
    progress = True
    while progress:
        progress, waiting = False, open_axes
        open_axes = []
        for axis in waiting:
            if _take(op, axis, known, sizes, shapes):
                progress = True
            else:
                open_axes.append(axis)
    missing = [name for name in op.input_sizes if name not in sizes]
    if missing and not partial:
        raise undetermined(op, missing, open_axes, {**known, **sizes}, shapes)
    return sizes | {name: given[name].__index__() for name, _ in op.defined if name in given}


def _take(
    op: ResolvedOp,
    axis: Axis,
    known: Mapping[str, int],
    sizes: dict[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> bool:
    """Use one axis: as a check when all its sizes are known, else for its one unknown size."""
    product, names = 1, []
    for factor in axis.factors:
        value = _factor(factor, known, sizes)
        if isinstance(value, str):
            names.append(value)
        else:
            product *= value
    if not names:
        if product != axis.extent:
            raise bad_axis(op, axis, {**known, **sizes}, shapes)
        return True
    name, power = names[0], len(names)
    if any(n != name for n in names):
        return False
    if product == 0:  # 0 * NAME says nothing about NAME
        if axis.extent:
            raise bad_axis(op, axis, {**known, **sizes}, shapes)
        return False
    quotient, rest = divmod(axis.extent, product)
    root = _root(quotient, power) if rest == 0 else None
    if root is None:
        raise inexact(op, axis, name, power, product, {**known, **sizes}, shapes)
    sizes[name] = root
    return True


def _factor(factor: Index, known: Mapping[str, int], sizes: Mapping[str, int]) -> int | str:
    """The number of a factor, or the name of its unknown size."""
    number = factor.as_int()
    if number is not None:
        return number
    atom = factor.terms[0][0][0]
    assert isinstance(atom, Sym)  # a factor of an input axis is an integer or one name
    if atom.name in known:
        return known[atom.name]
    return sizes.get(atom.name, atom.name)


def _root(value: int, power: int) -> int | None:
    """The exact root of a value, None when there is none."""
    if power == 1 or value in (0, 1):
        return value
    if value < 0:
        return None
    low, high = 1, 1 << (value.bit_length() // power + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**power < value:
            low = middle + 1
        else:
            high = middle
    return low if low**power == value else None


def _check_given(op: ResolvedOp, given: Mapping[str, int]) -> None:
    defined = dict(op.defined)
    for name, value in given.items():
        if name not in op.input_sizes and name not in defined:
            if name in {p.name for p in op.parameters}:
                raise CdslError(
                    "E0309",
                    f"`{name}` is a parameter of `{op.name}`, not a size",
                    help=f"parameters are given apart from sizes: `params={{{name!r}: ...}}`",
                )
            raise unknown(f"size of `{op.name}`:", name, [*op.input_sizes, *defined], None, "E0309")
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise CdslError("E0309", f"the size `{name}` must be an integer, not {value!r}")
        if not -INT64 <= value.__index__() < INT64:
            raise CdslError("E0307", f"the size `{name}` does not fit 64 bits")


def complete_sizes(
    op: ResolvedOp,
    parameters: Mapping[str, int | float],
    sizes: Mapping[str, int],
    *,
    partial: bool = False,
    absent: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """The sizes with the defined ones added, after all checks.

    A defined size may be given too and must then agree. With `partial`, input sizes may be missing;
    what depends on them is left out and not checked. `absent` inputs have no elements to count.

    Raises:
        CdslError: E0301 for a failing clause, E0305 for a negative size, E0307 for a number too
            large, E0308 for a divisor below 1, E0309 for wrong or missing names, E0310 for a range
            outside its axis.
    """
    check_parameters(op, parameters)
    _check_given(op, sizes)
    missing = [name for name in op.input_sizes if name not in sizes]
    if missing and not partial:
        raise CdslError("E0309", f"`{op.name}` needs a number for {quoted(missing)}")
    env = integers_of(parameters)
    for name in op.input_sizes:
        if name in sizes:
            env[name] = sizes[name].__index__()
            if env[name] < 0:
                raise CdslError("E0305", f"the size `{name}` is negative: {env[name]}")
    # Clauses over input sizes come first: they explain a bad definition better than its value does.
    clauses = list(op.checks)
    for chain in clauses:
        if all(n in env for n in names_of(chain)):
            check_clause(chain, env)
    before = set(env)
    for (name, _), chain in zip(op.defined, op.clauses, strict=True):
        formula = chain.operands[1]
        if all(n in env for n in names_of(chain) if n != name):
            env[name] = evaluate(formula, env)
            filled = f"{name} = {show(formula)} = {show(formula, env)} = {env[name]}"
            if env[name] < 0:
                raise CdslError(
                    "E0305", f"the size `{name}` is negative", chain.span, notes=(filled,)
                )
            if name in sizes and sizes[name] != env[name]:
                raise CdslError(
                    "E0309",
                    f"`{name}` is given as {sizes[name]}, but it is {env[name]}",
                    chain.span,
                    notes=(filled,),
                )
    for chain in clauses:
        names = names_of(chain)
        if any(n not in before for n in names) and all(n in env for n in names):
            check_clause(chain, env)
    check_numbers(op, env, absent)
    known = [*op.input_sizes, *(name for name, _ in op.defined)]
    return {name: env[name] for name in known if name in env}
