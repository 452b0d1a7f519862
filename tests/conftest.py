"""Options, fixtures and Hypothesis profiles that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `default` keeps `make test` short, `quick` that before every commit. With CI set the examples are
# the same on every run.
settings.register_profile(
    "default",
    max_examples=40,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=8)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=500)
settings.load_profile(os.environ.get("CONVDSL_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the expected files from what the code does now."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under `--update-golden` only the tests that compare with golden files run."""
    if config.getoption("--update-golden"):
        chosen = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: the text equals the file, or becomes it under `--update-golden`."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"{path} does not exist; write it with --update-golden")
        assert text == path.read_text("utf-8")

    return check
