"""Everything that is kept of a program while it runs, in one list: `CACHES`.

The law: what is kept can be made again from what the program calls, so that to forget all of it
changes times, never results. The cost: a lookup is that of a dictionary, or of `lru_cache`.

`Table`, `Latest`, `CodeTable` and `cached` are the kinds; whoever makes one names it, and the list
shows the name, how many entries there are and how many there may be (`runtime.session` says what
they hold). What is known of the machine (`once`: its compiler, its caches, its libraries) is no
part of the list: it stays true.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache, lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Result = TypeVar("Result")


class Cache(Protocol):
    """What is in the list."""

    @property
    def name(self) -> str: ...
    @property
    def limit(self) -> int | None: ...
    def __len__(self) -> int: ...
    def clear(self) -> None:
        """Forget all entries."""


CACHES: list[Cache] = []
"""All of the process, in the order in which their modules were imported."""


class Table(OrderedDict[Key, Value]):
    """A dictionary of at most `limit` entries: the first that was put in, or `used`, goes first.

    tuned: whether what is kept depends on the numbers in force (see `renumber`).
    """

    def __init__(self, name: str, limit: int, tuned: bool = False) -> None:
        super().__init__()
        self.name = name
        self.limit = limit
        self.tuned = tuned
        self.others: OrderedDict[object, dict[Key, Value]] = OrderedDict()
        CACHES.append(self)

    def clear(self) -> None:
        """Forget all entries, those of other numbers, too."""
        super().clear()
        self.others.clear()

    def used(self, key: Key) -> Value | None:
        """What is kept, which is not forgotten before what was used less recently."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: Key, value: Value) -> Value:
        """Put an entry in, and return it."""
        self[key] = value
        while len(self) > self.limit:
            self.popitem(last=False)
        return value


MAX_NUMBERS = 8
"""So many numbers besides those in force have entries."""


def renumber(before: object, now: object) -> None:
    """Other numbers are in force: they are a part of all keys of tables that depend on them."""
    for table in CACHES:
        if isinstance(table, Table) and table.tuned:
            table.others[before] = dict(table)
            OrderedDict.clear(table)
            table.update(table.others.pop(now, {}))
            while len(table.others) > MAX_NUMBERS:
                table.others.popitem(last=False)


class Latest(list[Value]):
    """A list of the latest `limit` entries, the latest last."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__()
        self.name = name
        self.limit = limit
        CACHES.append(self)

    def keep(self, value: Value) -> Value:
        """Put an entry in, and return it."""
        self.append(value)
        del self[: -self.limit]
        return value


class CodeTable(dict[Hashable, tuple["weakref.ref[CodeType]", Value]]):
    """What is known of functions' code, by its id() and more; it goes when the code does."""

    limit = None

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        CACHES.append(self)

    def of(self, code: CodeType, key: Hashable = None) -> Value | None:
        """What is kept."""
        known = self.get((id(code), key))
        return known[1] if known is not None and known[0]() is code else None

    def keep(self, code: CodeType, value: Value, key: Hashable = None) -> Value:
        """Keep something, and return it."""
        place = id(code), key
        self[place] = weakref.ref(code, lambda _, pop=self.pop: pop(place, None)), value  # type: ignore[misc]
        return value


class _Function:
    """A function that keeps its results, as an entry of the list."""

    def __init__(self, function: _lru_cache_wrapper[Any], limit: int) -> None:
        self.function = function
        self.limit = limit
        self.clear = function.cache_clear

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__name__}"

    def __len__(self) -> int:
        return self.function.cache_info().currsize


def cached(
    limit: int,
) -> Callable[[Callable[..., Result]], _lru_cache_wrapper[Result]]:
    """A decorator for pure functions of immutable values: an `lru_cache` that is in the list."""

    def decorate(function: Callable[..., Result]) -> _lru_cache_wrapper[Result]:
        found = lru_cache(maxsize=limit)(function)
        CACHES.append(_Function(found, limit))
        return found

    return decorate


once = cache
"""A decorator for what is found of the machine once a process."""


def clear_caches() -> None:
    """Forget everything in the list."""
    for kept in CACHES:
        kept.clear()
