"""parallel_for, parallel_reduce and parallel_scan: from arguments to a `Call`.

What a call costs each time is this file, so the steady state is a few dictionary lookups: lowered
code is kept with the workunit, by pattern, rank and the types of the arguments.
"""

from __future__ import annotations

import operator
import reprlib
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from pyfuser.frontends import scalar_work
from pyfuser.frontends.embedded import careful, debug, devices, methods
from pyfuser.frontends.embedded.arguments import (
    FLOAT64,
    INT32,
    INT32_LIMIT,
    INT64,
    classify,
)
from pyfuser.frontends.embedded.bindings import TEAM, WIDE, Binding, binding_of, settle
from pyfuser.frontends.embedded.changing import with_changing
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.frontends.embedded.hot import ON_DEVICE, compiled
from pyfuser.frontends.embedded.policies import (
    ExecutionPolicy,
    MDRangePolicy,
    NestedRange,
    RangePolicy,
    TeamPolicy,
    integer,
)
from pyfuser.frontends.embedded.spaces import (
    GPU_SPACES,
    KNOWN_POLICIES,
    ExecutionSpace,
    resolve_space,
)
from pyfuser.frontends.embedded.views import Subview, View, ViewType
from pyfuser.frontends.modes import SWITCHES, block, recording, traced
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support import places
from pyfuser.support.errors import (
    ArgumentError,
    ArgumentValueError,
    PyFuserError,
    WorkunitWarning,
    whole,
)
from pyfuser.trace import reason
from pyfuser.trace.call import Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.reason import Reason

Future.record = staticmethod(scalar_work.record)

INT64_LIMIT = 1 << 63

_DEBUG = -1  # in its place: the Python function itself is run
_DEBUG_TEAMS = -2


@compiled("for")
def parallel_for(*args: Any, **kwargs: Any) -> None:
    """`parallel_for([label,] policy, workunit, **arguments)`: run a workunit for every index.

    policy: a RangePolicy, an MDRangePolicy, a TeamPolicy or the number of indices.

    Raises ArgumentError where the arguments do not fit, WorkunitError where the workunit uses
    something that the language does not have.
    """
    if len(args) == 2:
        dispatch("for", None, args[0], args[1], kwargs)
    else:
        label, policy, workunit, last = _unpack("for", args)
        view = last if isinstance(last, ViewType) else None
        dispatch("for", label, policy, workunit, kwargs, view)


@compiled("for", watched=True)
def watched_for(*args: Any, **kwargs: Any) -> None:
    """`parallel_for` called by code that runs what is pending before it touches any array."""
    if len(args) == 2:
        dispatch("for", None, args[0], args[1], kwargs, watched=True)
    else:
        label, policy, workunit, last = _unpack("for", args)
        view = last if isinstance(last, ViewType) else None
        dispatch("for", label, policy, workunit, kwargs, view, watched=True)


@compiled("reduce")
def parallel_reduce(*args: Any, **kwargs: Any) -> Any:
    """`parallel_reduce([label,] policy, workunit[, 0], **arguments)`: add up what it accumulates.

    Returns the sum, a `float` or `int` by the accumulator's type: in traced code a Future of it.
    """
    if len(args) == 2:
        return dispatch("reduce", None, args[0], args[1], kwargs)
    label, policy, workunit, _ = _unpack("reduce", args)
    return dispatch("reduce", label, policy, workunit, kwargs)


@compiled("scan")
def parallel_scan(*args: Any, **kwargs: Any) -> Any:
    """`parallel_scan([label,] policy, workunit[, 0], **arguments)`: a prefix sum.

    Returns the sum over all indices, as `parallel_reduce` does.
    """
    if len(args) == 2:
        return dispatch("scan", None, args[0], args[1], kwargs)
    label, policy, workunit, _ = _unpack("scan", args)
    return dispatch("scan", label, policy, workunit, kwargs)


def dispatch(
    pattern: str,
    label: str | None,
    policy: Any,
    workunit: Any,
    kwargs: dict[str, Any],
    view: Any = None,
    depth: int = 2,
    watched: bool = False,
) -> Any:
    """Make one call.

    depth: how many frames up the program called. watched: `watched_for` was called.
    """
    space, head = known_space(policy) or _space_in_call(policy, depth + 1)
    state = getattr(workunit, "__pyfuser__", None)
    function = workunit
    if state is None or state.owner is not workunit:
        if type(workunit) is list:
            return _fused_list(pattern, label, policy, workunit, kwargs, depth + 1)
        bound = methods.bind(pattern, workunit, view, head >= 0)
        if bound is None:
            return _nested(pattern, policy, space, workunit)
        state, outer = bound
        if head >= 0:
            kwargs = outer | kwargs
    if head < 0:
        TRACER.flush(reason.ALONE)
        return debug.run(pattern, space, function, kwargs, head == _DEBUG_TEAMS, view)
    frame = sys._getframe(depth)  # the program's: its code called parallel_for
    key: list[Any] = [pattern, head]
    try:
        if head & ON_DEVICE:
            devices.enter(policy, kwargs)
        values = _read_arguments(state, kwargs, key)
        binding = binding_of(state, space, tuple(key))
        if binding.unsettled:
            settle(binding, values)
    except ArgumentError as error:
        raise _at(frame, error) from None
    result = None if pattern == "for" else Future(binding.result, TRACER.compute)
    call = Call(
        pattern, space, binding.workunit, binding.pick(values), result, label,
        frame.f_code, ~frame.f_lasti,
    )  # fmt: skip
    why = reason.ALONE
    if traced(state.marked_by_fuse) and not _divides_by_0(binding, call):
        recorded, value = _record(binding, call, watched)
        if recorded:
            return value
        why = careful.seen(call)
    return _run_alone(call, devices.run if head & ON_DEVICE else SESSION.run, why)


def _record(binding: Binding, call: Call, watched: bool) -> tuple[bool, Any]:
    """Whether a call was recorded, or has run before it came, and what it returns."""
    there = None if call.result is None or TRACER.watch is None else TRACER.watch.served(call)
    if there is not None:
        return True, there.result() if SWITCHES.careful and block() is None else there
    if SWITCHES.careful:
        return careful.record(binding, call, watched)
    TRACER.record(call)
    return True, call.result


def _divides_by_0(binding: Binding, call: Call) -> bool:
    """Whether a number is 0 by which it may divide integers: that is looked at in the call."""
    arguments = call.arguments
    return any(type(arguments[n]) is int and not arguments[n] for n in binding.divisors)


def _run_alone(call: Call, run: Callable[[Call], None], why: Reason) -> Any:
    """Run a call now, after what is pending; why it is not recorded."""
    if TRACER.calls:
        TRACER.flush_before(call, why)
    if TRACER.watch is not None:
        TRACER.watch.recorded(call)
    run(call)
    return None if call.result is None else call.result.result()


def known_space(policy: Any) -> tuple[Space, int] | None:
    """What `space_of` found before for an equal policy of the usual kinds."""
    if type(policy) is int:
        return KNOWN_POLICIES.get(policy)
    if type(policy) is RangePolicy or type(policy) is MDRangePolicy:
        return KNOWN_POLICIES.get((policy.begin, policy.end, policy.space))
    if type(policy) is TeamPolicy:
        return KNOWN_POLICIES.get((policy.league_size, policy.space, policy.team_size))
    return None


def _space_in_call(policy: Any, depth: int) -> tuple[Space, int]:
    """As `space_of`, in a call of the program, so many frames up."""
    try:
        return space_of(policy, depth)
    except PyFuserError as error:
        raise _at(sys._getframe(depth), error) from None


def _nested(pattern: str, policy: Any, space: Space, function: Any) -> Any:
    """A nested pattern of a workunit that runs in the Debug space; raises for all else."""
    if not isinstance(policy, NestedRange):
        raise _not_a_workunit(function)
    return debug.run(pattern, space, function, {})


def _fused_list(
    pattern: str,
    label: str | None,
    policy: Any,
    workunits: list[Any],
    kwargs: dict[str, Any],
    depth: int,
) -> None:
    """`parallel_for(policy, [a, b], args_0={...}, args_1={...})`: a request to fuse two calls.

    They are recorded as calls in this order, so they share a kernel where that is proved right.
    """
    if pattern != "for":
        raise ArgumentError(f"parallel_{pattern} takes one workunit, not a list")
    unknown = [name for name in kwargs if name not in {f"args_{n}" for n in range(len(workunits))}]
    if unknown:
        raise ArgumentError(
            f"parallel_for: the arguments of a list of workunits are args_0={{...}}, "
            f"args_1={{...}}, one dict each, not {unknown[0]}=..."
        )
    with recording():
        for n, workunit in enumerate(workunits):
            arguments = kwargs.get(f"args_{n}", {})
            dispatch(pattern, label, policy, workunit, arguments, None, depth + 1)
    if not traced(False) or (SWITCHES.careful and TRACER.raw and block() is None):
        TRACER.flush(reason.ALONE if not traced(False) else reason.AT_ONCE)


def _read_arguments(state: WorkunitState, kwargs: dict[str, Any], key: list[Any]) -> list[Any]:
    """The values for the `Call`; names and type codes are appended to the key."""
    if state.changing:
        kwargs = with_changing(state, kwargs)
    values: list[Any] = []
    for name, value in kwargs.items():
        kind = type(value)  # the usual kinds here, without a function call each
        if kind is View or kind is Subview:
            key += name, value._code
            values.append(value._region)
        elif kind is float:
            key += name, FLOAT64
            values.append(value)
        elif kind is int:
            key += name, INT32 if -INT32_LIMIT < value < INT32_LIMIT else INT64
            values.append(value)
        else:
            code, plain = classify(name, value)
            key += name, code
            values.append(plain)
    return values


def space_of(policy: Any, depth: int = 2) -> tuple[Space, int]:
    """The space of a policy and the first part of the key; kept for the next call.

    depth: as in `dispatch`, of who calls this.
    """
    key: Any
    team_size = 0
    if isinstance(policy, RangePolicy):
        begin, end, execution = (policy.begin,), (policy.end,), policy.space
        key = (policy.begin, policy.end, execution)
    elif isinstance(policy, MDRangePolicy):
        begin, end, execution = policy.begin, policy.end, policy.space  # type: ignore[assignment]
        key = (begin, end, execution)
    elif isinstance(policy, TeamPolicy):
        begin, end, execution = (0,), (policy.league_size,), policy.space
        team_size = abs(policy.team_size)  # -1, for AUTO, is a team of one
        key = (policy.league_size, execution, policy.team_size)
    elif isinstance(policy, NestedRange):
        return Space((0,) * len(policy.extents), policy.extents), _DEBUG
    elif isinstance(policy, ExecutionPolicy):
        raise PyFuserError(
            f"{type(policy).__name__} is not supported by PyFuser's embedded engine; use a "
            "RangePolicy, an MDRangePolicy or a TeamPolicy"
        )
    elif isinstance(policy, (int, np.integer, Future)):
        key = integer(policy, "the number of indices")
        begin, end, execution = (0,), (key,), resolve_space(ExecutionSpace.Default)
    else:
        raise ArgumentError(
            f"{reprlib.repr(policy)} is not an execution policy or a number of indices"
            f"{_instead(policy)}"
        )
    head = len(begin)
    if max(*begin, *end) >= INT32_LIMIT or min(*begin, *end) < -INT32_LIMIT:
        head |= _wide(begin, end)
    head |= team_size << TEAM
    if execution in GPU_SPACES:
        head |= ON_DEVICE
    if execution is ExecutionSpace.Debug:
        head = _DEBUG_TEAMS if team_size else _DEBUG
    found = Space(begin, end, execution.value), head
    if any(map(operator.gt, begin, end)):  # not kept: each such call is told about
        low, high = (begin[0], end[0]) if len(begin) == 1 else (begin, end)
        warnings.warn(
            f"the range from {low} to {high} is empty: the workunit does not run",
            WorkunitWarning,
            stacklevel=depth + 2,
        )
        return found
    return KNOWN_POLICIES.keep(key, found)


def _wide(begin: tuple[int, ...], end: tuple[int, ...]) -> int:
    """What marks indices of more than 32 bits. Raises ArgumentError for more than 64."""
    if max(*begin, *end) >= INT64_LIMIT or min(*begin, *end) < -INT64_LIMIT:
        raise ArgumentError(f"indices from {begin} to {end} do not fit 64 bits")
    return WIDE


def _instead(policy: Any) -> str:
    """The end of a message about what was given as a policy."""
    if isinstance(policy, (ViewType, np.ndarray)):
        return "; give the number, as in v.extent(0) or a.shape[0]"
    if isinstance(policy, range) and policy.step == 1:
        return f"; use pk.RangePolicy({policy.start}, {policy.stop})"
    if isinstance(policy, (tuple, list)) and len(policy) > 1:
        return f"; use pk.MDRangePolicy({[0] * len(policy)}, {list(policy)})"
    if isinstance(policy, (float, np.floating)):
        return whole(policy)
    if isinstance(policy, str):
        return "; after a label it has to follow: (label, policy, workunit)"
    return "; the policy comes before the workunit" if callable(policy) else ""


def _unpack(pattern: str, args: tuple[Any, ...]) -> tuple[str | None, Any, Any, Any]:
    """Label, policy, workunit and what comes after it, of a call that has not just two of them."""
    label, rest = None, args
    if len(args) > 2 and (args[0] is None or isinstance(args[0], str)):
        label, *rest = args  # type: ignore[assignment]
    if not 2 <= len(rest) <= 3:
        raise ArgumentValueError(
            f"parallel_{pattern} takes ([label,] policy, workunit), not {len(args)} arguments; "
            "what the workunit takes is passed by keyword, as in x=x"
        )
    if len(rest) == 3:
        _check_initial(pattern, rest[2])
    return label, rest[0], rest[1], rest[2] if len(rest) == 3 else None


def _check_initial(pattern: str, value: Any) -> None:
    """A fourth argument is accepted where PyKokkos accepts one, which then ignores it."""
    if pattern == "for" and isinstance(value, ViewType):
        return
    if isinstance(value, str):
        raise ArgumentError(
            f"parallel_{pattern}: a label comes first, as in parallel_{pattern}({value!r}, n, f)"
        )
    if not isinstance(value, (int, float, Future)):
        raise ArgumentError(
            f"parallel_{pattern}: an argument of type {type(value).__name__} has no name: what the "
            "workunit takes is passed by keyword, as in x=x"
        )
    if value != 0:
        warnings.warn(
            f"parallel_{pattern} ignores the initial value {value!r}, as PyKokkos does: "
            "accumulators start at 0; add it to the result",
            WorkunitWarning,
            stacklevel=4,
        )


def _not_a_workunit(workunit: Any) -> PyFuserError:
    if callable(workunit):
        if isinstance(workunit, partial):
            return ArgumentError(
                "a functools.partial is not a workunit: give the workunit, and what the partial "
                "binds as keyword arguments of the call"
            )
        name = getattr(workunit, "__name__", repr(workunit))
        return ArgumentError(f"{name} is not a workunit; decorate the function with @pk.workunit")
    called = "; give the function itself, without calling it" if workunit is None else ""
    if isinstance(workunit, str):
        called = "; give the function itself, not its name: a label comes before the policy"
    return ArgumentError(f"{workunit!r} is not a valid workunit{called}")


def _at(frame: FrameType, error: PyFuserError) -> PyFuserError:
    """The error with the place of the call in front."""
    return type(error)(f"{places.name(frame.f_code.co_filename)}:{frame.f_lineno}: {error}")
