"""The arrays that `convdsl run` runs on: files, or random numbers of the shapes that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from convdsl.cli.options import closest, names_of
from convdsl.diagnostics import CdslError
from convdsl.sema.sizes import complete_sizes, solve_sizes
from convdsl.sema.without import without

if TYPE_CHECKING:
    from convdsl.ir.equation import Tensor
    from convdsl.sema.model import ResolvedOp

Array = npt.NDArray[Any]


def named_files(values: tuple[str, ...]) -> dict[str, str]:
    """`--input NAME=FILE` by name."""
    found: dict[str, str] = {}
    for text in values:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            raise click.BadParameter(f"'{text[:60]}' is not NAME=FILE, like x=x.npy.")
        if name in found:
            raise click.BadParameter(f"'{name}' is given twice.")
        found[name] = file
    return found


def random_names(values: tuple[str, ...], files: Mapping[str, str]) -> list[str]:
    """`--random a,b` as names."""
    names = names_of(values, "--random")
    for name in names:
        if name in files:
            raise click.BadParameter(f"'{name}' is given twice.")
    return names


def gather(
    op: ResolvedOp,
    params: Mapping[str, int | float],
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array],
    random: list[str],
    seed: int,
) -> dict[str, Array]:
    """All arrays, random ones made; every size and clause checked before one is.

    Raises:
        CdslError: E0311 for inputs that are unknown or missing, E0365 for a random input whose
            shape is not known, and what does not fit.
    """
    tensors = {t.name: t for t in op.inputs}
    for name in (*arrays, *random):
        if name not in tensors:
            close = closest(name, tensors)
            raise CdslError(
                "E0311",
                f"`{op.name}` has no input `{name}`",
                notes=(f"its inputs: {', '.join(tensors)}",),
                help=f"did you mean `{close}`?" if close else None,
            )
    for tensor in op.inputs:
        if tensor.default is None and tensor.name not in arrays and tensor.name not in random:
            raise CdslError(
                "E0311",
                f"the input `{tensor.name}` is missing",
                op.declaration(tensor.name).span,
                help=f"give it: `--input {tensor.name}=FILE.npy`, or `--random {tensor.name}`",
            )
    absent = frozenset(tensors) - arrays.keys() - set(random)
    op = without(op, absent.union(random))  # what has no shape yet says nothing of sizes
    solved = solved_sizes(op, params, sizes, arrays, random)
    solved = complete_sizes(op, params, solved, absent=absent)
    values = {**{n: v for n, v in params.items() if isinstance(v, int)}, **solved}
    generator = np.random.default_rng(seed)
    made = {
        t.name: _random(t, tuple(int(e.evaluate(values)) for e in t.shape), generator)
        for t in op.inputs
        if t.name in random
    }
    return {t.name: {**arrays, **made}[t.name] for t in op.inputs if t.name not in absent}


def solved_sizes(
    op: ResolvedOp,
    params: Mapping[str, int | float],
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array],
    random: Sequence[str],
) -> dict[str, int]:
    """A number for every size of the inputs, some of which have arrays and others are random.

    Raises:
        CdslError: E0365 for a size that only random inputs have, and what does not fit.
    """
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        return solve_sizes(op, params, shapes, sizes)
    except CdslError as error:
        if error.code != "E0304" or not random:
            raise
        solved = solve_sizes(op, params, shapes, sizes, partial=True)
        missing = [name for name in op.input_sizes if name not in solved]
        options = " ".join(f"-D {name}=..." for name in missing)
        raise CdslError(
            "E0365",
            f"the shape of a random input is not known: {error.message}",
            error.span,
            notes=error.notes,
            help=f"give the missing sizes: `{options}`",
        ) from None


def _random(tensor: Tensor, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Standard normal numbers, or integers from -8 to 8."""
    if tensor.dtype == "i32":
        return generator.integers(-8, 9, shape, dtype=np.int32)
    numbers = generator.standard_normal(shape, dtype=np.float32)
    return numbers.astype(np.float16) if tensor.dtype == "f16" else numbers
