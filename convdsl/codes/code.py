"""The record of one diagnostic code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A code's title (one line) and its explanation with an example."""

    title: str
    text: str


def code(title: str, text: str) -> Code:
    """A `Code` from an indented triple-quoted text."""
    return Code(title, inspect.cleandoc(text) + "\n")
