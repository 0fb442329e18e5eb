"""`x[key]` and `x[key] = value`: views where NumPy makes views, copies where it copies."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import ViewMemory
from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.as_program import as_program
from pyfuser.frontends.numpy.gathers import gathered
from pyfuser.frontends.numpy.memory import (
    ArrayMemory,
    element,
    host,
    is_computed,
    is_pending,
    is_selected,
    layout_of,
    share_memory,
)
from pyfuser.frontends.numpy.operations import COPY
from pyfuser.frontends.numpy.record import record
from pyfuser.frontends.numpy.selected import as_mask, fits, over, selected, stored
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt, foreign, of_view, sliced, view
from pyfuser.runtime.session import TRACER
from pyfuser.trace.images import USE

_BASIC = frozenset({int, slice, type(Ellipsis), type(None)})


def is_basic(key: Any) -> bool:
    """Whether a key selects a view, or one element."""
    if type(key) is tuple:
        for entry in key:
            if type(entry) not in _BASIC and not isinstance(entry, np.integer):
                return False
        return True
    return type(key) in _BASIC or isinstance(key, np.integer)


def part_of(layout: Any, key: Any) -> Any:
    """The view that a basic key selects, which has no axes if it selects an element.

    No element is read: the layout may have none.
    """
    entries = key if type(key) is tuple else (key,)
    if not any(entry is Ellipsis for entry in entries):
        entries = (*entries, Ellipsis)
    return layout[entries]


def _is_element(part: Any, key: Any) -> bool:
    if part.ndim:
        return False
    return not any(entry is Ellipsis for entry in (key if type(key) is tuple else (key,)))


def is_element(key: Any) -> bool:
    """Whether a key is two plain integers, as loops over elements have them."""
    return type(key) is tuple and len(key) == 2 and type(key[0]) is int and type(key[1]) is int


class Indexing(ArrayMemory):
    """Subscripts."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        array = None if USE.devices else self._array
        if array is not None and (type(key) is int or is_element(key) or is_basic(key)):
            value = array[key]
            if type(value) is np.ndarray:
                if array.dtype.hasobject and _is_element(part_of(array, key), key):
                    return foreign(value)
                return sliced(self, value)
            if not TRACER.calls or not is_pending(self):
                return value
            return host(self)[key]
        if is_basic(key):
            if array is None and is_computed(self):
                host(self)  # views of it are quicker to make from now on
                return self[key]
            part = part_of(layout_of(self), key)
            if not _is_element(part, key):
                return view(self, part)
            found = element(self, part) if USE.devices else None
            return host(self)[key] if found is None else found
        if type(key) is str:
            return view(self, layout_of(self)[key])
        return _selected(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._writeable:
            raise ValueError("assignment destination is read-only")
        array = None if USE.devices else self._array
        if array is not None and not TRACER.calls and (type(key) is int or is_element(key)):
            kind = type(value)
            source = value._array if kind is KIND.array else value
            if source is not None and _takes(array, kind):
                array[key] = source
                return
        if not is_basic(key):
            if not _guarded(self, key, value):
                _assigned(self, key, value)
            return
        least = LIMITS.first(False)
        array = apply.small(self, least)
        if array is not None:
            kind = type(value)
            source = value if kind in apply.SCALARS else None
            source = apply.small(value, least) if kind is KIND.array else source
            if source is not None and _takes(array, kind):
                array[key] = source
                return
        part = part_of(layout_of(self), key)
        if _is_element(part, key) or not assign(view(self, part), value):
            _assigned(self, key, value)

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")

    def __len__(self) -> int:
        return len(layout_of(self))

    def __iter__(self) -> Any:
        layout = layout_of(self)
        if not layout.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[n] for n in range(len(layout)))

    def __contains__(self, value: Any) -> bool:
        return apply.call(lambda a, v: v in a, (self, value), {})  # type: ignore[no-any-return]


def assign(part: Any, value: Any) -> bool:
    """Record that all elements of an array take a value's; False: NumPy is to do it now."""
    if isinstance(value, ViewMemory):
        value = of_view(value)
    if type(value) is KIND.array:
        if value.ndim > part.ndim:
            return False
    elif type(value) not in apply.SCALARS:
        return False
    return record(COPY, (value,), part, casting="unsafe") is not None


def _guarded(x: Any, key: Any, value: Any) -> bool:
    """Record `x[mask] = number`, or what the mask selected, as stores that the mask guards.

    False: NumPy is to do it now.
    """
    found = (x, key) if type(key) is KIND.array else _masked_part(x, key)
    if found is None:
        return False
    x, mask = found
    if not fits(x, mask) or (x is not mask and share_memory(x, mask)):
        return False  # NumPy reads of such a mask what it has stored
    if type(value) is KIND.array and is_selected(value):
        return stored(x, mask, value)
    if type(value) not in apply.SCALARS:
        return False
    return record(COPY, (value,), x, over(mask, x), casting="unsafe") is not None


def _masked_part(x: Any, key: Any) -> Any:
    """Of `x[mask, 0]` the part `x[:, 0]` and the mask; None: the key is another one."""
    masked = as_mask(key)
    shape = x.shape
    if masked is None or len(masked[1]) > len(shape) or x.size < LIMITS.most:
        return None
    for entry, extent in zip(masked[1], shape, strict=False):
        if type(entry) is int and not -extent <= entry < extent:
            return None
    part = view(x, part_of(layout_of(x), masked[1]))
    return (part, masked[0]) if part.size else None


def _selected(x: Any, key: Any) -> Any:
    """By indices or masks: a copy."""
    masked = _masked_part(x, key)
    found = None if masked is None else selected(*masked)
    if found is not None:
        return found
    if type(key) is KIND.array:
        found = selected(x, key) if key.dtype == np.bool_ else gathered(x, key)
        if found is not None:
            return found
    plain = _key(key)
    if plain is None:
        return apply.call(lambda a, k: a[k], (x, key), {})
    value = host(x)[plain]
    if type(value) is not np.ndarray:
        return value
    if value.base is not None and np.may_share_memory(value, host(x)):
        return apply.call(lambda a, k: a[k], (x, key), {})
    return adopt(value)


def _key(key: Any) -> Any:
    """A key as NumPy takes it; None: it has parts of somebody else's."""
    if type(key) is tuple:
        parts = tuple(map(_key, key))
        wrong = any(
            part is None and entry is not None for part, entry in zip(parts, key, strict=True)
        )
        return None if wrong else parts
    if type(key) is KIND.array:
        return host(key)
    if isinstance(key, (ViewMemory, slice)) or type(key) in _BASIC:
        return key if not isinstance(key, ViewMemory) else None
    return key if type(key) is range or apply.is_plain(key) else None


def _takes(array: Any, kind: type) -> bool:
    """Whether what is stored are numbers: an array of objects refers to what it is given."""
    return kind in apply.SCALARS or (kind is KIND.array and not array.dtype.hasobject)


def _assigned(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value` by NumPy."""
    if x.dtype.kind == "O" and is_basic(key) and _is_element(part_of(layout_of(x), key), key):
        as_program(operator.setitem, (host(x, True), key, value), {})
        return
    plain = _key(key)
    given = type(value) is KIND.array and not x.dtype.hasobject
    if (plain is None and key is not None) or not (given or apply.is_plain(value)):
        apply.call(_set, (x, key, value), {})
        return
    source = host(value) if type(value) is KIND.array else value
    as_program(operator.setitem, (host(x, True), plain, source), {})


def _set(array: Any, key: Any, value: Any) -> None:
    array[key] = value
