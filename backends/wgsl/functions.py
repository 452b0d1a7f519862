"""The functions WGSL lacks, or leaves too inexact: each is emitted only when a kernel uses it.

Stated errors are measured against float64 in `tests/unit/test_wgsl_functions.py`. A name ending in
`4` is the same function on `vec4<f32>`; `T` in a text stands for the type.
"""

from __future__ import annotations

import re

from convdsl.backends.wgsl.names import Names

_INTEGER = {
    "floor_div": """\
// Quotient rounded down, for a positive divisor.
fn floor_div(a: i32, b: i32) -> i32 {
  let q = a / b;
  return select(q, q - 1, q * b > a);
}""",
    "floor_mod": """\
// The remainder that goes with floor_div: zero or more.
fn floor_mod(a: i32, b: i32) -> i32 {
  let r = a % b;
  return select(r, r + b, r < 0);
}""",
}

# Constants that evaluate to infinity or NaN are refused by WGSL compilers, variables are not.
_SPECIAL = {
    "infinity": """\
var<private> infinity_bits: u32 = 0x7f800000u;

fn infinity() -> f32 {
  return bitcast<f32>(infinity_bits);
}""",
    "not_a_number": """\
var<private> not_a_number_bits: u32 = 0x7fc00000u;

fn not_a_number() -> f32 {
  return bitcast<f32>(not_a_number_bits);
}""",
}

_SCALAR = {
    "round_f16": """\
// The nearest half precision number, ties to even, as an f32.
fn round_f16(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) >= 0x7f800000u) {
    return x;
  }
  let normal = bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
  let tiny = round(x * 16777216.0) * 5.9604645e-8;
  let near = select(normal, tiny, abs(x) < 6.1035156e-5);
  if (abs(near) < 65520.0) {
    return near;
  }
  return select(infinity(), -infinity(), x < 0.0);
}""",
    "power": """\
// x to the power y; a negative x has a value for whole y only.
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0) {
    return 1.0;
  }
  if (x == 0.0) {
    return select(0.0, infinity(), y < 0.0);
  }
  let size = pow(abs(x), y);
  if (x > 0.0) {
    return size;
  }
  if (floor(y) != y) {
    return not_a_number();
  }
  return select(size, -size, y - 2.0 * floor(y * 0.5) == 1.0);
}""",
}

_REAL = {
    "sine": """\
// Reduced by multiples of pi; error below 2e-7 for |x| up to 1000. The built-in: 5e-4.
fn sine(x: T) -> T {
  let n = round(x * 0.31830987);
  var r = fma(n, T(-3.1414795), x);
  r = fma(n, T(-0.00011315942), r);
  r = fma(n, T(-1.9841873e-9), r);
  r = r * (1.0 - 2.0 * (n - 2.0 * floor(n * 0.5)));
  let s = r * r;
  var p = fma(s, T(2.608316e-6), T(-0.0001981069));
  p = fma(p, s, T(0.008333079));
  p = fma(p, s, T(-0.1666666));
  return fma(s * r, p, r);
}""",
    "cosine": """\
// As sine, a quarter turn on.
fn cosine(x: T) -> T {
  let n = round(fma(x, T(0.31830987), T(-0.5)));
  let q = 2.0 * n + 1.0;
  var r = fma(q, T(-1.5707397), x);
  r = fma(q, T(-5.657971e-5), r);
  r = fma(q, T(-9.920936e-10), r);
  r = r * (2.0 * (n - 2.0 * floor(n * 0.5)) - 1.0);
  let s = r * r;
  var p = fma(s, T(2.608316e-6), T(-0.0001981069));
  p = fma(p, s, T(0.008333079));
  p = fma(p, s, T(-0.1666666));
  return fma(s * r, p, r);
}""",
    "hyperbolic_tangent": """\
// The built-in one overflows for large |x| and cancels for small; relative error below 4e-7.
fn hyperbolic_tangent(x: T) -> T {
  let a = min(abs(x), T(10.0));
  let s = a * a;
  var p = fma(s, T(-0.005704989), T(0.020639088));
  p = fma(p, s, T(-0.05373972));
  p = fma(p, s, T(0.13331442));
  p = fma(p, s, T(-0.33333282));
  let small = fma(p * s, a, a);
  let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
  let size = select(large, small, a < T(0.625));
  return select(size, -size, x < T(0.0));
}""",
    "logistic": """\
// 1 / (1 + exp(-x)) without overflow.
fn logistic(x: T) -> T {
  return 1.0 / (1.0 + exp(-max(x, T(-87.0))));
}""",
    "gauss_linear": """\
// x times the normal distribution function, by a form of erfc with a relative error of 1.2e-7;
// error below 5e-7 relative to |x|.
fn gauss_linear(x: T) -> T {
  let z = min(abs(x) * 0.70710677, T(12.0));
  let t = 1.0 / (1.0 + 0.5 * z);
  var p = fma(t, T(0.17087277), T(-0.82215223));
  p = fma(p, t, T(1.48851587));
  p = fma(p, t, T(-1.13520398));
  p = fma(p, t, T(0.27886807));
  p = fma(p, t, T(-0.18628806));
  p = fma(p, t, T(0.09678418));
  p = fma(p, t, T(0.37409196));
  p = fma(p, t, T(1.00002368));
  p = fma(p, t, T(-1.26551223));
  let half = 0.5 * t * exp(p - z * z);
  return x * select(1.0 - half, half, x < T(0.0));
}""",
    "leaky": """\
// x, or slope * x where x is negative.
fn leaky(x: T, slope: T) -> T {
  return select(slope * x, x, x >= T(0.0));
}""",
}

_NEEDS = {"round_f16": ("infinity",), "power": ("infinity", "not_a_number"), "power4": ("power",)}
_NEEDS["round_f164"] = ("round_f16",)


def _texts() -> dict[str, str]:
    texts = {**_INTEGER, **_SPECIAL, **_SCALAR}
    for name, text in _REAL.items():
        texts[name] = re.sub(r"\bT\b", "f32", text)
        four = re.sub(r"\bT\b", "vec4<f32>", text.replace(f"fn {name}(", f"fn {name}4("))
        texts[f"{name}4"] = four.split("\n", 1)[1] if four.startswith("//") else four
    texts["power4"] = """\
fn power4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(power(x.x, y.x), power(x.y, y.y), power(x.z, y.z), power(x.w, y.w));
}"""
    texts["round_f164"] = """\
fn round_f164(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(round_f16(x.x), round_f16(x.y), round_f16(x.z), round_f16(x.w));
}"""
    return texts


TEXTS = _texts()
"""The text of each helper by its name."""

_TABLE = {
    "sin": "sine", "cos": "cosine", "tanh": "hyperbolic_tangent", "sigmoid": "logistic",
    "gelu": "gauss_linear", "leaky_relu": "leaky", "pow": "power",
}  # fmt: skip
DIRECT = frozenset({"abs", "sqrt", "exp", "log"})
"""Functions that WGSL has with enough accuracy."""


class Helpers:
    """The helpers that a module uses, in the order of the table."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    @staticmethod
    def reserve(names: Names) -> None:
        """Keep the names of all helpers from being given to anything else."""
        for name in TEXTS:
            names.fresh(name)
        names.fresh("infinity_bits")
        names.fresh("not_a_number_bits")

    def use(self, name: str) -> str:
        """The name, after making sure that the module will have the function."""
        self._used.add(name)
        for needed in _NEEDS.get(name, ()):
            self.use(needed)
        return name

    def function(self, name: str, width: int) -> str:
        """What to call for a function of the language on values of this width."""
        if name in DIRECT:
            return name
        return self.use(_TABLE[name] + ("4" if width == 4 else ""))

    def texts(self) -> list[str]:
        return [text for name, text in TEXTS.items() if name in self._used]
