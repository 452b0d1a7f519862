"""The functions of `convdsl.ops`: attributes of the wrong kind, forms of padding, the kernels kept."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, ops
from convdsl.codes import CODES
from convdsl.ops.kernels import KERNELS, kernel
from convdsl.syntax.printer import format_text
from tests.unit.api_programs import Array, whole

X, W = whole(2, 4, 6), whole(4, 2, 3, seed=1)
FUNCTIONS: dict[str, tuple[Callable[..., Array], tuple[Array, Array]]] = {
    "conv_transpose1d": (ops.conv_transpose1d, (X, W)),
    "conv_transpose2d": (ops.conv_transpose2d, (X[..., None], W[..., None])),
    "conv1d": (ops.conv1d, (X, W.transpose(1, 0, 2))),
    "conv2d": (ops.conv2d, (X[..., None], W.transpose(1, 0, 2)[..., None])),
}
NOT_INTEGERS: list[Any] = [
    "2",
    "same?",
    None,
    True,
    1.0,
    np.float32(1),
    [1, 1, 1],
    (),
    [None],
    {},
    np.ones(3),
]


def refused(name: str, **attributes: Any) -> CdslError:
    function, arrays = FUNCTIONS[name]
    with pytest.raises(CdslError) as caught:
        function(*arrays, **attributes)
    return caught.value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_run(name: str) -> None:
    function, arrays = FUNCTIONS[name]
    assert function(*arrays).dtype == np.float32


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=str)
@pytest.mark.parametrize("attribute", ["stride", "dilation", "padding", "groups"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_not_an_integer(name: str, attribute: str, value: Any) -> None:
    error = refused(name, **{attribute: value})
    assert f"`{attribute}` of `{name}`" in error.message
    word = isinstance(value, str) and attribute == "padding" and name in ("conv1d", "conv2d")
    assert error.code == ("E0371" if word else "E0370")


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=str)
@pytest.mark.parametrize("attribute", ["output_padding", "output_shape", "output_size"])
def test_not_an_integer_transposed(attribute: str, value: Any) -> None:
    if value is None and attribute != "output_padding":
        return
    error = refused("conv_transpose1d", **{attribute: value})
    assert error.code in ("E0370", "E0374")
    assert attribute in error.message


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("stride", 0), ("stride", -1), ("stride", 2**31), ("stride", 10**30), ("dilation", 0),
        ("groups", 0), ("padding", -1), ("padding", (0, -1)), ("padding", 2**40),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_of_range(name: str, attribute: str, value: Any) -> None:
    error = refused(name, **{attribute: value})
    assert error.code == "E0372"
    assert f"`{attribute}` of `{name}` is" in error.message
    assert error.help
    assert "allowed: " in error.help


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("attribute", ["layout", "auto_pad", "activation", "accuracy"])
@pytest.mark.parametrize("value", ["nonsense", "", 3, ["relu", "relu", 3], True, "Relu"])
def test_choices(name: str, attribute: str, value: Any) -> None:
    error = refused(name, **{attribute: value})
    assert error.code in ("E0370", "E0371")
    assert name in error.message


def test_choice_near_miss() -> None:
    assert refused("conv1d", activation="leakyrelu").help == "did you mean 'leaky_relu'?"
    assert "NCL, NLC" in str(refused("conv1d", layout="NHWC"))
    assert "NCHW, NHWC" in str(refused("conv2d", layout="NLC"))


@pytest.mark.parametrize("value", [("relu", 1), ("leaky_relu", "x"), ("leaky_relu", 1, 2)])
def test_activations_of_another_form(value: Any) -> None:
    assert refused("conv1d", activation=value).code == "E0370"


def test_slopes() -> None:
    assert refused("conv1d", activation=("leaky_relu", float("inf"))).code == "E0372"
    plain = ops.conv_transpose1d(X, W)
    for slope in (0.5, 1, np.float32(0.25), 0.0):
        y = ops.conv_transpose1d(X, W, activation=("leaky_relu", slope))  # type: ignore[arg-type]
        assert np.array_equal(y, np.where(plain >= 0, plain, plain * np.float32(slope)))
    y = ops.conv_transpose1d(X, W, activation="leaky_relu")
    assert np.allclose(y, np.where(plain >= 0, plain, plain * 0.01), rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"auto_pad": "SAME_UPPER", "padding": 1}, "E0373"),
        ({"auto_pad": "VALID", "padding": (0, 1)}, "E0373"),
        ({"output_shape": 5, "output_size": 5}, "E0373"),
        ({"output_size": 12, "auto_pad": "SAME_LOWER", "stride": 2}, "E0373"),
        ({"output_size": 14, "output_padding": 1, "stride": 3, "padding": 2}, "E0372"),
        ({"output_shape": -1}, "E0372"),
        ({"output_shape": 9}, "E0375"),
        ({"output_size": 7}, "E0375"),
        ({"output_size": 9}, "E0375"),
        ({"output_size": (2, 3, 8)}, "E0374"),
    ],
)
def test_contradictions(attributes: dict[str, Any], code: str) -> None:
    if code == "E0372" and "output_size" in attributes:
        attributes = {**attributes, "output_size": 16}
        code = "E0373"
    assert refused("conv_transpose1d", **attributes).code == code


def test_output_size_may_be_a_whole_shape() -> None:
    y = ops.conv_transpose1d(X, W, stride=2, output_size=(2, 2, 14))
    assert np.array_equal(y, ops.conv_transpose1d(X, W, stride=2, output_padding=1))
    y = ops.conv_transpose1d(X[0], W, stride=2, output_size=[2, 14])
    assert y.shape == (2, 14)
    x = X.transpose(0, 2, 1)
    y = ops.conv_transpose1d(x, W, stride=2, output_size=(2, 14, 2), layout="NLC")
    assert y.shape == (2, 14, 2)
    # The same number by both ways is no contradiction.
    assert ops.conv_transpose1d(X, W, stride=2, output_size=14, output_padding=1).shape[2] == 14


def test_forms_of_one_axis() -> None:
    y = ops.conv_transpose1d(X, W, stride=2, padding=1, dilation=2)
    for padding in ((1, 1), [1, 1], [1], (np.int64(1),), ((1, 1),), np.int32(1)):
        again = ops.conv_transpose1d(
            X, W, stride=(2,), padding=padding, dilation=[2]  # type: ignore[arg-type]
        )  # fmt: skip
        assert np.array_equal(y, again)


def test_forms_of_two_axes() -> None:
    x, w = whole(1, 2, 5, 6), whole(2, 3, 3, 2, seed=1)
    for function in (ops.conv_transpose2d, ops.conv2d):
        v = w if function is ops.conv_transpose2d else w.transpose(1, 0, 2, 3)
        y = function(x, v, stride=(2, 1), padding=((1, 1), (0, 0)), dilation=(1, 2))
        assert np.array_equal(y, function(x, v, stride=[2, 1], padding=(1, 0), dilation=(1, 2)))
        turned = function(
            x.transpose(0, 1, 3, 2), v.transpose(0, 1, 3, 2), stride=(1, 2),
            padding=((0, 0), (1, 1)), dilation=(2, 1),
        )  # fmt: skip
        assert np.array_equal(y, turned.transpose(0, 1, 3, 2))
        for padding in ((1, 2, 3), ((1, 2), (3,)), (1, (2, 3, 4)), ((1, 2, 3, 4),)):
            with pytest.raises(CdslError) as caught:
                function(x, v, padding=padding)  # type: ignore[arg-type]
            assert caught.value.code == "E0370"
    with pytest.raises(CdslError, match="of the width"):
        ops.conv_transpose2d(x, w, stride=(2, 1), output_padding=(1, 1))


def test_same_and_valid() -> None:
    x, w = whole(1, 1, 7), whole(1, 1, 4, seed=1)
    assert np.array_equal(ops.conv1d(x, w, padding="same"), ops.conv1d(x, w, padding=(1, 2)))
    assert np.array_equal(ops.conv1d(x, w, padding="valid"), ops.conv1d(x, w))
    assert ops.conv1d(x, w, dilation=2, padding="same").shape == x.shape
    assert refused("conv1d", padding="same", stride=2).code == "E0373"
    assert refused("conv1d", padding="same", auto_pad="VALID").code == "E0373"
    assert ops.conv1d(x, w, stride=3, auto_pad="SAME_LOWER").shape == (1, 1, 3)


def test_arrays_that_are_none() -> None:
    for arrays in ((None, W), (X, None)):
        with pytest.raises(CdslError, match="is None, not an array"):
            ops.conv_transpose1d(*arrays)
    with pytest.raises(CdslError):
        ops.matmul(None, W)
    with pytest.raises(CdslError, match="list"):
        ops.conv_transpose1d([[1.0]], W)


def test_matmul() -> None:
    a, b = whole(3, 4), whole(4, 5)
    assert np.array_equal(ops.matmul(a, b), a @ b)
    assert np.array_equal(ops.matmul(a[0], b), a[0] @ b)
    assert np.array_equal(ops.matmul(a, b[:, 0]), a @ b[:, 0])
    assert ops.matmul(a[0], b[:, 0]).shape == ()
    assert np.array_equal(ops.matmul(a, b, activation="relu"), np.maximum(a @ b, 0))
    for wrong in ((a, a), (a[None], b), (a, np.float32(3)), (a[0], b[0])):
        with pytest.raises(CdslError) as caught:
            ops.matmul(*wrong)
        assert caught.value.code == "E0374"


def test_half_precision() -> None:
    x, w = X.astype("f2"), W.astype("f2")
    assert ops.conv_transpose1d(x, w).dtype == np.float16
    assert ops.conv_transpose1d(x, w, np.ones(2, "f2")).dtype == np.float16
    assert ops.conv_transpose1d(x, w, np.ones(2, "f4")).dtype == np.float32
    assert ops.conv_transpose1d(x, W).dtype == np.float32
    assert np.array_equal(ops.conv_transpose1d(x, w), ops.conv_transpose1d(X, W))
    with pytest.raises(CdslError, match="float64"):
        ops.conv_transpose1d(X, W.astype("f8"))


def test_texts() -> None:
    assert {*FUNCTIONS, "matmul"} <= set(ops.names())
    for name in ops.names():
        assert convdsl.parse(ops.source(name)).ops[0].name.name == name
        assert format_text(ops.source(name))
    for wrong in ("conv3d", "../api", "conv1d.cdsl", ""):
        with pytest.raises(CdslError) as caught:
            ops.source(wrong)
        assert caught.value.code == "E0371"
        assert "matmul" in str(caught.value)


def test_codes_are_explained() -> None:
    assert {f"E037{n}" for n in range(6)} <= CODES.keys()


def test_kernels_are_kept_and_bounded() -> None:
    x, w = whole(1, 1, 5), whole(1, 1, 2)
    ops.conv_transpose1d(x, w)
    before = kernel.cache_info()
    for _ in range(3):
        ops.conv_transpose1d(x, w)
        ops.conv_transpose1d(x, w, stride=np.int64(1), padding=(0, 0))
    after = kernel.cache_info()
    assert after.misses == before.misses
    assert after.hits == before.hits + 6
    assert after.maxsize == KERNELS


def test_a_bool_does_not_pass_for_the_number_it_equals() -> None:
    ops.conv_transpose1d(X, W, stride=1)
    assert refused("conv_transpose1d", stride=True).code == "E0370"


def test_several_threads() -> None:
    kernel.cache_clear()

    def work(stride: int) -> bool:
        y = ops.conv_transpose1d(X, W, stride=1 + stride % 3, activation="relu")
        return y.shape == (2, 2, 5 * (1 + stride % 3) + 3) and bool(np.all(y >= 0))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))
