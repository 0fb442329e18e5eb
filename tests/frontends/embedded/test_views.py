from __future__ import annotations

import copy
import gc
import itertools
import pickle
import re
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfuser
import pyfuser.numpy as lazy
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.usual_views import LAYOUT, SPACE, TRAIT
from pyfuser.frontends.embedded.views import Subview, View
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentError

NUMPY = {
    pk.int8: "i1",
    pk.int16: "i2",
    pk.int32: "i4",
    pk.int64: "i8",
    pk.uint8: "u1",
    pk.uint16: "u2",
    pk.uint32: "u4",
    pk.uint64: "u8",
    pk.float: "f4",
    pk.float32: "f4",
    pk.double: "f8",
    pk.float64: "f8",
    pk.bool: "?",
    pk.complex64: "c8",
    pk.complex128: "c16",
    int: "i4",
    float: "f8",
    pk.DataType.int16: "i2",
    pk.DataType.float: "f4",
}


@pyfuser.fuse
@pk.workunit
def increase(i, x):
    x[i] += 1


@pyfuser.fuse
@pk.workunit
def increase_rows(i, x):
    for j in range(x.extent(1)):
        x[i][j] += 1


DEFAULTS = SPACE, LAYOUT, TRAIT


def counted(*shape: int, layout=pk.LayoutRight) -> pk.View:
    view = pk.View(shape, pk.double, layout=layout)
    view[...] = np.arange(view.size).reshape(shape)
    return view


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_every_type_starts_at_zero(dtype):
    view = pk.View([2, 3], dtype)
    assert view.data.dtype == np.dtype(NUMPY[dtype])
    np.testing.assert_array_equal(view, np.zeros((2, 3)))


def test_dtype_is_the_class_that_programs_compare_with():
    assert pk.View([1]).dtype is pk.float64
    assert pk.View([1], pk.float).dtype is pk.float32
    assert pk.View([1], int).dtype is pk.int32
    assert pk.View([1], pk.DataType.int32).dtype is pk.DataType.int32


def test_default_precision_is_that_of_real():
    try:
        pk.set_default_precision(pk.int32)
        assert pk.View([1]).dtype is pk.DataType.int32
        assert pk.View([1], pk.real).data.dtype == np.int32
    finally:
        pk.set_default_precision(pk.double)


@pytest.mark.parametrize(
    "dtype",
    [str, complex, None, "int", "float", "words", "U3", ">f8", np.str_, np.float16, np.void,
     np.dtype(">f8"), np.dtype([("a", "f8")]), np.dtype("O"), np.zeros(2)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_type_is_refused(dtype):
    with pytest.raises(ArgumentError, match="not a data type"):
        pk.View([2], dtype)


@pytest.mark.parametrize(
    "dtype, kind",
    [(np.float64, pk.double), (np.dtype("f8"), pk.double), ("float64", pk.double), ("f4", pk.float),
     (np.float32, pk.float), ("int32", pk.int32), (np.int64, pk.int64), ("uint8", pk.uint8),
     (np.bool_, pk.bool), ("bool", pk.bool), (np.complex64, pk.complex64), ("double", pk.double)],
    ids=repr,
)  # fmt: skip
def test_data_types_of_numpy(dtype, kind):
    view = pk.View([2], dtype)
    assert view.dtype is pk.View([2], kind).dtype
    assert pk.zeros([2], dtype=dtype).dtype is view.dtype
    assert pk.asarray([1, 0], dtype=dtype).dtype is view.dtype
    assert pk.astype(view, dtype).dtype is view.dtype


def test_names_that_have_two_meanings_say_so():
    with pytest.raises(ArgumentError, match='use "float32" or "float64", as `float`'):
        pk.View([2], "float")


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_numpy_takes_the_data_type_of_a_view(dtype):
    view = pk.View([2, 3], dtype)
    expected = np.dtype(NUMPY[dtype])
    assert np.dtype(view.dtype) == expected == view[1].dtype
    assert np.zeros(2, dtype=view.dtype).dtype == np.ones(3).astype(view.dtype).dtype == expected
    assert np.issubdtype(view.dtype, expected.type) and np.can_cast(view.dtype, expected)
    assert not np.issubdtype(view.dtype, np.str_)
    assert np.promote_types(view.dtype, expected) == view.__numpy_dtype__ == expected
    assert view.dtype == expected  # while programs of PyKokkos go on to compare with `is`
    assert np.empty_like(np.zeros(2), dtype=view.dtype).dtype == expected


def test_from_numpy():
    array = np.arange(6.0).reshape(2, 3).T
    view = pk.from_numpy(array)
    assert view.data is array and view.layout is pk.LayoutLeft and view.dtype is pk.float64
    assert pk.from_numpy(np.zeros((2, 3)), layout=pk.LayoutLeft).layout is pk.LayoutLeft
    for other in ([1.0], view, 3.0):
        with pytest.raises(ArgumentError, match="from_numpy takes NumPy arrays, not"):
            pk.from_numpy(other)


@pytest.mark.parametrize("shape", [(-1,), (1,) * 9])
def test_impossible_shapes_are_refused(shape):
    with pytest.raises(ArgumentError, match="dimensions"):
        pk.View(shape)


@pytest.mark.parametrize("shape", [[2.5], [np.float64(3)], ["a"], [[1]], [float("nan")], None, 3.0])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(ArgumentError, match=r"a list of integers, as in pk.View\(\[n, m\]\), not"):
        pk.View(shape)
    with pytest.raises(ArgumentError, match="a list of integers"):
        pk.zeros(shape)
    if isinstance(shape, list):
        with pytest.raises(ArgumentError, match="a list of integers"):
            pk.View([2]).resize(0, shape[0])


@pytest.mark.parametrize(
    ("shape", "bytes_told"),
    [
        ([1 << 62], r"2\*\*65 bytes or more"),
        ([1 << 31, 1 << 31], r"\(2147483648, 2147483648\) and type float64: .* 2\*\*65 bytes"),
        ([np.int32(1 << 30)] * 4, r"2\*\*123 bytes"),
        ([0, 1 << 62], "beyond all addresses"),
        ([10**5000], r"shape \(2\*\*16609,\)"),
    ],
)
def test_a_shape_beyond_all_addresses_is_refused_at_once(shape, bytes_told):
    with pytest.raises(MemoryError, match=bytes_told):
        pk.View(shape, pk.double)
    with pytest.raises(MemoryError, match="beyond all addresses"):
        pk.View([2, 3], pk.double).resize(0, 1 << 62)


def test_a_shape_for_another_machine_waits_for_its_memory():
    """The twin: memory comes when it is first needed, and the error says what that took."""
    view = pk.View([np.int64(1 << 45)], pk.double)
    assert view.shape == (1 << 45,)
    with pytest.raises(MemoryError, match=r"281474976710656 bytes \(2.62e\+05 GiB\)"):
        view[0]
    with pytest.raises(ArgumentError, match="none negative"):
        pk.View([3]).resize(0, -1)


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank(rank):
    view = counted(*range(1, rank + 1))
    assert (view.ndim, view.rank(), view.size) == (rank, rank, np.prod(range(1, rank + 1)))
    assert view.extent(rank - 1) == rank
    last = tuple(n - 1 for n in view.shape)
    assert view[last] == view.size - 1
    with pytest.raises(ValueError):
        view.extent(rank)


def test_a_view_of_no_dimensions():
    view = pk.View((), pk.double)
    view[:] = 3
    assert (view.shape, view.size, view.ndim, view.extent(0)) == ((), 1, 0, 0)
    assert (float(view), int(view), view[0], len(view)) == (3.0, 3, 3.0, 1)
    assert list(view) == []


@pytest.mark.parametrize("layout, strides", [(pk.LayoutLeft, (8, 16)), (pk.LayoutRight, (24, 8))])
def test_layout_is_where_elements_lie(layout, strides):
    view = pk.View([2, 3], pk.double, layout=layout)
    assert view.data.strides == strides
    assert pk.array(view.data).layout is layout
    view.resize(0, 4)
    assert view.data.flags.f_contiguous is (layout is pk.LayoutLeft)


# --------------------------------------------------------------------------- elements


@pytest.mark.parametrize("layout", [pk.LayoutLeft, pk.LayoutRight])
@pytest.mark.parametrize(
    "key",
    [
        (slice(None), slice(None)),
        (slice(1, None), slice(None, -1)),
        (slice(None, None, 2), slice(3, None)),
        (slice(None, None, -1), slice(2, 0, -1)),
        (1, slice(None)),
        (slice(None), -1),
        (slice(5, 9), slice(None)),
    ],
)
def test_subviews_are_numpy_slices_of_the_memory(key, layout):
    view = counted(3, 4, layout=layout)
    expected = np.arange(12.0).reshape(3, 4)
    subview = view[key]
    assert isinstance(subview, pk.Subview) and not isinstance(subview, pk.View)
    assert subview.shape == expected[key].shape
    np.testing.assert_array_equal(subview, expected[key])
    subview.fill(-1)
    expected[key] = -1
    np.testing.assert_array_equal(view, expected)


def test_subviews_of_subviews():
    view = counted(5, 6)
    part = view[1:, ::2][::-1, 1:][0, :]
    np.testing.assert_array_equal(part, np.arange(30).reshape(5, 6)[1:, ::2][::-1, 1:][0])
    assert part.base_view is view
    part[1] = -1
    assert view[4, 4] == -1


def test_subviews_need_an_entry_for_every_dimension():
    with pytest.raises(ValueError, match="all dimensions"):
        counted(2, 3)[:]
    with pytest.raises(ValueError, match="all dimensions"):
        counted(2, 3, 4)[0, :]
    with pytest.raises(IndexError):
        counted(2, 3)[2, :]


@pytest.mark.parametrize("index", [0, 2, -1, np.int64(1), pk.TeamMember(1, 0)])
def test_elements_by_any_integer(index):
    view = counted(3)
    assert view[index] == range(3)[index]
    view[index] = 7
    assert view.data[index.__index__()] == 7


@pytest.mark.parametrize("index", [3, -4])
def test_elements_out_of_bounds(index):
    for use in (lambda v: v[index], lambda v: v.__setitem__(index, 1.0)):
        with pytest.raises(IndexError):
            use(counted(3))


def test_rows_behave_as_arrays_over_the_memory():
    view = counted(2, 3, 4)
    expected = np.arange(24.0).reshape(2, 3, 4)
    row = view[1]
    for i, j in itertools.product(range(3), range(4)):
        assert row[i][j] == expected[1, i, j]
    view[0][2][3] = row[0][0] = -5
    expected[0, 2, 3] = expected[1, 0, 0] = -5
    np.testing.assert_array_equal(view, expected)
    np.testing.assert_array_equal(row + 1, expected[1] + 1)
    assert row.sum() == expected[1].sum()
    assert row.dtype == np.float64
    kept = row
    row *= 2
    assert row is kept
    row[:, 1] = 0
    expected[1] *= 2
    expected[1][:, 1] = 0
    np.testing.assert_array_equal(view, expected)
    np.testing.assert_array_equal(np.concatenate([view[0], row]), expected.reshape(6, 4))
    for key in (slice(1, 3), (1, slice(2)), (1, 2), ([0, 2], 1), expected[1] > 12, (..., 0)):
        np.testing.assert_array_equal(row[key], expected[1][key])


def test_assignment_of_arrays_views_and_numbers():
    view = pk.View([2, 3], pk.int32)
    view[:] = np.arange(6).reshape(2, 3)
    view[0, :] = view[1, :]
    view[1] = 9
    np.testing.assert_array_equal(view, [[3, 4, 5], [9, 9, 9]])
    with pytest.raises(ValueError):
        view[:] = np.zeros((4, 4))


def test_complex_elements_are_kokkos_numbers():
    view = pk.View([2], pk.complex64)
    view[0] = pk.complex64(1.5, 2)
    view[1] = 1 + 1j
    assert view[0] * pk.complex64(0, 1) == pk.complex64(-2, 1.5)
    assert (view[0].real, view[0].imag) == (1.5, 2)
    view.fill(pk.complex64(3, 0))
    assert complex(view[1]) == 3
    with pytest.raises(TypeError):
        view[0] + pk.complex128(1, 1)


# --------------------------------------------------------------------------- the whole View


def test_conversions_need_one_element():
    assert float(pk.full([1], 2.5)) == 2.5
    assert [10, 20][pk.full([1], 1, dtype=pk.int32)] == 20
    assert not pk.View([1])
    for convert in (float, int, bool):
        with pytest.raises(TypeError):
            convert(pk.View([2]))


def test_comparison_is_by_element():
    view = counted(3)
    equal = view == 1
    assert equal.dtype is pk.bool
    np.testing.assert_array_equal(equal, [False, True, False])
    np.testing.assert_array_equal(view != view, [False] * 3)
    assert view is not None and view != "text"
    assert bool(pk.View((), pk.double) == 0.0)


def test_views_are_hashed_by_identity():
    a, b = pk.View([2]), pk.View([2])
    assert len({a: 1, b: 2}) == 2


def test_resize_keeps_what_fits_and_leaves_subviews_the_old_memory():
    view = counted(2, 3)
    old = view[:, :]
    view.resize(1, 2)
    np.testing.assert_array_equal(view, [[0, 1], [3, 4]])
    view.resize(0, 3)
    np.testing.assert_array_equal(view, [[0, 1], [3, 4], [0, 0]])
    assert (view.shape, view.size) == ((3, 2), 6)
    view.fill(-1)
    np.testing.assert_array_equal(old, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(ValueError, match="Cannot resize"):
        view.resize(2, 1)


def test_set_precision_converts():
    view = pk.full([2], 2.75)
    view.set_precision(pk.int32)
    assert view.dtype is pk.int32
    np.testing.assert_array_equal(view, [2, 2])


def test_pickles_have_memory_of_their_own():
    view = counted(3)
    unmanaged = pk.View([3], pk.int32, trait=pk.Unmanaged, array=np.arange(3, dtype=np.int32))
    for original in (view, view[1:], view[::2], unmanaged, pk.View((), pk.int8), pk.View([0])):
        before = np.array(original)
        made = pickle.loads(pickle.dumps(original))
        np.testing.assert_array_equal(made, original)
        assert (made.shape, made.dtype) == (original.shape, original.dtype)
        made[...] = 5
        np.testing.assert_array_equal(original, before)


def test_a_pickle_is_of_what_is_pending_before_it_only():
    view = counted(3)
    with pyfuser.fusing():
        pk.parallel_for(3, increase, x=view)
        made, part = (pickle.loads(pickle.dumps(v)) for v in (view, view[1:]))
        pk.parallel_for(3, increase, x=view)
        pk.parallel_for(2, increase, x=part)
        made[0] = 7
        np.testing.assert_array_equal(view, [2, 3, 4])
        np.testing.assert_array_equal(made, [7, 2, 3])
        np.testing.assert_array_equal(part, [3, 4])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_copies_share_memory_as_in_pykokkos(duplicate):
    view = counted(3)
    with pyfuser.fusing():
        pk.parallel_for(3, increase, x=view)
        made, part = duplicate(view), duplicate(view[1:])
        pk.parallel_for(3, increase, x=made)
        pk.parallel_for(2, increase, x=part)
        del view
        np.testing.assert_array_equal(made, [2, 4, 5])
        np.testing.assert_array_equal(part, [4, 5])


def test_a_deep_copy_of_an_object_holds_the_same_view():
    view = counted(3)
    first, second = copy.deepcopy([view, view])
    assert first is second is view
    view.resize(0, 4)
    assert first.shape == (4,)


def test_a_copy_is_resized_alone():
    view = counted(3)
    made = copy.copy(view)
    view.resize(0, 4)
    made[0] = 7
    np.testing.assert_array_equal(made, [7, 1, 2])
    np.testing.assert_array_equal(view, [0, 1, 2, 0])


def test_copies_keep_class_layout_and_trait():
    class Mine(pk.View):
        def __init__(self, n):
            super().__init__([n, 2], pk.double, layout=pk.LayoutLeft, trait=pk.Atomic)
            self.notes = ["mine"]

    view = Mine(3)
    made = copy.copy(view)
    assert type(made) is Mine and made.notes is view.notes
    assert (made.layout, made.trait) == (pk.LayoutLeft, pk.Atomic)


def test_user_classes_may_derive_from_view(interpreted):
    class Mine(pk.View):
        def __init__(self, n):
            super().__init__([n], pk.double)
            self.note = "mine"

    view = Mine(3)
    pk.parallel_for(3, increase, x=view)
    np.testing.assert_array_equal(view, [1, 1, 1])


# --------------------------------------------------------------------------- unmanaged memory


@pytest.mark.parametrize(
    "array",
    [np.arange(4.0), np.arange(8.0)[::2], np.arange(4.0)[::-1], np.zeros((3, 2)).T, np.array(3.0)],
)
def test_a_view_of_an_array_is_its_memory(array):
    view = pk.View(array.shape, pk.double, trait=pk.Unmanaged, array=array)
    assert view.data is array
    view.fill(7)
    assert (array == 7).all()


def test_subviews_of_arrays(interpreted):
    array = np.zeros((4, 6))
    part = pk.array(array)[::2, 1:][:, 0]
    pk.parallel_for(2, increase, x=part)
    pyfuser.sync()
    assert array.sum() == 2 and array[0, 1] == array[2, 1] == 1


def test_an_array_of_another_type_or_shape_is_refused():
    for array in (np.zeros(3), np.zeros(2, np.float32)):
        with pytest.raises(ArgumentError, match="cannot stand for"):
            pk.View([2], pk.double, trait=pk.Unmanaged, array=array)
    with pytest.raises(ArgumentError, match="array="):
        pk.View([2], trait=pk.Unmanaged)


# --------------------------------------------------------------------------- reads flush

READS = {
    "element": lambda v: v[0, 0],
    "row": lambda v: v[0][0],
    "subview": lambda v: v[:, 0][0],
    "str": str,
    "repr": repr,
    "data": lambda v: v.data,
    "asarray": np.asarray,
    "array": np.array,
    "sum": np.sum,
    "ufunc": lambda v: np.add(v, 1),
    "compare": lambda v: v == 1.0,
    "iterate": lambda v: next(iter(v))[0],
    "store": lambda v: v.__setitem__((0, 0), 1.0),
    "resize": lambda v: v.resize(0, 5),
    "set_precision": lambda v: v.set_precision(pk.float),
    "pickle": pickle.dumps,
    "assign": lambda v: np.zeros((2, 3)).__setitem__(slice(None), v),
    "astype": lambda v: pk.astype(v, pk.float),
}
NO_READS = {
    "shape": lambda v: v.shape,
    "len": len,
    "size": lambda v: (v.size, v.ndim, v.rank(), v.extent(0)),
    "dtype": lambda v: v.dtype,
    "subview": lambda v: v[1:, ::2],
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "row": lambda v: v[0],
    "hash": hash,
    "zeros_like": pk.zeros_like,
    "is": lambda v: v is None,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reads_run_what_is_pending(interpreted, read):
    view = pk.View([2, 3])
    pk.parallel_for(2, increase_rows, x=view)
    assert interpreted.ran == []
    read(view)
    assert interpreted.ran == ["increase_rows"]


@pytest.mark.parametrize("look", NO_READS.values(), ids=NO_READS)
def test_looks_do_not_run_or_allocate_anything(interpreted, look):
    view = pk.View([2, 3])
    pk.parallel_for(2, increase_rows, x=view)
    look(view)
    assert interpreted.ran == []
    assert not view._region.buffer.allocated


def test_reading_another_view_runs_nothing(interpreted):
    view, other = pk.View([2]), pk.View([2])
    pk.parallel_for(2, increase, x=view)
    assert other[0] == 0
    assert interpreted.ran == []


def test_a_kept_row_or_subview_sees_later_calls(interpreted):
    view = pk.View([2, 3])
    row, part, end = view[0], view[0, 1:], view[0][1:]
    for n in (1, 2):
        pk.parallel_for(2, increase_rows, x=view)
        assert (row[0], part[0], end[0], float(row.sum())) == (n, n, n, 3 * n)


def test_each_step_of_an_iteration_sees_the_calls_of_its_body(interpreted):
    view, seen = pk.View([3]), []
    for element in view:
        seen.append(element)
        pk.parallel_for(3, increase, x=view)
    assert seen == [0, 1, 2]


def test_memory_comes_when_first_needed_and_goes_with_the_last_view():
    view = pk.View([1 << 50])  # 8 PiB
    buffer = view._region.buffer
    part = view[: 1 << 20]
    del view
    gc.collect()
    assert buffer.reachable and not buffer.allocated
    del part
    gc.collect()
    assert not buffer.reachable


def test_an_exposed_buffer_stays_reachable():
    view = pk.View([3])
    buffer, array = view._region.buffer, view.data
    del view
    assert buffer.reachable
    assert array.sum() == 0


def test_an_array_handed_out_is_synchronised_by_fence(interpreted):
    view = pk.View([3])
    array = view.data
    pk.parallel_for(3, increase, x=view)
    assert array.sum() == 0
    pk.fence()
    assert array.sum() == 3
    assert not TRACER.calls


def test_rows_of_one_index_after_another():
    view = counted(3, 4, 2)
    expected = np.arange(24.0).reshape(3, 4, 2)
    for index in itertools.product((0, 0, 2, 1, -1), (3, 3, 0, -2), (0, 1, 1)):
        i, j, k = index
        assert view[i][j][k] == expected[index]
        view[i][j][k] = expected[index] = expected[index] + 0.5
        assert np.array_equal(view[i][j], expected[i, j])
    assert np.array_equal(view, expected)
    for i, j in ((3, 0), (-4, 0), (0, 4), (0, -5)):
        with pytest.raises(IndexError):
            view[i][j]


def test_a_row_is_that_of_the_present_memory():
    view = counted(2, 3)
    old = view[1]
    view.resize(1, 4)
    view[1][3] = 7.0
    assert view[1].shape == (4,) and view[1][3] == 7.0
    view[1][0] = -1.0
    assert old[0] == 3.0
    view.set_precision(pk.int32)
    assert view[1].dtype == np.int32


def test_a_row_keeps_its_shape():
    view = counted(2, 6)
    with pytest.raises(AttributeError, match="shape"):
        view[1].shape = (2, 3)
    assert view[1].shape == (6,)


def test_a_view_that_gave_rows_dies_at_once_and_its_memory_is_used_again():
    gc.disable()  # nothing here may be a cycle
    try:
        view = pk.View([1 << 10, 1 << 8])
        view[5][6] = 1.0
        row, address = view[5], view._region.buffer.address
        del view
        again = pk.View([1 << 10, 1 << 8])
        again[0][0] = 1.0
        assert again._region.buffer.address != address  # the row keeps it
        del row
        third = pk.View([1 << 10, 1 << 8])
        third[0][0] = 1.0
        assert third._region.buffer.address == address and third[5][6] == 0.0
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", [np.array, list, "view"])
def test_masks_and_lists_of_indices_select_copies(kind):
    view = counted(3, 2)
    mask = view[:, 0] == 2.0 if kind == "view" else kind(np.array([False, True, False]))
    part = view[mask, :]
    assert isinstance(part, pk.Subview)
    assert part.shape == (1, 2) and np.array_equal(part, [[2.0, 3.0]])
    part[0][0] = 9.0
    assert view[1][0] == 2.0
    assert np.array_equal(view[[2, 0], :], [[4.0, 5.0], [0.0, 1.0]])


def test_sums_and_products_of_subviews():
    view = counted(2, 3)
    view[:, :] += 1.0
    assert np.array_equal(view, np.arange(6.0).reshape(2, 3) + 1.0)
    assert np.array_equal(view[0, :] * view[1, :], [4.0, 10.0, 18.0])
    assert view[1:, 2:] * view[0:1, 1:2] == 12.0 and view[0, 0:1] + 1 == 2.0


def test_rows_of_a_view_that_has_new_memory_are_of_that():
    view = pk.View([3, 4], pk.double)
    view[1][2] = 7.0
    old, handle = view[1], weakref.ref(view._handle)
    view.resize(0, 5)
    assert old[2] == 7.0 and handle() is not None
    del old
    assert handle() is None  # nothing that the View keeps for rows holds on to what it had
    view[1][2] = 8.0
    assert view[1][2] == 8.0 and view[1].shape == (4,)
    view.resize(1, 6)
    assert view[1].shape == (6,) and [view[1][k] for k in (2, 5)] == [8.0, 0.0]
    view.set_precision(pk.float)
    assert view[1].dtype == np.float32 and view[1][2] == 8.0


def test_rows_share_nothing_that_may_change():
    view = pk.View([3, 4, 2], pk.int32)
    first, second = view[0], view[1]
    first[2][1] = 5
    second[2][1] = 6
    first.mark = "mine"
    assert not hasattr(second, "mark") and not hasattr(view[2], "mark")
    assert [int(view[k][2][1]) for k in range(-3, 3)] == [5, 6, 0, 5, 6, 0]
    array = np.arange(12.0).reshape(3, 4)
    other = pk.View([3, 4], pk.double, array=array)
    rows = [other[k] for k in range(3)]
    assert [row[1] for row in rows] == [1.0, 5.0, 9.0] and rows[1].data.base is array.base


def test_views_of_a_known_shape_are_made_as_the_first_one() -> None:
    """What they have in common is kept by shape, type and defaults."""
    made = [pk.View([3, 4], pk.int16) for _ in range(2)]
    left = pk.View([3, 4], pk.int16, layout=pk.LayoutLeft)
    names = vars(made[0]).keys() - {"_rows"}
    assert names == vars(made[1]).keys()
    for name in names - {"_region", "_handle"}:
        assert getattr(made[0], name) == getattr(made[1], name)
    assert made[0]._region[1:] == made[1]._region[1:] != left._region[1:]
    assert made[0]._region.buffer is not made[1]._region.buffer
    made[0][1][2] = 5
    assert not made[1].data.any() and made[0].trait is made[1].trait
    for shape in ((3, 4), [np.int64(3), 4], [True + 2, 4]):
        assert pk.View(shape, pk.int16).shape == (3, 4)
        assert all(type(n) is int for n in pk.View(shape, pk.int16).shape)
    for _ in range(2):
        assert type(pk.View([True, 2], pk.int16).shape[0]) is int
        with pytest.raises(ArgumentError, match="is a list of integers"):
            pk.View([3.0, 4], pk.int16)


def test_the_default_precision_is_no_part_of_a_known_view() -> None:
    first = pk.View([5])
    pk.set_default_precision(pk.float)
    try:
        second = pk.View([5])
    finally:
        pk.set_default_precision(pk.double)
    assert [view.data.dtype for view in (first, second)] == [np.float64, np.float32]


def attributes(view) -> dict:
    """All that a View has; of its region what is the same for another View like it."""
    found = dict(vars(view))
    _, offset, strides, shape, dtype = found.pop("_region")
    del found["_handle"]
    found.pop("_rows", None)  # the class has it, too
    return found | {"region": (offset, strides, shape, dtype), "types": type(view._handle)}


@pytest.mark.parametrize("space", [pk.OpenMP, pk.Serial])
@pytest.mark.parametrize("uvm", [False, True])
def test_a_view_like_one_that_was_made_has_what_that_one_has(space, uvm):
    """Views of usual arguments are made by a short way once there was one like them."""
    before = pk.get_default_space()
    try:
        pk.set_default_space(space)
        if uvm:
            pk.enable_uvm()
        for dtype in NUMPY:
            if type(dtype) is not type:
                continue
            for shape in [3], (3,), [2, 5], [1, 1, 1], [0], [4, 0], [2] * 8, [1 << 40]:
                usual = View.__new__(View)
                usual._init_view(shape, dtype, *DEFAULTS)
                for _ in range(3):
                    made = pk.View(shape, dtype)
                    assert attributes(made) == attributes(usual)
                    assert list(vars(made)).index("_memory") < list(vars(made)).index("_region")
    finally:
        pk.set_default_space(before)
        pk.disable_uvm()


def test_what_is_no_usual_shape_is_refused_after_one_like_it():
    for good, bad in ([1], [True]), ([2], [2.0]), ([3], [-3]), ([1], [1 << 70]), ([2], "2"):
        pk.View(good, pk.double)
        pk.View(good, pk.double)
        if bad == [True]:
            assert pk.View(bad, pk.double).shape == (1,)
        else:
            with pytest.raises((ArgumentError, MemoryError)):
                pk.View(bad, pk.double)


def test_a_class_of_the_programs_own_is_made_by_the_short_way_too():
    class Field(pk.View):
        def __init__(self, n):
            super().__init__([n], pk.double)
            self.name = "f"

    for _ in range(3):
        field = Field(5)
        field[2] = 4.0
        assert type(field) is Field and field.name == "f" and field.data.tolist() == [0, 0, 4, 0, 0]


NUMBERS = st.one_of(st.none(), st.integers(-9, 9))
ENTRIES = st.one_of(st.integers(-7, 7), st.builds(slice, NUMBERS, NUMBERS, NUMBERS))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.data())
def test_a_slice_is_what_the_long_way_makes(shape, data):
    """A slice of a View and one of that slice: attributes, errors, and what NumPy selects."""
    view = counted(*shape, layout=data.draw(st.sampled_from([pk.LayoutRight, pk.LayoutLeft])))
    expected = view.data.copy()
    for _ in range(2):
        key = tuple(data.draw(ENTRIES) for _ in view.shape)
        if all(type(entry) is int for entry in key):
            key = (slice(None), *key[1:])
        if len(key) == 1 and data.draw(st.booleans()):
            key = key[0]
        try:
            long = Subview(view, key)
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                view[key]
            return
        part = view[key]
        assert attributes(part) == attributes(long)
        assert part._region.buffer is view._region.buffer and part._handle is view._handle
        expected = expected[key]
        assert (part.data == expected).all() and part.data.shape == expected.shape
        view = part


def test_a_slice_of_what_is_read_only_is_read_only():
    array = lazy.arange(6.0)
    array.flags.writeable = False
    view = pk.View([6], pk.double, array=array)
    for part in view[1:], view[::-1][2:], Subview(view, slice(1, 4)):
        with pytest.raises(ArgumentError, match="read-only"):
            pk.parallel_for(2, increase, x=part)


@pytest.mark.parametrize("dtype", [pk.double, pk.int64, pk.complex128, pk.bool, pk.float])
def test_elements_by_several_indices(dtype):
    """As NumPy selects and sets them, of the class that one index gives; errors as NumPy's."""
    view, rows = pk.View([3, 4], dtype), np.zeros((3, 4), pk.View([1], dtype).data.dtype)
    for n, key in enumerate(itertools.product(range(-3, 3), range(-4, 4))):
        view[key] = n % 2
        rows[key] = n % 2
        assert view[key] == rows[key] and type(view[key]) is type(pk.View([1], dtype)[0])
    assert (view.data == rows).all()
    for key in (3, 0), (0, -5), (0, 1 << 70):
        with pytest.raises(IndexError):
            view[key]
        with pytest.raises(IndexError):
            view[key] = 1
    with pyfuser.fusing():
        pk.parallel_for(3, increase_rows, x=view[:, 1:])
        before = rows[2, 3]
        assert view[2, 3] == before + 1 if dtype is not pk.bool else view[2, 3]
        pk.parallel_for(3, increase_rows, x=view[:, 1:])
        view[2, 3] = 0
        assert view[2, 3] == 0
