"""Small programs that several tests of the IRs share."""

from __future__ import annotations

from convdsl.ir.equation import System
from convdsl.ir.loop import LoopProgram
from convdsl.ir.reader import read_program, read_system

# Every statement, level and memory of the loop IR; what it computes is a matrix product with an
# epilogue, by workgroups of 2 x 4 threads.
MATMUL = """
func matmul(M, N, K)
  let MB = -(-M // 4)
  buffer a: f32[M, K] input
  buffer b: f32[K, N] input
  buffer y: f16[M, N] output
kernel y_gemm  # y = gemm, tiles of 4 by 4
  workgroup ta: f32[4, 8]
  register acc: f32[2, 4 | 2]
  for mb in 0..MB grid
    for nb in 0..-(-N // 4) grid
      for ty in 0..2 thread
        for tx in 0..4 thread
          for i in 0..2 unroll
            acc[ty, tx, i] = 0.0
      for kb in 0..-(-K // 8) serial
        for ty in 0..2 thread
          for tx in 0..4 thread
            let row = mb*4 + ty*2
            for i in 0..2 serial
              let k = kb*8 + tx*2 in
                for v in 0..2 vector
                  ta[ty*2 + i, tx*2 + v] = guard(row + i < M, k + v < K: a[row + i, k + v] else 0.0)
              ta[ty*2 + i, tx*2] *= 1.0
        for ty in 0..2 thread
          for tx in 0..4 thread
            for i in 0..2 unroll
              for kk in 0..min(8, K - kb*8) serial
                if nb*4 + tx < N
                  acc[ty, tx, i] += ta[ty*2 + i, kk] * b<K*N>[(kb*8 + kk)*N + nb*4 + tx]
      for ty in 0..2 thread
        for tx in 0..4 thread
          for i in 0..2 unroll
            if mb*4 + ty*2 + i < M, nb*4 + tx < N
              y[mb*4 + ty*2 + i, nb*4 + tx] = max(acc[ty, tx, i], 0.0)
"""

# The values that the other one does not have.
VALUES = """
func values(N)
  buffer x: f32[N] input
  buffer i: i32[N] input
  buffer t: f32[] temp
  buffer y: f32[N, 2] output
  buffer j: i32[N] output
kernel total
  t[] = 0.0
  for n in 0..N host
    t[] += abs(x[n]) * f32(i[n]) / f32{N}
kernel y
  for n in 0..N slice
    y[n, 0] = select(x[n] < t[], -1.5, leaky_relu(x[n], 0.1) - (x[n] - t[]))
    y[n, 1] = f16(sigmoid(x[n]))
    y[n, 1] max= min(t[], +inf)
    j[n] = i[n] + i32{n*2 - 1} + i32(x[n])
kernel gemm
  temp g: f32[2, N]
  for p in 0..2 slice
    for n in 0..N slice
      if n != p, n == n // 2 * 2
        g[p, n] = 0.0
"""

CONV = """
system conv_transpose1d(N, C, L, M, K)
  let LO = L*4 + K - 4
  tensor x: f32[N, (2, C), L] input
  tensor w: f32[(2, C), M, K] input
  tensor b: f32[(2, M)] input = 0.0
  tensor h: f32[N, (2, C), L] let
  tensor y: f32[N, (2, M), LO] output
equation h
  for n in 0..N, g in 0..2, c in 0..C, l in 0..L
    h[n, g, c, l] = leaky_relu(x[n, g, c, l], $slope)
equation y
  for n in 0..N, g in 0..2, m in 0..M, o in 0..LO if o != 0
    y[n, g, m, o] = b[g, m]
        + sum[c in 0..C, k in 0..K, l in 0..L | l*4 + k == o](h[n, g, c, l] * w[g, c, m, k])
  for n in 0..N, g in 0..2, m in 0..M  # first
    y[n, g, m, 0] = b[g, m] + max[k in 0..min(K, 1), l in 0..L](h[n, g, 0, l] else -inf)
""".replace("= b[g, m]\n        + sum", "= b[g, m] + sum")


def matmul() -> LoopProgram:
    return read_program(MATMUL)


def values() -> LoopProgram:
    return read_program(VALUES)


def conv() -> System:
    return read_system(CONV)
