"""Workunits that are methods, lambdas or lists: what they use from outside becomes arguments.

`self.x` of a functor or workload is the argument named `self.x`, bound at the call, so a later
change of the member does not reach calls that were recorded before.
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.decorators import WorkunitState, warn_of_decorators
from pyfuser.frontends.embedded.foreign import has_memory
from pyfuser.frontends.embedded.views import ViewType
from pyfuser.lower.lambdas import as_workunit
from pyfuser.lower.source import source_of
from pyfuser.support.caches import CodeTable
from pyfuser.support.errors import ArgumentError, PyFuserError, close, quoted
from pyfuser.trace.future import Future

#: What a lambda's closure may hold that becomes an argument.
_ARGUMENTS = (ViewType, np.ndarray, np.generic, Future, bool, int, float, complex)

Bound = tuple[WorkunitState, dict[str, Any]]


class MethodState(WorkunitState):
    """What belongs to a method of one class; `members`: argument names and attributes."""

    __slots__ = ("members",)

    def __init__(self, state: WorkunitState, cls: type) -> None:
        from pyfuser.lower.records import members

        super().__init__(state.function, {}, state.marked_by_fuse)
        name = state.function.__code__.co_varnames[0]
        self.objects = {name: cls}
        self.members = _named(name, members(state.function, name, cls))


def _named(owner: str, attributes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((f"{owner}.{attribute}", attribute) for attribute in attributes)


def bind(pattern: str, workunit: Any, view: Any, warns: bool = True) -> Bound | None:
    """The state of a workunit that is no plain function, and the arguments it takes from outside.

    view: what a lambda's values are stored to, or None. Returns None for what is no workunit.
    Unless it runs as Python, it `warns` of decorators that have no effect in kernels.

    Raises ArgumentError where an object lacks a member that the workunit uses.
    """
    if type(workunit) is MethodType:
        function, bound = workunit.__func__, _method(workunit)
    elif type(workunit) is not FunctionType:
        return None
    elif workunit.__name__ == "<lambda>":
        return _lambda(pattern, workunit, view)
    else:
        state = getattr(workunit, "__pyfuser__", None)
        function, bound = workunit, state and (state, {})
    if warns and bound is not None:
        warn_of_decorators(function)
    return bound


def _method(method: MethodType) -> Bound | None:
    state = getattr(method, "__pyfuser__", None)
    if state is None:
        return None
    owner = method.__self__
    cls = type(owner)
    known: MethodState | None = state.methods.get(cls)
    if known is None:
        known = state.methods[cls] = MethodState(state, cls)
    return known, _values(state.function, owner, known.members)


def _values(
    workunit: FunctionType, owner: Any, wanted: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    values = {}
    for name, attribute in wanted:
        try:
            values[name] = getattr(owner, attribute)
        except AttributeError:
            raise ArgumentError(
                f"the workunit uses {name}, but this {type(owner).__name__} has no member "
                f"{attribute!r}{close(attribute, dir(owner))}{_use_of(workunit, name)}"
            ) from None
    return values


def _use_of(workunit: FunctionType, name: str) -> str:
    """The first place that uses a member, to end a message."""
    source = source_of(workunit)
    for node in ast.walk(source.node):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == name:
            place = source.location(node)
            return f"\n  it is used at {place}{quoted(place)}"
    return ""


# --------------------------------------------------------------------------- lambdas

#: Lowered code for each pattern and classes of a lambda's closure.
_LAMBDAS: CodeTable[dict[Any, dict[Any, Any]]] = CodeTable("lowered lambdas")


def _lambda(pattern: str, function: FunctionType, view: Any) -> Bound:
    """A lambda's value is added to the accumulator, or stored to the view that was passed."""
    if pattern == "scan":
        raise PyFuserError("parallel_scan takes no lambda: write a workunit with def")
    from pyfuser.lower.records import members

    workunit, target = as_workunit(function, pattern, view is not None)
    values: dict[str, Any] = {}
    objects: dict[str, type] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        value = cell.cell_contents
        if isinstance(value, _ARGUMENTS) or has_memory(value):
            values[name] = value
        elif not isinstance(value, (FunctionType, type)) and hasattr(value, "__dict__"):
            objects[name] = type(value)
            values |= _values(workunit, value, _named(name, members(workunit, name, type(value))))
    if view is not None:
        values[target] = view
    kept = _lambda_bindings(function.__code__)
    bindings = kept.setdefault((workunit.__code__.co_name, tuple(objects.values())), {})
    state = WorkunitState(workunit, bindings, False)
    state.objects = objects
    return state, values


def _lambda_bindings(code: CodeType) -> dict[Any, dict[Any, Any]]:
    known = _LAMBDAS.of(code)
    return known if known is not None else _LAMBDAS.keep(code, {})
