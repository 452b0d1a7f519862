"""Numbers for parameters, and the `where` clauses that need nothing else."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping

from convdsl.diagnostics import CdslError
from convdsl.sema.clauses import check_clause
from convdsl.sema.integers import INT64, names_of
from convdsl.sema.model import Parameter, ResolvedOp
from convdsl.sema.names import quoted, unknown


def bind_parameters(op: ResolvedOp, params: Mapping[str, int | float]) -> dict[str, int | float]:
    """A number for every parameter: the given one, else the default.

    Raises:
        CdslError: E0302 for an unknown or missing name or a value of the wrong type, E0307 for an
            integer past 64 bits, E0301 for a `where` clause over parameters that does not hold.
    """
    known = {p.name: p for p in op.parameters}
    for name in params:
        if name not in known:
            if name in op.input_sizes or name in dict(op.defined):
                raise CdslError(
                    "E0302",
                    f"`{name}` is a size of `{op.name}`, not a parameter",
                    help=f"sizes are given apart from parameters: `sizes={{{name!r}: ...}}`",
                )
            raise unknown(f"parameter of `{op.name}`:", name, known, None, "E0302")
    bound: dict[str, int | float] = {}
    missing = []
    for name, parameter in known.items():
        if name in params:
            bound[name] = _value(op, parameter, params[name])
        elif parameter.default is not None:
            bound[name] = parameter.default
        else:
            missing.append(name)
    if missing:
        raise CdslError(
            "E0302",
            f"`{op.name}` needs a value for {quoted(missing)}",
            known[missing[0]].span,
            help=f"give it: `-D {missing[0]}=...`, or `params={{{missing[0]!r}: ...}}` in Python",
        )
    check_parameters(op, bound)
    return bound


def check_parameters(op: ResolvedOp, parameters: Mapping[str, int | float]) -> None:
    """Check the clauses that need parameters only.

    Raises:
        CdslError: E0301, or what evaluating a clause raises.
    """
    numbers = integers_of(parameters)
    for chain in op.checks:
        if all(name in numbers for name in names_of(chain)):
            check_clause(chain, numbers)


def integers_of(parameters: Mapping[str, int | float]) -> dict[str, int]:
    """The int parameters among all parameters."""
    return {n: v for n, v in parameters.items() if isinstance(v, int)}


def _value(op: ResolvedOp, parameter: Parameter, value: object) -> int | float:
    return _integer(parameter, value) if parameter.kind == "int" else _float(parameter, value)


def _integer(parameter: Parameter, value: object) -> int:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise _wrong_type(parameter, value, "an integer")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise _wrong_type(parameter, value, "an integer") from None
    if not -INT64 <= number < INT64:
        raise CdslError("E0307", f"`{parameter.name}` does not fit 64 bits", parameter.span)
    return number


def _float(parameter: Parameter, value: object) -> float:
    if isinstance(value, bool | str | bytes) or type(value).__name__ in ("bool_", "bool"):
        raise _wrong_type(parameter, value, "a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise _wrong_type(parameter, value, "a number") from None
    if not math.isfinite(number):
        raise CdslError(
            "E0302",
            f"`{parameter.name}` is {number}; a parameter must be finite",
            parameter.span,
            help="pass infinities and NaN in tensors",
        )
    return number


def _wrong_type(parameter: Parameter, value: object, wanted: str) -> CdslError:
    shown = repr(value)
    return CdslError(
        "E0302",
        f"`{parameter.name}` must be {wanted}, not {type(value).__name__}",
        parameter.span,
        notes=(f"{parameter.name} = {shown if len(shown) <= 60 else shown[:57] + '...'}",),
    )
