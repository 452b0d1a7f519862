"""Loop programs built by hand, in the forms that the lowerings produce."""

from __future__ import annotations

from convdsl.ir.expr import Access, Binary, Const, Expr, Guard, Load, Pred, Var, ge
from convdsl.ir.index import Index, as_index, ceildiv, const, maximum, minimum, sym
from convdsl.ir.loop import (
    Accumulate,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Level,
    LoopProgram,
    Memory,
    Stmt,
    Store,
)

ZERO = Const(0.0, "f32")


def buffer(name: str, *dims: Index | int, memory: Memory, threads: int = 0) -> Buffer:
    return Buffer(name, "f32", tuple(map(as_index, dims)), memory, threads)


def access(b: Buffer, *index: Index | int) -> Access:
    return Access(b.name, tuple(map(as_index, index)), b.dims)


def load(b: Buffer, *index: Index | int) -> Load:
    return Load(access(b, *index), "i32" if b.dtype == "i32" else "f32")


def store(
    b: Buffer, index: tuple[Index | int, ...], value: Expr, how: Accumulate | None = None
) -> Store:
    return Store(access(b, *index), value, how)


def loop(level: Level, name: str, high: Index | int, *body: Stmt, low: Index | int = 0) -> For:
    return For(Var(name, as_index(low), as_index(high)), level, body)


def nest(level: Level, loops: list[tuple[str, int]], *body: Stmt) -> Stmt:
    for name, high in reversed(loops):
        body = (loop(level, name, high, *body),)
    return body[0]


def below(index: Index, high: Index | int) -> Pred:
    return ge(as_index(high) - index - 1)


def copy(n: int | None = None, threads: int = 64) -> LoopProgram:
    """y[i] = x[i] + 1, one element a thread; with `n` None the size stays symbolic."""
    size = sym("N") if n is None else const(n)
    x, y = buffer("x", size, memory="input"), buffer("y", size, memory="output")
    i = sym("b") * threads + sym("t")
    value = Binary("+", load(x, i), Const(1.0, "f32"))
    body = loop(
        "grid",
        "b",
        ceildiv(size, threads),
        loop("thread", "t", threads, If((below(i, size),), (store(y, (i,), value),))),
    )
    sizes = ("N",) if n is None else ()
    return LoopProgram("copy", sizes, (), (x, y), (Kernel("copy", (), (body,), "one a thread"),))


def gather(
    batch: int, channels: int, length: int, taps: int, stride: int, pad: int, symbolic: bool = False
) -> LoopProgram:
    """A transposed convolution with one output channel, one output a thread."""
    names = ("N", "C", "L", "K")
    numbers = (batch, channels, length, taps)
    n_, c_, l_, k_ = map(sym, names) if symbolic else map(const, numbers)
    out = (l_ - 1) * stride + k_ - 2 * pad
    lo = sym("LO") if symbolic else out
    x = buffer("x", n_, c_, l_, memory="input")
    w = buffer("w", c_, k_, memory="input")
    y = buffer("y", n_, lo, memory="output")
    acc = buffer("acc", 64, memory="register", threads=1)
    o, t, tap = sym("o"), sym("t"), sym("l")
    low = maximum(0, ceildiv(o + pad - k_ + 1, stride))
    high = minimum(l_, (o + pad) // stride + 1)
    product = Binary(
        "*", load(x, sym("n"), sym("c"), tap), load(w, sym("c"), o + pad - tap * stride)
    )
    inner = If(
        (below(o, lo),),
        (
            store(acc, (t,), ZERO),
            loop(
                "serial",
                "l",
                high,
                loop("serial", "c", c_, store(acc, (t,), product, "+")),
                low=low,
            ),
            store(y, (sym("n"), o), load(acc, t)),
        ),
    )
    thread = loop("thread", "t", 64, Let("o", sym("ot") * 64 + t, (inner,)))
    body = loop("grid", "n", n_, loop("grid", "ot", ceildiv(lo, 64), thread))
    definitions = (("LO", out),) if symbolic else ()
    kernel = Kernel("gather", (acc,), (body,), "each output sums the taps that reach it")
    return LoopProgram(
        "conv_transpose1d", names if symbolic else (), definitions, (x, w, y), (kernel,)
    )


def matmul(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int] = (64, 64, 16),
    register: tuple[int, int] = (8, 8),
    pad: int = 4,
    unroll: bool = False,
    vector: bool = True,
) -> LoopProgram:
    """c[i, j] = sum a[i, r] * b[r, j] in workgroup tiles; a[m, k] is staged transposed."""
    (bm, bn, bk), (rm, rn) = tile, register
    ny, nx = bm // rm, bn // rn
    a = buffer("a", m, k, memory="input")
    b = buffer("b", k, n, memory="input")
    c = buffer("c", m, n, memory="output")
    at = buffer("a_tile", bk, bm + pad, memory="workgroup")
    bt = buffer("b_tile", bk, bn + pad, memory="workgroup")
    acc = buffer("acc", ny, nx, rm, rn, memory="register", threads=2)
    av = buffer("av", ny, nx, rm, memory="register", threads=2)
    bv = buffer("bv", ny, nx, rn, memory="register", threads=2)
    y, x, v, kk = sym("y"), sym("x"), sym("v"), sym("kk")
    mb, nb, kb = sym("mb"), sym("nb"), sym("kb")
    threads = [("y", ny), ("x", nx)]
    lanes: Level = "vector" if vector else "unroll"

    def guarded(value: Expr, *conditions: Pred) -> Expr:
        return Guard(conditions, value, ZERO)

    def stage(target: Buffer, width: int, value: Expr) -> Stmt:
        """Each thread fills groups of four, `g` counting them row by row."""
        count = bk * width // 4 // (ny * nx)
        position = sym("g") * (ny * nx) + y * nx + x
        row, column = position // (width // 4), position % (width // 4) * 4
        inner = loop(lanes, "v", 4, store(target, (sym("row"), sym("col") + v), value))
        body = Let("row", row, (Let("col", column, (inner,)),))
        return nest("thread", threads, loop("unroll", "g", count, body))

    row, column = sym("row"), sym("col")
    ai, ak = mb * bm + column + v, kb * bk + row
    bj = nb * bn + column + v
    stage_a = stage(at, bm, guarded(load(a, ai, ak), below(ai, m), below(ak, k)))
    stage_b = stage(bt, bn, guarded(load(b, ak, bj), below(ak, k), below(bj, n)))

    def quads(name: str, count: int, *body: Stmt) -> Stmt:
        return loop("unroll", name, count // 4, loop(lanes, "v", 4, *body))

    i, q = sym("i"), sym("q")
    step = (
        quads("q", rm, store(av, (y, x, q * 4 + v), load(at, kk, y * rm + q * 4 + v))),
        quads("q", rn, store(bv, (y, x, q * 4 + v), load(bt, kk, x * 4 + q * (nx * 4) + v))),
        loop(
            "unroll",
            "i",
            rm,
            quads(
                "q",
                rn,
                store(
                    acc,
                    (y, x, i, q * 4 + v),
                    Binary("*", load(av, y, x, i), load(bv, y, x, q * 4 + v)),
                    "+",
                ),
            ),
        ),
    )
    compute = nest("thread", threads, loop("unroll" if unroll else "serial", "kk", bk, *step))
    clear = nest(
        "thread",
        threads,
        loop("unroll", "i", rm, quads("q", rn, store(acc, (y, x, i, q * 4 + v), ZERO))),
    )
    ci, cj = mb * bm + y * rm + i, nb * bn + x * 4 + q * (nx * 4) + v
    write = nest(
        "thread",
        threads,
        loop(
            "unroll",
            "i",
            rm,
            If(
                (below(ci, m),),
                (
                    quads(
                        "q",
                        rn,
                        If((below(cj, n),), (store(c, (ci, cj), load(acc, y, x, i, q * 4 + v)),)),
                    ),
                ),
            ),
        ),
    )
    main = loop("serial", "kb", ceildiv(k, bk), stage_a, stage_b, compute)
    body = loop(
        "grid", "mb", ceildiv(m, bm), loop("grid", "nb", ceildiv(n, bn), clear, main, write)
    )
    kernel = Kernel(
        "matmul", (at, bt, acc, av, bv), (body,), f"tile {bm}x{bn}x{bk}, {rm}x{rn} a thread"
    )
    return LoopProgram("matmul", (), (), (a, b, c), (kernel,))
