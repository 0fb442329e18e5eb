"""Bands of launches: which calls may run for some lanes first, and that they do so to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.engine.launchable import team
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Accumulator,
    Assign,
    Cast,
    Const,
    Param,
    Read,
    Scratch,
    Store,
    Sym,
    Workunit,
)
from pyfuser.plan import bands
from pyfuser.plan.bands import Bands, bands_of
from pyfuser.runtime import bands as runtime
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Space
from pyfuser.trace.shape import CallShape, RegionShape, shape_of
from tests import sessions
from tests.vendors import tune

ROWS, N = 6, 9


def copy(i, x, y):
    y[i] += 0.5 * x[i]


def ahead(i, x, y):
    y[i] += 0.5 * x[i + 1]


def later(i, x, y):
    y[i + 1] = 0.5 * x[i + 1] + 1.0


def box(k, b, x, y):
    y[k, b] += 0.5 * x[k, b]


def turned(k, b, x, y):
    y[b, k] += 0.5 * x[k, b]


def below(k, b, x, y):
    y[k + 1, b] = 0.5 * x[k, b] + y[k + 1, b]


def beside(k, b, x, y):
    y[k, b] += 0.5 * x[k, b + 1]


def column(b, x, y, rows: int):
    for k in range(1, rows):
        y[k, b] += 0.5 * x[k - 1, b]


def line(k, x, y, columns: int):
    for b in range(columns):
        y[k, b] += 0.5 * x[k, 0]


def mirrored(k, b, x, y, d: int):
    y[k, b] += 0.5 * x[d - k, b]


def chosen(k, b, x, y):
    t: int = int(x[k, b])
    if t < 0:
        t = 0
    if t > 3:
        t = 3
    y[t, b] += 1.0


def tally(k, b, x, y):
    pk.atomic_add(y, [0, b], x[k, b])


FUNCTIONS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        copy, ahead, later, box, turned, below, beside, column, line, mirrored, chosen, tally,
    )
}  # fmt: skip
UNITS: dict[str, Any] = {name: pk.workunit(function) for name, function in FUNCTIONS.items()}


class Call(NamedTuple):
    """A call by name; begin and end of its space; NumPy arrays and integers."""

    name: str
    begin: tuple[int, ...]
    end: tuple[int, ...]
    x: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    more: dict[str, int]

    def run(self) -> None:
        policy = (
            pk.MDRangePolicy([*self.begin], [*self.end])
            if len(self.begin) > 1
            else pk.RangePolicy(self.begin[0], self.end[0])
        )
        pk.parallel_for(policy, UNITS[self.name], x=self.x, y=self.y, **self.more)


class Touched:
    """Notes of each byte which indices touch it, and whether one of them writes it."""

    def __init__(self) -> None:
        self.bytes: dict[int, set[Any]] = {}
        self.written: set[int] = set()
        self.now: Any = None

    def shared(self) -> bool:
        return any(len(self.bytes[byte]) > 1 for byte in self.written)


class Seen:
    """An array whose accesses are noted."""

    def __init__(self, array: np.ndarray[Any, Any], notes: Touched) -> None:
        self.array, self.notes = array, notes

    def _note(self, index: Any, writes: bool) -> None:
        place = self.array[index if isinstance(index, tuple) else (index,)].__array_interface__
        # a scalar has no address: it is that of a view of one element
        at = tuple(slice(n, n + 1) for n in (index if isinstance(index, tuple) else (index,)))
        place = self.array[at].__array_interface__["data"][0]
        for byte in range(place, place + self.array.itemsize):
            self.notes.bytes.setdefault(byte, set()).add(self.notes.now)
            if writes:
                self.notes.written.add(byte)

    def __getitem__(self, index: Any) -> Any:
        self._note(index, False)
        return self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(index, True)


def touched(call: Call, notes: Touched, lane: Callable[[tuple[int, ...]], Any]) -> None:
    """Note what a call touches, by what `lane` makes of an iteration."""
    x, y = Seen(call.x, notes), Seen(call.y, notes)
    boxes = np.ndindex(*[e - b for b, e in zip(call.begin, call.end, strict=True)])
    for at in boxes:
        index = tuple(b + n for b, n in zip(call.begin, at, strict=True))
        notes.now = lane(index)
        FUNCTIONS[call.name](*index, x, y, **call.more)


def races(call: Call) -> bool:
    notes = Touched()
    touched(call, notes, lambda index: index)
    return notes.shared()


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tune(monkeypatch, band_calls=2, band_kinds=0, band_share=0.0, band_caches=0.0, band_work=0)
    monkeypatch.setattr(runtime, "SETTINGS", replace(SETTINGS, arbitrate=True))
    monkeypatch.setattr(runtime, "NEIGHBOURS", 2)
    with sessions.fresh():
        yield
    pyfuser.discard()


def found(calls: Sequence[Call]) -> tuple[Bands, ...]:
    """The bands of calls."""
    with pyfuser.fusing():
        for call in calls:
            call.run()
        trace = shape_of(list(TRACER.calls), structural_scalars)
        pyfuser.discard()
    return bands_of(trace)


def one(calls: Sequence[Call]) -> Bands | None:
    """The bands that have all of the calls."""
    every = found(calls)
    return every[0] if every and (every[0].first, every[0].last) == (0, len(calls)) else None


def agrees(calls: Sequence[Call], arrays: Sequence[np.ndarray[Any, Any]]) -> int:
    """Runs in bands, and in turns, have the bits of as many unfused ones; how many calls ran so."""
    start = [array.copy() for array in arrays]
    for _ in range(5):
        for call in calls:
            call.run()
    pyfuser.sync()
    expected = [array.copy() for array in arrays]
    for array, values in zip(arrays, start, strict=True):
        array[...] = values
    before = pyfuser.stats().replays
    for _ in range(5):
        with pyfuser.fusing():
            for call in calls:
                call.run()
        pyfuser.sync()
    for array, values in zip(arrays, expected, strict=True):
        assert array.tobytes() == values.tobytes()
    assert pyfuser.stats().replays > before or len(calls) < 2
    cuts = SESSION.flushes[-1].program.cuts
    return sum(cut.last - cut.first for cut in cuts)


def table(rows: int = ROWS, columns: int = N, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    return (np.arange(rows * columns) % 5 + 1).astype(dtype).reshape(rows, columns)


def diagonals(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[Call]:
    """Ranges that grow and shrink."""
    made = []
    for d in range(1, 2 * ROWS - 2):
        low, high = max(0, d - ROWS + 1), min(d, ROWS - 1)
        made.append(Call("mirrored", (low, 0), (high + 1, N), x, y, {"d": d}))
        made.append(Call("below", (low, 0), (min(high + 1, ROWS - 1), N), y, x, {}))
    return made


def test_diagonals_side_by_side() -> None:
    x, y = table(), table()
    calls = diagonals(x, y)
    whole = one(calls)
    assert whole is not None and set(whole.axes) == {1} and (whole.begin, whole.end) == (0, N)
    assert whole.bytes == 2 * ROWS * 8 and whole.near
    assert agrees(calls, [x, y]) == len(calls)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "count", threads)
    x, y = table(), table()
    assert agrees(diagonals(x, y), [x, y]) == len(diagonals(x, y))


def test_lanes_of_rows_and_of_columns() -> None:
    """Whichever axis: the longest bands are taken."""
    x, y = table(), table()
    full = (0, 0), (ROWS, N)
    down = [
        Call("below", (0, 0), (ROWS - 1, N), x, y, {}),
        Call("column", (0,), (N,), x, y, {"rows": ROWS}),
    ]
    along = [
        Call("beside", (0, 0), (ROWS, N - 1), x, y, {}),
        Call("line", (0,), (ROWS,), x, y, {"columns": N}),
    ]
    for calls, axes in ((down, (1, 0)), (along, (0, 0))):
        whole = one([*calls, Call("box", *full, x, y, {}), *calls])
        assert whole is not None and whole.axes == (*axes, axes[0], *axes)
    assert one([*down, *along]) is None


@pytest.mark.parametrize(
    ("name", "end", "twin"),
    [("copy", N, "ahead"), ("later", N - 1, "copy")],
)
def test_rows_whose_lanes_are_one_place(name: str, end: int, twin: str) -> None:
    """Rows of one table go together; with one element more or less, lanes are others'."""
    x, y = table(), table()
    rows = [Call(name, (0,), (end,), y[k], y[k + 1], {}) for k in range(ROWS - 1)]
    assert one(rows) is not None and agrees(rows, [x, y]) == ROWS - 1
    shifted = [Call(name, (0,), (end - 1,), y[k, 1:], y[k + 1, :-1], {}) for k in range(ROWS - 1)]
    assert found(shifted) == ()
    assert found([*rows[:1], Call(twin, (0,), (N - 1,), y[1], y[2], {})]) == ()


def test_what_only_reads_may_be_anywhere() -> None:
    x, y = table(), table()
    calls = [Call("beside", (0, 0), (ROWS, N - 1), x, y, {}) for _ in range(4)]
    whole = one(calls)
    assert whole is not None and whole.axes == (1,) * 4
    assert one([*calls, Call("below", (0, 0), (ROWS - 1, N), y, y, {})]) is not None
    assert found([*calls[:1], Call("below", (0, 0), (ROWS - 1, N), y, x, {})]) == ()


def test_atomics_sums_and_what_data_choose() -> None:
    x, y = table(), table()
    full = (0, 0), (ROWS, N)
    assert found([Call("tally", *full, x, y, {})] * 3) == ()
    assert one([Call("chosen", *full, x, y, {})] * 3) is not None  # an element of its lane
    turned = Call("turned", (0, 0), (ROWS, ROWS), x[:, :ROWS], y[:, :ROWS], {})
    whole = one([turned, Call("box", *full, x, y, {}), turned])
    assert whole is not None and whole.axes == (1, 0, 1)  # rows of y, wherever it is from
    assert found([turned, Call("box", *full, y, x, {}), turned]) == ()


def views(rng: random.Random, a: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
    """A part of an array."""
    row = rng.randrange(ROWS)
    if rank == 1:
        flat = a.reshape(-1)
        start = rng.randrange(0, a.size - N)
        return rng.choice(
            (
                a[row],
                a[row],
                a[row, 1:],
                a[row, ::2],
                a[:, 2],
                flat[start : start + N],
                a[row, ::-1],
            )
        )
    return rng.choice((a, a, a, a[1:], a[:, 1:], a[:, :-1], a.T, a[::2], a[:, ::2], a[::-1]))


def drawn(rng: random.Random, arrays: Sequence[np.ndarray[Any, Any]]) -> Call:
    """A random call that stays inside of its arrays."""
    name = rng.choice([n for n in FUNCTIONS if n != "chosen"])
    rank = 1 if name in ("copy", "ahead", "later") else 2
    x, y = (views(rng, rng.choice(arrays), rank) for _ in range(2))
    rows, columns = min(x.shape[0], y.shape[0]), min(x.shape[-1], y.shape[-1])
    more: dict[str, int] = {}
    if rank == 1:
        end: tuple[int, ...] = (rows - (name != "copy"),)
    elif name == "turned":
        end = (min(x.shape[0], y.shape[1]), min(x.shape[1], y.shape[0]))
    elif name == "column":
        end, more = (columns,), {"rows": rows}
    elif name == "line":
        end, more = (rows,), {"columns": columns}
    else:
        end = (rows - (name == "below"), columns - (name == "beside"))
    begin = tuple(rng.choice((0, 0, 1)) if n > 2 else 0 for n in end)
    if name == "mirrored":
        more = {"d": begin[0] + end[0] - 1}
    return Call(name, begin, end, x, y, more)


def test_no_byte_that_is_written_is_of_two_lanes() -> None:
    """Random calls, on parts of arrays that overlap in many ways, against all bytes they touch."""
    rng = random.Random(3)
    lengths = []
    for _ in range(150):
        arrays = [table(), table()]
        pool = [drawn(rng, arrays) for _ in range(3)]
        calls = [rng.choice(pool) for _ in range(5)]
        for band in found(calls):
            notes = Touched()
            for call, axis in zip(calls[band.first : band.last], band.axes, strict=True):
                touched(call, notes, lambda index, axis=axis: index[axis])
            assert not notes.shared(), (calls, band)
            lengths.append(band.last - band.first)
    assert len(lengths) > 60 and max(lengths) == 5


def test_random_calls_have_the_bits_of_unfused_ones() -> None:
    rng = random.Random(4)
    banded = 0
    for _ in range(25):
        arrays = [table(), table()]
        pool = [drawn(rng, arrays) for _ in range(2)]
        calls = [rng.choice(pool) for _ in range(4)]
        if not any(map(races, pool)) and not any(call.name == "tally" for call in calls):
            banded += agrees(calls, arrays)
    assert banded > 15


# --------------------------------------------------------------------------- one condition each


def test_lanes_that_go_on_in_the_next_row() -> None:
    x, y = table(), table()
    down = Call("box", (0, 0), (ROWS, N), x, y, {})
    flat = Call("copy", (0,), (N,), x.reshape(-1), y.reshape(-1), {})
    long = flat._replace(end=(ROWS * N,))
    assert one([down, flat]) is not None
    assert found([down, long]) == () and found([long, down]) == ()
    one_on = Call("copy", (0,), (N,), x.reshape(-1)[N:], y.reshape(-1)[N:], {})
    assert one([down, one_on]) is not None
    assert found([down, one_on._replace(y=y.reshape(-1)[1:])]) == ()


def test_rows_that_share_elements_with_the_next_one() -> None:
    x, y = table(), table()
    rows = Call("line", (0,), (ROWS - 1,), x, y, {"columns": N})
    shifted = y.reshape(-1)[1 : 1 + (ROWS - 1) * N].reshape(ROWS - 1, N)
    assert one([rows, rows._replace(y=y[:, 1:], more={"columns": N - 1})]) is not None
    assert found([rows, rows._replace(y=shifted)]) == ()
    assert found([rows._replace(y=shifted), rows]) == ()


def part(shift: int = 0, begin: int = 0, end: int = 9, axis: int = 1, **other: Any) -> Any:
    region = RegionShape(0, 16, (72, 8), (6, 9), DType.FLOAT64)._replace(**other)
    return bands._part(region, bands.Lanes(axis, shift), begin, end)


def test_where_the_lanes_of_a_view_are() -> None:
    assert part() == ((16, 0, 9, 8, 8), 72)
    assert part(1, 0, 8) == ((24, 0, 8, 8, 8), 72)
    assert part(axis=0, end=6) == ((16, 0, 6, 72, 72), 0)
    assert part(1, 0, 9) is None and part(-1, 0, 9) is None and part(-1, 1, 9) is not None
    assert part(begin=4, end=4) is None
    assert part(strides=(72, -8)) is None and part(strides=(-72, 8)) is None
    assert part(strides=(72, 0)) is None
    assert part(strides=(72, 8), shape=(1, 9)) == ((16, 0, 9, 8, 8), 0)
    assert part(strides=(8, 8)) == ((16, 0, 9, 8, 8), 8)  # which is a period of one lane


def test_conversions_that_lose_bits_are_no_lanes() -> None:
    b, y = Sym("b", 0, DType.INT32), Sym("y", 1, DType.FLOAT64)

    def along(index: Any) -> Any:
        store = Store(y, (index,), Const(1.0, DType.FLOAT64))
        return bands._along(Workunit("unit", (b,), (Param(y, 1),), (store,)), 0)

    assert along(Read(b)) == along(Cast(Read(b), DType.INT64)) == {0: ((0, 0), True)}
    assert (
        along(Cast(Read(b), DType.INT8)) == along(Cast(Read(b), DType.UINT8)) == {0: (None, True)}
    )


def test_an_index_that_changes_is_no_lane() -> None:
    b, y = Sym("b", 0, DType.INT32), Sym("y", 1, DType.FLOAT64)
    store = Store(y, (Read(b),), Const(1.0, DType.FLOAT64))
    unit = Workunit("unit", (b,), (Param(y, 1),), (store,))
    assert bands._uses(unit)
    assert bands._uses(replace(unit, body=(Assign(b, Const(0, DType.INT32)), store))) == ()
    assert bands._uses(replace(unit, body=(store, Scratch(Sym("s", 3, DType.INT32), ())))) == ()


def test_only_maps_of_the_threads_of_the_host() -> None:
    region = RegionShape(0, 0, (8,), (9,), DType.FLOAT64)
    b, y = Sym("b", 0, DType.INT32), Sym("y", 1, DType.FLOAT64)
    store = Store(y, (Read(b),), Const(1.0, DType.FLOAT64))
    unit = Workunit("unit", (b,), (Param(y, 1),), (store,))
    call = CallShape("for", Space((0,), (9,)), unit, (region,))
    assert bands._Memory().takes(0, call, 0)
    for other in (
        call._replace(pattern="scan"),
        call._replace(space=Space((0,), (9,), "Serial")),
        call._replace(space=Space((0,), (9,), "Cuda")),
        call._replace(workunit=replace(unit, accumulators=(Accumulator(Sym("a", 4, y.dtype)),))),
    ):
        assert not bands._Memory().takes(0, other, 0)


def test_what_was_read_before_it_is_written_counts() -> None:
    x, y = table(), table()
    read = Call("beside", (0, 0), (ROWS, N - 1), x, y, {})
    write = Call("below", (0, 0), (ROWS - 1, N), y, x, {})
    assert found([read, write]) == () and found([write, read]) == ()


def test_settings_that_look_at_launches_and_results_of_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = table(), table()
    calls = diagonals(x, y)
    assert agrees(calls, [x, y])
    for changed in ({"arbitrate": False}, {"verify": True}, {"debug": 1}, {"sync": True}):
        settings = replace(SETTINGS, arbitrate=True) if "arbitrate" not in changed else SETTINGS
        monkeypatch.setattr(runtime, "SETTINGS", replace(settings, **changed))
        assert not runtime._is_usual()


def test_lanes_of_indices_below_zero_may_be_those_of_the_row_before() -> None:
    cluster = bands._Cluster()
    cluster.written, cluster.period = True, 72
    cluster.parts = {bands._Part(72, -3, 6, 8, 8)}
    assert not cluster.is_apart()
    cluster.parts = {bands._Part(96, -3, 6, 8, 8)}
    assert cluster.is_apart()
    cluster.parts = {bands._Part(96, -3, 7, 8, 8)}
    assert not cluster.is_apart()


@pk.workunit
def crossed(i: int, j: int, x: pk.View2D[pk.double]) -> None:
    x[j][i] = 1.0


@pk.workunit
def in_rows(i: int, x: pk.View2D[pk.double]) -> None:
    for j in range(8):
        x[i][j] = 1.0


@pytest.mark.parametrize(
    ("policy", "workunit", "box"),
    [
        (pk.MDRangePolicy([0, 0], [4, 6]), crossed, ((0, 0), (6, 4))),
        (pk.RangePolicy(2, 5), in_rows, ((2, 0), (5, 8))),
    ],
)
def test_what_a_call_overwrites_lies_along_its_own_axes(policy, workunit, box) -> None:
    x = pk.View([8, 8], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(policy, workunit, x=x)
        (call,) = TRACER.calls
        launch = runtime._launch(0, call)
    assert [overwrite.box for overwrite in launch.overwrites] == [box]
