"""`text(function, ...)`: the verified ir of a workunit as text, without its header line."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from pyfuser.ir.printer import show
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import BoundType, lower


@pytest.fixture
def text() -> Callable[..., str]:
    def lowered(
        function: Callable[..., Any], pattern: str = "for", rank: int = 1, **types: BoundType
    ) -> str:
        workunit = lower(function, pattern, rank, types).workunit
        verify(workunit)
        return textwrap.dedent(show(workunit).split("\n", 1)[1])

    return lowered


@pytest.fixture
def same(text: Callable[..., str]) -> Callable[..., None]:
    """`same(expected, function, ...)` compares the text of a workunit."""

    def check(expected: str, *args: Any, **types: BoundType) -> None:
        assert text(*args, **types).strip() == textwrap.dedent(expected).strip()

    return check
