"""Filters whose operands are laid out, so that one window of the data serves all taps."""

from __future__ import annotations

import pytest

import convdsl
from convdsl import ops


@pytest.mark.parametrize(("channels", "laid_out"), [(1, False), (2, True)])
def test_terms_besides_those_of_the_taps_are_needed(channels: int, laid_out: bool) -> None:
    """A step of a window takes some channels for all taps; of one channel there are none to take."""
    sizes = {"N": 1, "C": channels, "L": 2**14, "M": 512, "K": 16}
    kernel = convdsl.compile(
        ops.source("conv1d"), target="wgsl", sizes=sizes, params={"pad_begin": 1}, absent="b",
        algorithm="phases",
    )  # fmt: skip
    assert ("layout" in str(kernel.schedule)) == laid_out
