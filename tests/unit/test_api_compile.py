"""`compile`, `parse`, `load`, `evaluate`: what programs, sizes and parameters they take."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, DeviceError, InternalError
from tests.unit.api_programs import AXPY, FIR, PRODUCT, fir, whole


def refused(code: str, *args: Any, **options: Any) -> CdslError:
    with pytest.raises(CdslError) as caught:
        convdsl.compile(*args, **options)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("statement", ["import convdsl", "from convdsl import CdslError"])
def test_import_is_light(statement: str) -> None:
    heavy = ["numpy", "lark", "islpy", "wgpu", "click", "rich", "convdsl.ops"]
    code = f"import sys; {statement}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_names() -> None:
    for name in convdsl.__all__:
        assert getattr(convdsl, name) is not None
        assert name in dir(convdsl)
    with pytest.raises(AttributeError, match="no attribute 'ops2'"):
        _ = convdsl.ops2


def test_a_program_from_text_tree_and_path(tmp_path: Path) -> None:
    path = tmp_path / "axpy.cdsl"
    path.write_text(AXPY)
    x, y = whole(4), whole(4, seed=1)
    for program in (AXPY, convdsl.parse(AXPY), path, str(path), convdsl.load(path)):
        assert np.array_equal(convdsl.compile(program)(x, y), x + 2 * y)


def test_a_str_is_a_path_if_it_is_one_line_and_ends_in_cdsl(tmp_path: Path) -> None:
    assert "cannot read" in refused("E0105", str(tmp_path / "missing.cdsl")).message
    assert refused("E0105", "missing.cdsl").span is None
    error = refused("E0101", "missing.txt")
    assert error.span is not None
    text = f"{PRODUCT}  # see product.cdsl"
    assert refused("E0105", text).span is None  # one line that ends so
    assert convdsl.compile(text + "\n")


def test_which_op() -> None:
    both = AXPY + FIR
    assert "axpy" in str(refused("E0217", both))
    assert "fir" in str(refused("E0217", both, op="firr"))
    assert convdsl.compile(both, op="fir")(whole(2, 5), whole(3)).shape == (2, 3)


def test_choices() -> None:
    assert "numpy, wgsl" in str(refused("E0351", AXPY, target="cuda"))
    assert "strict, standard, fast" in str(refused("E0358", AXPY, accuracy="exact"))
    assert "webgpu" in str(refused("E0506", AXPY, target="wgsl", sizes={"N": 3}, limits="all"))


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"times": 0}, "E0301"),
        ({"times": 1.5}, "E0302"),
        ({"times": True}, "E0302"),
        ({"times": "2"}, "E0302"),
        ({"times": None}, "E0302"),
        ({"scale": "2"}, "E0302"),
        ({"scale": float("nan")}, "E0302"),
        ({"tmies": 2}, "E0302"),
        ({"N": 2}, "E0302"),
    ],
)
def test_parameters(params: dict[str, Any], code: str) -> None:
    assert next(iter(params)) in str(refused(code, AXPY, params=params))


def test_numpy_numbers_as_parameters() -> None:
    params = {"times": np.int64(3), "scale": np.float32(0.5)}
    kernel = convdsl.compile(AXPY, params=params)  # type: ignore[arg-type]
    assert kernel(np.ones(2, "f4"), np.zeros(2, "f4")).tolist() == [1.5, 1.5]


def test_fixed_sizes() -> None:
    kernel = convdsl.compile(FIR, sizes={"N": 2, "L": 9, "K": 3}, params={"stride": 2})
    assert "fir" in kernel.source
    assert kernel.plan.flops == 2 * 2 * 4 * 3
    x, w = whole(2, 9), whole(3)
    assert np.array_equal(kernel(x, w), fir(x, w, 2))
    for wrong in (whole(2, 8), whole(3, 9), whole(9)):
        with pytest.raises(CdslError) as caught:
            kernel(wrong, w)
        assert caught.value.code == "E0303"
    # Some sizes fixed, the others found at the call.
    kernel = convdsl.compile(FIR, sizes={"K": 3})
    assert kernel(whole(1, 5), w).shape == (1, 3)
    with pytest.raises(CdslError, match="4"):
        kernel(whole(1, 5), whole(4))


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ({"Q": 1}, "E0309"),
        ({"stride": 1}, "E0309"),
        ({"N": 1.0}, "E0309"),
        ({"N": True}, "E0309"),
        ({"N": 1, "L": 4, "K": 3, "LO": 3}, "E0309"),
        ({"N": -1, "L": 4, "K": 3}, "E0305"),
        ({"N": 1, "L": 4, "K": 0}, "E0301"),
        ({"N": 1, "L": 4, "K": 9}, "E0305"),
        ({"N": 2**40, "L": 4, "K": 1}, "E0307"),
        ({"N": 2**70, "L": 4, "K": 1}, "E0307"),
    ],
)
def test_wrong_sizes(sizes: dict[str, Any], code: str) -> None:
    refused(code, FIR, sizes=sizes)


def test_dynamic() -> None:
    kernel = convdsl.compile(FIR, dynamic=["N", "L"])
    w = whole(3)
    texts = set()
    for batch, length in ((1, 5), (3, 9), (0, 4), (2, 3)):
        x = whole(batch, length)
        assert np.array_equal(kernel(x, w), fir(x, w))
        texts.add(kernel.source)
    assert len(texts) == 1
    everything = convdsl.compile(FIR, dynamic=["N", "L", "K"])
    assert everything.plan.flops is None
    assert "fir" in everything.source
    assert np.array_equal(everything(x, w), fir(x, w))
    assert convdsl.compile(PRODUCT, dynamic="M").options.dynamic == {"M"}
    assert "`LO`" in refused("E0358", FIR, dynamic=["LO"]).message
    assert "sizes" in refused("E0358", FIR, sizes={"N": 1}, dynamic=["N"]).message


def test_absent() -> None:
    x, y = whole(4), whole(4, seed=1)
    for target in ("numpy", "wgsl"):
        kernel = convdsl.compile(AXPY, target=target, absent="b", dynamic="N")
        assert kernel.options.absent == {"b"}
        called = convdsl.compile(AXPY, sizes={"N": 4}, absent=("b",), target=target)
        assert "b: f32" not in kernel.source + called.source
    kernel = convdsl.compile(AXPY, absent=["b"])
    assert np.array_equal(kernel(x, y, b=None), x + 2 * y)
    for call in (lambda: kernel(x, y, b=y), lambda: kernel(x, y, y), lambda: kernel.bind(b=y)):
        with pytest.raises(CdslError, match="`b` is compiled in as absent") as caught:
            call()
        assert caught.value.code == "E0352"
    assert "`c`" in refused("E0311", AXPY, absent=["c"]).message
    assert "`x`" in refused("E0311", AXPY, absent=["x"]).message


def test_a_size_that_a_clause_tells_without_an_input() -> None:
    text = "op f(x: f32[N], b: f32[M] = 0) -> y: f32[M] where M == N + 1 { y[m] = b[m] + (sum[n] x[n]) }"
    kernel = convdsl.compile(text, sizes={"N": 2}, absent=["b"])
    assert "f32[3]" in kernel.source
    either = convdsl.compile(text, dynamic=["N"], absent=["b"])
    assert either.options.dynamic == {"N", "M"}
    assert either(whole(5)).shape == (6,)
    with pytest.raises(CdslError, match="E0356"):
        _ = convdsl.compile(text, sizes={"N": 2}).source


def test_a_dynamic_size_that_only_an_absent_input_has() -> None:
    """It follows from a clause, also where the input is just left out of a call."""
    text = (
        "op f(x: f32[N], b: f32[M] = 0) -> y: f32[M] where M == N + 1"
        " { y[m] = b[m] + (sum[n] x[n]) }"
    )
    kernel = convdsl.compile(text, dynamic=["N", "M"])
    texts = set()
    for n in (2, 5):
        assert kernel(np.ones(n, np.float32)).tolist() == [n] * (n + 1)
        texts.add(kernel.source)
        ones = np.ones(n + 1, np.float32)
        assert kernel(np.ones(n, np.float32), ones).tolist() == [n + 1] * (n + 1)
    assert len(texts) == 1
    free = text.replace(" where M == N + 1", "")
    with pytest.raises(CdslError, match="E0304"):
        _ = convdsl.compile(free, dynamic=["N", "M"], absent=["b"]).source


def test_a_dynamic_size_that_stands_in_a_square_alone() -> None:
    text = "op f(x: f32[A*A], w: f32[3*B*B*B]) -> y: f32[A, B] { y[a, b] = sum[i] x[(a, i)] }"
    kernel = convdsl.compile(text, dynamic=["A", "B"])
    for a, b in ((1, 2), (7, 5), (0, 0), (1000, 1)):
        got = kernel(np.ones(a * a, np.float32), np.ones(3 * b**3, np.float32))
        assert np.array_equal(got, np.full((a, b), a, np.float32))


def test_the_algorithm_is_one_that_exists() -> None:
    error = refused("E0358", FIR, algorithm="magic")
    assert "`magic`" in error.message
    assert error.help == "choose one of: gather, phases, columns, toom"


def test_toom_cook_can_be_asked_for_where_the_class_allows_it() -> None:
    sizes = {"C": 64, "L": 40, "M": 16, "K": 3}
    text = (
        "op f(x: f32[C, L], w: f32[M, C, K]) -> y: f32[M, O] where O == L - K + 1 {"
        " y[m, o] = sum[c, k, l | l == o + k] x[c, l] * w[m, c, k] }"
    )
    plans = {
        (wanted, accuracy): convdsl.compile(
            text, target="wgsl", sizes=sizes, algorithm=wanted, accuracy=accuracy
        ).plan
        for wanted in (None, "toom")
        for accuracy in ("strict", "standard")
    }  # fmt: skip
    assert {k: p.algorithm for k, p in plans.items()} == {
        (None, "strict"): "phases", (None, "standard"): "phases",
        ("toom", "strict"): "phases", ("toom", "standard"): "toom",
    }  # fmt: skip
    assert plans["toom", "standard"].reason.endswith(", asked for")


NAMES = """
op f(self: f32[N], repeat: f32[N], out: f32[N]) -> y: f32[N] {
    y[n] = self[n] + repeat[n] * out[n]
}
"""


def test_inputs_named_like_arguments() -> None:
    """`self` goes by name too, `repeat` and `out` by position."""
    a, b, c = (whole(3, seed=n) for n in range(3))
    kernel = convdsl.compile(NAMES)
    assert np.array_equal(kernel(a, b, c), a + b * c)
    bound = kernel.bind(self=a, out=c)
    assert np.array_equal(bound(repeat=b), a + b * c)
    result = np.empty(3, np.float32)
    assert kernel(a, b, c, out=result) is result


def test_nothing_to_show_before_sizes_are_known() -> None:
    kernel = convdsl.compile(FIR, sizes={"K": 3})
    for name in ("source", "plan", "stages", "schedule", "executable"):
        with pytest.raises(CdslError) as caught:
            getattr(kernel, name)
        assert caught.value.code == "E0356"
        assert "N, L" in caught.value.message
    kernel(whole(1, 5), whole(3))
    assert "def fir" in kernel.source
    assert next(iter(kernel.stages)) == "definition"
    assert kernel.stages["numpy"] == kernel.source
    assert kernel.schedule is not None
    assert kernel.schedule.startswith("schedule fir for numpy {")
    assert kernel.plan.algorithm in ("gather", "phases", "columns")
    assert kernel.plan.reason
    assert kernel.plan.bytes_moved == 4 * (5 + 3 + 3)


def test_the_same_program_gives_the_same_text() -> None:
    for target in ("numpy", "wgsl"):
        sizes = {"N": 2, "L": 90, "K": 3}
        texts = {convdsl.compile(FIR, sizes=sizes, target=target).source for _ in range(3)}
        assert len(texts) == 1


def test_evaluate() -> None:
    x, w = whole(2, 9), whole(3)
    exact = convdsl.evaluate(FIR, {"x": x, "w": w}, {"stride": 2})
    assert exact.dtype == np.float64
    assert np.array_equal(exact, fir(x, w, 2))
    assert convdsl.evaluate(AXPY + FIR, {"x": x, "w": w}, op="fir").shape == (2, 7)
    with pytest.raises(CdslError):
        convdsl.evaluate(FIR, {"x": x})


def test_errors_survive_pickling() -> None:
    errors = [refused("E0302", AXPY, params={"times": "2"}), refused("E0105", "no.cdsl")]
    with pytest.raises(CdslError) as caught:
        convdsl.parse("op f(")
    for error in [*errors, caught.value]:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is CdslError
        assert str(copy) == str(error)
        assert (copy.code, copy.message, copy.notes, copy.help, copy.span) == (
            error.code, error.message, error.notes, error.help, error.span,
        )  # fmt: skip
    for other in (DeviceError("lost", help="plug it in"), InternalError("oops")):
        assert str(pickle.loads(pickle.dumps(other))) == str(other)
