"""Rules about the levels of loops: what makes a kernel runnable on a target as it is written."""

from __future__ import annotations

from convdsl.ir.expr import Binary
from convdsl.ir.index import sym
from convdsl.ir.loop import For, If, Let, LoopProgram, Stmt, Store, statements
from convdsl.ir.verify_site import Site

Sites = tuple[Site, ...]


def _is_loop(stmt: Stmt, level: str) -> bool:
    return isinstance(stmt, For) and stmt.level == level


def check_threads(program: LoopProgram, sites: Sites) -> None:
    """Thread loops form perfect nests from zero, of the same constant extents in a kernel."""
    extents: dict[str, tuple[int | None, ...]] = {}
    for site in sites:
        if not _is_loop(site.stmt, "thread") or site.loops("thread"):
            continue
        nest: list[For] = []
        body: tuple[Stmt, ...] = (site.stmt,)
        while len(body) == 1 and isinstance(body[0], For) and body[0].level == "thread":
            nest.append(body[0])
            body = body[0].body
        if any(_is_loop(s, "thread") for s in statements(body)):
            site.fail("threads", "a thread loop that is not directly inside the others")
        if any(loop.var.low != 0 or not loop.var.high.as_int() for loop in nest):
            site.fail("threads", "thread loops run from 0 to a positive constant")
        mine = tuple(loop.var.high.as_int() for loop in nest)
        if extents.setdefault(site.kernel.name, mine) != mine:
            site.fail("threads", f"extents {mine}, other threads {extents[site.kernel.name]}")


def check_grid(program: LoopProgram, sites: Sites) -> None:
    """Grid loops are outermost and contiguous: only host loops and `let`s around, one nest."""
    for site in sites:
        if not (isinstance(site.stmt, For) and site.stmt.level in ("host", "worker", "grid")):
            continue
        levels = [p.level for p in site.parents if isinstance(p, For)]
        if any(level not in ("host", "worker", "grid") for level in levels):
            site.fail("grid", "a host, worker or grid loop inside another kind of loop")
        if site.stmt.level != "grid":
            if "grid" in levels:
                site.fail("grid", "a host or worker loop inside a grid loop")
            continue
        if "worker" in levels:
            site.fail("grid", "a grid loop inside a worker loop")
        if any(isinstance(p, If) for p in site.parents):
            site.fail("grid", "a grid loop under a condition")
        siblings = (p.body for p in site.parents if not isinstance(p, Store))
        if any(len(body) > 1 for body in (site.kernel.body, *siblings)):
            site.fail("grid", "a statement beside a grid loop")
        _check_uniform_grid(site)


def _check_uniform_grid(site: Site) -> None:
    """The size of a dispatch cannot depend on the workgroup."""
    assert isinstance(site.stmt, For)
    inside: set[str] = set()
    for parent in site.parents:
        if _is_loop(parent, "grid") and isinstance(parent, For):
            inside.add(parent.var.name)
        elif isinstance(parent, Let) and parent.value.free & inside:
            inside.add(parent.name)
    names = (site.stmt.var.low.free | site.stmt.var.high.free) & inside
    if names:
        site.fail("grid", f"a bound that depends on {sorted(names)}")


def check_registers(program: LoopProgram, sites: Sites) -> None:
    """The first indices of a register are exactly the thread variables around, in order."""
    for site in sites:
        threads = site.loops("thread")
        for access in site.accesses():
            buffer = site.buffers[access.tensor]
            own = buffer.thread_dims
            if buffer.memory != "register":
                continue
            if len(threads) != own:
                site.fail("registers", f"{own} thread dims, {len(threads)} thread loops")
            if access.index[:own] != tuple(sym(t.var.name) for t in threads):
                site.fail("registers", f"{buffer.name} of another thread")
            if not access.dims[:own] == buffer.dims[:own] == tuple(t.var.high for t in threads):
                site.fail("registers", f"the thread dims of {buffer.name} are not the threads")


def check_vectors(program: LoopProgram, sites: Sites) -> None:
    """A vector loop has 2, 3 or 4 lanes and holds stores, `let`s and `if`s only."""
    for site in sites:
        if isinstance(site.stmt, For) and site.stmt.level == "vector":
            if site.stmt.var.extent.as_int() not in (2, 3, 4):
                site.fail("vectors", f"{site.stmt.var.extent} lanes")
            if any(isinstance(s, For) for s in statements(site.stmt.body)):
                site.fail("vectors", "a loop inside a vector loop")


def check_unrolls(program: LoopProgram, sites: Sites) -> None:
    """An unrolled loop has a constant extent."""
    for site in sites:
        if isinstance(site.stmt, For) and site.stmt.level == "unroll":
            extent = site.stmt.var.extent.as_int()
            if extent is None or extent < 0:
                site.fail("unrolls", f"the extent {site.stmt.var.extent}")


def check_gemm(program: LoopProgram, sites: Sites) -> None:
    """Gemm loops are a perfect nest over one store that adds products."""
    for site in sites:
        stmt = site.stmt
        if not _is_gemm(stmt) or any(_is_gemm(p) for p in site.parents):
            continue
        while isinstance(stmt, For) and _is_gemm(stmt):
            if len(stmt.body) != 1:
                site.fail("gemm", "not a perfect nest")
            stmt = stmt.body[0]
        if not isinstance(stmt, Store):
            site.fail("gemm", "a loop, `let` or `if` inside the nest")
        product = isinstance(stmt.value, Binary) and stmt.value.op == "*"
        if stmt.accumulate != "+" or not product:
            site.fail("gemm", "the statement does not add a product")


def _is_gemm(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.level.startswith("gemm.")
