"""Values as text and back: what is kept of plans and kernels on disk.

A table of rows, each a value after those that it is made of: a number, a string, true, false or
null stands for itself, and `[maker, row, row, ...]` for what a maker makes of earlier rows. Makers
are `tuple`, `frozenset`, `complex`, and the data classes, named tuples and enumerations of this
package, by name. So to read a table runs no code but their constructors, and no class of anybody
else: unlike a pickle, in which any function of any module may be called.

This machine's Target and Tuning are in every table. Equal values have one row. A Sym is unique in a
process: a table has its name and type, and each becomes a fresh one when it is read. (Those of
canonical code have no name, and keep their numbers.)

A table is read after the rows of its key, which are not stored: what a plan takes over of the trace
that it is the plan of are then the very objects of that trace.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from operator import attrgetter
from typing import Any

from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.support.caches import once
from pyfuser.tuning.target import host
from pyfuser.tuning.thresholds import DEFAULT

_PACKAGE = __name__.split(".", maxsplit=1)[0]
_FOLDERS = tuple(
    f"{_PACKAGE}.{folder}."
    for folder in ("ir", "trace", "lower", "analysis", "plan", "transform", "nest", "runtime")
)
_ATOMS = frozenset({type(None), bool, int, str})
_PLAIN: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "frozenset": frozenset,
    "complex": lambda parts: complex(*parts),
    "sym": lambda parts: fresh(*parts),
    "numbered": lambda parts: Sym("", *parts),
}


class Unstorable(Exception):
    """A value that a table cannot hold, or a table that is none."""


class Table:
    """Rows, and the values that they stand for."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.values: list[Any] = []
        self._by_id: dict[int, int] = {}
        self._alive: list[Any] = []
        self._by_row: dict[Any, int] = {}
        self.opaque = True  # workunits are their digests, as in a key
        for number, value in enumerate((DEFAULT, host())):
            self._place(("machine", number), ("machine", number), value)

    def number(self, value: Any) -> int:
        """The row of a value, which is added if there is none. Raises Unstorable."""
        known = self._by_id.get(id(value))
        return self._add(value) if known is None else known

    def _add(self, value: Any) -> int:
        kind: Any = type(value)
        if kind in _ATOMS:
            return self._place(value, (kind, value), value)
        if kind is float:
            return self._place(value, (kind, repr(value)), value)
        if kind is tuple:
            row = ("tuple", *[self.number(part) for part in value])
        elif kind is Sym:
            if value.name:  # by itself: another one of this name and type is another one
                return self._place(
                    ["sym", self.number(value.name), self.number(value.dtype)], value, value
                )
            row = "numbered", self.number(value.uid), self.number(value.dtype)
        elif kind is Workunit and self.opaque:
            row = "workunit", self.number(digest_of(value))
        elif kind is frozenset:
            row = ("frozenset", *[self.number(part) for part in sorted(value, key=repr)])
        elif kind is complex:
            row = "complex", self.number(value.real), self.number(value.imag)
        else:
            name, parts = _parts_of(kind)
            row = (name, *[self.number(part) for part in parts(value)])
        return self._place(row, row, value)

    def _place(self, row: Any, key: Any, value: Any) -> int:
        number = self._by_row.get(key)
        if number is None:
            number = self._by_row[key] = len(self.rows)
            self.rows.append(row)
            self.values.append(value)
        else:
            self._alive.append(value)  # so that no other object has its id()
        self._by_id[id(value)] = number
        return number

    def digest(self) -> str:
        """What identifies all rows so far."""
        return hashlib.sha256(json.dumps(self.rows, separators=(",", ":")).encode()).hexdigest()

    def text(self, value: Any) -> str:
        """A value, as rows that follow those of this table. Raises Unstorable."""
        first, self.opaque = len(self.rows), False
        self.number(value)
        rows = [*self.rows[first:], self.number(value)]
        return json.dumps([first, rows], separators=(",", ":"))

    def read(self, text: bytes) -> Any:
        """The value of a text that `text` made of a table that was as this one is now.

        Raises Unstorable if it is no such text.
        """
        try:
            first, rows = json.loads(text)
            if first != len(self.rows):
                raise Unstorable(f"made for {first} rows")
            values = list(self.values)
            last = rows.pop()
            for row in rows:
                if type(row) is list:
                    maker = _PLAIN.get(row[0]) or _maker_of(row[0])
                    values.append(maker([values[n] for n in row[1:]]))
                else:
                    values.append(row)
            return values[last]
        except (
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            ImportError,
            RecursionError,
        ) as error:
            raise Unstorable(f"{type(error).__name__}: {error}") from None


def digest_of(workunit: Workunit) -> str:
    """What identifies a workunit, with its names and places in the user's files."""
    known = workunit.__dict__.get("_digest")
    if known is None:
        table = Table()
        table.opaque = False
        table.number(workunit)
        known = workunit.__dict__["_digest"] = table.digest()
    return str(known)


@once
def _parts_of(kind: type) -> tuple[str, Callable[[Any], tuple[Any, ...]]]:
    """How a table calls a class, and what an object of it is made of."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    parts: Callable[[Any], tuple[Any, ...]]
    if not name.startswith(_FOLDERS):
        raise Unstorable(f"a {name} cannot be kept")
    if issubclass(kind, Enum):
        parts = _name_of
    elif issubclass(kind, tuple):
        parts = tuple
    elif is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        names = [field.name for field in fields(kind)]
        get = attrgetter(*names) if names else _nothing
        parts = (lambda value: (get(value),)) if len(names) == 1 else get
    else:
        raise Unstorable(f"a {name} cannot be kept")
    return name, parts


def _name_of(value: Any) -> tuple[str]:
    return (value.name,)


def _nothing(_: Any) -> tuple[()]:
    return ()


@once
def _maker_of(name: str) -> Callable[[list[Any]], Any]:
    """What makes an object of a class of this package that tables may hold."""
    module, _, kind = name.partition(":")
    if not module.startswith(_FOLDERS):
        raise Unstorable(f"{name}: not of this package")
    found: Any = sys.modules.get(module) or import_module(module)
    for part in kind.split("."):
        found = vars(found)[part]
    if not isinstance(found, type):
        raise Unstorable(f"{name}: no class")
    _parts_of(found)
    make: Callable[[list[Any]], Any]
    if issubclass(found, Enum):
        members = found.__members__
        make = lambda parts: members[parts[0]]  # noqa: E731
    else:
        make = lambda parts: found(*parts)  # noqa: E731
    return make
