"""The shape of a kernel's workgroups: that of its thread nests, which must all be alike."""

from __future__ import annotations

from convdsl.diagnostics import InternalError
from convdsl.ir.loop import For, Kernel, Stmt, Store, statements


def has_threads(stmt: Stmt) -> bool:
    """Whether a thread loop is in it, or is it."""
    if isinstance(stmt, For) and stmt.level == "thread":
        return True
    return not isinstance(stmt, Store) and any(map(has_threads, stmt.body))


def thread_nest(stmt: For) -> tuple[tuple[For, ...], tuple[Stmt, ...]]:
    """The perfectly nested thread loops that start at `stmt`, outermost first, and their body."""
    loops = [stmt]
    body = stmt.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].level == "thread":
        loops.append(body[0])
        body = body[0].body
    if any(map(has_threads, body)):
        raise InternalError(f"the thread loop {stmt.var.name} is not part of a perfect nest")
    return tuple(loops), body


def thread_shape(kernel: Kernel) -> tuple[int, ...]:
    """The extents of the thread nests, outermost first; empty when there are none."""
    shapes: set[tuple[int, ...]] = set()
    inner: set[int] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, For) and stmt.level == "thread" and id(stmt) not in inner:
            loops, _ = thread_nest(stmt)
            inner.update(map(id, loops))
            shapes.add(tuple(_extent(loop) for loop in loops))
    if not shapes:
        return ()
    if len(shapes) > 1:
        raise InternalError(f"thread nests of kernel {kernel.name} have shapes {sorted(shapes)}")
    (shape,) = shapes
    if len(shape) > 3 or 0 in shape:
        raise InternalError(f"kernel {kernel.name} has a thread nest of shape {shape}")
    return shape


def _extent(loop: For) -> int:
    low, high = loop.var.low.as_int(), loop.var.high.as_int()
    if low != 0 or high is None:
        raise InternalError(
            f"thread loop {loop.var.name} runs over {loop.var.low}..{loop.var.high}"
        )
    return high


def workgroup_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """x, y and z of a workgroup: the innermost thread loop is x."""
    x, y, z = [*reversed(shape), 1, 1, 1][:3]
    return x, y, z
