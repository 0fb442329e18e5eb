"""`searchsorted`, `digitize` and `interp` in a table: recorded.

NumPy searches for one number after the other, 25 to 35 ns each where these come in no order, as
processors cannot tell which way a comparison goes. Here each number takes as many steps as the
table's length has bits, without a branch, so that several are looked for at once.

The law: the table is in order, which is looked at as the program asks; nobody changes it then, as
what is recorded has a copy. Where it is not, the result is what NumPy's steps make of it, and NumPy
computes it. Numbers are compared in the type that NumPy takes; no number (NaN) comes last. `interp`
has NumPy's bits where its C code rounds the product before the sum, which is tried out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.expressions import Code, cast, is_nan
from pyfuser.frontends.numpy.fallbacks import function_of
from pyfuser.frontends.numpy.layout import Form, Layout, c_strides, layout_of_call
from pyfuser.frontends.numpy.memory import host, is_away, unmade, usable
from pyfuser.frontends.numpy.record import caller_of, end_trip, formed, is_due, program_frame
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import space_of, spread, spreading, subscripts
from pyfuser.frontends.numpy.wrap import KIND, adopt, of_region
from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.ir.nodes import (
    Binary,
    Compare,
    Const,
    Expr,
    Load,
    Param,
    Read,
    Select,
    Store,
    Sym,
    Workunit,
)
from pyfuser.runtime.first_tier import DirectCall, Step, is_lost
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached, once
from pyfuser.support.passes import left_out
from pyfuser.trace.memory import Region

LONGEST = 1 << 16
"""Elements of a table: one that does not stay in cache takes either way as long."""

SEARCH = 8
"""Elements that NumPy adds up while it looks for one in some order; in none, four times as many."""

I32 = DType.INT32
F64 = DType.FLOAT64

_numpys = {
    function.__name__: function_of(function, function.__name__, apply.call_safely)
    for function in (np.searchsorted, np.digitize, np.interp)
}


class RecordedLookup(DirectCall):
    """A search for each element of an array, which NumPy can do, too.

    The tables among its arguments are longer than those that the program has: see `_padded`.
    """

    __slots__ = ("caller", "forms", "numpys")

    caller: tuple[int, int]
    forms: tuple[Form, Form]  # of the result and of what is looked for
    numpys: Any  # a function of what is looked for

    @property
    def weight(self) -> int:
        return SEARCH

    def compute(self, step: Step) -> None:
        first, second, *_ = self.arguments
        assert type(first) is Region and type(second) is Region
        out, x = first.array(), second.array()
        rank = len(self.space.end)
        result, form = self.forms
        whole = x[spreading(form, rank)] if form.axes else x
        target = spread(out, result, rank)
        step(partial(_compute, target, whole, self.numpys))


def _compute(target: Any, x: Any, numpys: Any) -> None:
    with np.errstate(all="ignore"):  # of signalling NaNs; as kernels, which do not warn
        target[...] = numpys(np.broadcast_to(x, target.shape))


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    found = searched(a, v, side) if sorter is None else None
    return _numpys["searchsorted"](a, v, side, sorter) if found is None else found


def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    found = None
    if type(right) is bool:  # bins that fall are NumPy's
        found = searched(bins, x, "left" if right else "right")
    return _numpys["digitize"](x, bins, right) if found is None else found


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    found = None
    if period is None and all(e is None or type(e) in (int, float) for e in (left, right)):
        found = _interpolated(x, xp, fp, left, right)
    return _numpys["interp"](x, xp, fp, left, right, period) if found is None else found


def searched(table: Any, x: Any, side: Any = "left") -> Any:
    """The places of numbers in a table, recorded; None: NumPy finds them."""
    if type(side) is not str or side not in ("left", "right"):
        return None
    given = _table(table)
    with TRACER.lock:
        region = _looked_for(x, given)
        if region is None:
            return None
        kind, bits = np.result_type(given, region.dtype.numpy), len(given).bit_length()
        found = _made(_for_search, given.astype(kind)) if kind.char in _KINDS else None
        if found is None:
            return None
        unit = partial(_search, region.dtype, from_numpy(kind), side, bits)
        numpys = partial(np.searchsorted, found.numpys[0], side=side)
        return _record(region, DType.INT64, found.ours, (len(given),), unit, numpys)


def _interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    places, values = _table(xp), _table(fp)
    with TRACER.lock:
        region = _looked_for(x, places)
        if region is None or values is None or values.shape != places.shape or len(values) < 2:
            return None
        if not all(np.can_cast(kind, np.float64) for kind in (places.dtype, values.dtype)):
            return None
        if not np.can_cast(region.dtype.numpy, np.float64) or not _rounds_products():
            return None
        found = _made(_for_interp, places.astype(np.float64), values.astype(np.float64))
        if found is None:
            return None
        places, values = found.numpys
        first = float(values[0] if left is None else left)
        after = float(values[-1] if right is None else right)
        numbers = (len(places), float(places[-1]), first, after)
        unit = partial(_interpolate, region.dtype, len(places).bit_length())
        numpys = partial(np.interp, xp=places, fp=values, left=first, right=after)
        return _record(region, F64, found.ours, numbers, unit, numpys)


class _Made(NamedTuple):
    """What kernels look up: copies of tables, which nobody else has. numpys: what they are of."""

    ours: tuple[Any, ...]
    numpys: tuple[Any, ...]


def _for_search(table: Any) -> _Made | None:
    return _Made((adopt(_padded(table)),), (table,)) if _is_in_order(table) else None


def _for_interp(places: Any, values: Any) -> _Made | None:
    with np.errstate(all="ignore"):
        widths = np.diff(places)
        slopes = np.append(np.diff(values) / widths, 0.0)
    # Where one is none, places are equal, or NumPy tries the other end of a width.
    finite = all(np.isfinite(given).all() for given in (slopes, values, widths))
    if not finite or not _is_in_order(places):
        return None
    ours = adopt(_padded(places)), adopt(values.copy()), adopt(slopes)
    return _Made(ours, (places, values))


def _made(make: Callable[..., _Made | None], *tables: Any) -> _Made | None:
    """What is made of tables, if they are in order; of small ones it is kept."""
    if tables[0].nbytes > SMALL:
        return make(*tables)
    return _kept(make, tables[0].dtype.str, *(table.tobytes() for table in tables))


@cached(64)
def _kept(make: Callable[..., _Made | None], kind: str, *tables: bytes) -> _Made | None:
    return make(*(np.frombuffer(table, kind) for table in tables))


SMALL = 1 << 12
"""Bytes of tables that are known again."""


def _padded(table: Any) -> Any:
    """A copy that is one less than a power of two long; the largest number follows.

    So a search takes as many steps for each number, and none leaves the table.
    """
    kind = table.dtype
    found = np.full((1 << len(table).bit_length()) - 1, _greatest(kind), kind)
    found[: len(table)] = table
    return found


def _greatest(kind: Any) -> Any:
    return np.inf if kind.kind == "f" else np.iinfo(kind).max


def _table(given: Any) -> Any:
    """A table as an array of NumPy's, of its own or not; None: it is none."""
    if type(given) is KIND.array:
        given = host(given)
    elif type(given) in (list, tuple) and all(type(entry) in (int, float) for entry in given):
        given = np.array(given)
    if type(given) is not np.ndarray or given.ndim != 1 or not 0 < len(given) <= LONGEST:
        return None
    return given if given.dtype.char in _KINDS and given.dtype.isnative else None


_KINDS = "fdbBhHiIlLqQ"


def _looked_for(x: Any, table: Any) -> Region | None:
    """Where the elements are that are looked for; None: NumPy looks for them."""
    if type(x) is not KIND.array or table is None or not x.shape or left_out("lookup"):
        return None
    if not recording() or is_loud(errors()) or len(table) * 4 > x.size:
        return None
    region = usable(x)
    if region is None or region.dtype.is_complex or region.dtype is DType.BOOL:
        return None
    return region if is_due(SEARCH * x.size, is_away(region.buffer)) else None


# law: True
def _is_in_order(table: Any) -> bool:
    """Whether a search in a table has one result, however it goes on."""
    return bool((table[:-1] <= table[1:]).all()) and table[0] == table[0]


@once
def _rounds_products() -> bool:
    """Whether NumPy's `interp` rounds the product of slope and distance."""
    x, places, values = 0.1, np.array([0.0, 3.0]), np.array([-1.0 / 30.0, 0.7 - 1.0 / 30.0])
    slope = (values[1] - values[0]) / places[1]
    return bool(np.interp(x, places, values) == slope * x + values[0])


def _record(
    region: Region,
    kind: DType,
    tables: tuple[Any, ...],
    numbers: tuple[float, ...],
    unit: Any,
    numpys: Any,
) -> Any:
    """Record a search; None: it is not. unit: makes the workunit."""
    rows = region.shape, c_strides(region.shape, kind.size)
    layout: Layout | None = layout_of_call(((region.shape, region.strides),), rows, kind.size)
    if layout is None:
        return None
    frame = program_frame(sys._getframe(1))
    site = frame.f_code, ~frame.f_lasti, layout.result.shape
    if not (is_away(region.buffer) or SPACE.device) and is_lost(site):
        return None
    end_trip(frame)
    target, owner = unmade(layout.shape, layout.strides, kind)
    (form,) = layout.forms
    given = [found for found in map(usable, tables) if found is not None]
    if len(given) < len(tables):
        return None
    call = RecordedLookup(
        "for", space_of(layout.extents), unit(form.axes, layout.result.axes, len(layout.extents)),
        (formed(target, layout.result), formed(region, form), *given, *numbers), None,
        None,
        frame.f_code, ~frame.f_lasti,
    )  # fmt: skip
    call.forms = layout.result, form
    call.caller = caller_of(frame)
    call.numpys = numpys
    TRACER.record(call)
    return of_region(target, owner)


# ------------------------------------------------------------------------------------ as ir


def _count(code: Code, table: Sym, size: Expr, x: Expr, bits: int, with_equal: bool) -> Expr:
    """How many elements of a table are less than `x`, or equal to it if `with_equal`."""
    found: Expr = Const(0, I32)
    for step in (1 << bit for bit in reversed(range(bits))):
        end = code.let(Binary("+", found, Const(step, I32)))
        element = code.let(Load(table, (Binary("-", end, Const(1, I32)),)))
        before = Compare("<=" if with_equal else "<", element, x)
        found = code.let(Select(before, end, found))
    found = code.let(Select(Compare("<", found, size), found, size))
    return Select(is_nan(x), size, found) if x.dtype.is_float else found


@cached(256)
def _search(
    own: DType,
    kind: DType,
    side: str,
    bits: int,
    axes: tuple[int, ...],
    result: tuple[int, ...],
    rank: int,
) -> Workunit:
    indices = tuple(Sym("ijklm"[n], n, I32) for n in range(rank))
    out, x, table = Sym("out", rank, DType.INT64), Sym("x", rank + 1, own), Sym("a", rank + 2, kind)
    size, code = Sym("size", rank + 3, I32), Code(rank + 4)
    given = code.let(cast(Load(x, subscripts(indices, axes)), kind), "v")
    found = _count(code, table, Read(size), given, bits, side == "right")
    store = Store(out, subscripts(indices, result), cast(found, DType.INT64))
    return Workunit(
        name="searchsorted",
        indices=indices,
        params=(
            Param(out, max(len(result), 1)), Param(x, max(len(axes), 1)), Param(table, 1),
            Param(size),
        ),
        body=(*code.statements, store),
    )  # fmt: skip


@cached(256)
def _interpolate(
    own: DType, bits: int, axes: tuple[int, ...], result: tuple[int, ...], rank: int
) -> Workunit:
    indices = tuple(Sym("ijklm"[n], n, I32) for n in range(rank))
    out, x = Sym("out", rank, F64), Sym("x", rank + 1, own)
    names = ("xp", "fp", "slopes", "last", "left", "right")
    places, values, slopes, last, left, right = (
        Sym(name, rank + 2 + n, F64) for n, name in enumerate(names)
    )
    size, code = Sym("size", rank + 8, I32), Code(rank + 9)
    given = code.let(cast(Load(x, subscripts(indices, axes)), F64), "v")
    after = code.let(_count(code, places, Read(size), given, bits, True), "after")
    nought, one = Const(0, I32), Const(1, I32)
    at = code.let(Select(Compare(">", after, nought), Binary("-", after, one), nought), "at")
    place, value = code.let(Load(places, (at,))), code.let(Load(values, (at,)))
    distance = Binary("-", given, place)
    found: Expr = Binary("+", Binary("*", Load(slopes, (at,)), distance), value)
    found = Select(Compare("==", given, place), value, found)
    found = Select(Compare(">", given, Read(last)), Read(right), found)
    found = Select(Compare("<=", after, nought), Read(left), found)
    found = Select(is_nan(given), given, found)
    return Workunit(
        name="interp",
        indices=indices,
        params=(
            Param(out, max(len(result), 1)), Param(x, max(len(axes), 1)), Param(places, 1),
            Param(values, 1), Param(slopes, 1), Param(size), Param(last), Param(left), Param(right),
        ),
        body=(*code.statements, Store(out, subscripts(indices, result), found)),
    )  # fmt: skip
