"""What `import pyfuser` offers to programs."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from pyfuser.frontends import modes
from pyfuser.frontends.embedded import spaces
from pyfuser.frontends.embedded.capture import Capture
from pyfuser.frontends.embedded.decorators import state_of, warn_of_decorators
from pyfuser.frontends.embedded.views import ViewType
from pyfuser.runtime.flush import finish
from pyfuser.runtime.session import TRACER
from pyfuser.support.counters import COUNTERS, Counters
from pyfuser.support.errors import FAILURES, ArgumentError, WorkunitWarning, warn
from pyfuser.support.lazy import lazily
from pyfuser.trace import reason
from pyfuser.trace.call import GPU_SPACES, Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer
from pyfuser.trace.raw import unread, warn_of_unread
from pyfuser.tuning.host import Known

if TYPE_CHECKING:
    from pyfuser import report
    from pyfuser.report import Explanation
else:
    report = lazily("pyfuser.report")

__all__ = [
    "calibrate",
    "capture",
    "disable",
    "discard",
    "enable",
    "explain",
    "fuse",
    "fusing",
    "load_ipython_extension",
    "pending",
    "stats",
    "sync",
    "unfused",
    "unload_ipython_extension",
]

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def fuse(workunit: Function) -> Function: ...
@overload
def fuse() -> Callable[[Function], Function]: ...
def fuse(workunit: Any = None) -> Any:
    """Mark a workunit as traced: its calls are recorded and run later, fused with others.

    A decorator, over or under `@pk.workunit`, or called on an existing workunit (which stays
    unmarked). The result is a workunit that can still be called as plain Python; `__wrapped__` is
    the function it was given.

    Raises ArgumentError for anything but a Python function.
    """
    if workunit is None:
        return fuse
    state = state_of(workunit)
    if state is None:
        raise ArgumentError(
            f"pyfuser.fuse: {workunit!r} is not a Python function; decorate a "
            "@pk.workunit function or method"
        )
    warn_of_decorators(workunit)
    if _launches(state.function):
        warn(
            f"pyfuser.fuse: {state.function.__name__!r} launches workunits, and is none itself, so "
            "nothing is recorded: decorate the workunits, or launch them in a block, `with "
            "pyfuser.fusing():`",
            state.function.__code__.co_filename,
            state.function.__code__.co_firstlineno,
            WorkunitWarning,
        )

    @functools.wraps(workunit)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return workunit(*args, **kwargs)

    traced.__pyfuser__ = state.marked(traced)  # type: ignore[attr-defined,arg-type]
    return traced


def _launches(function: FunctionType) -> bool:
    """Whether a function calls patterns, and not the nested ones of a team."""
    names = {*function.__code__.co_names, *function.__code__.co_freevars}
    patterns = {"parallel_for", "parallel_reduce", "parallel_scan"}
    nested = any(name.endswith("Range") and name[:4] in ("Team", "Thre") for name in names)
    return bool(patterns & names) and not nested


@overload
def capture(function: Callable[..., Any]) -> Capture: ...
@overload
def capture() -> Callable[[Callable[..., Any]], Capture]: ...
def capture(function: Callable[..., Any] | None = None) -> Any:
    """A callable that does what a function does with parallel patterns, without its Python.

    The first call with arguments of some kinds runs the function and keeps the calls it makes;
    later calls with arguments of the same kinds run these. Kinds: types, shapes, strides and data
    types of Views; numbers that the function looks at, and integers; other objects themselves. What
    the function reads from outside is as it was at first. Where that cannot be promised, a warning
    says so once, and the function runs as usual: see docs/capture.md.

    Raises ArgumentError for what cannot be called, and for a workunit.
    """
    if function is None:
        return _captured_next  # @pyfuser.capture()
    if not callable(function):
        raise ArgumentError(f"pyfuser.capture: {function!r} is not a function")
    if hasattr(function, "__pyfuser__"):
        raise ArgumentError(
            f"pyfuser.capture: {function.__name__!r} is a workunit; capture is for a function that "
            "launches workunits"
        )
    return Capture(function)


def _captured_next(*given: Any) -> Capture:
    """What `capture()` returns, which decorates a function."""
    if len(given) != 1 or not callable(given[0]):
        raise ArgumentError(
            "pyfuser.capture was given None, not a function: give it the function itself, as in "
            "pyfuser.capture(step), and not what step(...) returns"
        )
    return capture(given[0])


def fusing() -> modes.Block:
    """`with pyfuser.fusing():` records every call in the block and runs them at its end.

    If the block raises, the calls recorded before still run, as they would have without fusion.
    Of nested `fusing` and `unfused` blocks the innermost counts; other threads are not affected. A
    block that a generator or coroutine enters counts while that runs, not while it is suspended.
    """
    return modes.fusing()


def unfused() -> modes.Block:
    """`with pyfuser.unfused():` runs what is pending, then every call of the block at once."""
    return modes.unfused()


def enable() -> None:
    """Record every call of the process from here on, marked by `fuse` or not."""
    modes.SWITCHES.everywhere = True


def disable() -> None:
    """Run what is pending, and from here on every call at once, marked by `fuse` or not.

    Blocks (`with pyfuser.fusing():`) still count.
    """
    modes.SWITCHES.everywhere = False
    TRACER.flush(reason.DISABLE)


def sync(*views: Any) -> None:
    """Run what is pending, so that memory can be read and written by anybody.

    With arguments (Views, NumPy arrays, Futures): only if one of them needs it.
    """
    if not views:
        finish(reason.SYNC)
    for view in views:
        if isinstance(view, Future):
            view.result()
        elif isinstance(view, ViewType):
            TRACER.flush_for(view._region.buffer, reason.SYNC)
        elif isinstance(view, np.ndarray):
            TRACER.flush_for(Buffer.wrap(view), reason.SYNC)
        else:
            TRACER.flush(reason.SYNC)


def pending() -> tuple[str, ...]:
    """The recorded calls that have not run, in order, each as `name (file:line)`."""
    with TRACER.lock:
        return _listed(TRACER.wanted())


def _listed(calls: Sequence[Call]) -> tuple[str, ...]:
    return tuple(f"{call.name} ({call.location})" for call in calls)


def discard() -> tuple[str, ...]:
    """Drop the recorded calls that have not run; gives what `pending` told of them.

    For calls that cannot run, as the compiler rejects their kernel or a View finds no memory: every
    `sync` tries them again until they are dropped. Memory stays as it is; to use the result of a
    reduction that was dropped raises PyFuserError.
    """
    return _listed(TRACER.discard())


def stats() -> Counters:
    """Counts since the process started: a copy, so two of them can be subtracted by field."""
    misses = dict(COUNTERS.misses)
    return dataclasses.replace(COUNTERS, recorded=TRACER.recorded, misses=misses)


def explain(flushes: int = 1, source: bool = False) -> Explanation:
    """What was fused, what was not and why: `repr` and `str` are the report, a notebook shows HTML.

    flushes: how many of the latest flushes to cover (the newest 64 are kept). source: whether the
    text shows each fused kernel as PyKokkos source; `groups[k].source` always has it. Pending
    calls are flushed first. Raises ArgumentError unless `flushes` is an integer.
    """
    if not isinstance(flushes, int):
        raise ArgumentError(
            f"pyfuser.explain: flushes is how many of the latest to show, not {flushes!r}; "
            "explain(source=True) shows the fused source, too"
        )
    TRACER.flush(reason.EXPLAIN)
    return report.explain(flushes, source)


def calibrate(space: str | None = None) -> Known:
    """Measure this machine, and keep the result for this process and for later ones.

    space: "Cuda" or "HIP" to measure the current GPU in place of the host.

    Takes a few seconds, in which nothing else should run: what could not be measured stays as it
    was. Returns the constants of the cost model and which of them were measured. Plans that were
    made before stay, and results of programs never depend on it.

    Raises CompilerError if there is no compiler, DeviceError without a GPU, and CacheError if the
    cache directory is not ours alone or cannot be written.
    """
    # Needed once a machine: not at the start of every program.
    if space is not None and spaces.resolve_space(spaces.ExecutionSpace(space)).value in GPU_SPACES:
        from pyfuser.calibration import measure_gpu

        return measure_gpu.calibrate(space)
    from pyfuser.calibration import measure_host

    return measure_host.calibrate()


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext pyfuser`: makes the cell magic `%%fuse` known to an IPython shell."""
    from pyfuser.report import notebook  # needed in notebooks: not at the start of every program

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext pyfuser`."""
    from pyfuser.report import notebook

    notebook.unload(shell)


def _finish() -> None:
    """Calls that were recorded have been made: they run even if the program ends unread.

    A warning says so where they write NumPy arrays, which the program then never read, or too soon.
    An uncaught error says enough, and `pyfuser run` reads arrays in time.
    """
    silent = modes.SWITCHES.careful or hasattr(sys, "last_value")
    late = [] if silent else unread(TRACER.wanted())
    try:
        finish(reason.PROGRAM_ENDS)
        warn_of_unread(late)
    except FAILURES as error:  # the same one may have ended the program, and was shown
        if str(error) != str(getattr(sys, "last_value", None)):
            print(f"pyfuser: {error}", file=sys.stderr)
    finally:
        left = pending()
        if left:
            print("pyfuser: calls that did not run:", *left, sep="\n  ", file=sys.stderr)


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    # Otherwise both processes would run what is pending, on memory they may share.
    os.register_at_fork(before=functools.partial(TRACER.flush, reason.FORK))
