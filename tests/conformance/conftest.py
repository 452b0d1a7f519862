"""Both targets for every test that takes `target`; without an adapter those on "wgsl" fail."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)
