"""`histogram` with bins of one width: recorded.

NumPy goes over each block of elements a dozen times. Here the place of an element follows from its
value at once, by NumPy's own formula and its two corrections by the edges, which NumPy computes.
Counts have no order, so they are atomic updates of a small table. Sums of weights have NumPy's: one
table for each block of 65,536 elements, and these are added up in order.

The law: an element's place is computed in the types that NumPy takes. Where numbers of a type do
not have one place in them (integers beyond 2^53), or the edges are none, NumPy computes it.
"""

from __future__ import annotations

import sys
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.expressions import Code, cast, number
from pyfuser.frontends.numpy.fallbacks import function_of
from pyfuser.frontends.numpy.layout import c_strides, layout_of_call
from pyfuser.frontends.numpy.lookup import SEARCH
from pyfuser.frontends.numpy.memory import host, is_away, unmade, usable
from pyfuser.frontends.numpy.record import caller_of, end_trip, formed, is_due, program_frame
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import space_of, subscripts
from pyfuser.frontends.numpy.wrap import KIND, adopt, of_region
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Extent,
    For,
    If,
    Load,
    Logical,
    Param,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    Update,
    Workunit,
)
from pyfuser.runtime.first_tier import DirectCall, Step, is_lost
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.support.passes import left_out
from pyfuser.trace.memory import Region

MOST_BINS = 1 << 12
"""Bins whose tables stay in cache."""

TALLY = SEARCH
"""Elements that NumPy adds up while it finds the bin of one, at least."""

BLOCK = 1 << 16
"""Elements whose weights NumPy adds up apart."""

EXACT = 1 << 53
"""Integers up to here are floats of 64 bits, in which NumPy finds their bins."""

_MAX_INDEX = (1 << 31) - 1 - BLOCK

I32, I64, F32, F64 = DType.INT32, DType.INT64, DType.FLOAT32, DType.FLOAT64

_numpys = function_of(np.histogram, "histogram", apply.call_safely)


class Bins(NamedTuple):
    """Bins of one width, and the types in which NumPy finds them.

    own: of the elements; edges: of the edges; behind: of the distance from the first one; quotient:
    of that over the width of all. inside: in which elements are compared with the ends; None if all
    are inside.
    """

    own: DType
    edges: DType
    behind: DType
    quotient: DType
    inside: DType | None


class RecordedTally(DirectCall):
    """A part of a histogram, which NumPy can compute, too."""

    __slots__ = ("caller", "numpys")

    caller: tuple[int, int]
    numpys: Any  # a function of the arrays, the first of which has the result

    @property
    def weight(self) -> int:
        return TALLY

    def compute(self, step: Step) -> None:
        arrays = (a.array() for a in self.arguments if type(a) is Region)
        step(partial(_compute, self.numpys, *arrays))


def _compute(numpys: Any, *arrays: Any) -> None:
    with np.errstate(all="ignore"):  # as kernels, which do not warn
        numpys(*arrays)


def _counted(bins: int, ends: Any, counts: Any, x: Any, edges: Any) -> None:
    counts[...] = np.histogram(x, bins, ends)[0]


def _weighed(bins: int, ends: Any, sums: Any, x: Any, weights: Any, edges: Any) -> None:
    for row, start in zip(sums, range(0, len(x), BLOCK), strict=True):
        part = slice(start, start + BLOCK)
        row[...] = np.histogram(x[part], bins, ends, weights=weights[part])[0]


def _added(total: Any, sums: Any) -> None:
    total[...] = 0
    for row in sums:
        total += row.astype(total.dtype)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    found = None
    if type(bins) is int and type(density) in (bool, type(None)):
        found = _tallied(a, bins, range, weights)
    if found is None:
        return _numpys(a, bins, range, density, weights)
    counts, edges = found
    if density:
        values = host(counts)
        whole = values.sum()
        if not whole:  # NumPy warns
            return _numpys(a, bins, range, density, weights)
        counts = adopt(values / np.diff(edges).astype(float) / whole)
    return counts, adopt(edges)


def _tallied(a: Any, bins: int, ends: Any, weights: Any) -> Any:
    """Counts or sums of weights, recorded, and the edges; None: NumPy finds them."""
    if type(a) is not KIND.array or not 0 < bins <= MOST_BINS or a.size <= 4 * bins:
        return None
    if left_out("tallies") or not recording() or is_loud(errors()) or SPACE.device:
        return None
    frame = program_frame(sys._getframe(2))
    with TRACER.lock:
        region = usable(a)
        if region is None or region.dtype.is_complex or region.dtype is DType.BOOL:
            return None
        pending = is_away(region.buffer)
        if not is_due(TALLY * a.size, pending) or (
            not pending and _is_lost(frame, a, bins, weights)
        ):
            return None
        if weights is not None and not _are_weights(weights, region):
            return None
        whole = ends is None
        if whole:
            ends = a.min(), a.max()
        elif not _are_numbers(ends) or region.dtype in (I64, DType.UINT64):
            return None
        ends = tuple(ends)
        known = _bins(region.dtype, bins, ends, whole)
        region = usable(a)  # reading the ends has run it
        if known is None or region is None:
            return None
        kinds, edges, numbers = known
        table = usable(adopt(edges.copy()))
        if table is None:
            return None
        end_trip(frame)
        if weights is None:
            counts = _count(region, table, kinds, numbers, ends, frame)
        else:
            counts = _weigh(region, weights, table, kinds, numbers, ends, frame)
        return None if counts is None else (counts, edges)


def _is_lost(frame: FrameType, a: Any, bins: int, weights: Any) -> bool:
    shape = (bins,) if weights is None else (-(-a.size // BLOCK), bins)
    return is_lost((frame.f_code, ~frame.f_lasti, shape))


def _are_numbers(ends: Any) -> bool:
    return (
        type(ends) in (tuple, list)
        and len(ends) == 2
        and all(type(e) in (int, float, np.float64) for e in ends)
    )


def _bins(own: DType, count: int, ends: Any, whole: bool) -> Any:
    """The types, the edges and the numbers of a kernel; None: NumPy says what is wrong, or does it.

    The numbers are the ends, the first edge, the distance of the outer ones, how many bins.
    """
    first, last = ends
    try:
        if not (np.isfinite(first) and np.isfinite(last)):
            return None
    except TypeError:  # an integer that NumPy has no type for
        return None
    if own.is_integer and max(abs(float(first)), abs(float(last))) > EXACT:
        return None
    sample = np.zeros(1, own.numpy)
    try:
        with np.errstate(all="raise"):
            edges = np.histogram_bin_edges(sample, count, ends)
            low, high = (first - 0.5, last + 0.5) if first == last else (first, last)
            width = _distance(low, high)
    except (ValueError, FloatingPointError, OverflowError):
        return None
    kinds = (
        edges.dtype, np.result_type(edges, low), np.result_type(edges, low, width),
        np.result_type(sample, low), np.result_type(sample, high),
    )  # fmt: skip
    at, behind, quotient, ranged, other = (_FLOATS.get(kind.char) for kind in kinds)
    if at is None or behind is None or quotient is None or not width > 0:
        return None
    inside = ranged if own.is_float else F64
    if inside is None or (own.is_float and ranged is not other):
        return None
    given = (inside, low), (inside, high), (behind, low), (quotient, width)
    numbers = *(float(kind.numpy.type(value)) for kind, value in given), count
    return Bins(own, at, behind, quotient, None if whole else inside), edges, numbers


_FLOATS = {"f": F32, "d": F64}


def _distance(low: Any, high: Any) -> Any:
    """In the type that NumPy takes; of signed integers in an unsigned one."""
    kind = np.result_type(high, low)
    if kind.kind == "i":
        ends = np.asarray(high, kind), np.asarray(low, kind)
        return np.subtract(*ends, casting="unsafe", dtype=f"u{kind.itemsize}")
    return np.subtract(high, low, dtype=kind)


def _count(
    region: Region, table: Region, kinds: Bins, numbers: Any, ends: Any, frame: FrameType
) -> Any:
    placed = region.shape, region.strides
    layout = layout_of_call((placed,), None, region.dtype.size, True)
    if layout is None or max(layout.extents) > _MAX_INDEX:
        return None
    (form,) = layout.forms
    if len(form.axes) < len(layout.extents):
        return None  # an element counts several times
    bins = numbers[-1]
    target, owner = unmade((bins,), (8,), I64)
    unit = _counting(kinds, form.axes, len(layout.extents))
    given = target, formed(region, form), table, *numbers
    _record(layout.extents, unit, given, partial(_counted, bins, ends), frame)
    return of_region(target, owner)


def _weigh(
    region: Region,
    weights: Any,
    table: Region,
    kinds: Bins,
    numbers: Any,
    ends: Any,
    frame: FrameType,
) -> Any:
    other = usable(weights)
    if other is None:
        return None
    x, each = (_row(given, weights.size) for given in (region, other))
    bins, blocks = numbers[-1], -(-weights.size // BLOCK)
    kind = other.dtype
    sums, _owner = unmade((blocks, bins), c_strides((blocks, bins), 8), F64)
    target, owner = unmade((bins,), (kind.size,), kind)
    given = sums, x, each, table, *numbers
    _record((blocks,), _weighing(kinds, kind), given, partial(_weighed, bins, ends), frame)
    _record((bins,), _adding(kind), (target, sums), _added, frame)
    return of_region(target, owner)


def _are_weights(weights: Any, region: Region) -> bool:
    """Whether kernels add them up, for which all elements are one row in the order of indices."""
    if type(weights) is not KIND.array or weights.shape != region.shape:
        return False
    other = usable(weights)
    if other is None or other.dtype not in (F32, F64) or weights.size > _MAX_INDEX:
        return False
    return all(
        len(given.shape) == 1 or given.strides == c_strides(given.shape, given.dtype.size)
        for given in (region, other)
    )


def _row(region: Region, size: int) -> Region:
    if len(region.shape) == 1:
        return region
    return Region(region.buffer, region.offset, (region.dtype.size,), (size,), region.dtype)


def _record(
    extents: tuple[int, ...], unit: Workunit, arguments: Any, numpys: Any, frame: FrameType
) -> None:
    call = RecordedTally(
        "for", space_of(extents), unit, arguments, None, None, frame.f_code, ~frame.f_lasti
    )
    call.caller = caller_of(frame)
    call.numpys = numpys
    TRACER.record(call)


# ------------------------------------------------------------------------------------ as ir


class _Names(NamedTuple):
    """The parameters of a kernel after its arrays, and the edges."""

    edges: Sym
    low: Sym
    high: Sym
    first: Sym
    width: Sym
    bins: Sym

    @property
    def params(self) -> tuple[Param, ...]:
        return Param(self.edges, 1), *map(Param, self[1:])


def _names(kinds: Bins, uid: int) -> _Names:
    ends = kinds.inside or F64
    dtypes = kinds.edges, ends, ends, kinds.behind, kinds.quotient, I32
    syms = [
        Sym(name, uid + n, t)
        for n, (name, t) in enumerate(zip(_Names._fields, dtypes, strict=True))
    ]
    return _Names(*syms)


def _binned(code: Code, given: Expr, kinds: Bins, names: _Names) -> Expr:
    """The bin of a number, as NumPy finds it."""
    x = code.let(cast(given, kinds.edges))
    one, nought = Const(1, I32), Const(0, I32)
    last = code.let(Binary("-", Read(names.bins), one))
    behind = Binary("-", cast(x, kinds.behind), Read(names.first))
    part = Binary("/", cast(behind, kinds.quotient), Read(names.width))
    scaled = Binary("*", part, cast(Read(names.bins), kinds.quotient))
    place = code.let(Cast(scaled, I32))
    place = code.let(Select(Compare(">", place, last), last, place))
    place = code.let(Select(Compare("<", place, nought), nought, place))
    before = Compare("<", x, Load(names.edges, (place,)))
    place = code.let(Select(before, Binary("-", place, one), place))
    after = Logical(
        "&&",
        Compare(">=", x, Load(names.edges, (Binary("+", place, one),))),
        Compare("!=", place, last),
    )
    place = code.let(Select(after, Binary("+", place, one), place))
    return code.let(Select(Compare("<", place, nought), nought, place))


def _inside(given: Expr, kinds: Bins, names: _Names, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    if kinds.inside is None:
        return body
    x = cast(given, kinds.inside)
    ends = Compare(">=", x, Read(names.low)), Compare("<=", x, Read(names.high))
    return (If(Logical("&&", *ends), body),)


@cached(256)
def _counting(kinds: Bins, axes: tuple[int, ...], rank: int) -> Workunit:
    indices = tuple(Sym("ijklm"[n], n, I32) for n in range(rank))
    counts, x, names = (
        Sym("counts", rank, I64),
        Sym("x", rank + 1, kinds.own),
        _names(kinds, rank + 2),
    )
    code = Code(rank + 8)
    given = code.let(Load(x, subscripts(indices, axes)), "v")
    found = Code(code)
    place = _binned(found, given, kinds, names)
    found.statements.append(Update("+", counts, (place,), Const(1, I64), atomic=True))
    return Workunit(
        name="histogram",
        indices=indices,
        params=(Param(counts, 1), Param(x, max(len(axes), 1)), *names.params),
        body=(*code.statements, *_inside(given, kinds, names, tuple(found.statements))),
    )


@cached(256)
def _weighing(kinds: Bins, kind: DType) -> Workunit:
    block, t = Sym("block", 0, I32), Sym("t", 1, I32)
    sums, x, weights = Sym("sums", 2, F64), Sym("x", 3, kinds.own), Sym("weights", 4, kind)
    names, code = _names(kinds, 5), Code(11)
    size = Const(BLOCK, I32)
    start = code.let(Binary("*", Read(block), size), "start")
    rest = code.let(Binary("-", cast(Extent(x, 0), I32), start))
    count = code.let(Select(Compare("<", rest, size), rest, size))
    one = Code(code)
    given = one.let(Load(x, (Read(t),)), "v")
    found = Code(code)
    place = _binned(found, given, kinds, names)
    value = cast(Load(weights, (Read(t),)), F64)
    found.statements.append(Update("+", sums, (Read(block), place), value))
    body = (*one.statements, *_inside(given, kinds, names, tuple(found.statements)))
    loop = For(t, start, Binary("+", start, count), Const(1, I32), body)
    return Workunit(
        name="weights",
        indices=(block,),
        params=(Param(sums, 2), Param(x, 1), Param(weights, 1), *names.params),
        body=(*code.statements, loop),
    )


@cached(8)
def _adding(kind: DType) -> Workunit:
    j, b = Sym("j", 0, I32), Sym("b", 1, I32)
    total, sums, one = Sym("total", 2, kind), Sym("sums", 3, F64), Sym("sum", 4, kind)
    added = Binary("+", Read(one), cast(Load(sums, (Read(b), Read(j))), kind))
    stop = cast(Extent(sums, 0), I32)
    loop = For(b, Const(0, I32), stop, Const(1, I32), (Assign(one, added),))
    body = Declare(one, number(0, kind)), loop, Store(total, (Read(j),), Read(one))
    return Workunit(
        name="blocks", indices=(j,), params=(Param(total, 1), Param(sums, 2)), body=body
    )
