"""Data classes whose methods are compiled when they are first called.

The standard decorator compiles five or six functions for each class at its definition: half a
millisecond, of which most programs use a part. This one leaves fields, slots and `__match_args__`
to it, and puts a stub where it would have put a method; the first call writes the method, compiles
it and puts it into the class. The methods are those of the standard library: the same arguments,
equality, hash and text. Static checkers see the standard decorator.

The law: all bases of such a class that are data classes were made here, too (`dataclasses` takes
them for classes that may change). A test sees to it that nobody uses the other one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """The decorator, with those options of the standard one that are in use."""
        if cls is None:
            return lambda cls: _made(cls, frozen, slots, eq, repr)
        return _made(cls, frozen, slots, eq, repr)


def _made(cls: type, frozen: bool, slots: bool, eq: bool, shown: bool) -> Any:
    own = cls.__dict__
    if own.get("__doc__") is None:
        cls.__doc__ = cls.__name__  # else `dataclasses` looks for its signature
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    made.__init__ = _init(made, frozen)
    if shown and "__repr__" not in own:
        made.__repr__ = _text
    if eq and "__eq__" not in own:
        made.__eq__ = _eq(made)
    if eq and own.get("__hash__") is None:
        made.__hash__ = _hash(made) if frozen else None
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    return made


def _stub(cls: Any, name: str, write: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that puts the one that `write` makes into its place, and calls it."""

    def stub(self: Any, *args: Any, **options: Any) -> Any:
        method = cls.__dict__[name]
        if method is stub:
            method = write()
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            type.__setattr__(cls, name, method)
        return method(self, *args, **options)

    return stub


def _compiled(name: str, text: str, known: dict[str, Any]) -> Any:
    exec(text, known)
    return known[name]


def _init(cls: Any, frozen: bool) -> Callable[..., Any]:
    def write() -> Any:
        known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
        parameters, body = ["self"], []
        for field in fields(cls):
            name, value = field.name, field.name
            if field.default_factory is not MISSING:
                known[f"_make_{name}"] = field.default_factory
                parameters.append(f"{name}=_MISSING")
                value = f"_make_{name}() if {name} is _MISSING else {name}"
            elif field.default is not MISSING:
                known[f"_default_{name}"] = field.default
                parameters.append(f"{name}=_default_{name}")
            else:
                parameters.append(name)
            body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        lines = "\n  ".join(body or ["pass"])
        return _compiled("__init__", f"def __init__({', '.join(parameters)}):\n  {lines}", known)

    return _stub(cls, "__init__", write)


def _values(cls: Any, owner: str) -> str:
    """The fields that count, as a tuple."""
    names = [field.name for field in fields(cls) if field.compare]
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _eq(cls: Any) -> Callable[..., Any]:
    def write() -> Any:
        return _compiled(
            "__eq__",
            "def __eq__(self, other):\n"
            "  if other.__class__ is self.__class__:\n"
            f"    return {_values(cls, 'self')} == {_values(cls, 'other')}\n"
            "  return NotImplemented",
            {},
        )

    return _stub(cls, "__eq__", write)


def _hash(cls: Any) -> Callable[..., Any]:
    def write() -> Any:
        text = f"def __hash__(self):\n  return hash({_values(cls, 'self')})"
        return _compiled("__hash__", text, {})

    return _stub(cls, "__hash__", write)


def _text(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
