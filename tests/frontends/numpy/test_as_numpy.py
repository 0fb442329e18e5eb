"""What programs write with arrays, objects, subclasses and overrides gives what NumPy gives."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import numpy
import pytest

import pyfuser.numpy as ours
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.support.extension import NUMPY

SPLITS = (
    """
    x = np.arange(10.0)
    out = [p.mean() for p in np.split(x, np.array([3, 5]))]
""",
    """
    t = np.array([3, 3, 4, 4, 4, 9])
    cuts = np.flatnonzero(np.diff(t)) + 1
    out = [f(t, cuts) for f in (np.split, np.array_split, np.hsplit)]
    out += [f(np.arange(12.0).reshape(6, 2), cuts) for f in (np.vsplit, np.array_split)]
    out += np.dsplit(np.arange(12.0).reshape(1, 2, 6), cuts)
""",
    """
    out = np.broadcast_to(np.arange(3.0), np.array([2, 3])), np.moveaxis(np.ones((2, 3)), [0], [1])
""",
)

OBJECTS = (
    """
    x, o = np.zeros(50), np.empty(1, object)
    o[0] = x
    x += 1
    out = o[0][0], o[0] is x
""",
    """
    x, o = np.zeros(50), np.empty((2, 2), object)
    o[0, 1] = x
    y = x + 1
    o[0, 1][0] = 5
    out = y[0], x[0], o[0, 1] is x
""",
    """
    x, s = np.zeros(50), np.zeros(1, [("o", object)])
    s["o"][0] = x
    x += 1
    out = s["o"][0][0]
""",
    """
    x, o = np.zeros(50), np.empty(1, object)
    o[0] = x[10:20]
    x += 1
    out = o[0][0], o.tolist()[0][0], [e[0] for e in o]
""",
    """
    o = np.empty(2, object)
    o[0] = np.ones(50)
    y = o[0] * 2
    o[0] += 1
    out = y[0], o[0][0], type(o[1])
""",
    """
    d = {"n": 0}
    o = np.array([d, None], dtype=object)
    d["n"] = 1
    out = o[0], o[0] is d
""",
    """
    o, d = np.empty(1, object), {"n": np.zeros(1)}
    o[0] = d
    d["m"] = 1
    out = sorted(o[0]), o[0] is d
""",
    """
    o, entries = np.empty(2, object), [[1], [2]]
    o[:] = entries
    entries[1].append(1)
    out = o
""",
    """
    o = np.empty(2, object)
    o.fill([1, 2, 3])
    p = np.empty(2, object)
    p.fill([7, 8])
    out = o, p
""",
    """
    memo = {}
    def f(x, memo):
        memo[x] = x * x
        return memo[x]
    np.vectorize(f, excluded={1}, otypes=[int])(np.arange(4), memo)
    out = len(memo)
""",
    """
    log = []
    np.apply_along_axis(lambda row, kept: kept.append(1) or 0, 1, np.eye(3), log)
    out = len(log) >= 3
""",
)

OVERRIDES = (
    """
    class U:
        def __array_ufunc__(self, ufunc, method, *a, **k):
            return {np.add: "add", np.multiply: "times"}[ufunc]
    out = np.arange(2) + U(), U() * np.arange(2), np.add(U(), 1), np.add == np.add
""",
    """
    class M:
        __array_ufunc__ = None
        def __rmatmul__(self, other):
            return "r"
        def __rdivmod__(self, other):
            return "d"
    class P:
        __array_priority__ = 10
        def __rmatmul__(self, other):
            return "p"
    out = np.eye(2) @ M(), np.eye(2) @ P(), divmod(np.eye(2), M())
""",
    """
    class C:
        def __init__(self, v):
            self.v = np.asarray(v)
        def __array__(self, dtype=None, copy=None):
            return self.v
    x = np.zeros(2)
    x[:] = C([1, 2])
    x += C([1, 2])
    out = (
        np.asarray(C([1, 2])), np.array(C([1, 2])), np.sum(C([1, 2])), np.arange(2) + C([1, 2]), x,
        np.concatenate([C([1]), np.ones(2)]), np.dot(C([1.0, 2.0]), np.ones(2)), np.sort(C([2, 1])),
    )
""",
)

OBJECTS += (
    """
    import numpy
    o = np.empty(4, object)
    o[:] = [1, "a", None, 2.5]
    s, r = o[1:3], o[::-1]
    s[0], r[0] = "changed", 7
    p = numpy.ones(50)
    o[2] = p
    q = o[2]
    q += 1
    seen = p.tolist(), o[2][0]
    q[0] = 9
    y = o[2] * 2
    o[2][:] = 0
    out = s.base is o, o.tolist()[:2], seen, p[0], y[0], o.reshape(2, 2)[0, 0], o[1:][0:1]
""",
    """
    m = np.empty((2, 2), object)
    m[0, 0] = np.ones(50)
    m[1, :] = [3, 4]
    out = m[0, 0][0], m[1], m.T[0, 1], m[0][0] is m[0, 0], m[0, 0] is m[0, 0]
""",
)

SUBCLASSES = (
    """
    class A(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *a, **k):
            a = [x.view(np.ndarray) if isinstance(x, A) else x for x in a]
            return getattr(ufunc, method)(*a, **k)
    out = np.ones(2).view(A) + 1, np.add.reduce(np.ones(2).view(A))
""",
    """
    class B(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *a, **k):
            return super().__array_ufunc__(ufunc, method, *[np.asarray(x) for x in a], **k)
    out = np.ones(2).view(B) + 1
""",
    """
    class S(np.ndarray):
        def __new__(cls, n):
            return np.ndarray.__new__(cls, n)
        def __getitem__(self, key):
            return np.ndarray.__getitem__(self, key) + 1
        def hi(self):
            return "hi"
    s = S(2)
    s[:] = 1.0
    out = s.hi(), s[0], np.ndarray.sum(s), np.ndarray.copy(s).hi(), np.ndarray.__len__(s)
""",
    """
    xs = [np.array([2, 1]), np.array([3.0, 0.0])]
    list(map(np.ndarray.sort, xs))
    found = [list(map(f, xs)) for f in (np.ndarray.argmax, np.ndarray.tolist)]
    out = xs, found, np.ndarray.__add__(xs[0], 1)
""",
    """
    out = np.ones(2).view(type=np.ndarray), np.ones(2).view(int, np.ndarray)
""",
    """
    class V(np.vectorize):
        pass
    v = np.vectorize(lambda x: x + 1)
    @np.vectorize
    def decorated(x):
        return 2 * x
    @np.vectorize(otypes=[float])
    def told(x):
        return 2 * x
    x = np.arange(3)
    out = isinstance(v, np.vectorize), v.pyfunc(1), V(abs)(-x), v(x), decorated(x), told(x)
""",
)

VALUES = (
    """
    m = np.zeros(50, bool)
    out = (m**2).dtype, (m**1).dtype, (m**0.5).dtype
""",
    """
    c = np.full(50, 3 + 0j)
    out = c**-1, np.full(50, 4.0) ** -1, np.full(50, 4.0) ** -1.0
""",
    """
    out = np.zeros(50, complex) ** -1, np.zeros(50) ** -1
""",
    """
    y = np.ones(50) * 2
    out = [np.may_share_memory(y, z) for z in (y[5:], y[::2], y + 1)]
""",
    """
    x = np.zeros(50)
    x.fill(np.array(3.0))
    y = np.zeros(50, int)
    y.fill(2.7)
    out = x, y
""",
    """
    x = np.ones((3, 4))
    out = (
        np.ascontiguousarray(x) is x, np.asfortranarray(x).flags.f_contiguous,
        np.ascontiguousarray(x.T).flags.c_contiguous, np.ascontiguousarray(3.0).shape,
        np.asanyarray(x) is x, np.asfortranarray(x.T).shape, np.asarray([1, 2]), np.asarray(2.5),
        np.ascontiguousarray(x, int).dtype,
    )
""",
)

ERRORS = (
    """
    np.zeros(50).fill([1, 2])
""",
    """
    np.clip(np.zeros(50), 1)
""",
    """
    np.clip(np.zeros(50), a_max=1)
""",
    """
    np.ones(2).imag = 1
""",
    """
    np.ones(1).flags["NOPE"]
""",
    """
    np.ones(1).nothing
""",
)


# Of the extension's own types: in Python the functions are functions, and the class has its name.
COMPILED = (
    """
    handled = {}
    class D:
        def __array_function__(self, function, types, args, kwargs):
            return handled[function](*args) if function in handled else NotImplemented
    handled[np.mean] = lambda *a: "mine"
    handled[np.concatenate] = lambda *a: "joined"
    out = np.mean(D()), np.concatenate([D()])
""",
    """
    hash(np.ones(1))
""",
    """
    np.ones(1)()
""",
)

GROUPS = {
    "splits": SPLITS, "objects": OBJECTS, "overrides": OVERRIDES, "subclasses": SUBCLASSES,
    "values": VALUES, "errors": ERRORS, "compiled": COMPILED if NUMPY else (),
}  # fmt: skip
ALL = {f"{name}{n}": code for name, codes in GROUPS.items() for n, code in enumerate(codes)}


def plain(value: Any) -> Any:
    """A value that can be compared: arrays as their types and elements."""
    if isinstance(value, (numpy.ndarray, ours.ndarray)):
        return str(value.dtype), value.shape, plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value if value == value else "nan"


def run(code: str, np: Any) -> Any:
    """What a program's `out` is, or what it raises, and what it warns."""
    names: dict[str, Any] = {"np": np}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(textwrap.dedent(code), names)
            found = plain(names.get("out"))
        except Exception as error:
            found = type(error).__name__, str(error)
    return repr(found), [str(w.message) for w in warned]


@pytest.mark.parametrize("most", [None, 4], ids=["at once", "recorded"])
@pytest.mark.parametrize("code", ALL.values(), ids=ALL)
def test_as_numpy(code: str, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if most:
        monkeypatch.setattr(LIMITS, "most", most)
        monkeypatch.setattr(LIMITS, "costly", most)
    assert run(code, ours) == run(code, numpy)
