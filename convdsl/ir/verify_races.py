"""Races that can be seen without solving anything: two threads or workgroups at one element."""

from __future__ import annotations

from convdsl.ir.expr import Access, free_names, loads
from convdsl.ir.loop import For, If, Let, LoopProgram, Store
from convdsl.ir.verify_site import Site, pred_indices

Sites = tuple[Site, ...]


def check_exchange(program: LoopProgram, sites: Sites) -> None:
    """A thread nest, which has no barrier inside, does not both write and read a workgroup buffer.

    Unless every access has the same index: then each thread stays with its own elements.
    """
    written: dict[tuple[object, ...], set[Access]] = {}
    read: dict[tuple[object, ...], set[Access]] = {}
    for site in sites:
        nest = next((n for n, p in enumerate(site.parents) if _is_parallel(p, ("thread",))), None)
        if nest is None or not isinstance(site.stmt, Store):
            continue
        stored = site.stmt.access
        for access in site.accesses():
            if site.buffers[access.tensor].memory != "workgroup":
                continue
            key = (site.kernel.name, site.path[: nest + 1], access.tensor)
            kind = written if access is stored else read
            kind.setdefault(key, set()).add(access)
            if key in written and key in read and len(written[key] | read[key]) > 1:
                site.fail("exchange", f"{access.tensor} is written and read without a barrier")


def check_writers(program: LoopProgram, sites: Sites) -> None:
    """An element has one writer: each parallel loop decides where, or whether, a store happens.

    A plain store of a value that is the same in all of them is no race.
    """
    for site in sites:
        if not isinstance(site.stmt, Store):
            continue
        memory = site.buffers[site.stmt.access.tensor].memory
        if memory == "register":
            continue
        used = _roots(site, site.stmt.access.free)
        for parent in site.parents:
            if isinstance(parent, If):
                for index in pred_indices(parent.conditions):
                    used |= _roots(site, index.free)
        lost = _loops(site, ("thread",) if memory == "workgroup" else ("grid", "thread")) - used
        if site.stmt.accumulate is None:
            lost &= _roots(site, free_names(site.stmt.value)) | _carried(site)
        if lost:
            site.fail("writers", f"all iterations of {min(lost)} store to the same element")


def _carried(site: Site) -> set[str]:
    """Grid variables on which a value may depend through the local buffers that it reads."""
    assert isinstance(site.stmt, Store)
    memories = {site.buffers[load.access.tensor].memory for load in loads(site.stmt.value)}
    return _loops(site, ("grid",)) if memories & {"register", "workgroup"} else set()


def _is_parallel(stmt: object, levels: tuple[str, ...]) -> bool:
    return isinstance(stmt, For) and stmt.level in levels


def _loops(site: Site, levels: tuple[str, ...]) -> set[str]:
    """The variables of the parallel loops around that run more than once."""
    return {
        p.var.name
        for p in site.parents
        if isinstance(p, For) and p.level in levels and p.var.extent.as_int() != 1
    }


def _roots(site: Site, names: frozenset[str]) -> set[str]:
    """The names, and all names that they depend on through `let`s and loop bounds."""
    out = set(names)
    for parent in reversed(site.parents):
        if isinstance(parent, Let) and parent.name in out:
            out |= parent.value.free
        elif isinstance(parent, For) and parent.var.name in out:
            out |= parent.var.low.free | parent.var.high.free
    return out
