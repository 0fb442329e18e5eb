"""The parallel patterns as the extension has them, and what it must know to record calls.

Its law: it does what `dispatch.dispatch` does for a call of a usual kind, or nothing, and then the
Python function that stands behind it does all. See docs/hot.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pyfuser.engine.launchable import team
from pyfuser.frontends import modes, scalar_work
from pyfuser.frontends.embedded import careful
from pyfuser.frontends.embedded.arguments import FLOAT64, FUTURE, HARMLESS, INT32, INT64, classify
from pyfuser.frontends.embedded.bindings import described
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.frontends.embedded.policies import MDRangePolicy, RangePolicy, TeamPolicy
from pyfuser.frontends.embedded.spaces import HOSTS, KNOWN_POLICIES
from pyfuser.frontends.embedded.views import Subview, View
from pyfuser.nest.abi import DIVIDED
from pyfuser.runtime.prepared import prepared_alone, raise_divided
from pyfuser.runtime.session import SESSION, TRACER, run_alone
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason
from pyfuser.trace.call import Space
from pyfuser.trace.images import USE

ON_DEVICE = 1 << 7
"""In the first part of the key: a GPU runs the call."""

Pattern = TypeVar("Pattern", bound=Callable[..., Any])


def compiled(pattern: str, watched: bool = False) -> Callable[[Pattern], Pattern]:
    """A decorator for the function of a parallel pattern; watched: see `dispatch.watched_for`."""

    def decorate(function: Pattern) -> Pattern:
        if HOT is None or SETTINGS.sync:  # which looks at each call that is recorded
            return function
        made: Pattern = HOT.Dispatcher(function, pattern, watched)
        return made

    return decorate


if HOT is not None:
    HOT.bind_recording(
        (
            TRACER, modes.SWITCHES, modes._BLOCK, modes._OWNED, KNOWN_POLICIES, team, USE, COUNTERS,
            SESSION, HARMLESS, HOSTS,
        ),
        (
            View, Subview, RangePolicy, MDRangePolicy, TeamPolicy, WorkunitState, modes.Entry,
            np.ndarray, Space, np.float64,
        ),
        (
            classify, described, prepared_alone, raise_divided, TRACER.compute,
            TRACER.lock.acquire, TRACER.lock.release, run_alone, careful.looked_at,
        ),
        (FLOAT64, INT32, INT64, FUTURE, ON_DEVICE, DIVIDED),
    )  # fmt: skip
    if not SETTINGS.sync:  # which looks at each flush
        HOT.bind_number(reason.RESULT, scalar_work.LARGE)
