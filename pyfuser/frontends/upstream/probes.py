"""Whether the hooks fit a PyKokkos: what they rely on is tried before anything is hooked.

PyKokkos' version number stays the same for years, and its files move, so neither says enough. A
probe returns what it found to be different, or None. What no probe can see without compiling is
left to PyKokkos instead (see `dispatch`): arguments of a call that it may come to know.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from pyfuser.frontends.upstream.views import WATCHED

PATTERNS = ("parallel_for", "parallel_reduce", "parallel_scan")
OTHERS = ("fence", "finalize", "function")
OPTIONAL = ("execute", "flush", "classtype")  # of styles of programs that PyKokkos gives up
_HOOKED_ATTRIBUTES = ("__getattr__", "__getattribute__", "__setattr__", "__slots__")


def refusal(pykokkos: Any) -> str | None:
    """Why an imported PyKokkos is not hooked; None if every probe found what it should."""
    if not getattr(pykokkos, "__file__", None):
        return "pyfuser does not know what `pykokkos` is here, and leaves it alone"
    if "PK_FUSION" in os.environ:
        return "PK_FUSION is set, so PyKokkos fuses by itself and pyfuser leaves it alone"
    for name, probe in PROBES.items():
        try:
            why = next(probe(pykokkos), None)
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
        if why is not None:
            return (
                f"pyfuser does not fit the PyKokkos in {os.path.dirname(pykokkos.__file__)}: the "
                f"probe of {name} found that {why}. So nothing is fused, and PyKokkos runs as "
                "without pyfuser. PYFUSER_FRONTEND=embedded runs programs with pyfuser's own "
                "PyKokkos instead"
            )
    return None


def _functions(pykokkos: Any) -> Iterator[str]:
    there = [name for name in OPTIONAL if hasattr(pykokkos, name)]
    for name in (*PATTERNS, *OTHERS, *there):
        function = getattr(pykokkos, name)
        if type(function) is not FunctionType or function.__closure__ is not None:
            yield f"pykokkos.{name} is not a plain function"
    for name in PATTERNS:
        taken = [p.kind for p in inspect.signature(getattr(pykokkos, name)).parameters.values()]
        if taken != [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
            yield f"pykokkos.{name} does not take (*args, **kwargs)"


def _runtime(pykokkos: Any) -> Iterator[str]:
    runtime = pykokkos.runtime_singleton.runtime
    if getattr(runtime, "fusion_strategy", None) is not None:
        yield "PyKokkos fuses by itself"
    taken = inspect.signature(runtime.run_workunit).parameters
    if [*taken][:4] != ["name", "policy", "workunit", "operation"]:
        yield f"run_workunit takes {', '.join(taken)}"


def _policies(pykokkos: Any) -> Iterator[str]:
    plain = pykokkos.RangePolicy(1, 5)
    if (plain.begin, plain.end) != (1, 5):
        yield "a RangePolicy has other ends than it was given"
    grid = pykokkos.MDRangePolicy([0, 1], [2, 3])
    if (list(grid.begin), list(grid.end)) != ([0, 1], [2, 3]):
        yield "an MDRangePolicy has other corners than it was given"
    teams = pykokkos.TeamPolicy(2, 3)
    if (teams.league_size, teams.team_size) != (2, 3):
        yield "a TeamPolicy has other sizes than it was given"
    known = {space.name for space in pykokkos.ExecutionSpace}
    if not known >= {"OpenMP", "Serial", "Debug", "Default"}:
        yield f"the execution spaces are {', '.join(sorted(known))}"
    for policy in (plain, grid, teams):
        space = getattr(policy.space, "space", policy.space)
        if not isinstance(space, pykokkos.ExecutionSpace):
            yield f"the space of a {type(policy).__name__} is a {type(space).__name__}"


def _classes(pykokkos: Any) -> Iterator[str]:
    base, view, subview = pykokkos.ViewType, pykokkos.View, pykokkos.Subview
    if not (issubclass(view, base) and issubclass(subview, base)):
        yield "View or Subview is not a ViewType"
    for cls in {*view.__mro__, *subview.__mro__} - {object}:
        for name in (*WATCHED, *_HOOKED_ATTRIBUTES):
            if name in vars(cls):
                yield f"{cls.__name__} defines {name}"
    for cls, name, first in (
        (view, "_init_view", ("self", "shape")),
        (subview, "__init__", ("self", "parent_view", "data_slice")),
        (base, "__getitem__", ("self", "key")),
        (base, "__setitem__", ("self", "key", "value")),
        (base, "fill", ("self",)),
        (base, "__iter__", ("self",)),
    ):
        method = vars(cls).get(name)
        taken = tuple(inspect.signature(method).parameters) if callable(method) else ()
        if taken[: len(first)] != first:
            yield f"{cls.__name__}.{name} does not take {', '.join(first)}"


def _view(pykokkos: Any) -> Iterator[str]:
    view = pykokkos.View([2, 3], pykokkos.int32)
    yield from _is_view_of(view, (2, 3), "int32", "TraitDefault")
    if np.any(vars(view)["data"]):
        yield "a new View is not zero"
    row = pykokkos.View([2], pykokkos.double)
    row[1] = 2.0
    if isinstance(row[1], np.ndarray) or list(row) != [0.0, 2.0]:
        yield "an element of a View is not a number, or not the one that was stored"
    row.fill(3.0)
    before = vars(row)["data"]
    if hasattr(row, "resize"):
        row.resize(0, 3)
        after = vars(row)["data"]
        if after is before or after.tolist() != [3.0, 3.0, 0.0]:
            yield "resize does not give a View new memory with the elements that it had"


def _subview(pykokkos: Any) -> Iterator[str]:
    whole = pykokkos.View([4], pykokkos.double)
    part = whole[1:3]
    if type(part) is not pykokkos.Subview:
        yield f"a slice of a View is a {type(part).__name__}"
    yield from _is_view_of(part, (2,), "float64", "TraitDefault")
    if not np.shares_memory(vars(part)["data"], vars(whole)["data"][1:3]):
        yield "a Subview does not share the memory of its View"


def _array(pykokkos: Any) -> Iterator[str]:
    array = np.arange(3.0)
    view = pykokkos.array(array)
    yield from _is_view_of(view, (3,), "float64", "Unmanaged")
    if not np.shares_memory(vars(view)["data"], array):
        yield "pykokkos.array copies"


def _is_view_of(view: Any, shape: tuple[int, ...], dtype: str, trait: str) -> Iterator[str]:
    """What is not as `views.Memory` takes it to be, with an attribute for each array."""
    kind, held = type(view).__name__, vars(view)
    data = held.get("data")
    if type(data) is not np.ndarray or (data.shape, data.dtype) != (shape, np.dtype(dtype)):
        yield f"the data of a {kind} is not an array of its shape and type"
        return
    if view.space.name != "HostSpace" or view.trait.name != trait:
        yield f"a {kind} is in {view.space.name}, with the trait {view.trait.name}"
    if view.layout.name not in ("LayoutRight", "LayoutLeft"):
        yield f"the layout of a {kind} is {view.layout.name}"
    if view.ndim != len(shape) or tuple(view.shape) != shape:
        yield f"a {kind} has another shape than its data"
    for name, value in held.items():
        if name not in WATCHED and np.shares_memory(_elements(value), data):
            yield f"the attribute {name} of a {kind} reaches its memory"


def _elements(value: Any) -> Any:
    """The elements that something other than a View gives access to; none if it is no array."""
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return np.empty(0)


#: The probes by what they try, in their order: a later one relies on what the earlier ones saw.
PROBES: dict[str, Callable[[Any], Iterator[str]]] = {
    "the functions that are hooked": _functions,
    "the runtime": _runtime,
    "policies and execution spaces": _policies,
    "the classes of Views": _classes,
    "the memory of a View": _view,
    "the memory of a Subview": _subview,
    "arrays as arguments": _array,
}
