"""Which arrays of Views are gone at once under `pyfuser run`, so that launches still wait together.

Each script's output is that of a plain run; whether two launches ran together tells of the View.
"""

from __future__ import annotations

import ast
import sys

import numpy as np
import pytest

from pyfuser.run import lending, lent
from tests.run.conftest import Runner, outcome

HEAD = """
v, w = pk.View([4], pk.double), pk.View([2, 3], pk.double)
v.data[:] = [1.0, 2.0, 3.0, 4.0]
w.data[:] = np.arange(6.0).reshape(2, 3)
class Keeps:
    def __init__(self): self.kept = []
    def __call__(self, *given): self.kept += given; return 0
    def __getitem__(self, key): self.kept.append(key); return 0
keeps = Keeps()
"""
TAIL = "\n[launch(v) for _ in range(2)]\nprint(v[0], list(v))\n"

GO = "\nx = f = g = None; keeps.kept = []; import gc; gc.collect()"
"""Only an address may be left of what was kept."""

GONE = (
    "x = np.array(v.data)",
    "x = 1.5 - 0.4 * np.array(v.data)",
    "x = v.data + v.data * 2.0 - (-v.data)",
    "x = v.data @ v.data",
    "x = v.data[0]",
    "x = v.data[v.data > 2.0]",
    "x = v.data[[1, 2]] + 1",
    "x = float(v.data[0]) + int(v.data[1])",
    "x = np.sum(v.data[1:]) + np.linalg.norm(v.data - 1) + np.sqrt(v.data)[1]",
    "x = v.data.sum() + v.data[1:].max() + v.data.T.mean() + len(v.data) + v.data.shape[0]",
    "x = v.data.reshape(2, 2).copy().tolist()",
    "x = np.concatenate([v.data, v.data[2:]]), np.stack((v.data, v.data), axis=1)",
    "x = f'{v.data} {v.data[0]:.2f}'; print(v.data)",
    "x = 3.0 in v.data, v.data[0] > 0.5, (v.data == v.data).all()",
    "x = v.data.astype(np.float32)",
    "v.data += 1.0; v.data[1:] *= 2.0; v.data **= 2; x = v.data[2]",
    "v.data.fill(2.0); v.data.sort(); x = 0",
    "x = lambda: v.data[1] + 1; x = x()",
    "x = [v.data[n] for n in range(3)]",
    "x = 0\nwhile v.data[0] + x < 3 and np.all(v.data > 0): x += 1",
    "x = 0\nif v.data.any() and not v.data[0] > 2: x = 1",
    "x = 0\nassert np.isfinite(v.data).all(), v.data[0]",
    "def f(): return v.data.max()\nx = f()",
    "np.testing.assert_allclose(v.data, [1, 2, 3, 4]); x = np.allclose(v.data, v.data)",
    "np.copyto(v.data, 3.0); x = 0",
)
KEPT = (
    "x = v.data",
    "x = v.data[1:]",
    "x = v.data[1:][0:2]",
    "x = np.asarray(v.data)",
    "x = np.array(v.data, copy=False if np.__version__ < '2' else None)",
    "x = np.array(*[v.data], **{'copy': False if np.__version__ < '2' else None})",
    "x = np.array(v.data, **{'copy': False if np.__version__ < '2' else None})",
    "from functools import partial\nx = partial(keeps)(v.data)",
    "def h(*a): return keeps(*a)\nx = h(v.data)",
    "class box: array = keeps\nx = box.array(v.data)",
    "v.data.view(np.int64)[0]; x = 0",
    "x = np.nan_to_num(v.data, *[False])",
    "x = np.array(v.data, dtype=float, copy=False if np.__version__ < '2' else None)",
    "x = v.data.view(np.int64)",
    "x = v.data.astype(float, 'K', 'unsafe', False, False)",
    "x = [v.data]",
    "x = v.data.T",
    "x = v.data.reshape(2, 2)",
    "x = v.data.reshape(2, 2)[0]",
    "x = [v.data] * 2",
    "x = (v.data,) + (1,)",
    "x = v.data if v.data is not None else 0",
    "x = v.data.astype(float, copy=False)",
    "x = np.add(1.0, 1.0, v.data)",
    "x = np.add(1.0, 1.0, out=v.data)",
    "x = np.add(v.data, 1.0, v.data)",
    "x = np.sum(v.data, 0, None, v.data[:1].reshape(()))",
    "x = [r for r in (v.data,)]",
    "x = keeps(v.data)",
    "x = keeps(v.data[1:])",
    "x = keeps[v.data]",
    "x = dict(a=v.data)['a'][0]",
    "x = sorted([v.data], key=len)",
    "def g():\n    class np: array = keeps\n    return np.array(v.data)\nx = g()",
    "float = keeps; x = float(v.data)",
    "(x := v.data).sum()",
    "def f(): return v.data\nx = f()[0]",
)


@pytest.mark.parametrize("text", GONE)
def test_an_array_that_nobody_keeps(text: str, run: Runner) -> None:
    text = HEAD + text + "\nprint(x)" + TAIL
    fused = run(text)
    assert fused.output == run(text, fuse=False).output
    assert fused.together == 2


@pytest.mark.parametrize("text", KEPT)
def test_an_array_that_somebody_may_keep(text: str, run: Runner) -> None:
    text = HEAD + text + GO + TAIL
    assert outcome(run, text, True) == outcome(run, text, False)
    assert run(text).together < 2


def test_where_an_address_may_be_kept_it_is_read_through(run: Runner) -> None:
    """The reason for all this: an address without its array."""
    text = HEAD + (
        "import ctypes\nx = v.data[1:]\np = x.ctypes.data\ndel x\n"
        "[launch(v) for _ in range(2)]\nprint(ctypes.c_double.from_address(p).value)\n"
    )
    assert run(text).output == run(text, fuse=False).output


@pytest.mark.parametrize(
    "text",
    [
        "print(w.data[5])",
        "print(w.data[0, 7])",
        "print(np.sum(w.data, axis=4))",
        "w.data += [1, 2]",
        "print(w.data[0] @ v.data)",
        "print(w.dat[0])",
        "class Has: data = {'k': 2}\nh = Has(); h.data['k'] += 1\nprint(h.data['k'], h.data)",
        "class Has:\n    @property\n    def data(self): print('asked'); return [1, 2]\n"
        "def key(): print('key'); return 1\nprint(Has().data[key()], Has().data + [3])",
        "class Box:\n    @property\n    def array(self): print('asked'); return np.sum\n"
        "b = Box(); print(b.array(v.data), Box().array(v.data), Box().array(v.data[1:]))",
        "print(memoryview(b'ab')[0], (5).__index__(), np.arange(3).data[1])",
    ],
)
def test_what_it_does_is_what_the_program_does(text: str, run: Runner) -> None:
    text = HEAD + text + TAIL
    assert outcome(run, text, True) == outcome(run, text, False)


def test_functions_that_are_said_to_give_nothing_back_give_nothing_back() -> None:
    """Of NumPy's, with what they are said to take: their results share no memory with that."""
    array = np.arange(1.0, 17.0).reshape(4, 4) + 5 * np.eye(4)
    line = array[0].copy()
    given = {
        "vstack": ([array],), "hstack": ([array],), "column_stack": ([line],), "stack": ([line], 1),
        "concatenate": ([array], 0), "bincount": (np.arange(4), line), "outer": (line, line),
        "searchsorted": (line, line), "where": (array > 9, array, array), "clip": (array, 3, 99),
        "interp": (line, line, line), "histogram": (line, 4), "full_like": (line, 2.0),
        "average": (line, 0), "linalg.solve": (array, line), "linalg.norm": (array, 2),
        "percentile": (array, 50), "quantile": (array, 0.5), "copyto": (array.copy(), array),
        "dot": (array, array), "vdot": (line, line), "inner": (line, line),
        "array_equal": (line, line), "array_equiv": (line, line), "cov": (line, line),
        "corrcoef": (line, line), "isclose": (line, line), "allclose": (line, line),
        "array": (array, float), "zeros_like": (array, float), "ones_like": (array, float),
        "empty_like": (array, float),
    }  # fmt: skip
    for most, names in lent._FRESH.items():
        for name in names.split():
            function = lent.attrgetter(name)(np)
            assert lent._most(function) == most
            arguments = given.get(name, (array,))
            result = function(*arguments)
            for part in result if isinstance(result, tuple) else (result,):
                assert not (isinstance(part, np.ndarray) and np.shares_memory(part, array)), name
                assert not (isinstance(part, np.ndarray) and np.shares_memory(part, line)), name


def test_which_functions_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lent._most(np.testing.assert_allclose) == 4 and lent._most(np.testing.assert_equal) == 2
    assert lent._most(np.add) == 2 and lent._most(np.sqrt) == 1 and lent._most(float) > 9

    def assert_equal(a, b):
        pass

    for other in (assert_equal, np.asarray, np.ravel, np.frombuffer, np.add.at, list, iter, None):
        assert lent._most(other) == -1
    monkeypatch.delitem(sys.modules, "numpy.testing")
    assert lent._most(np.testing.assert_equal) == -1 == lent._most(assert_equal)


def test_methods_that_are_said_to_give_new_arrays_do() -> None:
    given = {"repeat": (2,), "dot": (np.eye(4),), "searchsorted": (3.0,), "astype": (float,),
             "clip": (0, 99), "put": (0, 1.0), "fill": (1.0,)}  # fmt: skip
    of = {"searchsorted": (0,), "item": (0, slice(1))}
    for name in sorted(lending._METHODS - {"ptp"} | lending._METHODS & set(dir(np.ndarray))):
        array = np.arange(16.0).reshape(4, 4)
        result = getattr(array[of.get(name, ())], name)(*given.get(name, ()))
        for part in result if isinstance(result, tuple) else (result,):
            assert not (isinstance(part, np.ndarray) and np.shares_memory(part, array)), name


def test_what_is_not_changed_is_the_same_node() -> None:
    for text in (
        "f.g(v.data)",
        "f(*v.data, v.data)",
        "np.sum(v.data, *k)",
        "x.y[1] + g(z)",
        "[v.data]",
        "not v.datum",
        "np.sum(v.data, out=x)",
    ):
        tree = ast.parse(text, mode="eval").body
        assert lending.lending(tree) is tree
