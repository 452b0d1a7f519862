"""Each rule of the verifier: a program that breaks it, and neighbours that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from convdsl.diagnostics import InternalError
from convdsl.ir.equation import System
from convdsl.ir.expr import Access, Binary, Call, Const, Load, Param, Reduce
from convdsl.ir.index import const, sym
from convdsl.ir.loop import Kernel, LoopProgram, Store
from convdsl.ir.reader import read_program, read_system
from convdsl.ir.verify import RULES, verify, verify_system
from tests.unit.ir_programs import CONV, matmul, values

HEAD = """
func f(N, M)
  let P = N*M
  buffer x: f32[N, M] input
  buffer i: i32[N] input
  buffer c: f32[2] constant = [1, -1/3]
  buffer y: f32[N, M] output
  buffer h: f16[N] output
kernel k
  workgroup w: f32[16]
  register r: f32[4 | 2]
  worker p: f32[M]
"""


def program(body: str) -> LoopProgram:
    return read_program(HEAD + "".join(f"  {line}\n" for line in body.strip("\n").split("\n")))


BROKEN = {
    "names": [
        "y[n, 0] = 1.0",
        "for n in 0..n serial\n  y[n, 0] = 1.0",
        "for n in 0..N serial\n  for n in 0..M serial\n    y[n, n] = 1.0",
        "for N in 0..4 serial\n  y[N, 0] = 1.0",
        "let a = 1 in\n  y[a, 0] = 1.0\ny[a, 0] = 1.0",
        "for n in 0..N serial\n  y[n, 0] = guard(m >= 0: 1.0 else 0.0)",
        "y<q, M>[0, 0] = 1.0",
        "for sum in 0..N serial\n  y[0, 0] = 1.0",
    ],
    "access": ["y<N, M, 2>[0, 0, 0] = 1.0 + x<N*M + 1>[0]", "w<15>[0] = 1.0"],
    "inputs": ["x[0, 0] = 1.0", "c[0] = 1.0"],
    "values": [
        "y[0, 0] = i[0]",
        "y[0, 0] = 1",
        "y[0, 0] = f32(i[0] / 2)",
        "y[0, 0] = x[0, 0] + 1",
        "y[0, 0] = tan(x[0, 0])",
        "y[0, 0] = exp(x[0, 0], 1.0)",
        "y[0, 0] = leaky_relu(x[0, 0])",
        "y[0, 0] = f32(exp(i[0]))",
        "y[0, 0] = select(x[0, 0] < 1, 1.0, 2.0)",
        "y[0, 0] = select(1 < 2, 1.0, 2)",
        "y[0, 0] = guard(N >= 1: 1.0 else 0)",
        "y[0, 0] = $slope",
    ],
    "threads": [
        "for t in 0..4 thread\n  w[t] = 1.0\nfor t in 0..8 thread\n  w[t] = 1.0",
        "for t in 0..N thread\n  w[t] = 1.0",
        "for t in 1..4 thread\n  w[t] = 1.0",
        "for t in 0..4 thread\n  for s in 0..2 serial\n    for u in 0..2 thread\n      w[t] = 1.0",
        "for t in 0..4 thread\n  let a = t\n  for u in 0..2 thread\n    w[a + u] = 1.0",
        "for t in 0..4 thread\n  for u in 0..2 thread\n    w[t*2 + u] = 1.0\n  w[t] = 1.0",
        "for t in 0..0 thread\n  w[t] = 1.0",
    ],
    "grid": [
        "for s in 0..4 serial\n  for n in 0..N grid\n    y[n, s] = 1.0",
        "for n in 0..N grid\n  y[n, 0] = 1.0\nfor n in 0..N grid\n  y[n, 1] = 1.0",
        "for n in 0..N grid\n  for s in 0..2 serial\n    for m in 0..M grid\n      y[n, m] = 1.0",
        "for n in 0..N grid\n  for m in 0..M host\n    y[n, m] = 1.0",
        "for n in 0..N grid\n  for m in 0..n grid\n    y[n, m] = 1.0",
        "for n in 0..N grid\n  let a = n + 1\n  for m in 0..a grid\n    y[n, m] = 1.0",
        "if N > 0\n  for n in 0..N grid\n    y[n, 0] = 1.0",
        "for n in 0..N serial\n  for m in 0..M host\n    y[n, m] = 1.0",
    ],
    "registers": [
        "r[0, 0] = 1.0",
        "for t in 0..4 thread\n  r[t + 1, 0] = 1.0",
        "for t in 0..4 thread\n  w[t] = r[0, 0]",
        "for t in 0..4 thread\n  r<2, 4>[t, 0] = 1.0",
        "for t in 0..2 thread\n  r[t, 0] = 1.0",
        "for t in 0..2 thread\n  for u in 0..2 thread\n    r[t, u] = 1.0",
    ],
    "vectors": [
        "for v in 0..8 vector\n  w[v] = 1.0",
        "for v in 0..N vector\n  w[v] = 1.0",
        "for v in 0..4 vector\n  for s in 0..4 serial\n    w[v*4 + s] = 1.0",
    ],
    "unrolls": ["for s in 0..N unroll\n  w[s] = 1.0"],
    "gemm": [
        "for n in 0..N gemm.m\n  for m in 0..M gemm.n\n    y[n, m] = x[n, m] * x[n, m]",
        "for n in 0..N gemm.m\n  for m in 0..M gemm.n\n    y[n, m] += x[n, m]",
        "for n in 0..N gemm.m\n  y[n, 0] += x[n, 0] * x[n, 0]\n  y[n, 1] += x[n, 0] * x[n, 0]",
        "for n in 0..N gemm.m\n  for m in 0..M serial\n    y[n, m] += x[n, m] * x[n, m]",
    ],
    "exchange": [
        "for t in 0..4 thread\n  w[t] = w[t + 4]",
        "for t in 0..4 thread\n  w[t] = 1.0\n  r[t, 0] = w[t] + w[3 - t]",
    ],
    "writers": [
        "for t in 0..4 thread\n  w[0] = r[t, 0]",
        "for t in 0..4 thread\n  w[0] += 1.0",
        "for n in 0..N grid\n  y[0, 0] += 1.0",
        "for n in 0..N grid\n  for t in 0..4 thread\n    y[t, 0] = f32{n}",
        "for n in 0..N grid\n  for t in 0..4 thread\n    y[t, 0] = r[t, 0]",
        "for t in 0..4 thread\n  let a = t*0\n  w[a] = f32{t}",
    ],
    "workers": [
        "p[0] = 1.0",
        "for n in 0..N host\n  y[n, 0] = p[0]",
        "for n in 0..N worker\n  for m in 0..M worker\n    y[n, m] = 1.0",
        "for n in 0..N worker\n  y[0, 0] = 1.0",  # the same value from all, but still a race
        "for n in 0..N worker\n  y[n, 0] = y[0, 0]",
        "for n in 0..N worker\n  y[n, 0] = 1.0\n  h[0] = 1.0",
        "for n in 0..N worker\n  y[n, 0] = 1.0\n  y<P>[n] = 1.0",
        "for n in 0..N worker\n  for m in 0..4 slice\n    y[0, n*3 + m] = 1.0",
        "for n in 0..N worker\n  for m in n..n + 2 slice\n    y[0, m] = 1.0",
        "for n in 0..N worker\n  for m in 0..M slice\n    y[0, n*M + m] = 1.0",  # beyond isl
        "for n in 0..N worker\n  if n >= 3\n    y[0, 0] = 1.0",
        "for q in 0..4 host\n  for n in 0..N worker\n    y[q, 0] = 1.0",
    ],
}


@pytest.mark.parametrize(("rule", "body"), [(r, b) for r, bodies in BROKEN.items() for b in bodies])
def test_a_broken_rule_is_named(rule: str, body: str) -> None:
    with pytest.raises(InternalError, match=rf"kernel k breaks the rule {rule}: .*\n  in: "):
        verify(program(body))


@pytest.mark.parametrize(
    "body",
    [
        "let a = 1 in\n  y[a, 0] = 1.0\nlet a = 2\ny[a, 0] = 1.0",
        "for n in 0..N serial\n  y[n, 0] = 1.0\nfor n in 0..N serial\n  y[n, 0] = 1.0",
        "y[0, 0] = c[1]",
        "y<P>[0] = x<M, N>[0, 0]",  # the definition of P is put in
        "y<M, N>[0, 0] = x<M*N*N>[0]",  # unknown: N may be 1
        "h[0] = x[0, 0]",
        "h[0] = f16(f32(i[0]) + f32{N})",
        "for t in 0..4 thread\n  r[t, 0] = 1.0\nw[0] = 1.0\nfor u in 0..4 thread\n  w[u] = r[u, 0]",
        (
            "for n in 0..N host\n  let a = n*2\n  for m in 0..a grid\n    for q in 0..M grid\n"
            "      y[m, q] = 1.0"
        ),
        "for t in 0..4 thread\n  for v in 0..4 vector\n    if v < N\n      w[t*4 + v] = 1.0",
        "for s in N..N + 4 unroll\n  w[s - N] = 1.0",
        "for n in 0..N gemm.m\n  for m in 0..M gemm.k\n    y[n, 0] += x[n, m] * exp(x[0, m])",
        "for t in 0..4 thread\n  w[t] = w[t] * 2.0\n  w[t] += 1.0",
        "for t in 0..4 thread\n  w[t] = 1.0\nfor t in 0..4 thread\n  r[t, 0] = w[3 - t]",
        "for t in 0..4 thread\n  if t == 0\n    w[0] += 1.0",
        "for t in 0..4 thread\n  w[0] = 1.0",  # the same value from all
        "for n in 0..1 grid\n  y[0, 0] += 1.0",
        "for t in 0..4 thread\n  for s in t*4..t*4 + 4 serial\n    y[0, s] += 1.0",
        "for n in 0..N serial\n  y[0, 0] += 1.0",
        (
            "for q in 0..4 host\n  for n in 0..N worker\n    for m in 0..M slice\n      p[m] = x[n, m]\n"
            "    for m in 0..M slice\n      y[n, m] += p[m]"
        ),
        (
            "for n in 0..N worker\n  for m in 0..M gemm.m\n    for q in 0..4 gemm.k\n"
            "      y[n, m] += x[n, m] * x[n, q]"
        ),
        "for n in 0..N worker\n  for m in 0..4 slice\n    y[0, n*4 + m] = y[0, n*4 + m] + y[1, n*4]",
        "for n in 0..N worker\n  for m in max(n*2, 1)..min(M, n*2 + 2) slice\n    y[0, m] = 1.0",
        "for n in 0..N worker\n  for m in 0..min(n*N + 1, 4) slice\n    y[n % 4, n//4*4 + m] = 1.0",
        "for n in 0..N worker\n  let a = n*4\n  if a == 8\n    y[0, 0] = 1.0",
        "for n in 0..5 worker\n  for m in 0..3 slice\n    y[0, n*2 + m*5] = 1.0",
        "for n in 0..1 worker\n  y[0, 0] = 1.0",
    ],
)
def test_what_is_allowed(body: str) -> None:
    verify(program(body))


def test_shared_programs_are_well_formed() -> None:
    verify(matmul())
    verify(values())


DECLARATIONS = [
    ("func f(N, M)", "func f(N, N)", "rule sizes"),
    ("let P = N*M", "let P = Q", "rule sizes"),
    ("let P = N*M", "let N = M", "rule sizes"),
    ("buffer i:", "buffer x:", "rule buffers: x is no new name"),
    ("[N] output", "[n] output", r"rule buffers: h has extents of \['n'\]"),
    ("workgroup w:", "workgroup x:", "rule buffers: x is no new name"),
    ("workgroup w: f32[16]", "workgroup w: f32[N]", "rule buffers: w is workgroup memory without"),
    ("workgroup w: f32[16]", "workgroup w: f32[16 |]", "rule buffers: w has 1 thread dims"),
    ("workgroup w: f32[16]", "input w: f32[16]", "rule buffers: w is input"),
    ("buffer y: f32[N, M] output", "buffer y: f32[N, M] workgroup", "rule buffers: y is workgroup"),
    ("constant = [1, -1/3]", "constant = [1]", "rule buffers: c has 1 values for 2 elements"),
    ("constant = [1, -1/3]", "constant", "rule buffers: c has 0 values"),
    ("constant = [1, -1/3]", "temp = [1, 2]", "rule buffers: c has values and is no constant"),
    ("c: f32[2]", "c: i32[2]", "rule buffers: c is a constant of i32"),
    ("c: f32[2]", "c: f32[N]", "rule buffers: c has 2 values for N elements"),
    ("workgroup w: f32[16]", "constant w: f32[16]", "rule buffers: w is constant"),
    ("kernel k", "kernel k\nkernel k", "rule buffers: kernel k"),
]


@pytest.mark.parametrize(("old", "new", "message"), DECLARATIONS)
def test_declarations(old: str, new: str, message: str) -> None:
    verify(read_program(HEAD))
    with pytest.raises(InternalError, match=message):
        verify(read_program(HEAD.replace(old, new)))


def test_what_no_text_can_say() -> None:
    base = program("y[0, 0] = 1.0")
    dims = (sym("N"), sym("M"))
    access = Access("y", (const(0), const(0)), dims)
    one = Const(1.0, "f32")
    bad = [
        (Store(access, Reduce("sum", (), (), one)), "a Reduce has no place"),
        (Store(access, Param("p")), "a Param has no place"),
        (Store(access, Load(replace(access, tensor="x"), "i32")), "x is f32 and read as i32"),
        (Store(access, Binary("+", one, Const(1.5, "i32"))), "the integer constant 1.5"),
        (Store(replace(access, tensor="q"), one), "no buffer q"),
        (Store(replace(access, index=(const(0),)), one), "1 indices for 2 dims"),
        (Store(access, Call("relu", ())), "relu with 0 arguments"),
    ]
    for store, message in bad:
        kernels = (Kernel("k", (), (store,)),)
        with pytest.raises(InternalError, match=message):
            verify(replace(base, kernels=kernels))


def test_each_rule_has_its_test() -> None:
    names = {rule.__name__.removeprefix("check_") for rule in RULES}
    assert names == set(BROKEN) | {"sizes", "buffers"}
    assert all(rule.__doc__ for rule in RULES)


# -- systems --------------------------------------------------------------------------------------
SYSTEM = CONV.replace("$slope", "0.1")


def test_a_good_system() -> None:
    verify_system(read_system(SYSTEM))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(N, C, L, M, K)", "(N, C, L, M, M)", "rule sizes"),
        ("let LO = L*4 + K - 4", "let LO = LO + 1", "rule sizes"),
        (
            "tensor h",
            "tensor w: f32[(2, C), M, K] input\n  tensor h",
            "rule tensors: w is no new name",
        ),
        ("(2, M), LO] output", "(2, M), LX] output", "rule tensors: the extents of y"),
        ("L] let", "L] let = 0.5", "rule tensors: h has a default"),
        ("L] let", "L] output", "rule tensors: not exactly one output"),
        (
            "(2, M)] input = 0.0",
            "(2, M)] constant = [1, 2]",
            "rule tensors: b has 2 values for 2*M",
        ),
        ("M, K] input", "M, K] input = [1]", "rule tensors: w has values and is no constant"),
        ("b: f32[(2, M)] input = 0.0", "b: i32[(2, M)] constant = [1]", "rule tensors: b is a"),
        ("equation h", "equation b", "rule order: b is an input"),
        ("](h[n", "](y[n", "rule order: y reads y too early"),
        (
            "equation h\n",
            "equation h\nequation h\n",
            "rule order: h is an input, unknown or has two",
        ),
        ("g in 0..2, c in 0..C, l", "n in 0..2, c in 0..C, l", "rule scopes: n is no new name"),
        ("if o != 0", "if q != 0", "rule scopes: q is not defined in q"),
        ("sum[c in 0..C, k in", "sum[c in 0..C, o in", "rule scopes: o is no new name"),
        (
            "k in 0..min(K, 1), l in 0..L](h[n, g, 0, l]",
            "l in 0..L](h[n, g, k, l]",
            "rule scopes: k",
        ),
        (
            "(h[n, g, 0, l] else -inf)",
            "(h[n, g, 0, l] else h[n, g, 0, l])",
            "rule scopes: l is not",
        ),
        ("    h[n, g, c, l] =", "    x[n, g, c, l] =", "rule access: it writes x"),
        ("b[g, m] + max", "b<2*M + 1>[m] + max", "rule access: the view of b has"),
        ("x[n, g, c, l], 0.1)", "x[n, g, c, l])", "rule values: leaky_relu with 1"),
        ("= leaky_relu(x[n, g, c, l], 0.1)", "= 1", "rule values: a value of i32"),
    ],
)
def test_a_broken_system(old: str, new: str, message: str) -> None:
    assert old in SYSTEM
    with pytest.raises(InternalError, match=message):
        verify_system(read_system(SYSTEM.replace(old, new)))


def test_every_tensor_is_defined() -> None:
    system = read_system(SYSTEM)
    without: System = replace(system, equations=system.equations[:1])
    with pytest.raises(InternalError, match=r"no equation for \['y'\]"):
        verify_system(without)
