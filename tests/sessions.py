"""A session that knows nothing, for tests of what is planned and compiled, and of what is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

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


def _forget() -> None:
    for table in CACHES:
        if isinstance(table, (Table, Latest, Workunits)):
            table.clear()
