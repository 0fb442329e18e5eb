"""The laws of recording, each with its illegal twin."""

from __future__ import annotations

import numpy
import pytest

from pyfuser.frontends.numpy.along import REDUCTIONS, kind_of
from pyfuser.frontends.numpy.layout import Form, Layout, _meets_itself, layout_of_call
from pyfuser.frontends.numpy.operations import NAMED, is_exact
from pyfuser.frontends.numpy.record import _interleaved, independent
from pyfuser.frontends.numpy.resolution import _converts
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.ir.dtypes import DType
from pyfuser.trace.memory import Buffer, Handle, Region

F8, I4, BOOL, C16, F4 = DType.FLOAT64, DType.INT32, DType.BOOL, DType.COMPLEX128, DType.FLOAT32
BUFFER = Buffer(1 << 12, Handle())
OTHER = Buffer(1 << 12, Handle())


def region(
    offset: int, strides: tuple[int, ...], shape: tuple[int, ...], buffer: Buffer = BUFFER
) -> Region:
    return Region(buffer, offset, strides, shape, F8)


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
    found = layout_of_call(((shape, strides),), (shape, strides), 8)
    assert found is not None
    return found


ROW = Form((0,), (10,), (8,))


def is_independent(operand: Region, form: Form = ROW) -> bool:
    return independent(operand, form, region(80, (8,), (10,)), layout((10,), (8,)))


def test_element_for_element_is_independent() -> None:
    assert is_independent(region(80, (8,), (10,)))


@pytest.mark.parametrize("offset", [8, 72, 88, 152])
def test_a_shift_is_not(offset: int) -> None:
    assert not is_independent(region(offset, (8,), (10,)))


@pytest.mark.parametrize("offset", [0, 160])
def test_neighbours_do_not_overlap(offset: int) -> None:
    assert is_independent(region(offset, (8,), (10,)))


def test_other_memory_is_independent() -> None:
    assert is_independent(region(88, (8,), (10,), OTHER))


def test_the_same_elements_backwards_are_not() -> None:
    assert not is_independent(region(152, (-8,), (10,)), Form((0,), (10,), (-8,)))


def test_the_same_elements_for_another_axis_are_not() -> None:
    square = layout((10, 10), (80, 8))
    whole = region(0, (80, 8), (10, 10))
    assert independent(whole, square.result, whole, square)
    row = region(0, (8,), (10,))
    assert not independent(row, Form((1,), (10,), (8,)), whole, square)
    same = region(0, (8,), (10,))
    assert not independent(same, Form((1,), (10,), (8,)), same, layout((10,), (8,)))


def test_a_part_of_the_same_start_is_not() -> None:
    assert not is_independent(region(80, (8,), (1,)), Form((), (1,), (8,)))
    assert not is_independent(region(80, (16,), (5,)), Form((0,), (5,), (16,)))


def test_odd_and_even_elements_do_not_meet() -> None:
    even, odd = region(0, (16,), (10,)), region(8, (16,), (10,))
    assert _interleaved(even, odd)
    assert _interleaved(odd, even)
    assert not _interleaved(even, region(32, (16,), (10,)))
    assert not _interleaved(even, region(4, (16,), (10,)))
    assert not _interleaved(even, region(12, (16,), (10,)))
    assert not _interleaved(region(0, (0,), (10,)), region(8, (0,), (10,)))
    assert not _interleaved(even, region(24, (24,), (10,)))
    assert _interleaved(region(0, (32,), (5,)), region(8, (-32,), (5,)))


def test_odd_elements_and_even_ones_are_independent() -> None:
    even, odd = region(0, (16,), (10,)), region(8, (16,), (10,))
    places = layout((10,), (16,))
    assert independent(odd, places.result, even, places)
    assert not independent(region(16, (16,), (10,)), places.result, even, places)


def test_results_that_meet_themselves() -> None:
    assert not _meets_itself([10], [8], 8)
    assert not _meets_itself([10], [16], 8)
    assert _meets_itself([10], [4], 8)
    assert _meets_itself([10], [0], 8)
    assert not _meets_itself([4, 10], [80, 8], 8)
    assert _meets_itself([4, 10], [72, 8], 8)
    assert _meets_itself([4, 10], [8, 8], 8)
    assert not _meets_itself([4, 2], [24, 16], 8)
    assert _meets_itself([4, 2], [16, 16], 8)
    assert _meets_itself([3, 4, 10], [300, 80, 8], 8)
    assert not _meets_itself([3, 4, 10], [320, 80, 8], 8)


def test_broadcast_results_are_numpys() -> None:
    assert layout_of_call((((3,), (8,)),), ((3,), (0,)), 8) is None
    assert layout_of_call((((3,), (8,)),), ((3,), (8,)), 8) is not None


def test_conversions_that_cpp_does_as_numpy() -> None:
    assert _converts(F8, F8)
    assert _converts(F8, F4)
    assert _converts(I4, F8)
    assert _converts(BOOL, I4)
    assert _converts(F8, BOOL)
    assert _converts(DType.INT64, DType.INT8)
    assert not _converts(F8, I4)
    assert not _converts(F4, DType.UINT8)
    assert _converts(F8, C16)
    assert _converts(DType.COMPLEX64, C16)
    assert _converts(C16, BOOL)
    assert not _converts(C16, F8)
    assert not _converts(C16, DType.COMPLEX64)
    assert _converts(C16, C16)


def test_types_of_reductions() -> None:
    total, most, some = (REDUCTIONS[name] for name in ("sum", "max", "any"))
    assert kind_of(total, F8, False) is F8
    assert kind_of(total, F8, True) is F8
    assert kind_of(REDUCTIONS["argmax"], F8, False) is DType.INT64
    assert kind_of(REDUCTIONS["argmax"], F8, True) is None
    assert kind_of(REDUCTIONS["prod"], F4, True) is F4
    assert kind_of(most, F8, True) is None
    assert kind_of(most, F4, False) is F4
    assert kind_of(most, I4, True) is I4
    assert kind_of(total, I4, True) is DType.INT64
    assert kind_of(total, BOOL, False) is DType.INT64
    assert kind_of(total, DType.UINT8, True) is DType.UINT64
    assert kind_of(some, F8, True) is BOOL
    assert kind_of(some, I4, False) is BOOL
    assert kind_of(total, C16, False) is None
    assert kind_of(some, C16, False) is None


def test_numpy_has_one_order_of_additions_along_outer_axes() -> None:
    x = numpy.random.default_rng(3).normal(size=(999, 5))
    running = numpy.zeros(5)
    for row in x:
        running = running + row
    assert numpy.array_equal(x.sum(axis=0), running)


@pytest.mark.parametrize(
    ("device", "exact", "sums", "extremes"),
    [
        (False, False, F8, None),
        (False, True, F8, None),
        (True, False, F8, F8),
        (True, True, None, None),
    ],
)
def test_on_a_gpu_floats_are_reduced_in_any_order_unless_bits_count(
    device: bool,
    exact: bool,
    sums: DType | None,
    extremes: DType | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SPACE, "device", device)
    monkeypatch.setattr(LIMITS, "exact", exact)
    for innermost in (False, True):
        assert kind_of(REDUCTIONS["sum"], F8, innermost) is sums
        assert kind_of(REDUCTIONS["prod"], F8, innermost) is F8
        assert kind_of(REDUCTIONS["sum"], DType.INT64, innermost) is DType.INT64
    assert kind_of(REDUCTIONS["max"], F8, True) is extremes
    assert kind_of(REDUCTIONS["min"], F8, True) is extremes
    assert kind_of(REDUCTIONS["max"], F8, False) is F8
    assert kind_of(REDUCTIONS["max"], DType.INT64, True) is DType.INT64


def test_operations_with_numpys_bits() -> None:
    add, absolute, root = (NAMED[name] for name in ("add", "absolute", "arctan"))
    assert is_exact(add, (C16, C16, C16))
    assert is_exact(absolute, (F8, F8))
    assert not is_exact(absolute, (C16, F8))
    assert not is_exact(root, (F8, F8))
