"""What is built from the tree: the wheel holds every file, and says who we are.

The wheel is built from the sdist, without isolation, so that no network is needed.
"""

from __future__ import annotations

import configparser
import email
import email.message
import importlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from convdsl._version import __version__

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "convdsl", "backends", "grammar")
METADATA = f"convdsl-{__version__}.dist-info/"


def tree() -> set[str]:
    """The files of the package as they stand in the checkout, behind the two links too."""
    return {
        Path(folder, name).relative_to(ROOT).as_posix()
        for folder, _, names in os.walk(ROOT / "convdsl", followlinks=True)
        if "__pycache__" not in Path(folder).parts
        for name in names
    }


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with an sdist and the wheel made from it."""
    copy = tmp_path_factory.mktemp("checkout")
    skip = shutil.ignore_patterns("__pycache__")
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, symlinks=True, ignore=skip)
        else:
            shutil.copy(source, copy / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(copy / "dist")]
    done = subprocess.run(
        command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> dict[str, bytes]:
    """The files of the wheel."""
    (path,) = dist.glob("*.whl")
    assert path.name == f"convdsl-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(wheel: dict[str, bytes]) -> email.message.Message:
    return email.message_from_bytes(wheel[METADATA + "METADATA"])


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: dict[str, bytes]) -> None:
    built = {name for name in wheel if not name.startswith(METADATA)}
    assert built - tree() == set(), "in the wheel, not in the tree"
    assert tree() - built == set(), "not in the wheel: see package-data in pyproject.toml"


def test_the_files_of_the_wheel_are_those_of_the_tree(wheel: dict[str, bytes]) -> None:
    for name in tree():
        assert wheel[name] == (ROOT / name).read_bytes(), name


def test_the_sdist_holds_the_tree(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {m.name.split("/", 1)[-1] for m in archive.getmembers() if not m.isdir()}
    assert tree() | {"pyproject.toml", "README.md", "LICENSE"} <= inside


def test_metadata(metadata: email.message.Message, wheel: dict[str, bytes]) -> None:
    assert metadata["Name"] == "convdsl"
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert METADATA + "licenses/LICENSE" in wheel


def test_a_numpy_user_needs_no_gpu_stack(metadata: email.message.Message) -> None:
    always = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = sorted(line.split(">")[0] for line in always)
    assert names == ["click", "islpy", "lark", "numpy", "platformdirs", "rich"]
    assert metadata.get_all("Provides-Extra") == ["gpu", "test", "dev", "bench"]


def test_entry_points_lead_to_code(wheel: dict[str, bytes]) -> None:
    points = configparser.ConfigParser(delimiters=("=",))
    points.read_string(wheel[METADATA + "entry_points.txt"].decode())
    assert dict(points["console_scripts"]) == {"convdsl": "convdsl.cli:main"}
    assert sorted(points["convdsl.backends"]) == ["numpy", "wgsl"]
    for section in points.values():
        for target in section.values():
            module, _, attribute = target.partition(":")
            assert callable(getattr(importlib.import_module(module), attribute)), target


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_what_test_installs_is_what_dev_installs() -> None:
    """The Makefile takes the larger set of extras for the smaller ones."""
    extras = pyproject()["project"]["optional-dependencies"]
    assert "convdsl[gpu]" in extras["test"]
    assert "convdsl[test]" in extras["dev"]
