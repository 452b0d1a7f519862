"""The emitted NumPy text: goldens, no hidden copies, names that stay data, messages."""

from __future__ import annotations

import ast
import math
import traceback
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.module import load
from convdsl.ir.expr import Access, Binary, Call, Cast, Const, Expr, Load, Pred, Scalar, Var
from convdsl.ir.index import Index, as_index, const, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, Level, LoopProgram, Store, nest

GOLDEN = Path(__file__).parents[1] / "golden" / "numpy"
Golden = Callable[[Path, str], None]
AXES = {"x": (1, 2, 1), "w": (2, 1, 1), "b": (1,), "y": (1, 1, 1)}
n, c, k, j, r, i, m, o = map(sym, ("n", "c", "k", "j", "r", "i", "m", "o"))
at = sym("l")


def span(name: str, high: Index | int, low: Index | int = 0) -> Var:
    return Var(name, as_index(low), as_index(high))


def access(tensor: str, index: tuple[Index | int, ...], dims: tuple[Index | int, ...]) -> Access:
    return Access(tensor, tuple(map(as_index, index)), tuple(map(as_index, dims)))


def read(tensor: str, index: tuple[Index | int, ...], dims: tuple[Index | int, ...]) -> Load:
    return Load(access(tensor, index, dims), "f32")


def buffer(name: str, dims: tuple[Index | int, ...], memory: Any, dtype: Any = "f32") -> Buffer:
    return Buffer(name, dtype, tuple(map(as_index, dims)), memory)


def loops(level: Level, *variables: Var) -> list[tuple[Var, Level]]:
    return [(v, level) for v in variables]


def columns(
    N: Index | int, C: Index | int, L: Index | int, LO: Index | int, *, K: int, s: int
) -> LoopProgram:
    """conv_transpose1d with one output channel: a product, then blocks that overlap are added."""
    col = access("col", (at, k), (L, K))
    product = Binary(
        "*", read("x", (n, 0, c, at), (N, 1, C, L)), read("w", (0, c, 0, k), (1, C, 1, K))
    )
    gemm: list[tuple[Var, Level]] = [
        (span("l", L), "gemm.m"),
        (span("k", K), "gemm.n"),
        (span("c", C), "gemm.k"),
    ]
    body = (
        *nest(loops("slice", span("l", L), span("k", K)), (Store(col, Const(0.0, "f32")),)),
        *nest(gemm, (Store(col, product, "+"),)),
        *nest(
            loops("slice", span("o", LO)),
            (Store(access("y", (n, 0, o), (N, 1, LO)), read("b", (0,), (1,))),),
        ),
        *nest(
            [(span("j", K // s), "host"), *loops("slice", span("l", L), span("r", s))],
            (
                Store(
                    access("y", (n, 0, (at + j) * s + r), (N, 1, LO)),
                    read("col", (at, j * s + r), (L, K)),
                    "+",
                ),
            ),
        ),
    )
    kernel = Kernel("columns", (), nest([(span("n", N), "host")], body), "columns, overlap-add")
    known = {"N": N, "C": C, "L": L}
    sizes = tuple(name for name, value in known.items() if isinstance(value, Index))
    definitions: tuple[tuple[str, Index], ...] = ()
    if isinstance(L, Index):
        definitions = (("LO", (L - 1) * s + K),)
    return LoopProgram(
        "conv_transpose1d",
        sizes,
        definitions,
        (
            buffer("x", (N, 1, C, L), "input"),
            buffer("w", (1, C, 1, K), "input"),
            buffer("b", (1,), "input"),
            buffer("col", (L, K), "temp"),
            buffer("y", (N, 1, LO), "output"),
        ),
        (kernel,),
    )


def matmul(value: Expr | None = None, dtype: Any = "f32") -> LoopProgram:
    """c = leaky_relu(a @ b + bias) over a batch."""
    dims = (6, 40, 50)
    target = access("c", (n, i, j), dims)
    stored = (span("n", 6), span("i", 40), span("j", 50))
    gemm: list[tuple[Var, Level]] = [
        (stored[0], "gemm.batch"),
        (stored[1], "gemm.m"),
        (stored[2], "gemm.n"),
        (span("k", 30), "gemm.k"),
    ]
    product = Binary("*", read("a", (n, i, k), (6, 40, 30)), read("b", (k, j), (30, 50)))
    last = Call("leaky_relu", (Load(target, "f32"), Const(0.1, "f32")))
    body = (
        *nest(loops("slice", *stored), (Store(target, read("bias", (j,), (50,))),)),
        *nest(gemm, (Store(target, product, "+"),)),
        *nest(loops("slice", *stored), (Store(target, value or last),)),
    )
    return LoopProgram(
        "matmul",
        (),
        (),
        (
            buffer("a", (6, 40, 30), "input", dtype),
            buffer("b", (30, 50), "input", dtype),
            buffer("bias", (50,), "input"),
            buffer("c", dims, "output"),
        ),
        (Kernel("product", (), body, "c = leaky_relu(a @ b + bias)"),),
    )


def unary(value: Expr, size: int, dtype: Any = "f32") -> LoopProgram:
    """y[i] = value of x[i]."""
    store = Store(access("y", (i,), (size,)), value)
    body = nest(loops("slice", span("i", size)), (store,))
    return LoopProgram(
        "f",
        (),
        (),
        (buffer("x", (size,), "input", dtype), buffer("y", (size,), "output")),
        (Kernel("k", (), body),),
    )


def integers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(-3, 4, shape).astype(np.float32)


# -- text -----------------------------------------------------------------------------------------
def test_columns_golden(golden: Golden) -> None:
    program = columns(8, 4098, 435, 448512, K=4096, s=1024)
    golden(GOLDEN / "conv_transpose1d_columns.py.txt", emit_module(program, AXES).text)


def test_symbolic_golden(golden: Golden) -> None:
    program = columns(sym("N"), sym("C"), sym("L"), sym("LO"), K=16, s=4)
    golden(GOLDEN / "conv_transpose1d_symbolic.py.txt", emit_module(program, AXES).text)


def test_matmul_golden(golden: Golden) -> None:
    golden(GOLDEN / "matmul.py.txt", emit_module(matmul()).text)


def test_goldens_run() -> None:
    program = columns(2, 3, 5, 24, K=8, s=4)
    arrays = {"x": integers((2, 3, 5)), "w": integers((3, 1, 8)), "b": integers((1,))}
    want = run_program(program, arrays, {})["y"]
    assert (load(emit_module(program, AXES))(*arrays.values()) == want).all()
    a, b, bias = integers((6, 40, 30)), integers((30, 50)), integers((50,))
    exact = a @ b + bias
    got = load(emit_module(matmul()))(a, b, bias)
    np.testing.assert_allclose(got, np.where(exact >= 0, exact, 0.1 * exact), rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 5), (0, 3, 5), (2, 0, 5), (2, 3, 1)])
def test_symbolic_runs(shape: tuple[int, int, int]) -> None:
    program = columns(sym("N"), sym("C"), sym("L"), sym("LO"), K=16, s=4)
    arrays = {"x": integers(shape), "w": integers((shape[1], 1, 16)), "b": integers((1,))}
    sizes = dict(zip("NCL", shape, strict=True))
    got = load(emit_module(program, AXES))(*arrays.values())
    assert (got == run_program(program, arrays, sizes)["y"]).all()


def test_text_is_stable() -> None:
    assert emit_module(matmul()) == emit_module(matmul())


def test_no_hidden_copies() -> None:
    """Beside `col` nothing of the size of a row is made; a strided `out` is written in place."""
    program = columns(2, 64, 256, 259 * 64, K=256, s=64)
    function = load(emit_module(program, AXES))
    arrays = [integers((2, 64, 256)), integers((64, 1, 256)), integers((1,))]
    out = np.empty((2, 1, 259 * 64, 2), np.float32)[..., 0]
    function(*arrays, out=out)
    tracemalloc.start()
    function(*arrays, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 * 256 * 4 + 50000
    assert (out == function(*arrays)).all()


def test_half_inputs_widen_once() -> None:
    text = emit_module(matmul(dtype="f16")).text
    assert text.count("astype") == 2
    a, b = integers((6, 40, 30)).astype(np.float16), integers((30, 50)).astype(np.float16)
    got = load(emit_module(matmul(Load(access("c", (n, i, j), (6, 40, 50)), "f32"), "f16")))(
        a, b, np.zeros(50, np.float32)
    )
    assert (got == a.astype(np.float32) @ b.astype(np.float32)).all()


# -- values ---------------------------------------------------------------------------------------
def test_gelu_is_exact() -> None:
    x = np.concatenate([np.linspace(-13, 13, 20001), [-np.inf, np.inf, np.nan]]).astype(np.float32)
    program = unary(Call("gelu", (read("x", (i,), (x.size,)),)), x.size)
    got = load(emit_module(program))(x)
    want = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x[:-3].tolist()])
    far = np.abs(want) > 1e-37
    assert (np.abs(got[:-3] - want)[far] <= 1e-6 * np.abs(want)[far]).all()
    assert got[-3:].tolist()[:2] == [0.0, math.inf]
    assert math.isnan(got[-1])


@pytest.mark.parametrize(
    "name", ["abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu"]
)
def test_functions_as_defined(name: str) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 40.0, -40.0, np.inf, -np.inf, np.nan]
    x = np.concatenate([np.linspace(-4, 4, 55), special]).astype(np.float32)
    for value in (
        Call(name, (read("x", (i,), (64,)),)),
        Call("relu", (Call(name, (Binary("+", read("x", (i,), (64,)), Const(0.5, "f32")),)),)),
        Call("leaky_relu", (Call(name, (read("x", (i,), (64,)),)), Const(0.25, "f32"))),
        Call("pow", (Call(name, (read("x", (i,), (64,)),)), Const(2.0, "f32"))),
    ):
        program = unary(value, 64)
        got = load(emit_module(program))(x)
        assert got.dtype == np.float32
        np.testing.assert_allclose(
            got, run_program(program, {"x": x}, {})["y"], rtol=2e-6, atol=1e-6
        )


def test_literals_stay_float32() -> None:
    value = Binary(
        "+", Call("sqrt", (Const(2.0, "f32"),)), Binary("/", Const(1.0, "f32"), Const(0.0, "f32"))
    )
    program = unary(Binary("*", value, read("x", (i,), (4,))), 4)
    assert load(emit_module(program))(np.ones(4, np.float32)).tolist() == [math.inf] * 4


def test_casts_to_integers_saturate() -> None:
    x = np.array([1.9, -1.9, np.nan, 3e9, -np.inf], np.float32)
    value = Cast("f32", Cast("i32", read("x", (i,), (5,))))
    program = unary(value, 5)
    got = load(emit_module(program))(x)
    assert (got == run_program(program, {"x": x}, {})["y"].astype(np.float32)).all()


def test_loops_without_a_numpy_form() -> None:
    """A recurrence, names, conditions and locals run as Python loops."""
    body = (
        Store(access("t", (0,), (9,)), Const(1.0, "f32")),
        *nest(
            loops("slice", span("i", 8)),
            (
                Store(
                    access("t", (i + 1,), (9,)),
                    Binary("+", read("t", (i,), (9,)), read("x", (i,), (8,))),
                ),
            ),
        ),
        For(
            span("k", 8),
            "thread",
            (
                Let(
                    "next",
                    k + 1,
                    (
                        If(
                            (Pred("ne", k - 3),),
                            (Store(access("y", (k,), (8,)), read("t", (sym("next"),), (9,))),),
                        ),
                        If(
                            (Pred("eq", k - 3),),
                            (Store(access("y", (k,), (8,)), Scalar(sym("next") * 2, "f32")),),
                        ),
                    ),
                ),
            ),
        ),
    )
    kernel = Kernel("k", (buffer("t", (9,), "workgroup"),), body)
    buffers = (buffer("x", (8,), "input"), buffer("y", (8,), "output"))
    program = LoopProgram("f", (), (), buffers, (kernel,))
    x = integers((8,))
    got = load(emit_module(program))(x)
    assert (got == run_program(program, {"x": x}, {})["y"]).all()


# -- safety and messages --------------------------------------------------------------------------
HOSTILE = [
    "np",
    "class",
    "out",
    "x'; import os; '",
    "match",
    "ü",
    "a\nb",
    "_check",
    "range",
    "9",
    "x",
]


def test_names_never_become_code() -> None:
    """Whatever the names and comments are, the text has the statements it should have."""
    for name in HOSTILE:
        body = nest(
            loops("slice", Var(name, const(0), const(4))),
            (Store(access("y", (sym(name),), (4,)), read(name, (sym(name),), (4,))),),
        )
        comment = f'{name}\n"""\nimport os\r\x0cimport sys \\'
        buffers = (buffer(name, (4,), "input"), buffer("y", (4,), "output"))
        program = LoopProgram(name, (), (), buffers, (Kernel(name, (), body, comment),))
        module = emit_module(program, title=comment)
        tree = ast.parse(module.text)
        imports = [
            ast.unparse(x) for x in ast.walk(tree) if isinstance(x, ast.Import | ast.ImportFrom)
        ]
        assert imports == ["import numpy as np"]
        assert module.parameters == (name,)
        x = integers((4,))
        assert (load(module)(**{module.arguments[0]: x}) == x).all()


def test_messages() -> None:
    function = load(emit_module(matmul()))
    a, b, bias = integers((6, 40, 30)), integers((30, 50)), integers((50,))
    with pytest.raises(ValueError, match=r"b must be float32\[30, 50\], not float32\[30, 49\]"):
        function(a, b[:, :49], bias)
    with pytest.raises(ValueError, match=r"a must be float32.*not float64"):
        function(a.astype(np.float64), b, bias)
    with pytest.raises(ValueError, match=r"out must be float32\[6, 40, 50\]"):
        function(a, b, bias, out=np.empty((6, 40), np.float32))
    program = columns(sym("N"), sym("C"), sym("L"), sym("LO"), K=16, s=4)
    function = load(emit_module(program, AXES))
    with pytest.raises(ValueError, match=r"x must have the axes \[N, C, L\]"):
        function(integers((3, 5)), integers((3, 1, 16)), integers((1,)))
    with pytest.raises(ValueError, match=r"w must be float32\[3, 1, 16\], not float32\[4, 1, 16\]"):
        function(integers((2, 3, 5)), integers((4, 1, 16)), integers((1,)))


def test_a_size_in_a_product() -> None:
    """An axis 4*C gives C, and what does not divide is refused."""
    C = sym("C")
    body = nest(
        loops("slice", span("i", C), span("k", 4)),
        (Store(access("y", (i, k), (C, 4)), read("x", (k, i), (4, C))),),
    )
    buffers = (buffer("x", (4, C), "input"), buffer("y", (C, 4), "output"))
    program = LoopProgram("f", ("C",), (), buffers, (Kernel("k", (), body),))
    function = load(emit_module(program, {"x": (2,), "y": (1, 1)}))
    x = integers((12,))
    assert (function(x) == x.reshape(4, 3).T).all()
    with pytest.raises(ValueError, match=r"x must be float32\[12\], not float32\[13\]"):
        function(integers((13,)))


def test_tracebacks_show_the_text() -> None:
    function = load(emit_module(matmul()))
    try:
        function(integers((1,)), integers((1,)), integers((1,)))
    except ValueError:
        shown = traceback.format_exc()
    assert "<convdsl matmul" in shown
    assert '_check("a", a, (6, 40, 30), np.float32)' in shown
