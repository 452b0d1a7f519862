"""Worker loops: threads of the host run their iterations in any order, so those are independent."""

from __future__ import annotations

from collections.abc import Iterator

from convdsl.ir.apart import Touch, apart
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index
from convdsl.ir.loop import For, If, Let, LoopProgram, Store
from convdsl.ir.verify_site import Site

Sites = tuple[Site, ...]


def check_workers(program: LoopProgram, sites: Sites) -> None:
    """No iteration of a worker loop stores to what another one touches, but in its own buffers.

    Those exist in worker loops alone, and a worker loop has no other one inside.
    """
    for site in sites:
        for access in site.accesses():
            memory = site.buffers[access.tensor].memory
            if memory == "worker" and not site.loops("worker"):
                site.fail("workers", f"{access.tensor} outside of worker loops")
        if not (isinstance(site.stmt, For) and site.stmt.level == "worker"):
            continue
        inside = [s for s in _below(site, sites) if s is not site]
        for inner in inside:
            if isinstance(inner.stmt, For) and inner.stmt.level == "worker":
                inner.fail("workers", "a worker loop inside a worker loop")
        touches: dict[str, list[Touch]] = {}
        for inner in inside:
            for tensor, touch in _touches(inner, len(site.parents)):
                if site.buffers[tensor].memory != "worker":
                    touches.setdefault(tensor, []).append(touch)
        for tensor, found in touches.items():
            if not apart(found):
                site.fail("workers", f"iterations are not proved to be apart in {tensor}")


def _below(site: Site, sites: Sites) -> Iterator[Site]:
    """The statement and those inside it."""
    for other in sites:
        same = other.kernel is site.kernel
        if same and other.path[: len(site.path)] == site.path:
            yield other


def _touches(site: Site, depth: int) -> Iterator[tuple[str, Touch]]:
    """What a store touches, over the loops from the one at `depth` of its parents on."""
    if not isinstance(site.stmt, Store):
        return
    values: dict[str, Index] = {}
    variables: list[Var] = []
    preds: list[Pred] = []
    outside = 0
    for at, parent in enumerate(site.parents):
        match parent:
            case For(Var(name, low, high)):
                outside += at < depth
                variables.append(Var(name, low.substitute(values), high.substitute(values)))
            case Let(name, value):
                values[name] = value.substitute(values)
            case If(conditions):
                preds += [Pred(p.kind, p.index.substitute(values)) for p in conditions]
            case Store():
                raise AssertionError("a store has no body")
    for access in site.accesses():
        index = tuple(i.substitute(values) for i in access.index)
        stored = access is site.stmt.access
        around, own = tuple(variables[:outside]), tuple(variables[outside:])
        yield access.tensor, Touch(index, access.dims, around, own, tuple(preds), stored)
