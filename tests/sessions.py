"""A session that knows nothing, for tests of what is planned and compiled, and of what is kept."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from pyfuser.engine import native
from pyfuser.engine.ahead import Ahead
from pyfuser.runtime.prepared import Workunits
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import CACHES, Latest, Table
from pyfuser.trace.reason import SYNC


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """In the block the process knows no plans, kernels or flushes; afterwards those of before."""
    SESSION.tracer.flush(SYNC)
    kept: list[tuple[Any, Any]] = []
    for table in CACHES:
        if isinstance(table, Table):
            kept.append((table.update, dict(table)))
        elif isinstance(table, Latest):
            kept.append((table.extend, list(table)))
    _forget()
    try:
        yield
    finally:
        _forget()
        for put_back, entries in kept:
            put_back(entries)


class Awaited(Ahead):
    """What is compiled when a test says so."""

    is_done = False  # type: ignore[assignment]


class _Late(Ahead):
    """What is compiled when it has been asked for a few times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    @property
    def is_done(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@contextlib.contextmanager
def compiled_late(rng: random.Random) -> Iterator[None]:
    """In the block a program runs on for a while before it has what is compiled meanwhile."""
    with patch.object(native, "begin", lambda _: _Late(rng.randint(0, 4))):
        yield


def _forget() -> None:
    for table in CACHES:
        if isinstance(table, (Table, Latest, Workunits)):
            table.clear()
