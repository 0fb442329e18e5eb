"""Recording in tests: everything, and by whom it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pyfuser.frontends.numpy import layout, switches
from pyfuser.runtime import no_gain
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import clear_caches
from tests.frontends.numpy import tiers


@pytest.fixture(autouse=True)
def at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large enough is recorded the first time that it comes; kernels beat NumPy.

    No test knows which rows others rolled.
    """
    if layout.ROWS:
        layout.ROWS.clear()
        clear_caches()
    monkeypatch.setattr(switches.LIMITS, "sure", 1)
    monkeypatch.setattr(no_gain, "CALL", 1.0)


@pytest.fixture
def lazily(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """`lazily(tier)`: also the smallest operations are recorded, and run by who is named."""
    before = TRACER.flush_function

    def begin(tier: str) -> None:
        for limit in ("most", "costly", "rows", "columns"):
            monkeypatch.setattr(switches.LIMITS, limit, 1)
        tiers.use(tier)

    yield begin
    try:
        TRACER.discard()
    finally:
        TRACER.flush_function = before
