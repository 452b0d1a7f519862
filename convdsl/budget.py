"""How much memory a program for a CPU takes besides inputs, its output and what is kept of constants."""

from __future__ import annotations

CAP = 64 * 2**20
"""Bytes of temporaries, where a caller says nothing."""
