"""The axes of present inputs, and what is said when a shape does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.index import Index
from convdsl.sema.integers import refs, show
from convdsl.sema.model import ResolvedOp
from convdsl.sema.names import quoted, unknown
from convdsl.sema.without import stated
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an input that is present."""

    tensor: str
    number: int
    factors: tuple[Index, ...]
    extent: int
    decl: ast.Expr


def input_axes(op: ResolvedOp, shapes: Mapping[str, tuple[int, ...]]) -> list[Axis]:
    """All axes of the given shapes.

    Raises:
        CdslError: E0303 for a wrong rank, E0305 for a negative extent, E0311 for no input.
    """
    inputs = {t.name: t for t in op.inputs}
    for name in shapes:
        if name not in inputs:
            raise unknown(f"input of `{op.name}`:", name, inputs, None, "E0311")
    axes: list[Axis] = []
    for name, tensor in inputs.items():
        if name not in shapes:
            continue
        decl, shape = op.declaration(name), tuple(shapes[name])
        if len(shape) != len(tensor.axes):
            raise CdslError(
                "E0303",
                f"`{name}` has {_count(len(tensor.axes))}, but its array has {_count(len(shape))}",
                decl.span,
                notes=(f"declared {declared(decl)}", f"given shape {shape_text(shape)}"),
            )
        for number, (factors, extent) in enumerate(zip(tensor.axes, shape, strict=True)):
            if extent < 0:
                raise CdslError("E0305", f"axis {number} of `{name}` is negative: {extent}")
            axes.append(Axis(name, number, factors, int(extent), decl.axes[number]))
    return axes


def _count(rank: int) -> str:
    return f"{rank} axis" if rank == 1 else f"{rank} axes"


def declared(decl: ast.TensorDecl) -> str:
    """`x: f32[N, groups*C, L]`."""
    return f"{decl.name.name}: {decl.dtype}[{', '.join(show(a) for a in decl.axes)}]"


def shape_text(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(int(s)) for s in shape) + ("," if len(shape) == 1 else "") + ")"


def _formula(axis: Axis, env: Mapping[str, int], value: int) -> str:
    """`groups*C = 2*3 = 6`, as short as it can be."""
    parts = [show(axis.decl), show(axis.decl, env), str(value)]
    return " = ".join(dict.fromkeys(parts))


def bad_axis(
    op: ResolvedOp, axis: Axis, env: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> CdslError:
    """E0303: all sizes of the axis are known and its extent is another one."""
    wanted = 1
    for factor in axis.factors:
        free = next(iter(factor.free), None)
        wanted *= 0 if free is not None and free not in env else factor.evaluate(env)
    return CdslError(
        "E0303",
        f"axis {axis.number} of `{axis.tensor}` is {axis.extent}, but must be {wanted}",
        axis.decl.span,
        notes=(
            _formula(axis, env, wanted),
            f"given shape of `{axis.tensor}`: {shape_text(shapes[axis.tensor])}",
            *_others(op, axis, shapes),
        ),
    )


def _others(op: ResolvedOp, axis: Axis, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The shapes of inputs that share a size with the axis: one of them may be the wrong one."""
    names = {r.name for r in refs(axis.decl)}
    out = []
    for tensor in op.inputs:
        if tensor.name == axis.tensor or tensor.name not in shapes:
            continue
        decl = op.declaration(tensor.name)
        if any(r.name in names for a in decl.axes for r in refs(a) if r.name in op.input_sizes):
            out.append(f"given shape of `{tensor.name}`: {shape_text(shapes[tensor.name])}")
    return out


def inexact(
    op: ResolvedOp,
    axis: Axis,
    name: str,
    power: int,
    product: int,
    env: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> CdslError:
    """E0304: no integer size makes the axis as long as it is."""
    unknown_part = "*".join([name] * power)
    formula = f"{show(axis.decl)} = {axis.extent}"
    if power == 1:
        rest = axis.extent % product if product > 0 else None
        why = f"{axis.extent} is not a multiple of {product}"
        if rest is not None:
            why += f": {axis.extent} mod {product} = {rest}"
    else:
        scaled = unknown_part if product == 1 else f"{product}*{unknown_part}"
        why = f"no integer {name} has {scaled} = {axis.extent}"
    numbers = ", ".join(f"{r.name} = {env[r.name]}" for r in refs(axis.decl) if r.name in env)
    return CdslError(
        "E0304",
        f"axis {axis.number} of `{axis.tensor}` gives no integer `{name}`",
        axis.decl.span,
        notes=(
            f"{formula}" + (f" with {numbers}" if numbers else ""),
            why,
            f"given shape of `{axis.tensor}`: {shape_text(shapes[axis.tensor])}",
        ),
    )


def undetermined(
    op: ResolvedOp,
    missing: list[str],
    axes: list[Axis],
    env: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> CdslError:
    """E0304: sizes that the shapes leave open."""
    for axis in axes:
        unknowns = list(
            dict.fromkeys(
                r.name for r in refs(axis.decl) if r.name in missing and r.name not in env
            )
        )
        if len(unknowns) > 1:
            return CdslError(
                "E0304",
                f"axis {axis.number} of `{axis.tensor}` cannot determine {quoted(unknowns)}",
                axis.decl.span,
                notes=(f"{show(axis.decl)} = {axis.extent} has {len(unknowns)} unknown sizes",),
                help=f"give one, {give_sizes(unknowns[:1])},\nor let another axis have it",
            )
        if unknowns:
            return CdslError(
                "E0304",
                f"axis {axis.number} of `{axis.tensor}` cannot determine `{unknowns[0]}`",
                axis.decl.span,
                notes=(f"{_formula(axis, env, axis.extent)}, whatever `{unknowns[0]}` is",),
                help=f"give it: {give_sizes(unknowns)}",
            )
    chains = [chain for name in missing if (chain := stated(op, name)) is not None]
    carriers = {
        name: [t.name for t in op.inputs if any(name in e.free for e in t.shape)]
        for name in missing
    }
    wanted = {t for names in carriers.values() for t in names}
    without = [t.name for t in op.inputs if t.name in wanted and t.name not in shapes]
    decl = op.declaration(carriers[missing[0]][0])
    return CdslError(
        "E0304",
        f"nothing determines {quoted(missing)}",
        next(r.span for axis in decl.axes for r in refs(axis) if r.name == missing[0]),
        notes=tuple(
            Note(
                f"this clause tells `{show(chain.operands[0])}` from sizes not known either",
                chain.span,
            )
            for chain in chains
        ),
        help=(f"pass {quoted(without)}, or give " if without else "give ") + give_sizes(missing),
    )


def give_sizes(names: Iterable[str]) -> str:
    """How sizes are given."""
    options = " ".join(f"-D {name}=..." for name in names)
    values = ", ".join(f"{name!r}: ..." for name in names)
    return f"`{options}`, or `sizes={{{values}}}` in Python"
