"""The search with some of the rewrites alone, and costs that do not matter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyfuser.pipeline import TRACE_REWRITES
from pyfuser.plan import search as searches
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.search import Planned, search
from pyfuser.trace.shape import TraceShape


def searching(*names: str, **fields: object) -> Callable[..., Planned]:
    """Plans traces by some of the rewrites, whose records have these fields."""
    rewrites = [each._replace(**fields) for each in TRACE_REWRITES if each.name in names]

    def planned(trace: TraceShape, capabilities: Capabilities = ALL) -> Planned:
        return search(trace, rewrites, capabilities)

    return planned


def kept_whatever_it_costs(patch: pytest.MonkeyPatch, *rewrites: str) -> None:
    """From now on, the search takes what these rewrites propose."""
    before = searches.is_cheaper
    patch.setattr(
        searches, "is_cheaper", lambda each, *rest: each.name in rewrites or before(each, *rest)
    )
