"""Barriers: where they are needed, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Const, ge
from convdsl.ir.index import Index, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Buffer, If, Kernel, LoopProgram, Stmt
from tests.wgsl_device import run_module
from tests.wgsl_programs import ZERO, buffer, load, loop, nest, store
from tests.wgsl_rules import check_wgsl_text

T, K = sym("t"), sym("k")
X = buffer("x", 8, 64, memory="input")
Y = buffer("y", 64, memory="output")
A, B = (buffer(n, 64, memory="workgroup") for n in ("a", "b"))
ACC = buffer("acc", 64, memory="register", threads=1)


def threads(*body: Stmt) -> Stmt:
    return nest("thread", [("t", 64)], *body)


def fill(target: Buffer, row: Index | int = 0) -> Stmt:
    return threads(store(target, (T,), load(X, row, T)))


def add(source: Buffer) -> Stmt:
    return threads(store(ACC, (T,), load(source, 63 - T), "+"))


CLEAR = threads(store(ACC, (T,), ZERO))
WRITE = threads(store(Y, (T,), load(ACC, T)))


def program(*body: Stmt) -> LoopProgram:
    return LoopProgram("p", (), (), (X, Y), (Kernel("k", (A, B, ACC), body),))


def shape(*body: Stmt) -> str:
    """The text as a row of letters: b barrier, w store to a or b, r read of one, { and }."""
    text = emit_module(program(*body), Limits()).text
    check_wgsl_text(text)
    out = ""
    for line in map(str.strip, text.split("fn k(")[1].splitlines()[1:]):
        if line == "workgroupBarrier();":
            out += "b"
        elif line.startswith(("a[", "b[")):
            out += "w"
        elif "acc" in line and ("a[" in line or "b[" in line):
            out += "r"
        elif line.startswith(("for", "if")):
            out += "{"
        elif line == "}":
            out += "}"
    return out[: out.rindex("}")] if out.count("}") > out.count("{") else out


def steps(*body: Stmt) -> Stmt:
    return loop("serial", "k", 8, *body)


def test_between_a_write_and_a_read() -> None:
    assert shape(CLEAR, fill(A), add(A), WRITE) == "wbr"


def test_nothing_between_strangers() -> None:
    assert shape(CLEAR, fill(A), fill(B), add(A), add(B), WRITE) == "wwbrr"


def test_a_write_waits_for_the_readers() -> None:
    assert shape(CLEAR, fill(A), add(A), fill(A, 1), add(A), WRITE) == "wbrbwbr"


def test_around_the_back_edge_of_a_loop() -> None:
    assert shape(CLEAR, steps(fill(A, K), add(A)), WRITE) == "{bwbr}"
    assert shape(CLEAR, steps(fill(A, K), fill(B, K), add(A), add(B)), WRITE) == "{bwwbrr}"


def test_a_loop_that_only_reads_waits_once() -> None:
    assert shape(CLEAR, fill(A), steps(add(A)), WRITE) == "wb{r}"


def test_behind_a_loop() -> None:
    assert shape(CLEAR, steps(fill(A, K), add(A)), fill(A), WRITE) == "{bwbr}bw"
    assert shape(CLEAR, steps(fill(A, K)), add(A), WRITE) == "{bw}br"


def test_a_pipelined_loop() -> None:
    """Two buffers by turns need one barrier for each use."""
    turn = (fill(B, K), add(A), fill(A, K), add(B))
    assert shape(CLEAR, fill(A), steps(*turn), WRITE) == "w{bwrbwr}"


def test_unrolled_loops_run_through() -> None:
    body = loop("unroll", "k", 3, fill(A, K), add(A))
    assert shape(CLEAR, body, WRITE) == "wbrbwbrbwbr"


def test_under_a_condition_of_the_workgroup() -> None:
    inner = If((ge(K - 3),), (fill(A, K), add(A)))
    assert shape(CLEAR, steps(inner), WRITE) == "{{bwbr}}"


def test_not_under_a_condition_of_a_thread() -> None:
    inner = If((ge(T - 3),), (fill(A), add(A)))
    with pytest.raises(InternalError, match="not part of a perfect nest"):
        emit_module(program(threads(inner)), Limits())


def test_a_statement_of_no_thread_is_run_by_one() -> None:
    alone = store(A, (0,), Const(2.0, "f32"))
    text = emit_module(program(CLEAR, fill(A), alone, add(A), WRITE), Limits()).text
    assert (
        "workgroupBarrier();\n  if (tx == 0) {\n    a[0] = 2.0;\n  }\n  workgroupBarrier();" in text
    )


def test_sums_in_the_result_wait_for_storage() -> None:
    first = threads(store(Y, (T,), ZERO))
    more = threads(store(Y, (63 - T,), Const(1.0, "f32"), "+"))
    text = emit_module(program(first, more), Limits()).text
    assert text.count("storageBarrier();") == 1
    assert "workgroupBarrier();" not in text


@pytest.mark.gpu
@pytest.mark.parametrize(
    "body",
    [
        (CLEAR, steps(fill(A, K), add(A)), WRITE),
        (CLEAR, fill(A), steps(fill(B, K), add(A), fill(A, K), add(B)), WRITE),
        (CLEAR, steps(If((ge(K - 3),), (fill(A, K), add(A)))), WRITE),
        (CLEAR, fill(A), store(A, (0,), Const(2.0, "f32")), add(A), WRITE),
        (threads(store(Y, (T,), ZERO)), threads(store(Y, (63 - T,), load(X, 0, T), "+"))),
    ],
)
def test_run(body: tuple[Stmt, ...]) -> None:
    text = program(*body)
    x = np.arange(512, dtype=np.float32).reshape(8, 64) % 37
    want = run_program(text, {"x": x}, {})["y"]
    assert np.array_equal(run_module(emit_module(text, Limits()), {"x": x})["y"], want)
