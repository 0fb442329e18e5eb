"""Our arrays, generators and modules in the hands of NumPy and of others."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import pickle
import types
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.support.extension import HOT

PADDED = numpy.dtype(
    {"names": ["a", "b"], "formats": ["i4", "f8"], "offsets": [4, 16], "itemsize": 24}
)
DTYPES: list[Any] = [
    "M8[D]", "m8[ms]", [("a", "i4"), ("t", "M8[s]")], PADDED, "V3", [("a", "i4"), ("b", "f8")],
    numpy.dtype([("a", "i1"), ("b", "f8")], align=True), "U3", "S2", object, ">i4", "g", "f2", "G",
    [("p", "f4", (2,)), ("q", [("u", "i2")])],
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_is_told_the_type(dtype: Any) -> None:
    x, y = numpy.zeros(3, dtype), np.zeros(3, dtype)
    for function in (numpy.asarray, numpy.array, lambda a: numpy.concatenate([a, a])):
        found, wanted = function(y), function(x)  # type: ignore[no-untyped-call]
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
    target = numpy.ones(3, dtype)
    target[...] = y
    assert (target == x).all()


def test_numpy_gets_dates_as_they_are() -> None:
    days = np.arange("2020-01-01", "2020-01-04", dtype="M8[D]")
    seconds = numpy.zeros(3, "M8[s]")
    seconds[:] = days
    assert str(seconds[1]) == "2020-01-02T00:00:00"


@pytest.mark.skipif(HOT is None, reason="needs the buffer protocol")
def test_bytes_of_any_elements() -> None:
    for dtype in ("M8[D]", PADDED, [("a", "i4"), ("t", "M8[s]")]):
        x, y = numpy.ones(3, dtype), np.ones(3, dtype)
        assert hashlib.sha1(x).digest() == hashlib.sha1(y).digest()


def test_a_generator_is_one_of_numpys() -> None:
    ours, numpys = np.random.default_rng(1), numpy.random.default_rng(1)
    assert isinstance(ours, np.random.Generator) and isinstance(ours, numpy.random.Generator)
    assert isinstance(numpys, np.random.Generator) and np.random.default_rng(ours) is ours
    assert type(ours).__name__ == "Generator" and np.random.Generator.normal.__name__ == "normal"
    assert type(ours.random(3)) is np.ndarray and numpys.random(3).size
    for again in (copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))):
        one, other = again(ours), again(numpys)
        assert type(one) is np.random.Generator and type(one.normal(size=2)) is np.ndarray
        other.normal(size=2)
        assert one.random() == other.random()
    assert ours.random() == numpys.random()  # `copy.copy` draws from the same source
    one, other = ours.spawn(1)[0], numpys.spawn(1)[0]
    assert type(one) is np.random.Generator and one.random() == other.random()


def test_older_generators() -> None:
    ours, numpys = np.random.RandomState(3), numpy.random.RandomState(3)
    assert isinstance(ours, numpy.random.RandomState) and ours.randn() == numpys.randn()
    ours.set_state(numpys.get_state())
    for again in (copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))):
        assert again(ours).randn() == again(numpys).randn()
    assert type(ours.rand(2)) is np.ndarray


def test_modules_below() -> None:
    names = ("random", "linalg", "fft", "lib.stride_tricks", "typing", "testing", "polynomial")
    for name in names:
        module = importlib.import_module(f"pyfuser.numpy.{name}")
        assert isinstance(module, types.ModuleType) and module.__name__ == f"pyfuser.numpy.{name}"
    from pyfuser.numpy.lib.stride_tricks import sliding_window_view
    from pyfuser.numpy.random import default_rng

    assert type(sliding_window_view(np.arange(5.0), 3)) is np.ndarray
    assert type(default_rng(1).random(2)) is np.ndarray
    assert importlib.import_module("pyfuser.numpy.linalg") is np.linalg
    assert np.typing.NDArray[np.float64] is not None
    with pytest.raises(ModuleNotFoundError, match=r"pyfuser\.numpy\.nothing"):
        importlib.import_module("pyfuser.numpy.nothing")


def test_what_programs_ask_of_arrays_and_functions() -> None:
    x = np.arange(4.0)
    assert x.real is x and x.device == "cpu" and x.__array_namespace__() is np
    assert np.reshape(x, shape=(2, 2)).shape == (2, 2)
    for name in ("linspace", "sum", "concatenate", "dot", "where", "percentile", "real", "min"):
        ours, numpys = getattr(np, name), getattr(numpy, name)
        assert inspect.signature(ours) == inspect.signature(numpys), name
        assert ours.__doc__ == numpys.__doc__


def test_fields_and_ranges() -> None:
    table = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
    field = table["a"]
    field += [1, 2, 3]
    assert table["a"].tolist() == [1, 2, 3] and table[table["a"] > 2].shape == (1,)
    x = np.zeros((4, 4))
    x[range(4), range(4)] += 2.0
    assert np.trace(x) == 8.0 and x[:, range(2)].shape == (4, 2)
