"""Names a workunit takes from outside: module globals and closure variables.

PyKokkos has no such names; here a number becomes a constant of the kernel, and a function is
inlined. A lowered workunit lists what it took, so that a cache can tell whether it still holds.
Paths are dotted: `N`, `config.N`, and `helper().N` for what the function `helper` took. `<self>` is
the class of the object that the workunit is a method of, or of what its closure holds as `self`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

MISSING: Any = object()


def unwrapped(function: Any) -> Any:
    """What decorators wrapped, at any depth."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def outside(function: FunctionType, name: str) -> Any:
    """The value of a free name of a function, or MISSING."""
    if function.__closure__ is not None and name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not assigned yet
            return MISSING
    return function.__globals__.get(name, MISSING)


def member(owner: Any, name: str) -> Any:
    """An attribute of a module or class, or MISSING: other objects have state we cannot follow."""
    if isinstance(owner, (ModuleType, type)):
        return getattr(owner, name, MISSING)
    return MISSING


def root(name: str) -> str:
    """The first step of paths into the class of the object called `name`."""
    return f"<{name}>"


def resolve(function: FunctionType, path: str, classes: Mapping[str, type]) -> Any:
    """What a path names now, or MISSING."""
    here: Any = function
    inside = True  # whether `here` is a function whose names are next
    for step in path.split("."):
        if step in classes:
            here, inside = classes[step], False
            continue
        call = step.endswith("()")
        name = step[:-2] if call else step
        here = outside(here, name) if inside else member(here, name)
        if call:
            here = unwrapped(here)
            if not isinstance(here, FunctionType):
                return MISSING
        inside = call
    return here


def unchanged(
    function: FunctionType, taken: Sequence[tuple[str, object]], classes: Mapping[str, type]
) -> bool:
    """Whether every path still names the value that was taken; `classes` by root."""
    for path, value in taken:
        now = resolve(function, path, classes) if "." in path else outside(function, path)
        if now is not value and not _same_number(now, value):
            return False
    return True


def _same_number(now: Any, before: Any) -> bool:
    # By text, so that -0.0 differs from 0.0 and NaN equals itself.
    return (
        type(now) is type(before)
        and not isinstance(now, (FunctionType, ModuleType, type))
        and repr(now) == repr(before)
    )
