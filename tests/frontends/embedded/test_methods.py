"""Functors, workloads, lambdas and lists of workunits: results, traces, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import ArgumentError, WorkunitError

N = 8
I = np.arange(N, dtype=np.float64)


@pk.functor(x=pk.ViewTypeInfo(layout=pk.LayoutRight))
class Line:
    def __init__(self, x, a: float, b: int):
        self.x: pk.View1D[pk.double] = x
        self.y: pk.View1D[pk.double] = pk.View([N], pk.double)
        self.a: float = a
        self.b: int = b
        self.note = "not used by any method"

    @pk.function
    def scaled(self, v: float) -> float:
        return self.a * v

    @pk.function
    def at(self, i: int) -> float:
        return self.scaled(self.x[i]) + self.b

    @pk.workunit
    def map(self, i: int):
        self.y[i] = self.at(i)

    @pk.workunit
    def shift(self, i: int):
        self.x[i] = self.y[N - 1 - i]

    @pk.workunit
    def total(self, i: int, acc: pk.Acc[pk.double]):
        acc += self.y[i]

    @pk.workunit
    def scan(self, i: int, acc: pk.Acc[pk.double], last: bool):
        acc += self.y[i]
        if last:
            self.x[i] = acc

    @pk.workunit
    def writes_a_member(self, i: int):
        self.a = 2.0

    @pk.workunit
    def lacks_a_member(self, i: int):
        self.y[i] = self.absent

    @pk.workunit
    def misspells(self, i: int):
        self.y[i] = self.note

    @pyfuser.fuse
    @pk.workunit
    def marked(self, i: int):
        self.y[i] += 1.0

    def undecorated(self, i: int):
        self.y[i] = 0.0


class Steeper(Line):
    @pk.function
    def scaled(self, v: float) -> float:
        return 10.0 * self.a * v


@pytest.fixture
def line():
    x = pk.View([N], pk.double)
    x[:] = I
    return Line(x, 2.0, 3)


def launches():
    return pyfuser.stats().launches


def test_a_method_uses_the_members_of_its_object(line):
    pk.parallel_for(N, line.map)
    assert_array_equal(np.asarray(line.y), 2 * I + 3)
    assert pk.parallel_reduce("sum", N, line.total) == np.sum(2 * I + 3)
    assert pk.parallel_scan(N, line.scan) == np.sum(2 * I + 3)
    assert_array_equal(np.asarray(line.x), np.cumsum(2 * I + 3))


def test_objects_of_one_class_share_code_but_no_data(line):
    other = Line(np.ones(N), -1.0, 0)
    pk.parallel_for(N, line.map)
    pk.parallel_for(N, other.map)
    assert_array_equal(np.asarray(line.y), 2 * I + 3)
    assert_array_equal(np.asarray(other.y), -np.ones(N))


def test_a_subclass_may_override_what_a_method_calls(line):
    steep = Steeper(line.x, 2.0, 3)
    pk.parallel_for(N, steep.map)
    pk.parallel_for(N, line.map)
    assert_array_equal(np.asarray(steep.y), 20 * I + 3)
    assert_array_equal(np.asarray(line.y), 2 * I + 3)


def test_a_method_that_is_replaced_is_lowered_again(line, monkeypatch):
    pk.parallel_for(N, line.map)
    monkeypatch.setattr(Line, "scaled", Steeper.scaled)
    pk.parallel_for(N, line.map)
    assert_array_equal(np.asarray(line.y), 20 * I + 3)


def test_members_are_bound_at_the_call(line):
    with pyfuser.fusing():
        pk.parallel_for(N, line.map)
        line.a, line.y, first = 100.0, pk.View([N], pk.double), line.y
        pk.parallel_for(N, line.map)
    assert_array_equal(np.asarray(first), 2 * I + 3)
    assert_array_equal(np.asarray(line.y), 100 * I + 3)


def test_methods_fuse_where_the_law_allows(line):
    before = launches()
    with pyfuser.fusing():
        pk.parallel_for(N, line.map)
        total = pk.parallel_reduce(N, line.total)
    assert total == np.sum(2 * I + 3)
    assert launches() == before + 1


def test_methods_do_not_fuse_where_another_iteration_is_read(line):
    before = launches()
    with pyfuser.fusing():
        pk.parallel_for(N, line.map)
        pk.parallel_for(N, line.shift)
    assert_array_equal(np.asarray(line.x), (2 * I + 3)[::-1])
    assert launches() == before + 2
    assert "that other iterations of map write" in " ".join(str(pyfuser.explain()).split())


def test_fuse_marks_a_method(line):
    pk.parallel_for(N, line.marked)
    assert pyfuser.pending()
    assert_array_equal(np.asarray(line.y), np.ones(N))


def test_debug_space_runs_the_method_itself(line):
    pk.parallel_for(pk.RangePolicy(pk.Debug, 0, N), line.map)
    assert_array_equal(np.asarray(line.y), 2 * I + 3)


def test_members_are_read_only(line):
    with pytest.raises(WorkunitError, match=r"'self.a' is an argument") as raised:
        pk.parallel_for(N, line.writes_a_member)
    assert "        self.a = 2.0\n            ^" in str(raised.value)
    assert line.a == 2.0


def test_a_member_that_is_missing(line):
    message = r"uses self.absent, but this Line has no member 'absent'"
    with pytest.raises(ArgumentError, match=message) as caught:
        pk.parallel_for(N, line.lacks_a_member)
    _, place, source, caret = str(caught.value).splitlines()
    first = Line.lacks_a_member.__code__.co_firstlineno
    assert place == f"  it is used at {__file__}:{first + 2}"
    assert source[caret.index("^") :].startswith("self.absent")


def test_a_member_that_no_kernel_takes(line):
    with pytest.raises(ArgumentError, match=r"argument 'self.note' is of type builtins.str"):
        pk.parallel_for(N, line.misspells)


def test_a_member_that_is_not_what_its_annotation_says(line):
    line.b = 2.5
    with pytest.raises(ArgumentError, match=r"'self.b' is annotated as a scalar of type int32"):
        pk.parallel_for(N, line.map)
    line.b = 1
    line.x = pk.View([N], pk.float)
    with pytest.raises(ArgumentError, match=r"'self.x' is annotated as a 1-D view of float64"):
        pk.parallel_for(N, line.map)


def test_an_undecorated_method_is_no_workunit(line):
    with pytest.raises(ArgumentError, match="undecorated is not a workunit"):
        pk.parallel_for(N, line.undecorated)


# --------------------------------------------------------------------------- workloads


@pk.workload
class Squares:
    def __init__(self, n: int):
        self.n: int = n
        self.total: float = 0
        self.x: pk.View1D[pk.double] = pk.View([n], pk.double)
        self.log = []

    @pk.main
    def run(self):
        timer = pk.Timer()
        pk.parallel_for(self.n, lambda i: i * i, self.x)
        self.total = pk.parallel_reduce("sum", self.n, self.add)
        self.space = pk.get_default_space()
        self.seconds = timer.seconds()

    @pk.workunit
    def add(self, i: int, acc: pk.Acc[pk.double]):
        acc += self.x[i]

    @pk.callback
    def first(self):
        self.log.append(("first", float(self.total)))

    @pk.callback
    def second(self):
        self.log.append(("second", self.x[3]))


@pk.functor
class Real:
    def __init__(self, x):
        self.x: pk.View1D[pk.real] = x

    @pk.function
    def tenth(self) -> pk.real:
        return 0.1

    @pk.workunit
    def fill(self, i: int):
        local: pk.real = self.tenth()
        self.x[i] = 1e6 * local

    @pk.workunit
    def add(self, i: int, acc: pk.Acc[pk.real]):
        acc += 0.1 + 0.0 * self.x[i]


@pytest.mark.parametrize(("dtype", "numpy_type"), [(pk.double, np.float64), (pk.float, np.float32)])
def test_real_is_the_type_of_the_views(dtype, numpy_type):
    real = Real(pk.View([2], pk.double))
    real.x.set_precision(dtype)
    pk.parallel_for(2, real.fill)
    assert np.asarray(real.x).dtype == numpy_type
    assert real.x[1] == numpy_type(1e6 * np.float64(numpy_type(0.1)))
    assert pk.parallel_reduce(1, real.add) == float(numpy_type(0.1))


@pytest.mark.parametrize("fusing", [False, True])
def test_a_workload_runs_main_then_its_callbacks(fusing):
    squares = Squares(5)
    with pyfuser.fusing() if fusing else pyfuser.unfused():
        pk.execute(pk.Serial, squares)
        assert not pyfuser.pending()
    assert squares.log == [("first", 30.0), ("second", 9.0)]
    assert squares.space is pk.Serial
    assert pk.get_default_space() is pk.OpenMP


@pk.workload
class Bare:
    def __init__(self, n):
        self.bare_n: int = n
        self.bare_x: pk.View1D[pk.int32] = pk.View([n], pk.int32)

    @pk.main
    def run(self):
        n: int = bare_n  # noqa: F821
        pk.parallel_for(n, self.work)
        printf("%d\n", n)  # noqa: F821

    @pk.workunit
    def work(self, i: int):
        bare_x[i] = bare_n + i  # noqa: F821


def test_members_may_have_bare_names_as_in_cpp(capfd):
    bare = Bare(3)
    pk.execute(pk.Default, bare)
    assert np.asarray(bare.bare_x).tolist() == [3, 4, 5]
    assert capfd.readouterr().out == "3\n"


def test_an_object_without_main_is_no_workload(line):
    with pytest.raises(ArgumentError, match=r"Line has no method .* @pk.main"):
        pk.execute(pk.OpenMP, line)


def test_the_default_space_comes_back_after_an_error():
    class Fails:
        @pk.main
        def run(self):
            raise KeyError

    with pytest.raises(KeyError):
        pk.execute(pk.Serial, Fails())
    assert pk.get_default_space() is pk.OpenMP


@pk.workload
class Wide:
    @pk.workunit
    def real_index(self, i: float, acc: pk.Acc[pk.double]):
        acc += i * i

    @pk.workunit
    def long_index(self, i: pk.int64, acc: pk.Acc[pk.int64]):
        acc += i * i

    @pk.workunit
    def int_index(self, i: int, acc: pk.Acc[pk.int64]):
        acc += i * i


def test_the_annotation_of_an_index_is_its_type():
    n = 90_000
    exact = sum(i * i for i in range(n))
    wide = Wide()
    assert pk.parallel_reduce(n, wide.long_index) == exact
    assert abs(pk.parallel_reduce(n, wide.real_index) - exact) < 1e-9 * exact
    assert pk.parallel_reduce(n, wide.int_index) != exact  # i * i leaves 32 bits


# --------------------------------------------------------------------------- lambdas


def test_lambdas_take_what_their_closure_holds():
    x, out, a = pk.View([N], pk.double), pk.View([N], pk.double), 3.0
    x[:] = I
    pk.parallel_for("label", N, lambda i: a * x[i] + 1, out)
    assert_array_equal(np.asarray(out), 3 * I + 1)
    assert pk.parallel_reduce(N, lambda i, acc: acc + a * x[i]) == 3 * I.sum()


def test_a_lambda_made_again_holds_other_values():
    def fill(out, value):
        pk.parallel_for(N, lambda i: value, out)

    one, two = pk.View([N], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        fill(one, 1.5)
        fill(two, 2)
    assert one[0] == 1.5
    assert two[0] == 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps no columns in code")
def test_lambdas_on_one_line_are_told_apart():
    x, y = pk.View([N], pk.double), pk.View([N], pk.double)
    for out, f in ((x, lambda i: i + 1), (y, lambda i: i + 2)):
        pk.parallel_for(N, f, out)
    assert (x[0], y[0]) == (1, 2)


def test_lambdas_in_the_debug_space():
    x = pk.View([N], pk.double)
    pk.parallel_for(pk.RangePolicy(pk.Debug, 0, N), lambda i: i * 2, x)
    assert_array_equal(np.asarray(x), 2 * I)
    assert pk.parallel_reduce(pk.RangePolicy(pk.Debug, 0, N), lambda i, acc: acc + x[i]) == 56


def test_lambdas_that_do_not_fit():
    with pytest.raises(WorkunitError, match="takes an index and an accumulator"):
        pk.parallel_reduce(N, lambda i: i)
    with pytest.raises(WorkunitError, match=r"a tuple is not supported") as raised:
        pk.parallel_reduce(N, lambda i, acc: (i, acc))
    assert "lambda i, acc: (i, acc)" in str(raised.value)


# --------------------------------------------------------------------------- lists


@pk.workunit
def put(i, x, v):
    x[i] = v


@pk.workunit
def back(i, x, y, n):
    y[i] = x[n - 1 - i]


def test_a_list_of_workunits_is_a_request_to_fuse():
    x, y, before = pk.View([N], pk.double), pk.View([N], pk.double), launches()
    pk.parallel_for(N, [put, put], args_0={"x": x, "v": 1.0}, args_1={"x": y, "v": 2.0})
    assert not pyfuser.pending()
    assert (x[1], y[1]) == (1, 2)
    assert launches() == before + 1


def test_a_list_whose_fusion_would_be_wrong_runs_in_order():
    x, y, before = pk.View([N], pk.double), pk.View([N], pk.double), launches()
    x[:] = 5
    pk.parallel_for(N, [put, back], args_0={"x": x, "v": 1.0}, args_1={"x": x, "y": y, "n": N})
    assert_array_equal(np.asarray(y), np.ones(N))
    assert launches() == before + 2
