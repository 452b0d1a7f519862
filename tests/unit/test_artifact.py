"""Saved kernels: what is written, that it loads again, and every way in which it may not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import artifact
from convdsl.diagnostics import CdslError
from convdsl.files import write_files
from tests.unit.cli_tools import FIR

X = np.arange(24, dtype=np.float32).reshape(2, 12)
W = np.array([1, -2, 3], np.float32)
SIZES = {"N": 2, "L": 12, "K": 3}


def _refused(code: str, call: Callable[[], object]) -> CdslError:
    with pytest.raises(CdslError) as caught:
        call()
    assert caught.value.code == code, caught.value
    return caught.value


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
@pytest.mark.parametrize(
    "how",
    [
        {"sizes": SIZES},
        {"sizes": {"K": 3}, "dynamic": ["N", "L"]},
        {"dynamic": ["N", "L", "K"]},
        {"sizes": SIZES, "accuracy": "strict"},
        {"sizes": SIZES, "algorithm": "gather"},
        {"sizes": SIZES, "absent": ["b"]},
    ],
    ids=["fixed", "mixed", "dynamic", "strict", "forced", "absent"],
)
def test_round_trip(tmp_path: Path, target: str, how: dict[str, Any]) -> None:
    kernel = convdsl.compile(FIR, target=target, params={"stride": 2}, **how)
    kernel.save(tmp_path)
    again = convdsl.load_kernel(tmp_path)
    assert again.source == kernel.source
    assert again.plan == kernel.plan
    assert again.options.dynamic == kernel.options.dynamic
    for name in ("text", "params", "target", "accuracy", "limits", "fixed", "absent", "algorithm"):
        assert getattr(again.options, name) == getattr(kernel.options, name)
    other = tmp_path / "other"
    again.save(str(other))
    for file in sorted(other.iterdir()):
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()
    if target == "numpy":
        wanted = convdsl.evaluate(FIR, {"x": X, "w": W}, {"stride": 2})
        assert np.array_equal(again(X, W), wanted)


def test_a_kernel_that_was_called(tmp_path: Path) -> None:
    """What is saved is the variant that `source` shows; other shapes still work after loading."""
    kernel = convdsl.compile(FIR)
    _refused("E0356", lambda: kernel.save(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    kernel(X, W)
    kernel.save(tmp_path / "a")
    again = convdsl.load_kernel(tmp_path / "a")
    assert again.source == kernel.source
    assert again.variant == (SIZES | {"LO": 10}, frozenset({"b"}))
    assert np.array_equal(again(X[:, :7], W), kernel(X[:, :7], W))


def test_bound_constants(tmp_path: Path) -> None:
    bias = np.array([10, 20], np.float32)
    kernel = convdsl.compile(FIR, dynamic=["N", "L"], sizes={"K": 3})
    kernel.bind(w=W[::-1], b=bias).save(tmp_path)
    assert np.array_equal(np.load(tmp_path / "fir.w.npy"), W[::-1])
    again = convdsl.load_kernel(tmp_path)
    assert np.array_equal(again(X), kernel(X, W[::-1], bias))
    np.save(tmp_path / "fir.w.npy", W)
    assert "fir.w.npy" in _refused("E0362", lambda: convdsl.load_kernel(tmp_path)).message


def test_the_manifest_says_what_a_runner_needs(tmp_path: Path) -> None:
    convdsl.compile(FIR, target="wgsl", sizes=SIZES).save(tmp_path)
    record = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert record["format"] == artifact.FORMAT
    assert record["convdsl"] == convdsl.__version__
    assert record["op"] == "fir"
    assert record["params"] == {"stride": 1}
    assert record["plan"]["algorithm"] == "gather"
    assert list(record["files"]) == ["fir.wgsl", "fir.schedule.cdsl"]
    assert {"buffers", "kernels", "limits"} <= set(record["module"])
    assert convdsl.parse(record["program"]) == convdsl.parse(FIR)


def test_saving_twice_replaces(tmp_path: Path) -> None:
    convdsl.compile(FIR, sizes=SIZES).save(tmp_path)
    convdsl.compile(FIR, sizes=SIZES | {"L": 20}).save(tmp_path)
    assert convdsl.load_kernel(tmp_path).options.fixed["L"] == 20
    assert len(list(tmp_path.iterdir())) == 3


def test_another_manifest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "my web app"}', "utf-8")
    kernel = convdsl.compile(FIR, sizes=SIZES)
    _refused("E0361", lambda: kernel.save(tmp_path))
    assert (tmp_path / "manifest.json").read_text("utf-8") == '{"name": "my web app"}'
    assert len(list(tmp_path.iterdir())) == 1


# -- loading what is not as it was saved ----------------------------------------------------------
def _saved(folder: Path) -> Path:
    convdsl.compile(FIR, sizes=SIZES).save(folder)
    return folder


def _edit(folder: Path, **changes: object) -> None:
    """Change the manifest as somebody would who also knows how it is checked."""
    path = folder / "manifest.json"
    record = json.loads(path.read_text("utf-8"))
    record.pop("check")
    record |= changes
    record = {name: value for name, value in record.items() if value is not ...}
    record["check"] = artifact._check(record)
    path.write_text(json.dumps(record), "utf-8")


def test_no_kernel(tmp_path: Path) -> None:
    assert "No such file" in _refused("E0361", lambda: convdsl.load_kernel(tmp_path)).message
    _refused("E0361", lambda: convdsl.load_kernel(tmp_path / "missing"))
    for text in ("", "[", "[]", "{}", "[" * 100_000, '{"format": 1}', "\xff"):
        (tmp_path / "manifest.json").write_text(text, "latin-1")
        _refused("E0361", lambda: convdsl.load_kernel(tmp_path))


def test_an_edited_file(tmp_path: Path) -> None:
    folder = _saved(tmp_path)
    module = folder / "fir.py"
    before = module.read_text("utf-8")
    module.write_text(before + "# mine\n", "utf-8")
    error = _refused("E0362", lambda: convdsl.load_kernel(folder))
    assert "fir.py" in error.message
    module.unlink()
    error = _refused("E0362", lambda: convdsl.load_kernel(folder))
    assert "fir.py" in error.message
    module.write_text(before, "utf-8")
    convdsl.load_kernel(folder)


def test_an_edited_manifest(tmp_path: Path) -> None:
    path = _saved(tmp_path) / "manifest.json"
    text = path.read_text("utf-8")
    path.write_text(json.dumps(json.loads(text), indent=7), "utf-8")
    convdsl.load_kernel(tmp_path)  # its layout is free
    path.write_text(text.replace('"stride": 1', '"stride": 2'), "utf-8")
    error = _refused("E0362", lambda: convdsl.load_kernel(tmp_path))
    assert "manifest.json" in error.message


def test_another_format(tmp_path: Path) -> None:
    _edit(_saved(tmp_path), format=99)
    error = _refused("E0361", lambda: convdsl.load_kernel(tmp_path))
    assert "has format 99" in error.message
    convdsl.compile(FIR, sizes=SIZES).save(tmp_path)  # ours to replace, all the same
    convdsl.load_kernel(tmp_path)


def test_another_version(tmp_path: Path) -> None:
    """What counts is the text: the same one loads, another does not."""
    _edit(_saved(tmp_path), convdsl="0.0.1")
    convdsl.load_kernel(tmp_path)
    (tmp_path / "fir.py").write_text("# other text\n", "utf-8")
    facts = artifact._facts([b"# other text\n"])
    _edit(tmp_path, files={"fir.py": facts})
    error = _refused("E0363", lambda: convdsl.load_kernel(tmp_path))
    assert "0.0.1" in str(error)
    assert "`program`" in str(error.help)
    _edit(tmp_path, convdsl=convdsl.__version__)
    assert "another build" in str(_refused("E0363", lambda: convdsl.load_kernel(tmp_path)))
    _edit(tmp_path, limits="adapter")
    assert "an adapter" in str(_refused("E0363", lambda: convdsl.load_kernel(tmp_path)))


@pytest.mark.parametrize("name", ["../fir.py", "/fir.py", "a/b", "..", "manifest.json"])
def test_a_manifest_cannot_name_files_elsewhere(tmp_path: Path, name: str) -> None:
    _edit(_saved(tmp_path), files={name: {"bytes": 0, "sha256": ""}})
    _refused("E0361", lambda: convdsl.load_kernel(tmp_path))


@pytest.mark.parametrize("name", sorted(artifact._FIELDS))
@pytest.mark.parametrize("value", [..., -7], ids=["missing", "number"])
def test_a_manifest_with_a_hole(tmp_path: Path, name: str, value: object) -> None:
    _edit(_saved(tmp_path), **{name: value})
    error = _refused("E0361", lambda: convdsl.load_kernel(tmp_path))
    assert name in error.message or "convdsl" in name


@pytest.mark.parametrize(
    "changes",
    [
        {"program": "op f("}, {"op": "other"}, {"target": "cuda"}, {"accuracy": "exact"},
        {"fixed": {"Q": 1}}, {"fixed": {"N": "many"}}, {"params": {"stride": None}},
        {"dynamic": ["Q"]}, {"dynamic": [3]}, {"absent": ["x"]}, {"absent": [[]]},
        {"sizes": {"N": 2}}, {"sizes": {"N": "2"}}, {"sizes": {"Q": 2}}, {"constants": {"q": "fir.py"}},
        {"constants": {"w": "none.npy"}}, {"constants": {"w": 3}}, {"files": {"fir.py": 3}},
        {"algorithm": "magic"}, {"limits": "none"},
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_that_says_something_else(tmp_path: Path, changes: dict[str, object]) -> None:
    """It is the user's file: an error of theirs, whatever it says."""
    _edit(_saved(tmp_path), **changes)
    with pytest.raises(CdslError):
        convdsl.load_kernel(tmp_path)


# -- writing in one piece -------------------------------------------------------------------------
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of the files does not fit: the first is not there either, nor the folders."""
    kernel = convdsl.compile(FIR, sizes=SIZES)
    real, calls = artifact._writer, []

    def writer(parts: object) -> object:
        def fill(file: Any) -> None:
            calls.append(file.name)
            if len(calls) % 2 == 0:
                file.write(b"half of it")
                raise OSError(28, "No space left on device")
            real(parts)(file)  # type: ignore[arg-type]

        return fill

    monkeypatch.setattr(artifact, "_writer", writer)
    error = _refused("E0360", lambda: kernel.save(tmp_path / "a/b"))
    assert "No space left on device" in error.message
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    kernel.save(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    monkeypatch.setattr(artifact, "_writer", writer)
    _refused("E0360", lambda: kernel.save(tmp_path))
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(file: Any) -> None:
        file.write(b"half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "a": b"whole", tmp_path / "b": interrupted})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["file/below", "nul\0byte", "x" * 300])
def test_folders_that_cannot_be(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    kernel = convdsl.compile(FIR, sizes=SIZES)
    _refused("E0360", lambda: kernel.save(str(tmp_path / where)))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root has every permission, so the system is made to refuse."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refuse)
    error = _refused("E0360", lambda: convdsl.compile(FIR, sizes=SIZES).save(tmp_path / "a"))
    assert error.message.endswith("Permission denied")
