"""Arrays of other libraries as arguments: whatever shows its memory in the host's is taken.

torch, JAX and pandas are not needed: small classes have their protocols.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import mmap
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.arguments import classify
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import ArgumentError


@pk.workunit
def twice(i, x):
    x[i] = 2 * x[i]


@pk.workunit
def shift(i, x, y):
    y[i] = x[i] + 1


@pk.workunit
def total(i, acc, x):
    acc += x[i]


class Tensor:
    """As torch's: `__array__` gives the memory, and none while it records gradients."""

    def __init__(self, values, requires_grad=False):
        self.values = np.array(values)
        self.requires_grad = requires_grad

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


class Fixed(Tensor):
    """As JAX's: nobody may write it."""

    def __init__(self, values):
        super().__init__(values)
        self.values.flags.writeable = False


class Interface:
    def __init__(self, values):
        self.values = np.array(values)
        self.__array_interface__ = self.values.__array_interface__


class Struct:
    def __init__(self, values):
        self.values = np.array(values)

    @property
    def __array_struct__(self):
        return self.values.__array_struct__


class Exchanged:
    """Has nothing but DLPack."""

    def __init__(self, values, device=(1, 0)):
        self.values = np.array(values)
        self.device = device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


class Lazy:
    """Computes a new array each time, as dask's and h5py's do."""

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self.values.copy()


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert meta device type tensor; use Tensor.cpu() first")


def mapped(values):
    memory = mmap.mmap(-1, 8 * len(values))
    memory[:] = np.array(values).tobytes()
    return memoryview(memory).cast("d")


MAKE = {
    "torch": Tensor,
    "array interface": Interface,
    "array struct": Struct,
    "dlpack": Exchanged,
    "array.array": lambda values: array.array("d", values),
    "memoryview": lambda values: memoryview(array.array("d", values)),
    "ctypes": lambda values: (ctypes.c_double * len(values))(*values),
    "mmap": mapped,
    "matrix row": lambda values: np.array([values, values])[1],
}
WRITES_DLPACK = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
made = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name)
        for name, make in MAKE.items()
        if WRITES_DLPACK or name != "dlpack"  # an older NumPy takes DLPack's memory to be read-only
    ],
)


def values_of(value):
    return np.from_dlpack(value) if type(value) is Exchanged else np.asarray(value)


@made
def test_a_kernel_works_on_the_memory(make):
    x = make([1.0, 2.0, 3.0])
    pk.parallel_for(3, twice, x=x)
    assert list(values_of(x)) == [2.0, 4.0, 6.0]
    assert pk.parallel_reduce(3, total, x=x) == 12.0
    assert list(pk.array(x)) == [2.0, 4.0, 6.0]


@made
def test_recorded_calls_keep_the_memory(make):
    x, y = make([1.0, 2.0, 3.0]), np.zeros(3)
    with pyfuser.fusing():
        pk.parallel_for(3, twice, x=x)
        pk.parallel_for(3, shift, x=x, y=y)
        kept = weakref.ref(x) if hasattr(type(x), "__dict__") else None
        del x
        gc.collect()
        assert TRACER.raw == 3
    assert list(y) == [3.0, 5.0, 7.0]
    gc.collect()
    assert kept is None or kept() is None


@made
def test_overlaps_are_seen_in_memory(make):
    """A slice of the object's memory: iteration i reads what iteration i + 1 writes."""
    x, y = make([1.0, 2.0, 3.0, 4.0]), pk.View([3], pk.double)
    tail = values_of(x)[1:]
    with pyfuser.fusing():
        pk.parallel_for(4, twice, x=x)
        pk.parallel_for(3, shift, x=tail, y=y)
    assert list(y) == [5.0, 7.0, 9.0]


@made
def test_calls_run_at_once_unless_they_are_fused(make):
    x = make([1.0, 2.0, 3.0])
    pk.parallel_for(3, twice, x=x)
    assert not TRACER.calls and values_of(x)[2] == 6.0
    with pyfuser.fusing():
        pk.parallel_for(3, twice, x=x)
        assert len(TRACER.calls) == 1
    assert values_of(x)[2] == 12.0


def test_the_owner_may_resize_its_memory_after_the_call():
    x = array.array("d", [1.0, 2.0])
    with pyfuser.fusing():
        pk.parallel_for(2, twice, x=x)
        with pytest.raises(BufferError):
            x.append(3.0)
    x.append(3.0)
    pk.parallel_for(3, twice, x=x)
    assert list(x) == [4.0, 8.0, 6.0]


def test_what_nobody_may_write_is_read_only():
    x, y = Fixed([1.0, 2.0]), np.zeros(2)
    pk.parallel_for(2, shift, x=x, y=y)
    assert list(y) == [2.0, 3.0]
    with pytest.raises(ArgumentError, match=r"'x': workunit 'twice' writes it.*JAX.*pass a copy"):
        pk.parallel_for(2, twice, x=x)
    assert list(x.values) == [1.0, 2.0]


REFUSED = {
    "gradients": (Tensor([1.0], requires_grad=True), r"records gradients.*pass its \.detach\(\)"),
    "copies": (Lazy([1.0]), r"Lazy, of which NumPy makes a copy each time.*np\.array\("),
    "other devices": (Broken(), r"NumPy cannot make an array: .*use Tensor\.cpu\(\) first"),
    "dlpack elsewhere": (Exchanged([1.0], (15, 0)), "copy it to the host first"),
    "list": ([1.0], r"builtins\.list.*make it an array before the call, as in \w+ = np\.array"),
    "bytes": (b"abcd", r"np\.frombuffer"),
    "range": (range(3), r"np\.arange"),
    "None": (None, "NoneType: a kernel takes Views, arrays and numbers"),
    "strings": (Interface(["a", "b"]), "arrays of .* are not supported"),
    "class": (Interface, "a kernel takes Views"),
    "halves": (Tensor(np.zeros(2, np.float16)), "convert it with astype"),
}

pytestmark = pytest.mark.usefixtures("quick_collections")


@pytest.mark.parametrize("value, message", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_what_to_do(value, message):
    with pytest.raises(ArgumentError, match=message) as error:
        pk.parallel_for(1, twice, x=value)
    assert __file__ in str(error.value) and "'x'" in str(error.value)


def test_an_empty_array_is_no_copy():
    pk.parallel_for(0, twice, x=Lazy([]))


def test_the_debug_space_takes_them(interpreted):
    x = Interface([1.0, 2.0])
    pk.parallel_for(pk.RangePolicy(pk.Debug, 0, 2), twice, x=x)
    assert list(x.values) == [2.0, 4.0]


def test_lambdas_and_functors_take_them():
    x, y = Tensor([1.0, 2.0]), pk.View([2], pk.double)
    pk.parallel_for(2, lambda i: 3 * x[i], y)
    assert list(y) == [3.0, 6.0]

    @pk.functor
    class Scale:
        def __init__(self, x):
            self.x: pk.View1D[pk.double] = x

        @pk.workunit
        def run(self, i: int):
            self.x[i] = self.x[i] * 5

    pk.parallel_for(2, Scale(x).run)
    assert list(x.values) == [5.0, 10.0]


def test_views_of_them_share_the_memory():
    x = Interface([1.0, 2.0])
    view = pk.array(x)
    view[0] = 7.0
    assert x.values[0] == 7.0 and list(pk.asarray(Exchanged([1.0, 2.0]))) == [1.0, 2.0]
    with pytest.raises(ArgumentError, match=r"detach"):
        pk.array(Tensor([1.0], requires_grad=True))
    assert list(pk.array(Lazy([1.0, 2.0]))) == [1.0, 2.0]  # a copy, which it may be here


def test_polars(monkeypatch):
    """It knows NumPy's arrays by their type, and others by Arrow's interface, which it has."""
    monkeypatch.delitem(sys.modules, "polars", raising=False)
    view = pk.View([3], pk.double)
    view.fill(1.0)
    assert not hasattr(view, "__arrow_c_stream__")

    class Series:
        def __init__(self, values):
            self.values = values

        def __arrow_c_stream__(self, schema):
            return self.values, schema

    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(Series=Series))
    with pyfuser.fusing():
        pk.parallel_for(3, twice, x=view)
        assert hasattr(view, "__arrow_c_stream__") and len(pyfuser.pending()) == 1
        values, schema = view.__arrow_c_stream__()
        assert values.tolist() == [2.0] * 3 and schema is None and not pyfuser.pending()


def test_polars_itself():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    view, table = pk.View([3], pk.double), pk.View([2, 2], pk.int32)
    view[1] = 2.0
    assert polars.Series(view).to_list() == [0.0, 2.0, 0.0]
    assert polars.DataFrame({"a": view[1:]})["a"].to_list() == [2.0, 0.0]
    assert polars.Series(table).to_list() == [[0, 0], [0, 0]]


def test_a_device_that_has_no_number():
    class Meta(Tensor):
        def __dlpack_device__(self):
            raise ValueError("unknown device type")

        def __array__(self, *_, **__):
            raise TypeError("no memory at all")

    with pytest.raises(ArgumentError, match=r"argument 'x'.*no memory at all"):
        pk.parallel_for(2, twice, x=Meta([1.0, 2.0]))


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(5, dtype=torch.float64)
    pk.parallel_for(5, twice, x=x)
    with pyfuser.fusing():
        pk.parallel_for(5, twice, x=x)
    assert x.tolist() == [4.0] * 5
    with pytest.raises(ArgumentError, match="detach"):
        pk.parallel_for(5, twice, x=x.clone().requires_grad_())
    view = pk.View([5], pk.double)
    shared = torch.from_dlpack(view)
    shared[2] = 3.0
    assert view[2] == 3.0 and torch.asarray(np.asarray(view)).sum() == 3.0


class Counting:
    """A library's object, which notes what is looked for on it; an array, if it has values."""

    def __init__(self, values=None):
        self.values, self.sought = values, []

    def __getattr__(self, name):
        self.sought.append(name)
        if name == "__array_interface__" and self.values is not None:
            return self.values.__array_interface__
        raise AttributeError(name)


@pytest.mark.parametrize("values", [None, np.ones(3)], ids=["refused", "taken"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_object_of_a_library_is_looked_at_once_a_call(values, times):
    values = None if values is None else values.copy()
    alone, given = Counting(values), Counting(values)
    for _ in range(times):
        with contextlib.suppress(ArgumentError):
            classify("x", alone)
        with contextlib.suppress(ArgumentError):
            pk.parallel_for(3, twice, x=given)
    assert given.sought == alone.sought != []
    assert values is None or values[0] == 2**times


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.ma.array([1.0, 2.0], mask=[True, False]),
            r"sees no mask: pass x.filled\(0\), or x.data",
        ),
        ({1.0, 2.0}, r"as in x = np.array\(sorted\(x\)\)"),
        ([1.0], r"as in x = np.array\(x\)"),
    ],
)
def test_what_is_refused_says_how_to_convert_it(value, message):
    with pytest.raises(ArgumentError, match=message):
        pk.parallel_for(1, twice, x=value)
