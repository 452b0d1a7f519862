"""Rules about names, buffers, accesses and values of the loop IR."""

from __future__ import annotations

from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Param, Reduce, walk
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer, For, Let, LoopProgram, Store
from convdsl.ir.verify_site import Site, is_name, stmt_indices
from convdsl.ir.verify_values import access_fault, constant_fault, value_dtype, value_fault

Sites = tuple[Site, ...]


def check_sizes(program: LoopProgram, sites: Sites) -> None:
    """Sizes and definitions have different names, and a definition uses earlier ones only."""
    defined: set[str] = set()
    for size in program.sizes:
        if size in defined or not is_name(size):
            raise InternalError(f"{program.name} breaks the rule sizes: {size} is no new name")
        defined.add(size)
    for name, value in program.definitions:
        if name in defined or not is_name(name) or not value.free <= defined:
            raise InternalError(f"{program.name} breaks the rule sizes: let {name} = {value}")
        defined.add(name)


def check_names(program: LoopProgram, sites: Sites) -> None:
    """Every index name is defined around its use, and no loop or `let` hides another."""
    outer = {*program.sizes, *(name for name, _ in program.definitions)}
    for site in sites:
        scope = outer | {_bound(p) for p in site.parents}
        for index in stmt_indices(site.stmt):
            for name in index.free - scope:
                site.fail("names", f"{name} is not defined in {index}")
        name = _bound(site.stmt)
        if name and (name in scope or not is_name(name)):
            site.fail("names", f"{name} is already defined" if name in scope else f"{name!r}")


def _bound(stmt: object) -> str:
    match stmt:
        case For(var):
            return var.name
        case Let(name):
            return name
        case _:
            return ""


_SHARED = ("input", "output", "temp", "constant")


def check_buffers(program: LoopProgram, sites: Sites) -> None:
    """Buffers are declared once, where their memory belongs, with extents made of sizes."""
    _check_declared(program, "the program", program.buffers, set(), _SHARED)
    kernels: set[str] = set()
    for kernel in program.kernels:
        if kernel.name in kernels or not is_name(kernel.name):
            raise InternalError(f"{program.name} breaks the rule buffers: kernel {kernel.name}")
        kernels.add(kernel.name)
        taken = {b.name for b in program.buffers}
        memories = ("temp", "workgroup", "register", "worker")
        _check_declared(program, f"kernel {kernel.name}", kernel.locals, taken, memories)


def _check_declared(
    program: LoopProgram,
    where: str,
    buffers: tuple[Buffer, ...],
    taken: set[str],
    memories: tuple[str, ...],
) -> None:
    sizes = {*program.sizes, *(name for name, _ in program.definitions)}
    for b in buffers:
        names = frozenset().union(*(extent.free for extent in b.dims))
        threads = range(len(b.dims) + 1) if b.memory == "register" else range(1)
        fixed = b.memory not in ("workgroup", "register") or all(d.as_int() for d in b.dims)
        constant = constant_fault(b.values, b.elements, b.dtype, b.memory == "constant")
        if b.name in taken or not is_name(b.name):
            fault = "is no new name"
        elif b.memory not in memories:
            fault = f"is {b.memory}"
        elif not names <= sizes:
            fault = f"has extents of {sorted(names - sizes)}"
        elif b.thread_dims not in threads:
            fault = f"has {b.thread_dims} thread dims"
        elif not fixed:
            fault = f"is {b.memory} memory without constant positive extents"
        elif constant is not None:
            fault = constant
        else:
            taken.add(b.name)
            continue
        raise InternalError(f"{where} breaks the rule buffers: {b.name} {fault}")


def check_access(program: LoopProgram, sites: Sites) -> None:
    """An access has one index a dim, and its view as many elements as the buffer."""

    def known(index: Index) -> Index:
        for name, value in reversed(program.definitions):
            index = index.substitute({name: value})
        return index

    for site in sites:
        for access in site.accesses():
            if access.tensor not in site.buffers:
                site.fail("access", f"no buffer {access.tensor}")
            fault = access_fault(access, site.buffers[access.tensor].dims, known)
            if fault is not None:
                site.fail("access", fault)


def check_inputs(program: LoopProgram, sites: Sites) -> None:
    """Nothing stores to an input or a constant."""
    for site in sites:
        if not isinstance(site.stmt, Store):
            continue
        memory = site.buffers[site.stmt.access.tensor].memory
        if memory in ("input", "constant"):
            site.fail("inputs", f"{site.stmt.access.tensor} is {memory}")


def check_values(program: LoopProgram, sites: Sites) -> None:
    """Values are well typed, of the buffer's dtype, and free of reductions and parameters."""
    for site in sites:
        if not isinstance(site.stmt, Store):
            continue
        value = site.stmt.value
        for e in walk(value):
            if isinstance(e, Reduce | Param):
                site.fail("values", f"a {type(e).__name__} has no place in loops")
        dtypes = {b.name: b.dtype for b in site.buffers.values()}
        fault = value_fault(value, dtypes)
        if fault is not None:
            site.fail("values", fault)
        dtype = dtypes[site.stmt.access.tensor]
        if value.dtype != value_dtype(dtype):
            site.fail("values", f"a value of {value.dtype} in a buffer of {dtype}")
