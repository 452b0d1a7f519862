"""`convdsl run`, `convdsl devices`, and the files of arrays."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import convdsl
from convdsl.cli.compare import relative_error
from convdsl.diagnostics import CdslError, DeviceError
from convdsl.npy import npy_parts, read_npy
from tests.unit.cli_tools import FIR, Cli, cli

__all__ = ["cli"]

X = np.arange(24, dtype=np.float32).reshape(2, 12)
W = np.array([1, -2, 3], np.float32)


@pytest.fixture
def data(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", W)


FILES = ["run", "fir.cdsl", "--input", "x=x.npy", "--input", "w=w.npy"]


@pytest.mark.usefixtures("data")
def test_files(cli: Cli, tmp_path: Path) -> None:
    done = cli(*FILES, "-D", "stride=2", "--output", "y.npy", "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("y: float32 (2, 5)\n")
    for word in ("device: CPU", "time: ", "first call", "plan: ", "check: relative L2 error"):
        assert word in done.out
    assert done.out.endswith("written: y.npy\n")
    y = np.load(tmp_path / "y.npy")
    assert np.array_equal(y, convdsl.evaluate(FIR, {"x": X, "w": W}, {"stride": 2}))
    assert y.dtype == np.float32


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.usefixtures("data")
def test_output_to_a_device_file(cli: Cli) -> None:
    """It is written to, not replaced by a file."""
    assert cli(*FILES, "--output", "/dev/null").code == 0
    full = cli(*FILES, "--output", "/dev/full")
    assert (full.code, full.out) == (1, "")
    assert full.err == "error[E0360]: cannot write `/dev/full`: No space left on device\n"
    assert Path("/dev/null").is_char_device()


@pytest.mark.gpu
@pytest.mark.usefixtures("data")
def test_files_on_a_device(cli: Cli, tmp_path: Path) -> None:
    done = cli(*FILES, "--target", "wgsl", "--output", "y.npy", "--check", "--repeat", "2")
    assert (done.code, done.err) == (0, "")
    assert "on the device alone" in done.out
    assert "device: CPU (NumPy" not in done.out
    assert np.array_equal(np.load(tmp_path / "y.npy"), convdsl.evaluate(FIR, {"x": X, "w": W}))


def test_random(cli: Cli, tmp_path: Path) -> None:
    args = ["run", "fir.cdsl", "--random", "w,x", "--random", "b", "-DN=3", "-DL=20", "-DK=4"]
    done = cli(*args, "--output", "a.npy", "--json", "--repeat", "2")
    assert (done.code, done.err) == (0, "")
    facts = json.loads(done.out)
    assert facts["shape"] == [3, 17]
    assert facts["target"] == "numpy"
    assert facts["repeat"] == 2
    assert 0 < facts["seconds"] < 10
    assert facts["plan"]["flops"] == 2 * 3 * 17 * 4
    cli(*args, "--output", "b.npy")
    cli(*args, "--output", "c.npy", "--seed", "1")
    a, b, c = (np.load(tmp_path / f"{name}.npy") for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert np.isfinite(a).all()


@pytest.mark.parametrize(
    ("dtype", "kind"), [("i32", np.int32), ("f16", np.float16), ("f32", np.float32)]
)
def test_random_of_each_type(cli: Cli, tmp_path: Path, dtype: str, kind: type) -> None:
    (tmp_path / "t.cdsl").write_text(f"op t(x: {dtype}[N]) -> y: {dtype}[N] {{ y[n] = x[n] }}\n")
    done = cli("run", "t.cdsl", "--random", "x", "-DN=1000", "--output", "y.npy", "--check")
    assert (done.code, done.err) == (0, "")
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == kind
    assert 1 < y.std() < 6 if dtype == "i32" else 0.9 < y.std() < 1.1


@pytest.mark.usefixtures("data")
def test_random_takes_sizes_from_files(cli: Cli) -> None:
    done = cli("run", "fir.cdsl", "--input", "x=x.npy", "--random", "w", "-D", "K=5", "--json")
    assert json.loads(done.out)["shape"] == [2, 8]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--input", "x=x.npy"], "E0311"),
        (["--random", "x,w,q", "-DN=1", "-DL=3", "-DK=1"], "E0311"),
        (["--random", "x,w", "-DN=1", "-DL=3"], "E0365"),
        (["--input", "x=x.npy", "--input", "w=x.npy"], "E0303"),
        (["--input", "x=x.npy", "--input", "w=w.npy", "-DL=13"], "E0303"),
        (["--input", "x=x.npy", "--input", "w=w.npy", "-DLO=99"], "E0309"),
        (["--input", "x=x.npy", "--input", "w=none.npy"], "E0105"),
        (["--input", "x=x.npy", "--input", "w=."], "E0105"),
        (["--random", "x,w", "-DN=1", "-DL=3", "-DK=9"], "E0305"),
        (["--random", "x,w", "-DN=65536", "-DL=65536", "-DK=1"], "E0307"),
        (["--random", "x,w", "-DN=4294967296", "-DL=4294967296", "-DK=1"], "E0307"),
        (["--random", "x,w", "-DN=1", "-DL=3", "-DK=1", "--output", "no/y.npy"], "E0360"),
    ],
)
def test_refused(cli: Cli, tmp_path: Path, args: list[str], code: str) -> None:
    before = sorted(tmp_path.iterdir())
    done = cli("run", "fir.cdsl", *args)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[{code}]: ")
    assert sorted(tmp_path.iterdir()) == before


def test_check_is_left_out_when_it_would_take_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convdsl.cli.compare.MOST", 10)
    done = cli("run", "fir.cdsl", "--random", "x,w", "-DN=1", "-DL=9", "-DK=2", "--check")
    assert done.code == 0
    assert "check: left out: 32 operations are too many" in done.out


def test_a_wrong_result_is_a_bug_of_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convdsl.cli.compare.relative_error", lambda *_: 0.5)
    monkeypatch.setenv("CONVDSL_TRACEBACK", "1")
    done = cli("run", "fir.cdsl", "--random", "x,w", "-DN=1", "-DL=9", "-DK=2", "--check")
    assert done.code == 70
    assert "differs from the definition" in done.err


def test_relative_error() -> None:
    wanted = np.array([3.0, 4.0, np.nan, np.inf])
    assert relative_error(wanted.astype(np.float32), wanted) == 0
    assert relative_error(np.array([3.0, 4.5, np.nan, np.inf]), wanted) == pytest.approx(0.1)
    assert relative_error(np.array([3.0, 4.0, 1.0, np.inf]), wanted) == np.inf
    assert np.isnan(relative_error(np.array([3.0, np.nan, np.nan, np.inf]), wanted))
    assert relative_error(np.zeros(0), np.zeros(0)) == 0


# -- devices ------------------------------------------------------------------------------------
@pytest.mark.gpu
def test_devices(cli: Cli) -> None:
    done = cli("devices")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].endswith("  (used)")
    assert done.out.count("(used)") == 1
    listed = json.loads(cli("devices", "--json").out)
    assert done.out.startswith(f"{listed[0]['name']} ({listed[0]['backend']})")


def test_no_device(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3 and the remedy; an empty list for a machine."""
    monkeypatch.setattr("convdsl.backends.wgsl.runtime.adapter._enumerate", list)
    done = cli("devices")
    assert (done.code, done.out) == (3, "")
    assert "= help: " in done.err
    assert (cli("devices", "--json").code, cli("devices", "--json").out) == (3, "[]\n")
    adapter = cli("compile", "fir.cdsl", "--limits", "adapter")
    assert (adapter.code, adapter.out) == (3, "")

    def missing() -> list[object]:
        raise DeviceError("running WGSL needs the package wgpu", help="pip install 'convdsl[gpu]'")

    monkeypatch.setattr("convdsl.backends.wgsl.runtime.adapter._enumerate", missing)
    assert "pip install" in cli("devices").err


# -- .npy files ---------------------------------------------------------------------------------
def _npy(header: str, data: bytes = b"", major: int = 1) -> bytes:
    text = header.encode()
    length = struct.pack("<H" if major == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([major, 0]) + length + text + data


def _head(descr: str = "'<f4'", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not begin"),
        (b"\x93NUMPY", "header is broken"),
        (b"hello", "does not begin"),
        (b"PK\x03\x04", "archive"),
        (_npy(_head()), "ends too early"),
        (_npy(_head(), b"1234567"), "ends too early"),
        (_npy(_head("'|O'"), b"\x80\x04."), "never unpickled"),
        (_npy(_head("[('a', '|O')]"), b"\x80\x04."), "never unpickled"),
        (_npy(_head("[('a', '<f4')]"), bytes(8)), "no real numbers"),
        (_npy(_head("('<f4', (2,))"), bytes(16)), "no real numbers"),
        (_npy(_head("'<c8'"), bytes(16)), "no real numbers"),
        (_npy(_head("'<M8[s]'"), bytes(16)), "no real numbers"),
        (_npy(_head("'what'"), bytes(16)), "header is broken"),
        (_npy(_head(shape="(-2,)"), bytes(16)), "has the shape (-2,)"),
        (_npy(_head(shape="(2147483647, 2147483647, 2147483647)")), "ends too early"),
        (_npy(_head(shape=f"({'1, ' * 100})"), bytes(16)), "has the shape"),
        (_npy(_head(shape=f"({'9' * 100},)"), bytes(16)), "has the shape"),
        (_npy("(" * 9000), "header is broken"),
        (_npy("__import__('os')"), "header is broken"),
        (_npy(" " * 20_000_000, major=2), "header is broken"),
        (_npy(_head(), bytes(8), major=9), "header is broken"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "a.npy"
    file.write_bytes(content)
    with pytest.raises(CdslError) as caught:
        read_npy(file)
    assert caught.value.code == "E0364"
    assert said in caught.value.message
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3).reshape(()), np.zeros((0, 4), np.int32), X.T, X[:, ::-2], X.astype(">f4"),
        X.astype(np.float16), X > 3,
    ],
    ids=str,
)  # fmt: skip
def test_files_that_are_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    read = read_npy(tmp_path / "a.npy")
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert np.array_equal(read, array)
    plain = np.array(array, order="C")
    (tmp_path / "b.npy").write_bytes(b"".join(npy_parts(plain)))
    assert np.array_equal(np.load(tmp_path / "b.npy"), array)


def test_a_pickle_is_never_opened(tmp_path: Path, cli: Cli) -> None:
    """A file whose unpickling would leave a trace."""

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "trace",)

    np.save(tmp_path / "x.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    assert cli("run", "scale.cdsl", "--input", "x=x.npy").code == 1
    assert not (tmp_path / "trace").exists()
