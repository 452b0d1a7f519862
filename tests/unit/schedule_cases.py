"""The programs and steps whose rewriting `test_schedule_golden` shows."""

from __future__ import annotations

MATMUL = "op mm(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] { y[m, n] = sum[k] a[m, k] * b[k, n] }"
UP = """
op up(x: f32[C, L], w: f32[C, K], b: f32[Q]) -> y: f32[Q] {
    y[o] = b[o] + sum[c, k, l | l*4 + k*2 == o] leaky_relu(x[c, l], 0.5) * w[c, k]
}"""
DOWN = """
op down(x: f32[C, L], w: f32[C, K]) -> y: f32[Q] where Q == L//3 {
    y[o] = sum[c, k, l | o*3 + k == l + 1] x[c, l] * w[c, k]
}"""
ROWS_UP = """
op up(x: f32[N, C, L], w: f32[C, K]) -> y: f32[N, LO]
where LO == (L - 1)*2 + K
{
    y[n, o] = sum[c, k, l | l*2 + k == o] x[n, c, l] * w[c, k]
}"""
WIDE_UP = """
op up(x: f32[C, L], w: f32[C, M, K]) -> y: f32[M, LO]
where LO == (L - 1)*2 + K
{
    y[m, o] = sum[c, k, l | l*2 + k == o] x[c, l] * w[c, m, k]
}"""
ROWS = "op rows(x: f32[M, K, J]) -> y: f32[M] { y[m] = 2*(max[k, j] abs(x[m, k, j]) else 1) }"
SNAKE = """
op snake(x: f32[C, T], a: f32[C], w: f32[C, M]) -> y: f32[M, T] {
    let h[c, t] = sin(a[c]*x[c, t])
    y[m, t] = sum[c] h[c, t] * w[c, m]
}"""
SOFTMAX = """
op softmax(x: f32[N, C]) -> y: f32[N, C] {
    let e[n, c] = exp(x[n, c])
    let norm[n] = sum[c] e[n, c]
    y[n, c] = e[n, c] / norm[n]
}"""
COPY = "op turn(x: f32[A, B]) -> y: f32[B, A] { y[b, a] = abs(x[a, b]) }"
THREADS = "map y: m -> grid, n -> thread"
TILED = f"""split y: k by 4 -> ko, ki tail pad
split y: ko by 4 -> kb, ks tail cut
{THREADS}
stage y: a at ks in workgroup
stage y: b at ks in workgroup"""
DEEP = f"split y: k by 4 -> ko, ki tail pad\n{THREADS}"

# name: text, sizes, the steps before, the steps shown one by one, what makes it run
CASES: dict[str, tuple[str, dict[str, int], str, str, str]] = {
    "gather": (UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "gather y", "map y: o -> thread"),
    "solve": (DOWN, {"C": 2, "L": 15, "K": 4}, "", "solve y for l", "map y: o -> thread"),
    "phases": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "phases y over o, k -> t, r, j",
        "map y: t -> thread\nmap y.hole: t_gap -> thread",
    ),
    "taps": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "taps y over o, k -> j", "map y: o -> thread",
    ),
    "stage_of_a_box": (
        UP, {"C": 2, "L": 8, "K": 8, "Q": 24},
        "taps y over o, k -> j\nsplit y: o by 4 -> q, e\norder y: q, c, j, e\nsplit y: j by 2 -> ja, ji",
        "stage y: x at ja in register\nstage y: w at ja in register",
        "map y: q -> thread\norder y: q, c, ja, ji, e\nunroll y: ji, e",
    ),
    "columns": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "columns y -> col",
        "gather y\nmap col: l -> thread\nmap y: o -> thread",
    ),
    "toeplitz": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 25}, "", "toeplitz y over o, l by 8 -> q, u, a",
        "gather y\nmap y: q -> thread",
    ),
    "toom": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "phases y over o, k -> t, r, j",
        "toom y over t, j by 3 -> xt, wt, zt: tile, u, z",
        """map xt: tile -> thread
           stage xt: x at u in register
           order xt: u, z
           unroll xt: u, z
           map wt: c -> thread
           map zt: tile -> thread
           map y: tile -> thread
           map y.hole: t_gap -> thread""",
    ),
    "reindex": (
        UP, {"C": 3, "L": 5, "K": 6, "Q": 27}, "phases y over o, k -> t, r, j",
        "reindex y: x by c, j, t -> xs",
        "map xs: t -> thread\nmap y: t -> thread\nmap y.hole: t_gap -> thread",
    ),
    "layout": (
        ROWS_UP, {"N": 2, "C": 3, "L": 5, "K": 8}, "phases y over o, k -> t, r, j",
        "layout y: x by c, t over n to 24 -> xs",
        """order y: c, j, n, t, r
           map y: n -> grid, t -> thread
           map xs: t -> thread
           unroll y: j
           stage y: xs at c in workgroup
           stage y: xs at j in register""",
    ),
    "window": (
        ROWS_UP, {"N": 2, "C": 3, "L": 5, "K": 8}, "phases y over o, k -> t, r, j",
        """layout y: x by c, t over n to 24 -> xs
           order y: n, t, r, c, j
           fuse y: n, t -> nt
           split y: nt by 8 -> tile, in tail pad
           split y: in by 4 -> lane, own
           order y: tile, lane, c, j, own, r""",
        """map xs: t -> thread
           map y: tile -> grid, lane -> thread
           stage y: xs at c in workgroup
           stage y: xs at c in register
           unroll y: j, own, r""",
    ),
    "interleave": (
        WIDE_UP, {"C": 3, "L": 8, "M": 8, "K": 2}, "phases y over o, k -> t, r, j",
        """order y: t, m, r, c
           fuse y: m, r -> mr
           split y: t by 4 -> lane, own
           split y: mr by 4 -> column, v
           order y: lane, column, c, own, v""",
        """map y: lane -> thread, column -> thread
           unroll y: own
           vectorize y: v""",
    ),
    "pack": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "", "pack y: a by 1, 0 -> a_packed",
        f"map a_packed: i0 -> thread\n{THREADS}",
    ),
    "rfactor": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "", "rfactor y: k by 4 -> part, y_part",
        f"map y_part: part -> grid, n -> thread\n{THREADS}",
    ),
    "rfactor_symbolic": (
        ROWS, {}, "", "rfactor y: k by 4 -> part, y_part",
        """split y_part: m by 64 -> mo, mi
           map y_part: mi -> thread, mo -> grid, part -> grid
           split y: m by 64 -> mo, mi
           map y: mo -> grid, mi -> thread""",
    ),
    "materialise": (
        SNAKE, {"C": 3, "T": 9, "M": 4}, "", "materialise h",
        "map h: t -> thread\nmap y: t -> thread",
    ),
    "inline": (
        SOFTMAX, {"N": 4, "C": 5}, "", "inline e", "map norm: n -> thread\nmap y: n -> thread"
    ),
    "pad": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "pack y: a by 1, 0 -> a2\npack y: b by 1, 0 -> b2",
        "pad y: k to 4", f"map a2: i0 -> thread\nmap b2: i1 -> thread\n{THREADS}",
    ),
    "split": (
        MATMUL, {"M": 10, "K": 10, "N": 8}, "",
        """split y: m by 4 -> mo, mi
           split y: k by 3 -> ko, ki tail cut
           split y: n by 2 -> no, ni tail perfect""",
        "map y: mo -> grid, ni -> thread",
    ),
    "split_symbolic": (
        MATMUL, {"M": 10}, "",
        """split y: n by 32 -> no, ni
           split y: k by 8 -> ko, ki tail pad""",
        "map y: m -> grid, ni -> thread",
    ),
    "split_of_a_copy": (
        COPY, {"A": 10, "B": 7}, "", "split y: a by 4 -> ao, ai tail cut", "map y: b -> thread"
    ),
    "tile": (
        MATMUL, {"M": 10, "K": 10, "N": 8}, "",
        "tile y: m by 4, n by 2 -> mo, no, mi, ni tail cut", "map y: mo -> grid, no -> thread",
    ),
    "fuse": (MATMUL, {"M": 5, "K": 3, "N": 7}, "", "fuse y: m, n -> mn", "map y: mn -> thread"),
    "order": (
        MATMUL, {"M": 5, "K": 3, "N": 4}, "map y: m -> thread", "order y: k, n", ""
    ),
    "map": (MATMUL, {"M": 5, "K": 3, "N": 4}, "", THREADS, ""),
    "swizzle": (
        MATMUL, {"M": 20, "K": 10, "N": 24},
        """split y: m by 4 -> mo, mi
           split y: n by 8 -> no, ni
           order y: mo, no, mi, ni
           map y: mo -> grid, no -> grid, mi -> thread, ni -> thread""",
        "swizzle y: mo, no by 2", "",
    ),
    "stage": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, DEEP,
        """stage y: a at ko in workgroup
           stage y: b at ko in workgroup pad 1
           stage y: a at ki in register""",
        "",
    ),
    "pipeline": (
        MATMUL, {"M": 6, "K": 50, "N": 8}, TILED,
        "pipeline y: b, a",
        "",
    ),
    "pipeline_of_taps": (
        DOWN, {"C": 10, "L": 30, "K": 4},
        """solve y for l
           split y: o by 8 -> oo, oi tail pad
           split y: c by 4 -> co, ci tail pad
           order y: oo, oi, k, co, ci
           map y: oo -> grid, oi -> thread
           stage y: x at co in workgroup""",
        "pipeline y: x", "",
    ),
    "interior": (
        DOWN, {"C": 10, "L": 97, "K": 4},
        """solve y for l
           split y: o by 8 -> oo, oi tail pad
           split y: c by 4 -> co, ci tail pad
           order y: oo, oi, k, co, ci
           map y: oo -> grid, oi -> thread
           stage y: x at co in workgroup""",
        "interior y: x", "",
    ),
    "unroll": (MATMUL, {"M": 6, "K": 12, "N": 8}, DEEP, "unroll y: ki", ""),
    "vectorize": (
        MATMUL, {"M": 6, "K": 10, "N": 8},
        "split y: n by 4 -> no, ni\nmap y: m -> grid, no -> thread\norder y: k, ni",
        "vectorize y: ni", "",
    ),
    "partial": (MATMUL, {"M": 6, "K": 10, "N": 8}, DEEP, "partial y at ko", ""),
}  # fmt: skip

# The same for host programs.
HOST: dict[str, tuple[str, dict[str, int], str, str, str]] = {
    "map_for_numpy": (
        MATMUL, {"M": 10, "K": 200, "N": 7}, "",
        """order y: k, m, n
           split y: k by 64 -> ko, ki
           map y: ko -> host, ki -> gemm, m -> gemm, n -> gemm
           order y: ko, m, n, ki""",
        "",
    ),
    "map_to_workers": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "phases y over o, k -> t, r, j\nsplit y: t by 8 -> to, ti",
        """order y: to, j, c, r, ti
           map y: to -> worker, j -> host, c -> host""",
        "",
    ),
    "compute_on_workers": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> worker, j -> host
           compute col at y: to""",
        "",
    ),
    "toeplitz_for_numpy": (
        DOWN, {"C": 2, "L": 50, "K": 5}, "",
        """toeplitz y over o, l by 4 -> q, u, a
           solve y for k
           reindex y: w by c, a, u -> w_blocks
           reindex y: x by q, c, a -> x_windows""",
        "map y: q -> gemm, u -> gemm, c -> gemm, a -> gemm",
    ),
    "partial_for_numpy": (
        MATMUL, {"M": 10, "K": 200, "N": 7}, "",
        """order y: k, m, n
           split y: k by 64 -> ko, ki
           map y: ko -> host, ki -> host
           partial y at ko""",
        "",
    ),
    "gather_for_numpy": (
        DOWN, {"C": 2, "L": 15, "K": 4}, "gather y", "order y: o\nmap y: o -> host", ""
    ),
    "compute": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> host, j -> host
           compute col at y: to""",
        "map col: l -> gemm, k -> gemm, c -> gemm",
    ),
    "compute_what_that_reads": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nreindex col: x by l, c -> rows\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> host, j -> host
           compute col at y: to
           compute rows at y: to""",
        "map col: l -> gemm, k -> gemm, c -> gemm",
    ),
}  # fmt: skip
