"""Classes that programs derive from `ndarray`, by the recipes of NumPy's guide."""

from __future__ import annotations

import copy
import pickle

import numpy
import pytest

import pyfuser
import pyfuser.numpy as lazy


def recipes(np, n):
    class Tagged(np.ndarray):
        def __new__(cls, values, tag=None):
            made = np.asarray(values).view(cls)
            made.tag = tag
            return made

        def __array_finalize__(self, of):
            self.tag = getattr(of, "tag", None)

    class Sized(np.ndarray):
        def __new__(cls, n, unit="m"):
            made = super().__new__(cls, (n,), float)
            made[:] = 1
            made.unit = unit
            return made

        def doubled(self):
            return self * 2

    class Counted(Tagged):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            plain = [np.asarray(x) if isinstance(x, Counted) else x for x in inputs]
            return "counted", getattr(ufunc, method)(*plain, **kwargs)[-3:].tolist()

    a = np.arange(float(n))
    s = Tagged(a, "t")
    t = s[1:] * 2 + a[1:]
    u = a[1:] - s[1:]
    yield type(t).__name__, t.tag, t[-5:].tolist(), type(u).__name__, u[-5:].tolist()
    yield (
        isinstance(s, np.ndarray),
        issubclass(Tagged, np.ndarray),
        float(np.sum(t)),
        float(t.mean()),
    )
    z = Sized(n)
    yield z.doubled()[-5:].tolist(), z.unit, z.shape, type(z.doubled()).__name__
    yield a.view(Counted) + a, np.sqrt(a.view(Counted)), a.view(type=Tagged).tag
    b = a + 1
    b += s[::-1]
    s[0] = 7
    yield b[-5:].tolist(), a[:3].tolist(), np.concatenate([s, a])[:3].tolist()
    a[1] = 9
    yield s[:3].tolist(), type(np.asarray(s)) is type(a), copy.deepcopy(s).tag


@pytest.mark.parametrize("n", [6, 300_000])
def test_classes_of_the_programs_own(n):
    pyfuser.sync()
    assert [*recipes(lazy, n)] == [*recipes(numpy, n)]


class Kept(lazy.ndarray):
    pass


def test_such_a_class_is_one_of_numpys_arrays():
    made = Kept((3,))
    made[:] = 2
    assert isinstance(made, numpy.ndarray) and isinstance(made, lazy.ndarray)
    assert issubclass(Kept, lazy.ndarray) and numpy.ndarray in Kept.__mro__
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is Kept and again.tolist() == [2, 2, 2]
    assert type(lazy.ones(3)) is lazy.ndarray


def test_the_class_and_vectorized_functions_are_pickled_as_ours() -> None:
    assert pickle.loads(pickle.dumps(lazy.ndarray)) is lazy.ndarray
    assert copy.deepcopy({lazy.ndarray: 1}) == {lazy.ndarray: 1}
    v = pickle.loads(pickle.dumps(lazy.vectorize(abs)))
    assert type(v) is lazy.vectorize and v(lazy.arange(-2, 1)).tolist() == [2, 1, 0]
