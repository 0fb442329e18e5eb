"""Who runs recorded calls in tests: the compiler, the interpreter of the ir, or NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyfuser.frontends.numpy.spaces import set_space
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.runtime import first_tier
from pyfuser.runtime.first_tier import DirectCall
from pyfuser.runtime.session import TRACER
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import TraceShape
from pyfuser.trace.tracer import Tracer
from tests.gpu.conftest import on_gpu
from tests.races import RaceDetector


def by_interpreter(tracer: Tracer) -> None:
    """Each call's iterations in shuffled order; none may touch what another one writes."""
    for n, call in enumerate(list(tracer.calls)):
        _interpret(call, n)
        tracer.remove([call])


def _interpret(call: Call, order: int) -> None:
    verify(call.workunit)
    arguments: list[Any] = [a.array() if type(a) is Region else a for a in call.arguments]
    races = RaceDetector()
    space = call.space
    values = interpret(call.workunit, call.pattern, space.begin, space.end, arguments, order, races)
    assert not races.found, (call.name, races.conflicts)
    if call.result is not None:
        call.result.give(values[0])


def _step(function: Callable[[], object]) -> None:
    function()


def by_numpy(tracer: Tracer) -> None:
    """As the first time that a trace comes; workunits are interpreted."""
    for n, call in enumerate(list(tracer.calls)):
        if isinstance(call, DirectCall):
            call.compute(_step)
        else:
            _interpret(call, n)
        tracer.remove([call])


_CAME: set[TraceShape] = set()


def _the_first_time(trace: TraceShape, calls: Sequence[Call]) -> bool:
    """Instead of `first_tier.runs_here`: a trace is compiled when it comes again."""
    if trace in _CAME or not all(isinstance(call, DirectCall) for call in calls):
        return False
    _CAME.add(trace)
    return True


@contextmanager
def place(tier: str) -> Iterator[None]:
    """Where calls run: in the tier `device` on a GPU, or on the stand-in for CuPy."""
    if tier != "device":
        yield
        return
    with on_gpu():
        set_space("Cuda")
        try:
            yield
        finally:
            set_space("OpenMP")


def use(tier: str) -> None:
    """`mixed`: NumPy and then kernels; `compiled`: nothing changes. `eager` is by NumPy, too."""
    if tier == "mixed":
        first_tier.runs_here = _the_first_time
    if tier == "interpret":
        TRACER.flush_function = by_interpreter
    elif tier in ("numpy", "eager"):
        TRACER.flush_function = by_numpy
