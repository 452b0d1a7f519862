"""Packages that only a benchmark needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from convdsl.diagnostics import CdslError


def require(who: str, module: str, install: str = "'convdsl[bench]'") -> Any:
    """A module that may not be installed.

    Raises:
        CdslError: E0901 with the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise CdslError(
            "E0901",
            f"`{who}` needs the package {module}, which cannot be imported: {error}",
            help=f"pip install {install}",
        ) from None
