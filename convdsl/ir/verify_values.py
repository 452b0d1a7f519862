"""What makes a value or an access well formed, in both IRs: each function gives a fault or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from convdsl.ir.expr import (
    FUNCTIONS,
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Select,
    children,
)
from convdsl.ir.index import Index, product

# Functions of two values, and those that also take integers.
_BINARY_CALLS = ("leaky_relu", "pow")
_INTEGER_CALLS = ("abs", "relu")


def value_dtype(dtype: str) -> str:
    """The dtype of a value read from storage: f16 widens."""
    return "i32" if dtype == "i32" else "f32"


def value_fault(expr: Expr, dtypes: Mapping[str, str]) -> str | None:
    """What is wrong with the dtypes in a value; `dtypes` are those of the tensors."""
    for child in children(expr):
        fault = value_fault(child, dtypes)
        if fault is not None:
            return fault
    return _node_fault(expr, dtypes)


def _node_fault(expr: Expr, dtypes: Mapping[str, str]) -> str | None:
    match expr:
        case Const(value, "i32") if value != int(value):
            return f"the integer constant {value}"
        case Load(access, dtype) if access.tensor not in dtypes:
            return f"{access.tensor} is not declared"
        case Load(access, dtype) if dtype != value_dtype(dtypes[access.tensor]):
            return f"{access.tensor} is {dtypes[access.tensor]} and read as {dtype}"
        case Binary("/", left) if left.dtype == "i32":
            return "a division of integers"
        case Binary(op, left, right) if left.dtype != right.dtype:
            return f"{left.dtype} {op} {right.dtype}"
        case Call(name) if name not in FUNCTIONS:
            return f"no function {name}"
        case Call(name, args) if len(args) != (2 if name in _BINARY_CALLS else 1):
            return f"{name} with {len(args)} arguments"
        case Call(name, args) if name not in _INTEGER_CALLS and any(a.dtype != "f32" for a in args):
            return f"{name} of an integer"
        case Cast(to) if to not in ("f32", "f16", "i32"):
            return f"a cast to {to}"
        case Select(_, left, right, yes, no) if (left.dtype, yes.dtype) != (right.dtype, no.dtype):
            return "a select of different dtypes"
        case Guard(_, value, otherwise) if value.dtype != otherwise.dtype:
            return "a guard of different dtypes"
        case _:
            return None


def constant_fault(
    values: Sequence[Fraction], elements: Index, dtype: str, constant: bool
) -> str | None:
    """What is wrong with the values of storage; `constant`: whether it is to have any."""
    if not constant:
        return "has values and is no constant" if values else None
    if dtype != "f32":
        return f"is a constant of {dtype}"
    return None if elements == len(values) else f"has {len(values)} values for {elements} elements"


def access_fault(
    access: Access, dims: tuple[Index, ...], known: Callable[[Index], Index]
) -> str | None:
    """What is wrong with an access to storage of these dims; `known` puts in the definitions."""
    if len(access.index) != len(access.dims):
        return f"{len(access.index)} indices for {len(access.dims)} dims of {access.tensor}"
    if access.dims == dims:
        return None
    # A difference that is not a constant is not known to be wrong: sizes may be related.
    difference = known(product(access.dims) - product(dims)).as_int()
    if difference is not None and difference != 0:
        return f"the view of {access.tensor} has {difference:+} elements more than its storage"
    return None
