from __future__ import annotations

import sys

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.dispatch import space_of
from pyfuser.frontends.embedded.spaces import KNOWN_POLICIES
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import ArgumentError, PyFuserError, WorkunitWarning
from pyfuser.trace.future import Future

scale = 2.0


@pk.workunit
def fill(i, x, value):
    x[i] = value


@pk.workunit
def fill_annotated(i: int, x: pk.View1D[pk.double], count: int, value: pk.int8):
    x[i] = count + value


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int32], x: pk.View1D[pk.double]):
    acc += 1


@pk.workunit
def prefix(i, acc, last, x, out):
    acc += x[i]
    if last:
        out[i] = acc


@pk.workunit
def grid(i, j, x):
    x[i][j] = 10 * i + j


@pk.workunit
def scaled(i, x):
    x[i] = scale * i


@pk.workunit
def lost(i, x, y):
    x[i] = y[i]


def undecorated(i, x):
    x[i] = 1


@pytest.fixture
def x():
    return pk.View([4], pk.double)


@pytest.fixture
def recorded(interpreted):
    """Records calls without running them, and gives the list of them."""
    with pyfuser.fusing():
        yield TRACER.calls
        TRACER.remove(list(TRACER.calls))


POLICIES = {
    "int": lambda: 4,
    "numpy int": lambda: np.int64(4),
    "range": lambda: pk.RangePolicy(0, 4),
    "space": lambda: pk.RangePolicy(pk.Serial, 0, 4),
    "default": lambda: pk.RangePolicy(pk.ExecutionSpace.Default, 0, np.int32(4)),
    "instance": lambda: pk.RangePolicy(pk.ExecutionSpaceInstance(pk.OpenMP), 0, 4),
    "debug": lambda: pk.RangePolicy(pk.Debug, 0, 4),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("label", [(), (None,), ("name",)], ids=["bare", "None", "label"])
def test_forms_of_the_arguments(interpreted, x, policy, label):
    pk.parallel_for(*label, policy(), fill, x=x, value=3.0)
    np.testing.assert_array_equal(x, [3, 3, 3, 3])
    result = pk.parallel_reduce(*label, policy(), total, x=x)
    assert (result, type(float(result))) == (12.0, float)
    assert pk.parallel_reduce(*label, policy(), total, 0, x=x) == 12.0
    out = pk.View([4], pk.double)
    if label or policy() is not pk.Debug:
        assert pk.parallel_scan(*label, policy(), prefix, x=x, out=out) == 12.0
        np.testing.assert_array_equal(out, [3, 6, 9, 12])


def test_partial_and_empty_ranges(interpreted, x):
    pk.parallel_for(pk.RangePolicy(1, 3), fill, x=x, value=1.0)
    pk.parallel_for(pk.RangePolicy(3, 3), fill, x=x, value=2.0)
    with pytest.warns(WorkunitWarning, match="is empty"):
        pk.parallel_for(pk.RangePolicy(3, 0), fill, x=x, value=2.0)
    np.testing.assert_array_equal(x, [0, 1, 1, 0])
    assert pk.parallel_reduce(0, total, x=x) == 0.0


def test_boxes(interpreted):
    view = pk.View([3, 4], pk.int32)
    policy = pk.MDRangePolicy([1, 1], [3, 3], rank=pk.Rank(2, pk.Iterate.Left, pk.Iterate.Right))
    pk.parallel_for(policy, grid, x=view)
    np.testing.assert_array_equal(view, [[0, 0, 0, 0], [0, 11, 12, 0], [0, 21, 22, 0]])
    with pytest.raises(ValueError, match="rank 3"):
        pk.MDRangePolicy([0, 0], [1, 1], rank=pk.Rank(3, pk.Iterate.Left, pk.Iterate.Left))


def test_results_have_the_type_of_the_accumulator(interpreted, x):
    assert type(pk.parallel_reduce(4, total, x=x)) is float
    result = pk.parallel_reduce(4, count, x=x)
    assert (result, type(result)) == (4, int)


def test_a_workunit_is_still_a_python_function(x):
    fill(2, x, 5.0)
    assert x[2] == 5
    acc = pk.Acc(0)
    total(2, acc, x)
    assert acc.val == 5


def test_an_initial_value_is_ignored_aloud(interpreted, x):
    with pytest.warns(WorkunitWarning, match="ignores the initial value 5") as caught:
        assert pk.parallel_reduce("label", 4, total, 5, x=x) == 0.0
    assert caught[0].filename == __file__


WRONG = [
    ((4,), {}, ValueError, "takes"),
    (("label", 4, fill, 0, 0), {}, ValueError, "takes"),
    ((4, fill, "text"), {}, ArgumentError, "a label comes first"),
    ((4, fill, None), {}, ArgumentError, "of type NoneType has no name"),
    (("4", fill), {}, ArgumentError, "policy"),
    ((4.0, fill), {}, ArgumentError, "policy"),
    ((4, 5), {}, ArgumentError, "not a valid workunit"),
    ((4, undecorated), {}, ArgumentError, r"@pk\.workunit"),
    ((pk.TeamPolicy(2, 2), fill), {"x": pk.View([4]), "value": 1.0}, PyFuserError, "'i' is a team"),
    ((4, fill), {"x": pk.View([4])}, ArgumentError, "'value'"),
    ((4, fill), {"x": pk.View([4]), "value": 1.0, "y": 1}, ArgumentError, "'y'"),
    ((4, fill), {"x": [1, 2], "value": 1.0}, ArgumentError, "list"),
    ((4, fill), {"x": pk.View([4]), "value": "1"}, ArgumentError, "str"),
    ((4, fill), {"x": np.zeros(4, np.float16), "value": 1}, ArgumentError, "float16"),
    ((4, fill), {"x": np.zeros(4, ">f8"), "value": 1}, ArgumentError, ">f8"),
    ((4, fill), {"x": np.ma.zeros(4), "value": 1}, ArgumentError, "Masked"),
    ((4, fill), {"x": pk.View([4]), "value": np.float16(1)}, ArgumentError, "float16"),
    ((4, fill), {"x": pk.View([4]), "value": 1 << 70}, ArgumentError, "range"),
]


@pytest.mark.parametrize("args, kwargs, error, message", WRONG)
def test_wrong_calls_say_what_is_wrong(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        pk.parallel_for(*args, **kwargs)


def test_errors_name_the_line_of_the_call(x):
    with pytest.raises(ArgumentError) as raised:
        pk.parallel_for(4, fill, x=x, value=None)
    assert f"{__file__}:{sys._getframe().f_lineno - 1}: argument 'value'" in str(raised.value)


def test_spaces_that_are_not_there():
    for space in (pk.Cuda, pk.HIP):
        with pytest.raises(ValueError, match="not available"):
            pk.RangePolicy(space, 0, 3)


def test_the_default_space_is_that_of_later_calls(recorded, x):
    pk.parallel_for(4, fill, x=x, value=1.0)
    try:
        pk.set_default_space(pk.Serial)
        pk.parallel_for(4, fill, x=x, value=1.0)
        pk.parallel_for(3, fill, x=x, value=1.0)  # a number that is new, and its types known
        pk.parallel_for(2, fill, x=x, value=1.0)
    finally:
        pk.set_default_space(pk.OpenMP)
    pk.parallel_for(1, fill, x=x, value=1.0)
    spaces = [call.space.execution for call in recorded]
    assert spaces == ["OpenMP", "Serial", "Serial", "Serial", "OpenMP"]


# --------------------------------------------------------------------------- what is recorded


def types(call):
    return [param.sym.dtype for param in call.workunit.params]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1, DType.INT32),
        (-(2**31) + 1, DType.INT32),
        (-(2**31), DType.INT64),
        (2**31, DType.INT64),
        (True, DType.BOOL),
        (1.0, DType.FLOAT64),
        (np.float32(1), DType.FLOAT32),
        (np.float64(1), DType.FLOAT64),
        (np.uint8(1), DType.UINT8),
        (np.int64(1), DType.INT64),
    ],
)
def test_types_of_numbers_are_those_of_pykokkos(recorded, x, value, dtype):
    pk.parallel_for(4, fill, x=x, value=value)
    assert types(recorded[0]) == [DType.FLOAT64, dtype]
    assert recorded[0].arguments[1] == value
    assert type(recorded[0].arguments[1]) in (bool, int, float)


def test_arguments_are_in_the_order_of_the_parameters(recorded, x):
    pk.parallel_for(4, fill, value=1.0, x=x)
    pk.parallel_for(4, fill, x=x, value=1.0)
    assert recorded[0].arguments == recorded[1].arguments


def test_annotated_integers_are_checked_against_their_type(interpreted, x):
    pk.parallel_for(4, fill_annotated, x=x, count=2**31 - 1 - 100, value=100)
    assert x[0] == 2**31 - 1
    for wrong in ({"count": 2**31, "value": 1}, {"count": 0, "value": 128}):
        with pytest.raises(ArgumentError, match="not between"):
            pk.parallel_for(4, fill_annotated, x=x, **wrong)
    with pytest.raises(ArgumentError, match="count"):
        pk.parallel_for(4, fill_annotated, x=x, count=1.0, value=1)


def test_one_lowering_serves_all_calls_of_a_type(recorded, x):
    for n in range(3):
        pk.parallel_for(n, fill, x=x, value=float(n))
    pk.parallel_for(3, fill, x=pk.View([9], pk.double), value=1.0)
    pk.parallel_for(3, fill, x=np.zeros(3), value=1.0)
    assert len({id(call.workunit) for call in recorded}) == 1
    pk.parallel_for(3, fill, x=pk.View([9], pk.float), value=1.0)
    assert recorded[-1].workunit is not recorded[0].workunit


def test_global_values_are_those_at_the_time_of_the_call(interpreted, x, monkeypatch):
    expected = []
    workunits = []
    for value in (2.0, 3.0, 2.0):
        monkeypatch.setattr(sys.modules[__name__], "scale", value)
        with pyfuser.fusing():
            pk.parallel_for(4, scaled, x=x)
            workunits.append(TRACER.calls[0].workunit)
        expected.append(x[1])
    assert expected == [2.0, 3.0, 2.0]
    assert workunits[0] is workunits[2] is not workunits[1]


def test_long_ranges_have_wide_indices(recorded, x):
    pk.parallel_for(2**31 - 1, fill, x=x, value=1.0)
    pk.parallel_for(2**31, fill, x=x, value=1.0)
    pk.parallel_for(pk.RangePolicy(2**31, 2**31 + 1), fill, x=x, value=1.0)
    widths = [call.workunit.indices[0].dtype for call in recorded]
    assert widths == [DType.INT32, DType.INT64, DType.INT64]


def test_arrays_keep_strides_and_identity(recorded):
    array = np.zeros((4, 6))
    pk.parallel_for(4, fill, x=array[:, 1], value=1.0)
    region = recorded[0].arguments[0]
    assert (region.strides, region.shape) == ((48,), (4,))
    assert region.address == array.__array_interface__["data"][0] + 8


def test_a_read_only_array_may_be_read_but_not_written(interpreted, x):
    array = np.ones(4)
    array.setflags(write=False)
    for view in (array, pk.array(array), pk.array(array)[1:]):
        with pytest.raises(ArgumentError, match="read-only"):
            pk.parallel_for(3, fill, x=view, value=2.0)
        pk.parallel_for(3, lost, x=x, y=view)
    assert array.sum() == 4


def test_where_a_call_was_made(recorded, x):
    pk.parallel_for("named", 4, fill, x=x, value=1.0)
    pk.parallel_for(4, fill, x=x, value=1.0)
    line = sys._getframe().f_lineno - 1
    assert [call.name for call in recorded] == ["named", "fill"]
    assert (recorded[1].location.file, recorded[1].location.line) == (__file__, line)


# --------------------------------------------------------------------------- Futures


def test_a_float_future_stays_unknown_as_an_argument(interpreted, x):
    with pyfuser.fusing():
        pk.parallel_for(4, fill, x=x, value=1.5)
        result = pk.parallel_reduce(4, total, x=x)
        pk.parallel_for(4, fill, x=x, value=result)
        assert isinstance(result, Future) and not result.ready
        assert interpreted.ran == []
    np.testing.assert_array_equal(x, [6, 6, 6, 6])


def test_an_integer_future_is_computed_for_an_argument(interpreted, x):
    with pyfuser.fusing():
        result = pk.parallel_reduce(4, count, x=x)
        pk.parallel_for(4, fill, x=x, value=result)
        assert result.ready
        assert types(TRACER.calls[0]) == [DType.FLOAT64, DType.INT32]
    np.testing.assert_array_equal(x, [4, 4, 4, 4])


def test_a_future_as_the_number_of_indices_is_computed(interpreted, x):
    with pyfuser.fusing():
        size = pk.parallel_reduce(3, count, x=x)
        pk.parallel_for(size, fill, x=x, value=1.0)
        pk.parallel_for(pk.RangePolicy(size, 4), fill, x=x, value=2.0)
    np.testing.assert_array_equal(x, [1, 1, 1, 2])
    with pyfuser.fusing(), pytest.raises(ArgumentError, match="must be an integer, not"):
        pk.parallel_for(pk.parallel_reduce(3, total, x=x), fill, x=x, value=1.0)


def test_a_float_future_does_not_fit_an_integer(interpreted, x):
    with pyfuser.fusing():
        result = pk.parallel_reduce(4, total, x=x)
        with pytest.raises(ArgumentError, match="count"):
            pk.parallel_for(4, fill_annotated, x=x, count=result, value=1)


# --------------------------------------------------------------------------- the package


def test_the_package_is_importable_by_its_names():
    import pykokkos
    import pykokkos.interface
    from pykokkos.interface.data_types import int32
    from pykokkos.interface.views import View

    assert pykokkos is pk and View is pk.View and int32 is pk.int32
    assert pykokkos.interface.parallel_for is pk.parallel_for
    with pytest.raises(ModuleNotFoundError):
        import pykokkos.dispatch


def test_names_are_those_of_pykokkos():
    assert pk.OpenMP is pk.ExecutionSpace.OpenMP
    assert pk.LayoutLeft is pk.Layout.LayoutLeft
    with pytest.raises(AttributeError, match="no attribute 'deep_copy'"):
        pk.deep_copy  # noqa: B018
    for leaked in ("np", "math", "sys", "Any", "Enum", "annotations"):
        assert not hasattr(pk, leaked)


def test_atomics_as_functions():
    view = pk.View([2, 2], pk.int32)
    view.fill(6)
    assert pk.atomic_fetch_add(view, [1, 0], 2) == 6
    assert pk.atomic_fetch_max(view, [1, 0], 3) == 8
    assert pk.atomic_compare_exchange(view, [1, 0], 8, 1) == 8
    assert pk.atomic_compare_exchange(view, [1, 0], 8, 5) == 1
    pk.atomic_increment(view, [0, 0])
    np.testing.assert_array_equal(view, [[7, 6], [1, 6]])


def test_printf_prints_as_c_does(capsys):
    pk.printf("%d %.1f\n", 3, 2.0)
    assert capsys.readouterr().out == "3 2.0\n"


@pk.workunit
def mark(i, x):
    x[i] += 1.0


@pk.workunit
def mark_pair(i, j, x):
    x[i][j] += 1.0


RANGES = [
    pk.RangePolicy(0, 7),
    pk.RangePolicy(3, 3),
    pk.RangePolicy(pk.Serial, 2, 9),
    pk.RangePolicy(True, 5),
    pk.MDRangePolicy([0, 0], [5, 6]),
    pk.MDRangePolicy([1, 2], [1, 9]),
    pk.MDRangePolicy([0, 3], [4, 4], space=pk.Serial),
]


@pytest.mark.parametrize("number", range(len(RANGES)))
def test_a_new_range_is_read_as_python_reads_it(number: int) -> None:
    policy = RANGES[number]
    single = isinstance(policy, pk.RangePolicy)
    x, workunit = pk.View([9] if single else [9, 9], pk.double), mark if single else mark_pair
    before = pk.RangePolicy(0, 1) if single else pk.MDRangePolicy([0, 0], [1, 1])
    pk.parallel_for(before, workunit, x=x)  # now the types of its arguments are known
    expected = np.array(x.data)
    KNOWN_POLICIES.clear()
    SESSION.clear()
    pk.parallel_for(policy, workunit, x=x)
    (kept,) = KNOWN_POLICIES.values()
    KNOWN_POLICIES.clear()
    found = space_of(policy)
    assert kept == found and type(kept[0]) is type(found[0])
    begin, end = found[0][:2]
    expected[tuple(map(slice, begin, end))] += 1.0
    np.testing.assert_array_equal(x.data, expected)


@pytest.mark.parametrize("begin, end", [(5, 3), (-2, 4), (2**31 - 2, 2**31 + 1), (0, 2**40)])
def test_an_unusual_range_that_is_new_is_left_to_python(begin: int, end: int) -> None:
    x = pk.View([9], pk.double)
    pk.parallel_for(pk.RangePolicy(0, 1), mark, x=x)
    policy = pk.RangePolicy(begin, end)
    if begin > end:
        with pytest.warns(WorkunitWarning, match="is empty"):
            pk.parallel_for(policy, mark, x=x)
    else:
        with pytest.raises(IndexError):
            pk.parallel_for(policy, mark, x=x)
    np.testing.assert_array_equal(x.data, [1.0] + 8 * [0.0])
