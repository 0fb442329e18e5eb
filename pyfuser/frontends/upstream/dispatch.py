"""A call of PyKokkos: recorded where fusion is on and we understand it, else run by PyKokkos."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from pyfuser.engine.engine import ENGINE
from pyfuser.frontends.embedded import arguments, careful, methods
from pyfuser.frontends.embedded.bindings import Binding, binding_of, settle
from pyfuser.frontends.embedded.decorators import WorkunitState, state_of
from pyfuser.frontends.embedded.dispatch import known_space, space_of
from pyfuser.frontends.modes import SWITCHES, traced
from pyfuser.frontends.upstream.failures import in_a_line
from pyfuser.frontends.upstream.lifetime import keep_what_is_alive
from pyfuser.frontends.upstream.policies import Policies
from pyfuser.frontends.upstream.views import NotOurs, all_quiet, array_region, memory_of
from pyfuser.lower.source import source_of
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import PyFuserError
from pyfuser.trace import reason
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future, plain
from pyfuser.trace.reason import Reason

_NUMBERS = (bool, int, float, np.generic)
_REFUSED = "refused"


class Asked(NamedTuple):
    """The arguments of a call by position, apart."""

    label: str | None
    policy: Any
    workunit: Any


class Dispatcher:
    """Stands for the functions of the PyKokkos that is hooked."""

    def __init__(self, pykokkos: Any) -> None:
        self.policies = Policies(pykokkos)
        self.view_type = pykokkos.ViewType

    def pattern(self, name: str, original: FunctionType) -> Callable[..., Any]:
        """What is called for parallel_for ("for"), parallel_reduce or parallel_scan."""

        def call(*args: Any, **kwargs: Any) -> Any:
            asked = _asked(args)
            if asked is None or not traced(_marked(asked.workunit)):
                return self.by_pykokkos(original, args, kwargs)
            frame = sys._getframe(2)  # beyond PyKokkos' own function
            try:
                recorded = self._call(name, asked, kwargs, frame)
            except PyFuserError as error:
                self._note(asked, frame, error)
                return self.by_pykokkos(original, args, kwargs)
            return self._record(*recorded)

        return call

    def barrier(self, original: FunctionType) -> Callable[..., Any]:
        """What is called for a function before which everything has to run."""
        why = Reason(f"pk.{original.__name__}()")

        def call(*args: Any, **kwargs: Any) -> Any:
            TRACER.flush(why)
            for value in (*args, *kwargs.values()):
                _plain_members(value)
            with in_a_line(args):
                return original(*args, **kwargs)

        return call

    def end(self, original: FunctionType) -> Callable[..., Any]:
        """What is called for the function that ends Kokkos, whatever still fails then."""

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                TRACER.flush(reason.FINALIZE)
            finally:
                keep_what_is_alive()
                original(*args, **kwargs)

        return call

    def by_pykokkos(
        self, original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a call as without us, after everything that is pending."""
        if TRACER.calls:
            TRACER.flush(reason.ALONE)
        args = tuple([_plain_workunit(plain(value)) for value in args])
        kwargs = {name: _plain_nested(value) for name, value in kwargs.items()}
        asked = _asked(args)
        with in_a_line(args):
            if asked is None or self.policies.is_debug(asked.policy):
                return original(*args, **kwargs)  # which may call the program's own code
            with all_quiet():
                return original(*args, **kwargs)

    def _record(self, call: Call, binding: Binding) -> Any:
        if not SWITCHES.careful:
            TRACER.record(call)
            return call.result
        recorded, value = careful.record(binding, call, False)
        if recorded:
            return value
        TRACER.record(call)
        TRACER.flush(careful.seen(call))
        return None if call.result is None else call.result.result()

    def _call(
        self, pattern: str, asked: Asked, kwargs: dict[str, Any], frame: FrameType
    ) -> tuple[Call, Binding]:
        """The call in our terms. Raises PyFuserError where there are none."""
        policy = self.policies.ours(plain(asked.policy))
        space, head = known_space(policy) or space_of(policy)
        state, kwargs = _workunit(pattern, asked.workunit, kwargs)
        key: list[Any] = [pattern, head]
        values = self._read_arguments(kwargs, key)
        binding = _binding(state, space, tuple(key))
        if binding.ranges or binding.futures:
            settle(binding, values)
        result = None if pattern == "for" else Future(binding.result, _flush)
        call = Call(
            pattern, space, binding.workunit, binding.pick(values), result, asked.label,
            frame.f_code, frame.f_lineno,
        )  # fmt: skip
        return call, binding

    def _read_arguments(self, kwargs: dict[str, Any], key: list[Any]) -> list[Any]:
        """The values for the `Call`; names and type codes are appended to the key."""
        values: list[Any] = []
        for name, value in kwargs.items():
            code, plain_value = self._classify(name, value)
            key += name, code
            values.append(plain_value)
        return values

    def _classify(self, name: str, value: Any) -> tuple[int, Any]:
        kind = type(value)
        if isinstance(value, self.view_type):
            memory = memory_of(value)
            if memory.region is None:
                raise NotOurs(f"argument {name!r} is {memory.why}")
            return memory.code, memory.region
        if kind is np.ndarray:
            return array_region(value)
        if kind is Future or isinstance(value, _NUMBERS):
            return arguments.classify(name, value)
        raise NotOurs(f"argument {name!r} is a {kind.__name__}")

    def _note(self, asked: Asked, frame: FrameType, error: PyFuserError) -> None:
        name = str(asked.label or getattr(asked.workunit, "__name__", repr(asked.workunit)))
        SESSION.unrecorded.keep((name, frame.f_code, frame.f_lineno), str(error))


def _asked(args: tuple[Any, ...]) -> Asked | None:
    """The arguments by position; None where PyKokkos itself must say what is wrong with them."""
    if len(args) == 2:
        return Asked(None, *args)
    if len(args) in (3, 4) and (args[0] is None or isinstance(args[0], str)):
        return Asked(*args[:3]) if len(args) == 3 or _is_initial(args[3]) else None
    return Asked(None, *args[:2]) if len(args) == 3 and _is_initial(args[2]) else None


def _is_initial(value: Any) -> bool:
    """Whether it is an initial value that is 0; of another, PyKokkos decides what it means."""
    return type(value) in (int, float) and value == 0


def _marked(workunit: Any) -> bool:
    state = getattr(workunit, "__pyfuser__", None)
    return state is not None and state.marked_by_fuse


def _workunit(
    pattern: str, workunit: Any, kwargs: dict[str, Any]
) -> tuple[WorkunitState, dict[str, Any]]:
    """The state of a workunit, and all its arguments: a method's object has some."""
    if type(workunit) is FunctionType and workunit.__name__ != "<lambda>":
        state = state_of(workunit)
        assert state is not None
        return state, kwargs
    if type(workunit) is MethodType and state_of(workunit.__func__) is not None:
        bound = methods.bind(pattern, workunit, None)
        if bound is not None:
            return bound[0], bound[1] | kwargs
    raise NotOurs(f"a workunit that is a {type(workunit).__name__}")


def _binding(state: WorkunitState, space: Any, key: tuple[Any, ...]) -> Binding:
    """The lowered workunit. What could not be lowered once is not tried again."""
    refused = state.bindings.get((_REFUSED, key))
    if refused is not None:
        raise NotOurs(refused)
    try:
        if key not in state.bindings:
            _check_options(state)
        binding = binding_of(state, space, key)
        why = ENGINE.refusal(key[0], binding.workunit)
        if why:
            raise NotOurs(why)
    except PyFuserError as error:
        state.bindings[(_REFUSED, key)] = str(error)
        raise
    return binding


def _check_options(state: WorkunitState) -> None:
    """Raise NotOurs for a keyword of the decorator that names no parameter of the workunit."""
    node = source_of(state.function).node
    taken = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
    names = [keyword.arg for call in calls for keyword in call.keywords]
    for name in names:
        if name not in taken:
            raise NotOurs(f"the workunit's decorator takes {name or '**'!r}")


def _plain_workunit(value: Any) -> Any:
    """A workunit as PyKokkos knows it; what a Future of a functor's member stands for is put there.

    Anything else as it is.
    """
    while type(value) is FunctionType and _marked(value) and hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    if type(value) is list:
        return [_plain_workunit(item) for item in value]
    if type(value) is MethodType:
        _plain_members(value.__self__)
    return value


def _plain_members(owner: Any) -> None:
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if type(value) is Future:
            setattr(owner, name, value.result())


def _plain_nested(value: Any) -> Any:
    if type(value) is dict:  # of one workunit of several
        return {name: plain(item) for name, item in value.items()}
    return plain(value)


def _flush(result: Future) -> None:
    """What computes a result: PyKokkos and others may reach all memory, so everything runs."""
    TRACER.compute(result)
