"""What does not fit is refused with the numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.codes.wgsl import TABLE
from convdsl.diagnostics import CdslError, InternalError
from convdsl.ir.expr import Binary, Const, Expr
from convdsl.ir.index import const, sym
from convdsl.ir.loop import Kernel, LoopProgram, Stmt
from tests.wgsl_programs import buffer, copy, load, loop, matmul, nest, store

ONE = Const(1.0, "f32")


def threads(*shape: int) -> LoopProgram:
    y = buffer("y", *shape, memory="output")
    names = [f"t{n}" for n in range(len(shape))]
    body = nest(
        "thread", list(zip(names, shape, strict=True)), store(y, tuple(map(sym, names)), ONE)
    )
    return LoopProgram("p", (), (), (y,), (Kernel("k", (), (body,)),))


def staged(*dims: int) -> LoopProgram:
    y = buffer("y", 64, memory="output")
    tile = buffer("tile", *dims, memory="workgroup")
    zeros = [0] * (len(dims) - 1)
    fill = nest("thread", [("t", 64)], store(tile, (*zeros, sym("t")), ONE))
    read = nest("thread", [("t", 64)], store(y, (sym("t"),), load(tile, *zeros, sym("t"))))
    return LoopProgram("p", (), (), (y,), (Kernel("k", (tile,), (fill, read)),))


def many(count: int) -> LoopProgram:
    inputs = [buffer(f"x{n}", 64, memory="input") for n in range(count)]
    y = buffer("y", 64, memory="output")
    value: Expr = ONE
    for x in inputs:
        value = Binary("+", value, load(x, sym("t")))
    body = nest("thread", [("t", 64)], store(y, (sym("t"),), value))
    return LoopProgram("p", (), (), (*inputs, y), (Kernel("k", (), (body,)),))


@pytest.mark.parametrize(
    ("make", "code", "numbers"),
    [
        (lambda: threads(32, 16), "E0501", ("512", "16 x 32", "256")),
        (lambda: threads(65, 2, 1), "E0502", ("65", "along z", "64")),
        (lambda: staged(64, 65), "E0503", ("16640", "4160 elements", "16384")),
        (lambda: many(8), "E0504", ("9 buffers", "x7, y", "allows 8")),
        (lambda: copy(33554433), "E0505", ("134217732", "134217728")),
    ],
)
def test_refused(make: Callable[[], LoopProgram], code: str, numbers: tuple[str, ...]) -> None:
    with pytest.raises(CdslError) as caught:
        emit_module(make(), Limits())
    assert caught.value.code == code
    assert caught.value.help
    for number in numbers:
        assert number in str(caught.value)


def test_a_tensor_too_large_has_the_shape_that_users_see() -> None:
    shapes = {"x": (const(3), const(11184811))}
    with pytest.raises(CdslError) as caught:
        emit_module(copy(33554433), Limits(), shapes)
    assert "f32[3, 11184811]" in str(caught.value)


@pytest.mark.parametrize("make", [lambda: threads(16, 16), lambda: staged(64, 64), lambda: many(7)])
def test_just_fits(make: Callable[[], LoopProgram]) -> None:
    emit_module(make(), Limits())


def test_an_adapter_may_allow_more() -> None:
    emit_module(threads(32, 32), Limits("adapter", 1024, (1024, 1024, 64)))
    emit_module(copy(33554433), Limits("adapter", max_storage_binding_bytes=2**31))


def test_every_code_is_explained() -> None:
    assert list(TABLE) == [f"E05{n:02}" for n in range(1, 8)]
    assert all(code.title and len(code.text) > 80 for code in TABLE.values())


def test_nests_of_different_shapes_are_a_bug() -> None:
    y = buffer("y", 64, memory="output")

    def fill(count: int) -> Stmt:
        return loop("thread", "t", count, store(y, (sym("t"),), ONE))

    with pytest.raises(InternalError, match="shapes"):
        emit_module(
            LoopProgram("p", (), (), (y,), (Kernel("k", (), (fill(64), fill(32))),)), Limits()
        )


def test_unknown_extents_of_local_buffers_are_a_bug() -> None:
    y = buffer("y", 64, memory="output")
    acc = buffer("acc", sym("N"), memory="workgroup")
    body = nest("thread", [("t", 64)], store(acc, (sym("t"),), ONE))
    text = LoopProgram("p", ("N",), (), (y,), (Kernel("k", (acc,), (body,)),))
    with pytest.raises(InternalError, match="unknown extent"):
        emit_module(text, Limits())


def test_matmul_within_the_default_profile() -> None:
    module = emit_module(matmul(256, 256, 64), Limits())
    assert module.kernels[0].workgroup == (8, 8, 1)
