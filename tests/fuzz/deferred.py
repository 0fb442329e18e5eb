"""Which calls wait, in programs of the fuzzer, when the host reads a result: all that may."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.plan.dependence_slice import may_wait, needed
from pyfuser.runtime import partial_flush
from pyfuser.runtime.session import SESSION
from pyfuser.trace.call import Call as TraceCall
from pyfuser.trace.shape import shape_of
from tests.fuzz.program import Call, Host, Program

_AT_ONCE = 4  # one program in so many runs everything that is pending at once


def left(
    program: Program, segment: tuple[int, int], pending: list[tuple[int, TraceCall]], waited: int
) -> list[tuple[int, TraceCall]]:
    """What waits after a segment (its first step, and the step behind) of what is pending.

    waited: how many calls have waited once, and must run.
    """
    start, stop = segment
    read, *after = program.steps[stop : stop + 2] or [None]
    number = re.fullmatch(r"read\(result\[(\d+)\]\)", read.text) if isinstance(read, Host) else None
    if number is None or program.seed % _AT_ONCE == 0:
        return []
    step = program.steps[int(number[1])]
    wanted = waited + int(number[1]) - start
    if not start <= int(number[1]) < stop or any(map(_blocks, (step, *after))):
        return []
    trace = shape_of([call for _, call in pending], structural_scalars)
    stay = {n for n, call in enumerate(trace.calls) if n < waited or not may_wait(call)}
    now = needed(trace, stay | {wanted})
    return [entry for n, entry in enumerate(pending) if n not in now]


def _blocks(step: Call | Host) -> bool:
    """Whether everything runs before a step, or after it."""
    return isinstance(step, Host) or bool(step.mode or step.limit)


@contextlib.contextmanager
def forced_for(seed: int) -> Iterator[None]:
    """Inside, compiled programs leave what may wait at the first read of a result."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SESSION.deferral, "on", seed % _AT_ONCE != 0)
        patch.setattr(partial_flush, "STEADY", 1)
        patch.setattr(partial_flush.Site, "pays", property(lambda _: True))
        patch.setattr(partial_flush.Site, "judge", lambda *_: None)
        SESSION.deferral._sites.clear()
        yield
    SESSION.deferral._sites.clear()
