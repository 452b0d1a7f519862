"""What `convdsl check` warns of: legal, but probably not meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from convdsl.diagnostics import CdslError, Span, render
from convdsl.sema.model import ResolvedOp
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Warning:
    """One sentence about a place, and the remedy."""

    message: str
    span: Span
    help: str

    def __str__(self) -> str:
        text = render(CdslError("", self.message, self.span, help=self.help))
        return "warning" + text.removeprefix("error[]")


def warnings(op: ResolvedOp) -> list[Warning]:
    """All warnings for an op, in the order of their places."""
    return sorted([*_declared(op), *_bound(op.syntax)], key=lambda w: w.span.start)


def _declared(op: ResolvedOp) -> Iterator[Warning]:
    syntax = op.syntax
    tensors = [p for p in syntax.params if isinstance(p, ast.TensorDecl)]
    definitions = [*(let.definition for let in syntax.lets), syntax.result]
    meaning = [*(t.axes for t in (*tensors, syntax.output)), *op.clauses, *definitions]
    meant, checked = _refs(meaning), _refs(op.checks)
    reads = Counter(n.tensor.name for n in _nodes(definitions) if isinstance(n, ast.Read))
    for parameter in op.parameters:
        if not meant[parameter.name]:
            where = "only checked in `where`" if checked[parameter.name] else "never used"
            yield Warning(
                f"the parameter `{parameter.name}` is {where}",
                parameter.span,
                "use it, or remove it",
            )
    for tensor in tensors:
        if not reads[tensor.name.name]:
            yield Warning(
                f"the input `{tensor.name.name}` is never read",
                tensor.span,
                "read it, or remove it; a default only serves inputs that may be absent",
            )
    for let in syntax.lets:
        name = let.definition.tensor
        if not reads[name.name]:
            yield Warning(f"`let {name.name}` is never read", name.span, "read it, or remove it")
    for (name_, _), clause in zip(op.defined, op.clauses, strict=True):
        if meant[name_] + checked[name_] < 2:  # it stands once in its own clause
            yield Warning(f"the size `{name_}` is never used", clause.span, "use it, or remove it")


def _bound(op: ast.Op) -> Iterator[Warning]:
    for node in _nodes((op.lets, op.result)):
        if isinstance(node, ast.Reduce):
            inside = (node.relations, node.body, [(b.low, b.high) for b in node.binders])
            used = _refs(inside)
            for binder in node.binders:
                name = binder.name.name
                if not used[name]:
                    yield Warning(
                        f"the index `{name}` of this {node.reducer} is used nowhere in it",
                        binder.span,
                        f"every term is then taken once for each value of `{name}`",
                    )


def _refs(where: object) -> Counter[str]:
    return Counter(node.name for node in _nodes(where) if isinstance(node, ast.Ref))


def _nodes(value: object) -> Iterator[object]:
    """All nodes of a tree, or of trees in lists and tuples."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _nodes(item)
    elif is_dataclass(value) and not isinstance(value, Span):
        yield value
        for field in fields(value):
            yield from _nodes(getattr(value, field.name))
