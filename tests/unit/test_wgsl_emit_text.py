"""The emitted text: golden files, determinism, names, hoisting, numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.literals import f32_text, i32_text
from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.names import RESERVED, Names, safe
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Binary, Const, Param
from convdsl.ir.index import sym
from convdsl.ir.loop import Buffer, Kernel, LoopProgram
from tests.wgsl_programs import buffer, copy, gather, load, loop, matmul, nest, store
from tests.wgsl_rules import check_wgsl_text

GOLDEN = Path(__file__).parents[1] / "golden" / "wgsl"
PROGRAMS = {
    "copy": copy(1000),
    "copy_symbolic": copy(),
    "gather": gather(2, 3, 20, 8, 4, 2),
    "gather_symbolic": gather(2, 3, 20, 8, 4, 2, symbolic=True),
    "matmul_4x4": matmul(37, 41, 9, (32, 32, 8), (4, 4)),
    "matmul_8x8": matmul(128, 64, 64),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name: str, golden: Callable[[Path, str], None]) -> None:
    text = emit_module(PROGRAMS[name], Limits()).text
    check_wgsl_text(text, divisions=False)
    golden(GOLDEN / f"{name}.wgsl", text)


def test_text_is_the_same_every_time() -> None:
    program = matmul(65, 33, 20)
    assert emit_module(program, Limits()) == emit_module(matmul(65, 33, 20), Limits())


def test_inner_loop_of_the_product() -> None:
    """Two aligned reads for each operand, sixteen fma, nothing else."""
    text = emit_module(PROGRAMS["matmul_8x8"], Limits()).text
    inner = text.split("for (var kk: i32 = 0; kk < 16; kk++) {")[1].split("}")[0]
    lines = [line.strip() for line in inner.strip().splitlines()]
    assert lines[:4] == [
        "av_0 = a_tile[kk][a_tile_at];",
        "av_1 = a_tile[kk][a_tile_at + 1];",
        "bv_0 = b_tile[kk][tx];",
        "bv_1 = b_tile[kk][tx + 8];",
    ]
    assert lines[4:] == [
        f"acc_{i}_{j} = fma(vec4<f32>(av_{i // 4}.{'xyzw'[i % 4]}), bv_{j}, acc_{i}_{j});"
        for i in range(8)
        for j in range(2)
    ]


def test_length_of_the_text_does_not_depend_on_the_sizes() -> None:
    lengths = {len(emit_module(matmul(n, n, n), Limits()).text.splitlines()) for n in (128, 1024)}
    assert len(lengths) == 1


def test_module_record() -> None:
    module = emit_module(PROGRAMS["gather_symbolic"], Limits())
    assert module.uniforms == ("N", "C", "L", "K", "LO")
    (kernel,) = module.kernels
    assert [(b.index, b.buffer, b.kind) for b in kernel.bindings] == [
        (0, "", "uniform"),
        (1, "x", "read"),
        (2, "w", "read"),
        (3, "y", "read_write"),
    ]
    env = {"N": 3, "LO": 130}
    assert [d.evaluate(env) for d in kernel.dispatch] == [9, 1, 1]
    assert kernel.dispatch[0].evaluate({"N": 0, "LO": 1}) == 0
    fixed = emit_module(PROGRAMS["gather"], Limits())
    assert fixed.uniforms == ()
    assert fixed.kernels[0].bindings[0].index == 0


# -- names ----------------------------------------------------------------------------------------
def renamed(program: LoopProgram, *names: str) -> LoopProgram:
    """The copy program with other names for x and y."""
    x, y = (
        Buffer(name, b.dtype, b.dims, b.memory)
        for name, b in zip(names, program.buffers, strict=True)
    )
    (b, t) = names[2:] if len(names) > 2 else ("b", "t")
    i = sym(b) * 64 + sym(t)
    body = loop("grid", b, 4, loop("thread", t, 64, store(y, (i,), load(x, i))))
    return replace(program, buffers=(x, y), kernels=(Kernel("fma", (), (body,)),))


@pytest.mark.parametrize(
    "names", [("max", "vec4"), ("fn", "target"), ("f32", "i32"), ("infinity", "floor_div")]
)
def test_names_of_the_language_are_avoided(names: tuple[str, str]) -> None:
    text = emit_module(renamed(copy(256), *names), Limits()).text
    check_wgsl_text(text)
    for name in names:
        assert f"> {name}: array" not in text


def test_names_are_safe_and_used_once() -> None:
    assert safe("while") == "while_"
    assert safe("vec3f") == "vec3f_"
    assert safe("__a") == "v__a"
    assert safe("größe") == "gr__e"
    assert safe("_") == "v_"
    names = Names()
    given = [names.fresh(n) for n in ("a", "a", "a", "a_2", "if", "if", "")]
    assert len(set(given)) == len(given)
    assert not RESERVED & set(given)
    assert names.fresh("a") not in given


def test_comments_stay_comments() -> None:
    program = copy(64)
    kernel = replace(program.kernels[0], comment="one\nfn evil() {}\u2028two\x85three")
    text = emit_module(replace(program, kernels=(kernel,)), Limits()).text
    assert "// copy: one fn evil() {} two three\n" in text
    check_wgsl_text(text)


# -- numbers --------------------------------------------------------------------------------------
def test_numbers() -> None:
    assert f32_text(0.1) == "0.1"
    assert f32_text(1.0) == "1.0"
    assert f32_text(-0.0) == "-0.0"
    assert f32_text(1e-45) == "1e-45"
    assert float(f32_text(3.4028234663852886e38)) == pytest.approx(3.4028234663852886e38)
    assert i32_text(-(2**31)) == "i32(-2147483648)"
    with pytest.raises(InternalError):
        i32_text(2**31)
    with pytest.raises(InternalError):
        f32_text(float("inf"))


# -- hoisting -------------------------------------------------------------------------------------
def test_a_division_is_computed_where_it_is_known() -> None:
    x, y = buffer("x", 600, memory="input"), buffer("y", 64, memory="output")
    acc = buffer("acc", 64, memory="register", threads=1)
    t, k = sym("t"), sym("k")
    index = (t // 3) * 7 + (t % 3) * 5 + k * 2 + (k // 3) + sym("u")
    body = nest(
        "thread",
        [("t", 64)],
        store(acc, (t,), Const(0.0, "f32")),
        loop("serial", "k", 9, loop("serial", "u", 4, store(acc, (t,), load(x, index), "+"))),
        store(y, (t,), load(acc, t)),
    )
    program = LoopProgram("sum", (), (), (x, y), (Kernel("sum", (acc,), (body,)),))
    text = emit_module(program, Limits()).text
    check_wgsl_text(text, divisions=False)
    assert text.count(" / ") == 2
    assert text.index("tx / 3") < text.index("for (var k")
    assert text.index("for (var k") < text.index("k / 3") < text.index("for (var u")
    assert "x[x_at_2 + u]" in text


def test_bounds_are_evaluated_once() -> None:
    text = emit_module(PROGRAMS["gather_symbolic"], Limits()).text
    assert "for (var l: i32 = low; l < high; l++) {" in text
    assert "for (var c: i32 = 0; c < C; c++) {" in text


def test_what_is_not_lowered_is_a_bug() -> None:
    x, y = buffer("x", 4, memory="input"), buffer("y", 4, memory="output")

    def program(value: Param | Binary, level: str = "serial") -> LoopProgram:
        body = loop(level, "i", 4, store(y, (sym("i"),), value))  # type: ignore[arg-type]
        return LoopProgram("bad", (), (), (x, y), (Kernel("bad", (), (body,)),))

    with pytest.raises(InternalError, match="the parameter slope"):
        emit_module(program(Param("slope")), Limits())
    with pytest.raises(InternalError, match="a slice loop"):
        emit_module(program(Binary("+", load(x, sym("i")), Const(1.0, "f32")), "slice"), Limits())
    with pytest.raises(InternalError, match="unknown sizes"):
        emit_module(program(Binary("+", load(x, sym("Q")), Const(1.0, "f32"))), Limits())
    with pytest.raises(InternalError, match="reads and writes"):
        emit_module(program(Binary("+", load(y, sym("i")), Const(1.0, "f32"))), Limits())
