"""An op without some of its optional inputs.

A clause `where NAME == expr` defines NAME if it stands on no axis of an input. An input that is
absent has no axes, so a clause that is a check of the whole op may be a definition without it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from convdsl.ir.index import Index, sym
from convdsl.sema.integers import to_index
from convdsl.sema.model import ResolvedOp
from convdsl.syntax import ast


def without(op: ResolvedOp, absent: Collection[str]) -> ResolvedOp:
    """The op with the sizes that only absent inputs have defined, where a clause states them.

    Its inputs are still declared: `instantiate` puts the defaults of absent ones in.
    """
    present = [t for t in op.inputs if t.name not in absent]
    carried = {name for tensor in present for extent in tensor.shape for name in extent.free}
    free = [name for name in op.input_sizes if name not in carried]
    found = {name: chain for name in free if (chain := stated(op, name)) is not None}
    chains = dict(zip((name for name, _ in op.defined), op.clauses, strict=True)) | found
    formulas = dict(op.defined)
    for name, chain in found.items():
        formulas[name] = to_index(chain.operands[1], lambda ref: sym(ref.name))
    defined: dict[str, Index] = {}
    while formulas:
        ready = [name for name, formula in formulas.items() if not formula.free & formulas.keys()]
        defined |= {name: formulas.pop(name) for name in ready}
        if not ready:  # sizes that state each other: one of them has to be given
            formulas.pop(next(name for name in formulas if name in found))
    kept = tuple(name for name in op.input_sizes if name not in defined)
    definitions = tuple(defined.items())
    return replace(
        op,
        input_sizes=kept,
        defined=definitions,
        clauses=tuple(chains[name] for name in defined),
        checks=tuple(c for c in op.checks if not any(c is chains[name] for name in defined)),
        system=replace(op.system, sizes=kept, definitions=definitions),
    )


def stated(op: ResolvedOp, size: str) -> ast.Chain | None:
    """The check `NAME == expr` of a size on an input axis, where there is one."""
    for chain in op.checks:
        first = chain.operands[0]
        if chain.ops == ("==",) and isinstance(first, ast.Ref) and first.name == size:
            return chain
    return None
