"""Lower a piece to one thread an element: every thread computes its reductions by itself.

The fastest dims of the result are merged until they fill a workgroup, so that neighbouring threads
store to neighbouring addresses; the remaining loops become grid axes of their own.
"""

from __future__ import annotations

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Reduce, Var, ge, walk
from convdsl.ir.index import Index, ceildiv, const, floordiv, modulo, product, sym
from convdsl.ir.loop import If, Kernel, Let, Level, Stmt, Store, nest
from convdsl.passes.gather import gather_piece
from convdsl.passes.names import Names
from convdsl.passes.reduce_loops import ThreadCode

THREADS = 256


def lower_gather(
    name: str, piece: Piece, threads: int = THREADS, taken: frozenset[str] = frozenset()
) -> Kernel:
    """The kernel for one piece; its grid is the space of the piece's variables.

    `taken` are the names of the program around it, which no register may have.
    """
    piece = gather_piece(piece)
    bound = {v.name for e in walk(piece.value) if isinstance(e, Reduce) for v in e.vars}
    names = Names({v.name for v in piece.vars} | bound | taken)
    outer, merged = _merge(piece.vars, threads)
    total = product(v.extent for v in merged)
    count = total.as_int()
    if count is not None:
        threads = min(threads, max(64, 1 << max(count - 1, 0).bit_length()))
    lane = Var(names.fresh("thread"), const(0), const(threads))
    tile = Var(names.fresh("tile"), const(0), ceildiv(total, threads))
    code = ThreadCode((lane,), names)

    body: list[Stmt] = []
    value = code.value(piece.value, body)
    body.append(Store(piece.access, value))
    if piece.guards:
        body = [If(piece.guards, tuple(body))]
    flat = names.fresh("flat")
    inside: tuple[Stmt, ...] = _decode(sym(flat), merged, tuple(body))
    if count is None or count % threads:
        inside = (If((ge(total - 1 - sym(flat)),), inside),)
    inside = (Let(flat, sym(tile.name) * threads + sym(lane.name), inside),)
    grid: list[tuple[Var, Level]] = []
    for var in reversed(outer):
        at = var.name if var.low == 0 else names.fresh(f"{var.name}_at")
        grid.insert(0, (Var(at, const(0), var.extent), "grid"))
        if var.low != 0:
            inside = (Let(var.name, sym(at) + var.low, inside),)
    loops = [*grid, (tile, "grid"), (lane, "thread")]
    return Kernel(
        name, tuple(code.locals), nest(loops, inside), f"{piece.origin}: one thread an element"
    )


def _merge(variables: tuple[Var, ...], threads: int) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Split the variables into grid axes and a fastest part that fills a workgroup."""
    at = len(variables)
    size = const(1)
    while at > 0:
        known = size.as_int()
        if at < len(variables) and (known is None or known >= threads):
            break
        at -= 1
        size = size * variables[at].extent
    return variables[:at], variables[at:]


def _decode(flat: Index, variables: tuple[Var, ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Names for the digits of a flat position, the last variable fastest."""
    lets: list[tuple[str, Index]] = []
    rest = flat
    for at, var in reversed(list(enumerate(variables))):
        width = const(1) if var.extent == 0 else var.extent  # nothing runs then
        digit = modulo(rest, width) if at else rest
        lets.append((var.name, digit + var.low))
        rest = floordiv(rest, width) if at else rest
    for name, value in lets:
        body = (Let(name, value, body),)
    return body
