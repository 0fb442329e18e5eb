"""`x[mask]` whose elements are not gathered: what is computed with them is computed in place.

NumPy's `z[m] = z[m] ** 2 + c[m]` gathers two arrays, computes two more, and scatters the last. Here
`z[m]` is recorded as a copy of `z` in an array of its shape that is made only where the mask holds,
so are operations on such arrays of one mask, and what is stored through that mask again is a store
that the mask guards. All of it fuses, and none of the arrays is ever stored.

The law: whoever asks for anything else, the length or an element, gets what NumPy gathered when the
mask was applied. So `x` and the mask themselves stand for what they were as long as no call that
was recorded since may write them and nothing has run; after that the copies do, which nobody has.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.memory import (
    SELECTED,
    ArrayMemory,
    buffer_of,
    host,
    is_away,
    is_selected,
    usable,
)
from pyfuser.frontends.numpy.operations import COPY, Operation
from pyfuser.frontends.numpy.record import end_trip, is_due, program_frame, record
from pyfuser.frontends.numpy.recorded import Recorded
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt, of_region
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import Table
from pyfuser.support.passes import left_out
from pyfuser.trace.memory import Region

TRIES = 4
"""Times that what an instruction selects is asked for its elements, before it gathers at once."""

_ASKED: Table[Any, int] = Table("times that elements a mask selects were asked for", 4096)
"""By code and place in it; a store through the mask forgets them."""

_OPEN: list[weakref.ref[ArrayMemory]] = []
"""What the calls of the pending trace selected."""


class Selection:
    """What stands for the elements of `x[mask]`.

    source: x as it was, until something is computed with it. value: an array of the mask's shape
    that has the elements where the mask holds, and anything elsewhere. key: the program's mask;
    mask: that as it was; held: a copy of it. removed, position: how many calls had run or were
    dropped, and the last one before which mask and source were read. sites: the instructions that
    selected what it was computed from.
    """

    __slots__ = ("held", "key", "mask", "position", "removed", "sites", "source", "value")

    def __init__(self, key: Any, mask: Any, held: Any, value: Any) -> None:
        self.key, self.mask, self.held, self.value = key, mask, held, value
        self.source: Any = None
        self.sites: frozenset[Any] = frozenset()
        self.position, self.removed = TRACER.recorded - 1, _removed()
        SELECTED.count += 1

    def __del__(self) -> None:
        SELECTED.count -= 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self.value.dtype  # type: ignore[no-any-return]

    def now(self) -> Any:
        """An array that has the elements where the mask holds, if it is current."""
        return self.value if self.source is None else self.source

    def is_pending(self) -> bool:
        """Whether no call has run since."""
        return self.removed == _removed() and any(
            call.position == self.position for call in reversed(TRACER.calls)
        )

    def is_current(self) -> bool:
        """Whether mask and source are as they were."""
        return (
            self.is_pending()
            and _is_unwritten(self.mask, self.position)
            and (self.source is None or _is_unwritten(self.source, self.position))
        )

    def is_through(self, mask: Any) -> bool:
        """Whether the elements are those where a mask of the program's holds now."""
        return self.key is mask and usable(mask) == self.mask._region and self.is_current()

    def gather(self) -> Any:
        """The elements, as NumPy has them."""
        for site in self.sites:
            _ASKED.keep(site, _ASKED.get(site, 0) + 1)
        mask, value = self.held, self.value
        if self.is_current():
            mask, value = self.mask, self.now()
            if self.source is not None:
                self.value = self.held = None  # so that nobody computes them
        try:
            chosen = host(mask)
            return host(value)[chosen]
        except BaseException:  # of a call before, or from outside: mask and value are as they were
            with suppress(Exception):
                mask, value = adopt(host(mask).copy()), adopt(host(value).copy())
            self.held, self.value, self.source = mask, value, None
            raise


def _removed() -> int:
    """Of all calls that were recorded, how many are not pending any more."""
    return TRACER.recorded - len(TRACER.calls)


# law: True
def _is_unwritten(x: Any, position: int) -> bool:
    """Whether no pending call after a position may write an array."""
    buffer = buffer_of(x)
    for call in reversed(TRACER.calls):
        if call.position <= position:
            break
        given = call.arguments[:1] if type(call) is Recorded else call.arguments
        if any(type(argument) is Region and argument.buffer is buffer for argument in given):
            return False
    return True


def fits(x: Any, mask: Any) -> bool:
    """Whether an array is a mask of all axes of another one, or of the first ones."""
    return bool(mask.dtype == np.bool_) and mask.ndim > 0 and x.shape[: mask.ndim] == mask.shape


def over(mask: Any, x: Any) -> Any:
    """A mask with as many axes as what it selects from."""
    more = x.ndim - mask.ndim
    return mask.reshape(mask.shape + (1,) * more) if more else mask


def as_mask(key: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """The mask of `x[mask, 0]`, and the key of what it selects from, `x[:, 0]`; None: another."""
    if type(key) is not tuple or len(key) < 2:
        return None
    mask, *rest = key
    if type(mask) is not KIND.array or mask.dtype != np.bool_:
        return None
    if not all(type(entry) is int or type(entry) is slice for entry in rest):
        return None
    return mask, ((slice(None),) * mask.ndim + tuple(rest))


def selected(x: Any, mask: Any) -> Any:
    """`x[mask]`, for two arrays of ours; None: NumPy is to gather the elements now."""
    if not fits(x, mask) or x.size < LIMITS.most:
        return None
    if left_out("guarded-selections"):
        return None
    frame = program_frame(sys._getframe(2))
    site = frame.f_code, frame.f_lasti
    if _ASKED.get(site, 0) >= TRIES:
        return None
    with TRACER.lock:
        source, guard = usable(x), usable(mask)
        if source is None or guard is None:
            return None
        if not is_due(x.size, is_away(source.buffer) or is_away(guard.buffer)):
            return None
        end_trip(frame)
        _close()
        value = record(COPY, (x,), None, over(mask, x), due=True)
        held = None if value is None else record(COPY, (mask,), due=True)
        if held is None:
            return None
        selection = Selection(mask, of_region(guard, mask._owner), held, value)
        selection.source = of_region(source, x._owner)
        return _array(selection, frozenset((site,)))


def _array(selection: Selection, sites: frozenset[Any]) -> Any:
    selection.sites = sites
    found = object.__new__(KIND.array)
    found._selection = selection
    _OPEN.append(weakref.ref(found))
    return found


def _close() -> None:
    """Gather what was selected before the last flush, as an array of the mask's shape is larger."""
    for reference in _OPEN[:]:
        x = reference()
        if x is None or not is_selected(x):
            _OPEN.remove(reference)
        elif not x._selection.is_pending():
            _OPEN.remove(reference)
            host(x)


def computed(operation: Operation, inputs: tuple[Any, ...], out: Any = None) -> Any:
    """The operation on what one mask selects and on numbers; None: on the elements, as usual."""
    chosen = [x for x in inputs if type(x) is KIND.array and is_selected(x)]
    if not chosen or (out is not None and out is not inputs[0]):
        return None
    with TRACER.lock:
        end_trip(program_frame(sys._getframe(2)))
        first = chosen[0]._selection
        for x in inputs:
            ours = type(x) is KIND.array
            if ours and not (is_selected(x) and x._selection.is_through(first.key)):
                return None
        sites: frozenset[Any] = frozenset().union(*(x._selection.sites for x in chosen))
        taken = tuple(x._selection.now() if type(x) is KIND.array else x for x in inputs)
        target = None if out is None else first.value
        if any(x._selection.value.shape != first.value.shape for x in chosen):
            return None
        value = record(operation, taken, target, over(first.mask, first.value), due=True)
        if value is None:
            return None
        if out is None:
            selection = Selection(first.key, first.mask, first.held, value)
            selection.position = min(x._selection.position for x in chosen)
            return _array(selection, sites)
        first.source, first.sites = None, sites
        return out


def stored(x: Any, mask: Any, value: ArrayMemory) -> bool:
    """Record `x[mask] = value` for what the mask selected; False: not by this."""
    with TRACER.lock:
        end_trip(program_frame(sys._getframe(2)))
        selection = value._selection
        if selection is None or not selection.is_through(mask) or x.shape != selection.value.shape:
            return False
        if record(COPY, (selection.now(),), x, over(mask, x), casting="unsafe", due=True) is None:
            return False
        for site in selection.sites:
            _ASKED.pop(site, None)
        return True
