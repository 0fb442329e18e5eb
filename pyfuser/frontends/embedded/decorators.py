"""PyKokkos' decorators, and what dispatch keeps for each workunit."""

from __future__ import annotations

import ast
import re
from enum import Enum
from functools import partial
from types import FunctionType
from typing import Any

from pyfuser.frontends.embedded.spaces import Trait
from pyfuser.lower.source import source_of, unwrap
from pyfuser.lower.types import CLASSTYPE
from pyfuser.support.errors import ArgumentError, WorkunitError, WorkunitWarning, close, warn


class Decorator(Enum):
    """The names of the decorators."""

    Workload = "workload"
    Functor = "functor"
    WorkUnit = "workunit"
    KokkosClasstype = "classtype"
    KokkosFunction = "function"
    KokkosMain = "main"
    KokkosCallback = "callback"
    Space = "space"


class WorkunitState:
    """What belongs to a workunit, kept in its `__pyfuser__` attribute.

    function: what is lowered. marked_by_fuse: whether its calls are traced by default. bindings:
    lowered code by argument types; the marked and the unmarked form of a workunit share it.
    objects: classes of the objects it uses, by name. methods: its states as a method, by class.
    sites: what the extension knows of calls. atomic: names of the Views that it updates atomically.
    changing: names of numbers from outside that are arguments (see `changing`). owner: whose
    attribute it is; what `functools.wraps` made of that has it, too.
    """

    __slots__ = (
        "atomic", "bindings", "changing", "function", "marked_by_fuse", "methods", "objects",
        "owner", "sites",
    )  # fmt: skip

    def __init__(
        self, function: FunctionType, bindings: dict[Any, Any], marked_by_fuse: bool
    ) -> None:
        self.atomic: frozenset[str] = frozenset()
        self.function = function
        self.bindings = bindings
        self.changing: list[str] = []
        self.marked_by_fuse = marked_by_fuse
        self.objects: dict[str, type] = {}
        self.owner = function
        self.methods: dict[type, Any] = {}
        self.sites: Any = None

    def marked(self, owner: FunctionType) -> WorkunitState:
        """The state of the same workunit, decorated by `fuse`, which made `owner`."""
        state = WorkunitState(self.function, self.bindings, True)
        state.owner = owner
        state.atomic = self.atomic
        state.changing = self.changing
        return state


def state_of(function: Any) -> WorkunitState | None:
    """The state of a workunit, made if it has none; None for what is not a plain function."""
    if type(function) is not FunctionType:
        return None
    state = getattr(function, "__pyfuser__", None)
    if state is None:
        state = WorkunitState(function, {}, False)
        function.__pyfuser__ = state  # type: ignore[attr-defined]
    return state


def workunit(func: Any = None, **kwargs: Any) -> Any:
    """Declare a function a workunit: it can be given to the parallel patterns.

    It stays the plain Python function it is. Keyword arguments (`x=pk.ViewTypeInfo(...)`) say
    where Views lie, which every argument tells itself here, and which are updated atomically.
    """
    if func is None:
        return partial(workunit, **kwargs)
    if not callable(func):
        raise ArgumentError(
            f"pk.workunit is given the function that follows, not {func!r}: write @pk.workunit"
        )
    state = state_of(func)
    if state is not None:
        warn_of_decorators(func)
        _warn_of_options(state.function, kwargs)
        state.atomic = frozenset(
            name for name, info in kwargs.items() if getattr(info, "trait", None) is Trait.Atomic
        )
    return func


def warn_of_decorators(workunit: Any) -> None:
    """Warn if a workunit is what another decorator made of a function: of that one it is compiled.

    `fuse` makes a function, too, whose state is its own.
    """
    state = workunit.__pyfuser__
    if state.owner is workunit and (state.marked_by_fuse or not hasattr(workunit, "__wrapped__")):
        return
    function = unwrap(workunit)
    what = _others(function) or f"the {workunit.__code__.co_name!r} around it"
    message = (
        f"workunit {function.__name__!r}: {what} has no effect in kernels, which are made of the "
        "lines of the function alone: write what it does into the workunit, or around the call"
    )
    code = function.__code__
    warn(message, code.co_filename, code.co_firstlineno, WorkunitWarning)


def _others(function: FunctionType) -> str:
    """The decorators of a function that are not ours, as they stand in its source."""
    try:
        decorators = source_of(function).node.decorator_list
    except WorkunitError:
        return ""
    texts = map(ast.unparse, decorators)
    return " and ".join(f"@{t}" for t in texts if not re.match(r"([\w.]+\.)?(workunit|fuse)\b", t))


def _warn_of_options(function: FunctionType, options: dict[str, Any]) -> None:
    """Warn of keyword arguments of `workunit` that describe no View, or none that it has."""
    code = unwrap(function).__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name, info in options.items():
        if not isinstance(info, ViewTypeInfo):
            message = (
                f"pk.workunit has no option {name!r}, which is ignored: its keyword arguments "
                "describe Views, as x=pk.ViewTypeInfo(...) does"
            )
        elif name not in (*known, *code.co_freevars, *code.co_names):
            message = (
                f"pk.workunit: {code.co_name!r} has no parameter {name!r}, so what is said of it "
                f"is ignored{close(name, known)}"
            )
        else:
            continue
        warn(message, code.co_filename, code.co_firstlineno, WorkunitWarning)


def function(func: Any) -> Any:
    """Declare a function that workunits call; every parameter and the result are annotated."""
    func.__pk_function__ = True
    return func


def functor(func: Any = None, **kwargs: Any) -> Any:
    """Declare a class whose methods are workunits: they use its members, as `self.x`.

    Keyword arguments (`x=pk.ViewTypeInfo(...)`) say where Views lie; every View tells that here.
    """
    return functor if func is None else func


def workload(func: Any = None, **kwargs: Any) -> Any:
    """Declare a class with a main method, which `pk.execute` runs."""
    return workload if func is None else func


def classtype(func: Any) -> Any:
    """Declare a class that workunits make objects of; its constructor declares the members."""
    setattr(func, CLASSTYPE, True)
    return func


def main(func: Any) -> Any:
    """Declare a workload's main method."""
    func.__pk_main__ = True
    return func


def callback(func: Any) -> Any:
    """Declare a workload's method that runs after its main method."""
    func.__pk_callback__ = True
    return func


class ViewTypeInfo:
    """Where a View of a workunit lies."""

    def __init__(self, *, space: Any = None, layout: Any = None, trait: Any = None) -> None:
        self.space = space
        self.layout = layout
        self.trait = trait
