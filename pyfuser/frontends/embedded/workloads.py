"""`pk.execute`: the main method of a workload, then its callbacks."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from pyfuser.frontends.embedded.misc import fence, printf
from pyfuser.frontends.embedded.spaces import (
    Defaults,
    resolve_space,
    set_default_space,
)
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentError
from pyfuser.trace import reason


def execute(space: Any, workload: Any) -> None:
    """Run a workload's `@pk.main` method with `space` as default, then its `@pk.callback`s.

    PyKokkos translates the main method; here it is Python, and its calls are those of any program:
    traced where calls are. Callbacks run after all of them.

    Raises ArgumentError for an object whose class has no main method.
    """
    mains, callbacks = _marked(workload, "__pk_main__"), _marked(workload, "__pk_callback__")
    if not mains:
        raise ArgumentError(
            f"pk.execute: {type(workload).__name__} has no method that is decorated with @pk.main"
        )
    before = Defaults.space
    set_default_space(resolve_space(space))
    try:
        for method in mains:
            _with_bare_members(method)()
    finally:
        set_default_space(before)
    if callbacks:
        TRACER.flush(reason.CALLBACKS)
    for method in callbacks:
        method()


def _with_bare_members(method: MethodType) -> Callable[[], Any]:
    """The main method, in which members and `printf` may have bare names, as in C++.

    Members have the values from before the method runs.
    """
    function, workload = method.__func__, method.__self__
    unknown = set(function.__code__.co_names) - {*function.__globals__, *vars(builtins)}
    bare = {"fence": fence, "printf": printf} | vars(workload)
    found = {name: bare[name] for name in unknown & bare.keys()}
    if not found:
        return method
    outer = {**function.__globals__, **found}
    bound = FunctionType(function.__code__, outer, function.__name__, None, function.__closure__)
    return MethodType(bound, workload)


def _marked(workload: Any, mark: str) -> list[Any]:
    """The methods that carry a mark, in the order of their definition."""
    found = {}
    for cls in reversed(type(workload).__mro__):
        for name, value in vars(cls).items():
            if inspect.isfunction(value) and mark in vars(value):
                found[name] = getattr(workload, name)
    return list(found.values())
