"""Constants: numbers that belong to a program, in the interpreter and on each target."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from convdsl.backends.numpy.emit import emit_module as emit_numpy
from convdsl.backends.numpy.module import load
from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import CdslError
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.reader import read_program, read_system
from convdsl.ir.text import print_program, print_system
from convdsl.ir.verify import verify, verify_system
from tests.wgsl_device import run_module
from tests.wgsl_rules import check_wgsl_text

HEAD = """
func f()
  buffer x: f32[4] input
  buffer c: f32[2, 4] constant = [1, -1/2, 0, 1, 1/3, 2, -1, 45/7]
  buffer y: f32[2] output
"""
UNROLLED = """
kernel k
  register acc: f32[1 | 2]
  for t in 0..1 thread
    for m in 0..2 unroll
      acc[t, m] = 0.0
    for k in 0..4 unroll
      for m in 0..2 unroll
        acc[t, m] += x[k] * c[m, k]
    for m in 0..2 unroll
      y[m] = acc[t, m]
"""
SUM = """
kernel k
  for m in 0..2 thread
    y[m] = c[m, 0] * x[0] + x[1] * c[m, 1] + c[m, 2] * x[2] + c[m, 3] * x[3]
"""
VECTOR = """
func f()
  buffer x: f32[8] input
  buffer c: f32[4] constant = [1, -1, 0, 1/4]
  buffer y: f32[8] output
kernel k
  for t in 0..2 thread
    for v in 0..4 vector
      y[t*4 + v] = c[v] * x[t*4 + v] + c[1] * x[t*4 + v] + c[2] * x[t*4 + v]
"""
PRODUCT = """
kernel k
  for m in 0..2 slice
    y[m] = 0.0
  for m in 0..2 gemm.m
    for k in 0..4 gemm.k
      y[m] += c[m, k] * x[k]
"""
X = np.array([3, 1, -2, 4], np.float32)
MATRIX = np.array([[1, -0.5, 0, 1], [1 / 3, 2, -1, 45 / 7]])


@pytest.mark.parametrize("body", [UNROLLED, SUM, PRODUCT])
def test_interpreter(body: str) -> None:
    program = read_program(HEAD + body)
    verify(program)
    assert read_program(print_program(program)) == program
    assert program.buffer("c").values[4] == Fraction(1, 3)
    found = run_program(program, {"x": X}, {})
    assert set(found) == {"y"}
    np.testing.assert_allclose(found["y"], MATRIX @ X, rtol=1e-15)


def test_system() -> None:
    system = read_system("""
system f()
  tensor x: f32[4] input
  tensor c: f32[2, 4] constant = [1, -1/2, 0, 1, 1/3, 2, -1, 45/7]
  tensor y: f32[2] output
equation y
  for m in 0..2
    y[m] = sum[k in 0..4](c[m, k] * x[k])
""")
    verify_system(system)
    assert read_system(print_system(system)) == system
    np.testing.assert_allclose(evaluate_system(system, {"x": X})["y"], MATRIX @ X, rtol=1e-15)


def test_a_quotient_by_zero() -> None:
    with pytest.raises(CdslError, match="E0404"):
        read_program(HEAD.replace("-1/2", "-1/0"))


def test_numbers_in_the_text() -> None:
    """Products with 0, 1 and -1 are none, and there is no array where no index needs it."""
    module = emit_module(read_program(HEAD + UNROLLED), Limits())
    check_wgsl_text(module.text)
    lines = [line.strip() for line in module.text.splitlines() if "acc_" in line and "x[" in line]
    assert lines == [
        "acc_0 += x[0];",
        "acc_1 = fma(x[0], 0.33333334, acc_1);",
        "acc_0 = fma(x[1], -0.5, acc_0);",
        "acc_1 = fma(x[1], 2.0, acc_1);",
        "acc_1 -= x[2];",
        "acc_0 += x[3];",
        "acc_1 = fma(x[3], 6.428571, acc_1);",
    ]
    assert "const" not in module.text
    assert [b.name for b in module.buffers] == ["x", "y"]
    assert [b.buffer for b in module.kernels[0].bindings] == ["x", "y"]


def test_an_array_in_the_text() -> None:
    module = emit_module(read_program(HEAD + SUM), Limits())
    check_wgsl_text(module.text)
    array = "const c = array<f32, 8>(1.0, -0.5, 0.0, 1.0, 0.33333334, 2.0, -1.0, 6.428571);"
    assert array in module.text.splitlines()
    assert [b.buffer for b in module.kernels[0].bindings] == ["x", "y"]


def test_lanes() -> None:
    text = emit_module(read_program(VECTOR), Limits()).text
    assert "vec4<f32>(1.0, -1.0, 0.0, 0.25) * x[tx] + (-x[tx]) + 0.0" in text.replace(
        "vec4<f32>(0.0)", "0.0"
    )


@pytest.mark.gpu
@pytest.mark.parametrize("text", [HEAD + UNROLLED, HEAD + SUM, VECTOR])
def test_on_a_device(text: str) -> None:
    program = read_program(text)
    x: Any = np.resize(X, program.buffer("x").dims[0].as_int() or 0)
    want = run_program(program, {"x": x}, {})["y"]
    found = run_module(emit_module(program, Limits()), {"x": x}, {})["y"]
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_numpy() -> None:
    module = emit_numpy(read_program(HEAD + PRODUCT))
    before, _, after = module.text.partition("def f(")
    assert "c=np.array((1.0,-0.5,0.0,1.0,0.3333333432674408,2.0" in "".join(before.split())
    assert "np.array" not in after
    assert module.parameters == ("x",)
    np.testing.assert_allclose(load(module)(X), MATRIX @ X, rtol=1e-6)
