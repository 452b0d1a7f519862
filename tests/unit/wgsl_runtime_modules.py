"""WGSL modules written by hand, for the tests of the runtime."""

from __future__ import annotations

from convdsl.backends.wgsl.module import Binding, Limits, WgslKernel, WgslModule
from convdsl.ir.expr import DType
from convdsl.ir.index import ONE, Index, ceildiv, const, sym
from convdsl.ir.loop import Buffer

N = sym("n")

_ADD = """struct Sizes { n: i32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> sizes: Sizes;

@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = i32(id.x);
  if (i < sizes.n) { y[i] = a[i] + b[i]; }
}
"""

_COPY = """@group(0) @binding(0) var<storage, read> a: array<TYPE>;
@group(0) @binding(1) var<storage, read_write> y: array<TYPE>;

@compute @workgroup_size(64)
fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < SIZEu) { y[id.x] = a[id.x]; }
}
"""

_CHAIN = """struct Sizes { n: i32, m: i32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> t: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> sizes: Sizes;

@compute @workgroup_size(64)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = i32(id.x);
  if (i < sizes.m) { t[i] = 2.0 * a[i / 2]; }
}

@compute @workgroup_size(64)
fn reversed(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = i32(id.x);
  if (i < sizes.n) { y[i] = t[sizes.m - 1 - 2 * i] + 1.0; }
}
"""


def kernel(
    entry: str, *bindings: Binding, over: Index = N, workgroup: tuple[int, int, int] = (64, 1, 1)
) -> WgslKernel:
    return WgslKernel(entry, entry, bindings, workgroup, (ceildiv(over, workgroup[0]), ONE, ONE))


def buffer(name: str, memory: str, *dims: Index, dtype: DType = "f32") -> Buffer:
    assert memory in ("input", "temp", "output")
    return Buffer(name, dtype, dims or (N,), memory)  # type: ignore[arg-type]


def add(text: str = _ADD, entry: str = "add") -> WgslModule:
    """y[n] = a[n] + b[n], with n in a uniform."""
    bindings = (
        Binding(0, "a", "read"),
        Binding(1, "b", "read"),
        Binding(2, "y", "read_write"),
        Binding(3, "", "uniform"),
    )
    buffers = (buffer("a", "input"), buffer("b", "input"), buffer("y", "output"))
    made = kernel(entry, *bindings)
    return WgslModule("add", text, ("n",), ("n",), (), buffers, (made,), Limits())


def copy(size: int, dtype: DType = "f32") -> WgslModule:
    """y[size] = a[size], the size a number in the text."""
    text = _COPY.replace("SIZE", str(size)).replace("TYPE", dtype)
    half = dtype == "f16"
    buffers = (
        buffer("a", "input", const(size), dtype=dtype),
        buffer("y", "output", const(size), dtype=dtype),
    )
    bindings = (Binding(0, "a", "read"), Binding(1, "y", "read_write"))
    return WgslModule(
        "copy",
        ("enable f16;\n" if half else "") + text,
        (),
        (),
        (),
        buffers,
        (kernel("copy", *bindings, over=const(size)),),
        Limits(),
        frozenset({"shader-f16"} if half else ()),
    )


def chain() -> WgslModule:
    """y[n] = 2 * a[n - 1 - i] + 1 through a temporary of m = 2*n elements, m a definition."""
    bindings = (
        Binding(0, "a", "read"),
        Binding(1, "t", "read_write"),
        Binding(2, "y", "read_write"),
        Binding(3, "", "uniform"),
    )
    first = kernel("twice", bindings[0], bindings[1], bindings[3], over=sym("m"))
    second = kernel("reversed", *bindings[1:])
    buffers = (buffer("a", "input"), buffer("t", "temp", sym("m")), buffer("y", "output"))
    return WgslModule(
        "chain", _CHAIN, ("n", "m"), ("n",), (("m", 2 * N),), buffers, (first, second), Limits()
    )
