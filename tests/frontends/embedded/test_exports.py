"""Views, Subviews and rows in the hands of others: who gets the memory is known to have it.

Every way in which code that is not ours may get at memory of a View. What it gets is compared with
the memory itself: where it shares it, the buffer counts as reached, so that stores to it are not
removed as dead; and no longer than it is there.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import operator
import pickle
import sys
import threading

import numpy as np
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.modes import SWITCHES
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentError
from pyfuser.support.extension import HOT
from pyfuser.trace.shape import shape_of

pytestmark = pytest.mark.usefixtures("quick_collections")


@pyfuser.fuse
@pk.workunit
def add(i, j, m, s):
    m[i][j] = m[i][j] + s


@pyfuser.fuse
@pk.workunit
def add_1d(i, v, s):
    v[i] = v[i] + s


NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NAMES += ["float", "double", "complex64", "complex128"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", [pk.LayoutLeft, pk.LayoutRight])
def test_data_is_the_memory_of_any_type_and_layout(name: str, layout: pk.Layout) -> None:
    view = pk.View([3, 4], getattr(pk, name), layout=layout)
    for given in (view, view[1:3, ::2], view[2:2, :], view[:, ::-1]):
        for _ in range(3):  # the first one is Python's
            array, expected = given.data, given._region.array()
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
            assert (array.strides, str(array.flags)) == (expected.strides, str(expected.flags))
            assert array.ctypes.data == expected.ctypes.data
            assert given.data is array
            assert view._region.buffer.external
            part = array[:1]
            del array
            assert view._region.buffer.external
            del part
            assert not view._region.buffer.external


def test_arrays_handed_out_by_many_threads_are_all_given_back() -> None:
    view = pk.View([8], pk.double)

    def hand_out() -> None:
        for _ in range(500):
            array = view.data
            assert view._region.buffer.external
            del array

    threads = [threading.Thread(target=hand_out) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not view._region.buffer.external
    assert not view._region.buffer._exports


def test_an_array_outlives_its_view() -> None:
    view = pk.View([100], pk.double)
    view.data[:] = 3.0
    array = view.data
    del view
    others = [pk.View([100], pk.double) for _ in range(8)]
    for other in others:
        other.data[:] = 9.0
    assert (array == 3.0).all()


class Keeper:
    """Keeps what it is given, as lazy arrays do, and computes later."""

    def __init__(self):
        self.kept = []

    def _keep(self, *given):
        self.kept += [item for item in given if isinstance(item, np.ndarray)]
        return self

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return self._keep(*inputs, *kwargs.get("out", ()))


class Old(Keeper):
    """One of before `__array_ufunc__`: NumPy leaves operators to it."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return self._keep(other)

    def __rmatmul__(self, other):
        return self._keep(other)

    def __eq__(self, other):
        return self._keep(other)

    __hash__ = None


class Functions(Keeper):
    """A library's array that has NumPy's functions."""

    def __array_function__(self, function, types, args, kwargs):
        for item in args:
            self._keep(*item) if isinstance(item, (list, tuple)) else self._keep(item)
        return self


class Tagged(np.ndarray):
    """An array with a unit, say; it makes copies of nothing."""

    kept: list[np.ndarray] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        Tagged.kept = [item for item in inputs if type(item) is np.ndarray]
        return np.zeros(5)


def tagged(row):
    assert row + np.zeros(5).view(Tagged) is not None
    return Tagged.kept


def equal_to_tagged(part):
    assert (part == np.zeros(5).view(Tagged)) is not None
    return Tagged.kept


def printed(view):
    taken = []
    try:
        with np.printoptions(override_repr=lambda array: taken.append(array) or ""):
            repr(view)
    except TypeError:
        pytest.skip("NumPy before 2.1 has no override_repr")
    return taken


def kept(use):
    """What an operation with a row and somebody's object leaves with that object."""

    def way(row):
        keeper = Keeper()
        use(row, keeper)
        return keeper.kept

    return way


SHARED = {
    "data": lambda part: part.data,
    "asarray": np.asarray,
    "array interface": lambda part: np.asarray(Interface(part)),
    "address": lambda part: At(part.__array_interface__["data"][0]),
    "address and flag": lambda part: At(next(iter(part.__array_interface__["data"]))),
    "dlpack": np.from_dlpack,
    "capsule": lambda part: Capsule(part.__dlpack__()),
    "memoryview": lambda part: part.__buffer__(0),
    "nditer": lambda part: list(np.nditer(part, op_flags=["readwrite"]).operands),
    "broadcast": lambda part: np.broadcast_to(part, (3, *part.shape)),
    "as_strided": lambda part: np.lib.stride_tricks.as_strided(part, (2,), (8,)),
    "slice of it": lambda part: np.asarray(part)[1:].T,
    "printing": printed,
}
OF_SUBVIEWS = {
    "plus": lambda part: (part + Keeper()).kept,
    "times": lambda part: (part * Keeper()).kept,
    "old": lambda part: (part + Old()).kept,
    "equal to a subclass": equal_to_tagged,
}
OF_ROWS = {
    "subclass": tagged,
    "equal": lambda row: (row == Old()).kept,
    "product": lambda row: (row @ Old()).kept,
    "divmod": lambda row: divmod(row, Keeper()).kept,
    "power": lambda row: (row ** Keeper()).kept,
    "in place": kept(operator.iadd),
    "ufunc": kept(np.add),
    "ufunc, out": kept(lambda row, keeper: np.add(1.0, row, out=keeper)),
    "ufunc, two outs": kept(lambda row, keeper: np.modf(row, out=(keeper, np.zeros(5)))),
    "reduce": kept(lambda row, keeper: np.add.reduce(row, out=keeper)),
    "outer": kept(np.add.outer),
    "at": kept(lambda row, keeper: np.add.at(row, [0], keeper)),
    "transpose": lambda row: row.T,
    "flat": lambda row: row.flat.base,
    "reshape": lambda row: row.reshape(5, 1),
    "ravel": np.ravel,
    "real": lambda row: row.real,
    "ctypes": lambda row: row.ctypes.data_as(ctypes.c_void_p)._arr,
    "ellipsis": lambda row: row[...],
    "new axis": lambda row: row[None],
    "method": lambda row: row.sum.__self__,
    "function": lambda row: np.concatenate([row, Functions()]).kept,
    "split": lambda row: np.split(row, 5),
}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda row: copy.deepcopy([row])[0],
    "pickle": lambda row: pickle.loads(pickle.dumps(row)),
    "pickle 5": lambda row: pickle.loads(pickle.dumps(row, protocol=5)),
    "array": np.array,
    "plus": operator.pos,
    "add": lambda row: row + 1.0,
    "add an array": lambda row: np.ones(5) + row,
    "add itself": lambda row: row + row,
    "times an int": lambda row: 2 * row,
    "divmod": lambda row: divmod(row, 7.0)[1],
    "compare": lambda row: row == np.zeros(5),
    "bytes": lambda row: np.frombuffer(bytes(row)),
    "tolist": lambda row: np.array(row.tolist()),
    "sum": lambda row: row.sum(),
    "np.sum": np.sum,
    "mask": lambda row: row[np.array([True, False, True, False, True])],
    "in": lambda row: 7.0 in row,
    "str": str,
    "repr": repr,
}
WRITES = {
    "copyto": lambda row: np.copyto(row, np.arange(5.0)),
    "put": lambda row: np.put(row, range(5), np.arange(5.0)),
    "place": lambda row: np.place(row, np.ones(5, bool), np.arange(5.0)),
    "out": lambda row: np.add(np.arange(5.0), 0.0, out=row),
    "out of a function": lambda row: np.cumsum([0.0, 1.0, 1.0, 1.0, 1.0], out=row),
    "at": lambda row: np.add.at(row, range(5), np.arange(5.0)),
    "in place": lambda row: operator.iadd(row, np.arange(5.0)),
    "nditer": lambda row: np.nditer(row, op_flags=["readwrite"]).operands[0].__iadd__(range(5)),
    "assignment": lambda row: operator.setitem(row, slice(None), np.arange(5.0)),
}


class Interface:
    """Another object that passes the interface on, as wrappers do."""

    def __init__(self, row):
        self.__array_interface__ = row.__array_interface__


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        capsule, self.capsule = self.capsule, None
        return capsule

    def __dlpack_device__(self):
        return 1, 0


class At:
    def __init__(self, address):
        values = (ctypes.c_double * 5).from_address(address)
        self.__array_interface__ = np.ctypeslib.as_array(values).__array_interface__


def arrays_in(found) -> list[np.ndarray]:
    if isinstance(found, (list, tuple)):
        return [array for item in found for array in arrays_in(item)]
    return [np.from_dlpack(found) if isinstance(found, Capsule) else np.asarray(found)]


def memory_of(view):
    return view._region.array()


def ways(*tables):
    return pytest.mark.parametrize(
        "way", [pytest.param(way, id=name) for table in tables for name, way in table.items()]
    )


def launch(matrix):
    pk.parallel_for(pk.MDRangePolicy([0, 0], list(matrix.shape)), add, m=matrix, s=5.0)


def shares(matrix, part, way) -> list[np.ndarray]:
    """What `way` finds that shares the memory, which is then known to be reached."""
    found = way(part)
    arrays = [array for array in arrays_in(found) if np.shares_memory(array, memory_of(matrix))]
    assert arrays and matrix._region.buffer.external
    return arrays


def run_and_lose(kind, way):
    """Launch on memory that `way` has handed out, and let the View die before it runs."""
    matrix = pk.View([4, 5], pk.double)
    part = {"row": matrix[1], "subview": matrix[1, 0:5], "view": matrix}[kind]
    arrays = shares(matrix, part, way)
    launch(matrix)
    return arrays


@pytest.mark.parametrize(
    "kind, way",
    [
        pytest.param(kind, way, id=f"{kind}-{name}")
        for kind, tables in {
            "row": (SHARED, OF_SUBVIEWS, OF_ROWS),
            "subview": (SHARED, OF_SUBVIEWS),
            "view": (SHARED,),
        }.items()
        for table in tables
        for name, way in table.items()
    ],
)
def test_who_has_the_memory_sees_what_is_stored_before_the_view_dies(kind, way):
    arrays = run_and_lose(kind, way)
    pyfuser.sync()
    for array in arrays:
        assert np.all(array == 5.0)


@pytest.mark.parametrize(
    "kind, way",
    [
        pytest.param(kind, way, id=f"{kind}-{name}")
        for kind, tables in {"row": (SHARED, OF_SUBVIEWS, OF_ROWS), "view": (SHARED,)}.items()
        for table in tables
        for name, way in table.items()
        if not name.startswith("address")
    ],
)
def test_memory_is_out_of_reach_when_the_last_that_was_handed_out_dies(kind, way):
    matrix = pk.View([4, 5], pk.double)
    arrays = shares(matrix, matrix[1] if kind == "row" else matrix, way)
    Tagged.kept = []
    assert matrix._region.buffer.external
    del arrays
    gc.collect()
    assert not matrix._region.buffer.external


@ways(COPIES)
def test_copies_share_nothing_and_leave_nothing_in_reach(way):
    matrix = pk.View([4, 5], pk.double)
    found = way(matrix[1])
    before = copy.deepcopy(found)
    matrix.fill(9.0)
    gc.collect()
    assert not matrix._region.buffer.external
    np.testing.assert_equal(found, before)


@ways(WRITES)
def test_what_writes_arrays_writes_rows(way):
    matrix = pk.View([4, 5], pk.double)
    launch(matrix)
    matrix.fill(0.0)
    way(matrix[1])
    expected = np.zeros((4, 5))
    expected[1] = np.arange(5.0)
    np.testing.assert_array_equal(matrix, expected)


def test_a_row_in_place_is_still_the_row():
    matrix = pk.View([4, 5], pk.double)
    row = kept = matrix[1]
    row += 2.0
    row **= np.full(5, 2.0)
    assert row is kept and matrix[1][4] == 4.0
    matrix[2] -= matrix[1]
    assert matrix[2][0] == -4.0


def test_a_copy_of_a_row_is_an_array():
    matrix = pk.View([4, 5], pk.double)
    for found in (copy.copy(matrix[1]), pickle.loads(pickle.dumps(matrix[1:3, 0:2][1]))):
        assert type(found) is np.ndarray
    assert type(pickle.loads(pickle.dumps(matrix))) is pk.View  # and of a View a View


def test_an_array_that_others_have_is_the_one_they_have():
    view = pk.View([4])
    array = view.data
    assert view.data is array and np.shares_memory(np.asarray(view), array)
    view.resize(0, 6)
    assert view.data.shape == (6,) and not np.shares_memory(view.data, array)


def test_slices_keep_the_memory_in_reach():
    view = pk.View([4])
    part = view.data[1:]
    gc.collect()
    assert view._region.buffer.external
    del part
    assert not view._region.buffer.external


def test_memory_stays_in_reach_while_calls_on_it_are_pending():
    view = pk.View([4])
    array = view.data
    pk.parallel_for(4, add_1d, v=view, s=5.0)
    del array
    assert view._region.buffer.external  # the call was counted as one on such memory
    pyfuser.sync()
    assert not view._region.buffer.external and TRACER.raw == 0
    assert view[3] == 5.0


@pytest.mark.parametrize("alive", [False, True])
def test_stores_are_dead_again_when_the_memory_came_back(alive):
    view = pk.View([4])
    array = np.asarray(view)
    if not alive:
        del array
    with pyfuser.fusing():
        pk.parallel_for(4, add_1d, v=view, s=5.0)
        del view
        [cluster] = shape_of(TRACER.calls, structural_scalars).clusters
        assert cluster.temporary is not alive
    if alive:
        assert array[3] == 5.0


@pytest.mark.parametrize("alive", [False, True])
def test_fills_are_recorded_again_when_the_memory_came_back(alive):
    view = pk.View([1 << 16])
    array = view.data
    if not alive:
        del array
    with pyfuser.fusing():
        view.fill(5.0)
        assert bool(view._region.buffer.pending) is not alive
    if alive:
        assert array[3] == 5.0


def test_memory_that_came_back_is_used_again_by_the_next_view():
    view = pk.View([1 << 16])
    view.data[0] = 1.0
    address = view._region.buffer.address
    del view
    again = pk.View([1 << 16])
    assert again[0] == 0.0 and again._region.buffer.address == address


def test_memory_that_others_have_is_not_used_again():
    view = pk.View([1 << 16])
    array = np.asarray(view)[5:]
    address = view._region.buffer.address
    del view
    again = pk.View([1 << 16])
    assert again[0] == 0.0 and again._region.buffer.address != address
    again.fill(7.0)
    assert not array.any()


def test_a_program_that_knows_nothing_of_us_may_keep_the_address(monkeypatch):
    monkeypatch.setattr(SWITCHES, "careful", True)
    view = pk.View([4])
    address = view.data.ctypes.data
    gc.collect()
    assert view._region.buffer.external
    pk.parallel_for(4, add_1d, v=view, s=5.0)
    assert (ctypes.c_double * 4).from_address(address)[3] == 5.0


def test_views_have_the_buffer_protocol():
    if sys.version_info < (3, 12) and HOT is None:
        pytest.skip("needs the extension before Python 3.12, where classes have it")
    view = pk.View([2, 3])
    with memoryview(view) as memory:
        assert memory.shape == (2, 3) and memory.format == "d" and view._region.buffer.external
    gc.collect()
    assert not view._region.buffer.external
    file = io.BytesIO(bytes(48))
    assert file.readinto(view) == 48
    pk.parallel_for(3, add_1d, v=view[1], s=5.0)
    row = memoryview(view[1])
    assert row.tolist() == [5.0] * 3 and bytearray(view)[24:] == bytes(row)
    row[0] = 6.0
    np.frombuffer(view[1])[1] = 7.0
    assert view[1, 0] == 6.0 and view[1, 1] == 7.0
    del row
    gc.collect()
    assert not view._region.buffer.external
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        np.frombuffer(view[:, 1])


def test_what_frombuffer_shares_is_seen_for_as_long_as_it_lives():
    if sys.version_info < (3, 12) and HOT is None:
        pytest.skip("needs the extension before Python 3.12, where classes have it")
    view = pk.View([1000])
    shared = np.frombuffer(view)
    with pyfuser.fusing():
        pk.parallel_for(1000, add_1d, v=view, s=5.0)
        pyfuser.sync()
    assert view._region.buffer.external
    assert shared[0] == 5.0
    shared[0] = 7.0
    assert view[0] == 7.0
    del shared
    gc.collect()
    assert not view._region.buffer.external


def test_bytes_are_those_of_the_memory():
    view = pk.View([2, 3], pk.int32)
    launch_of_ints = np.arange(6, dtype=np.int32).reshape(2, 3)
    view[...] = launch_of_ints
    assert bytes(view) == launch_of_ints.tobytes()
    assert bytes(view[1]) == launch_of_ints[1].tobytes()
    assert bytes(view[:, 1]) == launch_of_ints[:, 1].tobytes()


@pytest.mark.parametrize("layout", [pk.LayoutLeft, pk.LayoutRight])
@pytest.mark.parametrize("dtype", [pk.double, pk.float, pk.int8, pk.bool, pk.complex64])
def test_protocols_say_what_the_memory_is(dtype, layout):
    view = pk.View([4, 6], dtype, layout=layout)
    view.data[...] = np.arange(24).reshape(4, 6) % 2
    for part in (view, view[::2, 1:], view[::-1, ::-2], view[3], view[3][::-1], view[0:0, :]):
        expected = part.data
        found = [np.asarray(Interface(part)), np.asarray(part.__buffer__(0))]
        found += [np.from_dlpack(part)] if dtype is not pk.bool or np.__version__ > "1.25" else []
        for array in found:
            assert array.dtype == expected.dtype
            assert array.strides == expected.strides or array.size == 0
            assert np.shares_memory(array, expected) or array.size == 0
            np.testing.assert_array_equal(array, expected)


def test_a_view_of_somebodys_array_hands_out_that_array():
    array = np.arange(6.0)
    view = pk.array(array)
    assert view.data is array and np.shares_memory(np.asarray(view), array)
    assert np.from_dlpack(view)[5] == 5.0 and bytes(view) == array.tobytes()
    array.flags.writeable = False
    assert not np.asarray(pk.array(array)).flags.writeable


def test_looking_at_the_device_runs_nothing(interpreted):
    view = pk.View([3])
    pk.parallel_for(3, add_1d, v=view, s=1.0)
    assert view.__dlpack_device__() == (1, 0)
    assert interpreted.ran == []


def test_flags_of_rows_choose_where_ufuncs_work():
    flags = pk.View([2, 3], pk.bool)
    flags[1][2] = True
    found = np.sqrt([4.0, 4.0, 4.0], where=flags[1], out=np.zeros(3))
    np.testing.assert_array_equal(found, [0.0, 0.0, 2.0])


def test_errors_of_pending_calls_reach_who_asks_for_the_memory():
    """NumPy drops what `__buffer__` raises, and asks for the array interface."""

    @pyfuser.fuse
    @pk.workunit
    def divide(i, v, w):
        v[i] = 1 // w[i]

    for ask in (np.asarray, np.sum, np.array, bytes, np.from_dlpack, Interface):
        numbers, zeros = pk.View([4], pk.int64), pk.View([4], pk.int64)
        pk.parallel_for(4, divide, v=numbers, w=zeros)
        with pytest.raises(ZeroDivisionError):
            ask(numbers)
        assert np.asarray(numbers).shape == (4,)
    numbers = pk.View([4], pk.int64)
    pk.parallel_for(4, divide, v=numbers, w=zeros)
    with pytest.raises(ZeroDivisionError):
        numbers.__buffer__(0)
    with pytest.raises(ZeroDivisionError):
        np.asarray(Interface(numbers))
    assert np.asarray(Interface(numbers)).shape == (4,)


def test_a_view_of_a_view_and_of_other_arrays_of_others():
    whole = pk.View([4], pk.double)
    view = pk.View([4], pk.double, trait=pk.Unmanaged, array=whole)
    view[1] = 2.0
    assert whole[1] == 2.0 and whole._region.buffer.external
    shown = pk.View([4], pk.double, trait=pk.Unmanaged, array=Interface(whole))
    assert shown[1] == 2.0
    with pytest.raises(ArgumentError, match=r"array= is of type builtins\.list; give"):
        pk.View([1], pk.double, trait=pk.Unmanaged, array=[1.0])


def test_bins_of_others_may_keep_the_keys():
    class Bins(pk.BinOp1D):
        def bins(self, keys):
            self.kept = keys
            return super().bins(keys)

    view = pk.View([4], pk.double)
    bins = Bins(view, 2, 0.0, 1.0)
    pk.BinSort(view, bins).create_permute_vector()
    assert view._region.buffer.external and np.shares_memory(bins.kept, memory_of(view))
    plain = pk.View([4], pk.double)
    pk.BinSort(plain, pk.BinOp1D(plain, 2, 0.0, 1.0)).create_permute_vector()
    assert not plain._region.buffer.external
