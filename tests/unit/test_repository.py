"""Habits of the repository that nothing else would notice being broken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from convdsl._version import __version__

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"help", "demo", "test", "check", "fmt", "golden", "clean", "vulkan", ".venv"}
GENERATED = {"__pycache__", "build", "dist"}
NOT_HIDDEN = {".ci", ".editorconfig", ".gitattributes", ".gitignore"}
PACKAGES = {"backends", "convdsl", "grammar", "tests"}
LONGEST = 400

# Written so that this file does not match itself.
MACHINE = re.compile(
    r"(?<![\w.~-])/(?:root|work|home|Users|mnt)/"
    r"|\b(?:pypi|pythonhosted|npmjs|debian|crates)\.(?:org|com|io|net)\b"
    r"|--(?:extra-)?index[-]url|--trusted[-]host|--find[-]links"
)


def files() -> Iterator[Path]:
    """Every file that is ours, links not followed."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [n for n in folders if n not in GENERATED and not n.endswith(".egg-info")]
        folders[:] = [n for n in folders if not n.startswith(".") or n in NOT_HIDDEN]
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink() and (not name.startswith(".") or name in NOT_HIDDEN):
                yield path


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["backends", "grammar"])
def test_links(name: str) -> None:
    link = ROOT / "convdsl" / name
    assert link.is_symlink(), f"convdsl/{name} must be a link; on Windows: core.symlinks=true"
    assert link.readlink() == Path("..", name)
    assert (link / "__init__.py").samefile(ROOT / name / "__init__.py")


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = [
        f"{named(path)}: {match.group()}"
        for path in files()
        if (match := MACHINE.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert found == []


def test_no_source_file_is_long() -> None:
    sources = [p for p in files() if p.suffix in {".py", ".lark", ".sh"} or p.name == "Makefile"]
    lengths = {named(p): p.read_bytes().count(b"\n") for p in sources}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def test_every_folder_with_python_is_a_package() -> None:
    """setuptools and mypy find packages by it; tests of one name need it."""
    code = [p for p in files() if p.suffix == ".py" and named(p).split("/")[0] in PACKAGES]
    folders = {named(p.parent) for p in code if not (p.parent / "__init__.py").exists()}
    assert folders == set()


def test_make_targets_are_documented() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", makefile(), re.MULTILINE)
    assert phony is not None
    documented = set(re.findall(r"^([a-z.]+):[^=\n]*## \S", makefile(), re.MULTILINE))
    assert documented >= TARGETS
    assert set(phony.group(1).split()) <= documented
    assert ".DEFAULT_GOAL := help" in makefile()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
@pytest.mark.parametrize("name", [".ci/run", ".ci/setup.sh"])
def test_scripts_are_executable_and_strict(name: str) -> None:
    path = ROOT / name
    assert os.access(path, os.X_OK)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in text


def test_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert first is not None
    assert first.group(1) == __version__
