"""Names a workunit takes from outside: module globals and closure variables.

PyKokkos has no such names; here a number becomes a constant of the kernel, and a function is
inlined. A lowered workunit lists what it took, so that a cache can tell whether it still holds.
Paths are dotted: `N`, `config.N`, and `helper().N` for what the function `helper` took. `<self>` is
the class of the object that the workunit is a method of, or of what its closure holds as `self`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import getattr_static
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeAlias

MISSING: Any = object()

Place: TypeAlias = "tuple[dict[str, Any] | CellType | type, str] | tuple[Any, str, object]"
"""Where a name is looked up, the name, and what it means there; no value: it has none."""


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


def places(
    function: FunctionType, taken: Sequence[tuple[str, object]], classes: Mapping[str, type]
) -> tuple[Place, ...] | None:
    """What `unchanged` looks at; None if that is not easy to tell.

    As long as every name of a place has its value, or the same number, every path has.
    """
    found: dict[tuple[int, str], Place] = {}
    for path, value in taken:
        on_path = None if path.split(".")[0] in classes else _places_on(function, path, value)
        if on_path is None:
            return None
        for place in on_path:
            found[id(place[0]), place[1]] = place
    return tuple(found.values())


def _places_on(function: FunctionType, path: str, value: object) -> list[Place] | None:
    """The places of the names in a path, of which the last has this value."""
    found: list[Place] = []
    here: Any = function
    inside = True
    *steps, last = path.split(".")
    for step in steps:
        name = step.removesuffix("()")
        owner = _owner(here, name, inside)
        here = outside(here, name) if inside else member(here, name)
        if owner is None or here is MISSING:
            return None
        found.append((owner, name, here))
        inside = step != name
        if inside:
            wrappers = _wrappers(here)
            if wrappers is None:
                return None
            found += wrappers
            here = unwrapped(here)
    owner = _owner(here, last, inside)
    if owner is None or not last.isidentifier():
        return None
    found.append((owner, last) if value is MISSING else (owner, last, value))
    return found


def _wrappers(function: Any) -> list[Place] | None:
    """The places of `unwrapped`."""
    found: list[Place] = []
    while type(function) is FunctionType:
        kept = vars(function)
        if "__wrapped__" not in kept:
            return [*found, (kept, "__wrapped__")]
        function = kept["__wrapped__"]
        found.append((kept, "__wrapped__", function))
    return None


def _owner(here: Any, name: str, inside: bool) -> dict[str, Any] | CellType | type | None:
    """What the value of a name is looked up in."""
    if inside:
        cells, free = here.__closure__, here.__code__.co_freevars
        globals_: dict[str, Any] = here.__globals__
        return globals_ if cells is None or name not in free else cells[free.index(name)]
    if type(here) is ModuleType:
        return vars(here) if name in vars(here) else None
    plain = type(here) is type and getattr_static(here, name, MISSING) is member(here, name)
    return here if plain else None


def _same_number(now: Any, before: Any) -> bool:
    # By text, so that -0.0 differs from 0.0 and NaN equals itself.
    return (
        type(now) is type(before)
        and not isinstance(now, (FunctionType, ModuleType, type))
        and repr(now) == repr(before)
    )
