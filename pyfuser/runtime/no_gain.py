"""Traces of NumPy's operations that kernels make no faster, which NumPy goes on computing.

Where arrays stay in cache, NumPy streams through them as fast as a kernel does; so one that saves
no passes over memory can only lose the time in which calls are recorded and kernels launched.
The rule looks at the plan before anything is compiled, never at a clock. It is about what NumPy
does at the speed of memory: all other operations take one thread of NumPy's longer.
"""

from __future__ import annotations

from math import prod

from pyfuser.ir.nodes import Workunit
from pyfuser.plan.plan import Plan
from pyfuser.plan.search import seconds
from pyfuser.runtime.budget import TooDear
from pyfuser.support.passes import left_out
from pyfuser.trace.shape import TraceShape

ONE = frozenset({
    "copy", "negative", "absolute", "square", "invert", "logical_not",
})  # fmt: skip
TWO = frozenset({
    "add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
    "logical_and", "logical_or", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal",
})  # fmt: skip
"""Operations of one operand, or two, that NumPy's vectors do as fast as memory allows."""

RATE = 30e9
"""Bytes a second that NumPy moves in cache; an AMD EPYC (Zen 4), one thread."""

CALL = 0.6e-6
"""Seconds that an operation of NumPy's takes on no elements."""

RECORDED = 1.2e-6
"""Seconds to record one and to collect its arguments."""

FLUSH = 8e-6
"""Seconds of a flush around its launches."""


class NoGain(TooDear):
    """Kernels would not make a trace faster."""


def has_none(given: TraceShape, trace: TraceShape, plan: Plan) -> bool:
    """Whether NumPy takes no longer for calls of its own operations than their kernels.

    given: what was recorded. trace, plan: what was made of it.
    """
    if left_out("no-gain") or not all(_streams(call.workunit) for call in given.calls):
        return False
    if any(param.sym.dtype.is_complex for call in given.calls for param in call.workunit.params):
        return False
    numpys = 0.0
    for call in given.calls:
        wide = sum(param.sym.dtype.size for param in call.workunit.params if param.rank)
        numpys += CALL + prod(call.space.end) * wide / RATE
    return numpys < FLUSH + RECORDED * len(given.calls) + seconds(trace, plan)


def _streams(workunit: Workunit) -> bool:
    """Whether NumPy does so, without a mask, which is another parameter."""
    return workunit.name in (ONE, TWO)[len(workunit.params) == 3] and len(workunit.params) < 4
