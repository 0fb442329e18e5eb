"""Traces of NumPy's operations that kernels make no faster, which NumPy goes on computing.

Where arrays stay in cache, NumPy streams through them as fast as a kernel does; so one that saves
no passes over memory can only lose the time in which calls are recorded and kernels launched.
The rule looks at the plan before anything is compiled, never at a clock. It is about what NumPy
does at the speed of memory: all other operations take one thread of NumPy's longer.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pyfuser.analysis.layout import byte_range
from pyfuser.ir.nodes import Workunit
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.shape import CallShape, RegionShape, TraceShape
from pyfuser.tuning.host import known

if TYPE_CHECKING:
    from pyfuser.plan.plan import Plan

ONE = frozenset({
    "copy", "negative", "absolute", "square", "invert", "logical_not",
})  # fmt: skip
TWO = frozenset({
    "add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
    "logical_and", "logical_or", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal",
})  # fmt: skip
"""Operations of one operand, or two, that NumPy's vectors do as fast as memory allows."""

GATHER = "gather"
"""The name of `x[indices]`."""

RATE = 90e9
"""Bytes a second that NumPy moves in cache; an AMD EPYC with AVX-512, one thread."""

ROWS = 0.5
"""Of that, where it goes row by row."""

SHARED = 1.6
"""Times as many are moved by kernels of several threads. From memory that is so, too, where all
takes longer: what is said of arrays in cache is the worst case for kernels."""

CALL = 0.6e-6
"""Seconds that an operation of NumPy's takes on no elements."""

RECORDED = 1.2e-6
"""Seconds to record one and to collect its arguments."""

FLUSH = 25e-6
"""Seconds of a flush around its launches: 12 in a loop that does nothing else. Where a program
does, threads sleep."""

GATHERED = 1e-9
"""Seconds that NumPy takes for an element of `x[indices]`, as one thread of a kernel does."""

LOOKED = (8e-6, 1e-10)
"""Seconds to record that one, and for each of its indices, which are looked at then."""


def has_none(given: TraceShape, trace: TraceShape, plan: Plan) -> bool:
    """Whether NumPy takes no longer for calls of its own operations than their kernels.

    given: what was recorded. trace, plan: what was made of it.
    """
    calls = given.calls
    if left_out("no-gain") or not all(map(_is_known, calls)):
        return False
    if any(param.sym.dtype.is_complex for call in calls for param in call.workunit.params):
        return False
    ours = FLUSH + RECORDED * len(calls) + _kernels(trace, plan)
    gathered = [prod(call.space.end) for call in calls if _gathers(call)]
    ours += sum(LOOKED[0] + (LOOKED[1] + GATHERED / _sharing()) * count for count in gathered)
    return sum(map(_numpys, calls)) < ours


def _numpys(call: CallShape) -> float:
    """Seconds that NumPy takes for a call."""
    if _gathers(call):
        return CALL + prod(call.space.end) * GATHERED
    regions = [each for each in call.arguments if isinstance(each, RegionShape)]
    wide = sum(param.sym.dtype.size for param in call.workunit.params if param.rank)
    rate = RATE if all(map(_is_one_row, regions)) else ROWS * RATE
    return CALL + prod(call.space.end) * wide / rate


def _is_one_row(region: RegionShape) -> bool:
    """Whether elements lie one after the other."""
    low, high = byte_range(region)
    return high - low + 1 == prod(region.shape) * region.dtype.size


def _kernels(trace: TraceShape, plan: Plan) -> float:
    """Seconds that the kernels of a plan take, of arrays in cache."""
    from pyfuser.plan.search import seconds  # only who plans needs it

    return seconds(trace, plan, replace(known().machine, bandwidth=RATE * _sharing()))


def _sharing() -> float:
    """How much faster kernels are than one thread."""
    return SHARED if SETTINGS.threads > 1 else 1.0


def _is_known(call: CallShape) -> bool:
    """Whether what NumPy takes for a call is known."""
    return _streams(call.workunit) or _gathers(call)


def _gathers(call: CallShape) -> bool:
    return call.workunit.name == GATHER


def _streams(workunit: Workunit) -> bool:
    """Whether NumPy does so, without a mask, which is another parameter."""
    return workunit.name in (ONE, TWO)[len(workunit.params) == 3] and len(workunit.params) < 4
