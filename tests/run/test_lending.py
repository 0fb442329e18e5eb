"""Which arrays of Views are gone at once under `pyfuser run`, so that launches still wait together.

Each script's output is that of a plain run; whether two launches ran together tells of the View.
"""

# ruff: noqa: E501

from __future__ import annotations

import ast

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.run import lending, lent
from tests.run.conftest import Runner, outcome

HEAD = """
v, w = pk.View([4], pk.double), pk.View([2, 3], pk.double)
v.data[:] = [1.0, 2.0, 3.0, 4.0]
w.data[:] = np.arange(6.0).reshape(2, 3)
class Keeps:
    __array_ufunc__ = None
    def __init__(self): self.kept = []
    def __call__(self, *given): self.kept += given; return "0"
    def __getitem__(self, key): self.kept.append(key); return 0
    def __radd__(self, other): self.kept.append(other); return 0
    def __add__(self, other): self.kept.append(other); return 0
    __ror__ = __contains__ = __eq__ = __radd__
    def of(self, function):
        self.kept.append(function)
        return lambda *given: self(*given)
keeps = Keeps()
"""
TAIL = "\n[launch(v) for _ in range(2)]\nprint(v[0], list(v))\n"

GO = "\nx = f = g = None; keeps.kept = []; import gc; gc.collect()"
"""Only an address may be left of what was kept."""

GONE = (
    "x = np.array(v.data)",
    "x = 1.5 - 0.4 * np.array(v.data) + np.array(v.data, dtype=float)",
    "x = v.data * 2.0, 2.0 - v.data, v.data**2, -v.data, v.data > -2.5, v.data != 3",
    "x = v.data[0]",
    "x = v.data[-1], w.data[1, 2], w.data[0, -1]",
    "x = float(v.data[0]) + int(v.data[1 + 1]) + abs(v.data[1:])[0] + float(v.data[len(v) - 3])",
    "x = np.sqrt(v.data)[1], np.isfinite(v.data[1:]), np.abs(w.data, dtype=float)",
    "x = w.data.argmax(axis=0)[1] + len(v.data) + v.data.shape[0] + v.data.size",
    "x = v.data.copy().sum(), v.data.tolist(), v.data.astype(np.float32)",
    "v.data += 1.0; v.data[1:] *= 2.0; v.data **= 2; x = v.data[2]",
    "v.data.fill(2.0); v.data.sort(); x = 0",
    "x = lambda: v.data[1] + 1; x = x()",
    "x = [v.data[2] for n in range(3)]",
    "x = 0\nwhile v.data[0] + x < 3 and (v.data > 0).all(): x += 1",
    "x = 0\nif v.data.argmax() and not v.data[0] > 2: x = 1",
    "x = 0\nassert np.isfinite(v.data).all(), v.data[0]",
    "def f(): return v.data.copy()\nx = f()",
    "x = v.data.copy()",
)
KEPT = (
    "x = v.data",
    "x = v.data[1:]",
    "x = v.data[1:][0:2]",
    "x = np.asarray(v.data)",
    "x = np.array(v.data, copy=False if np.__version__ < '2' else None)",
    "x = np.array(v.data, **{'copy': False if np.__version__ < '2' else None})",
    "x = np.array(*[v.data], **{'copy': False if np.__version__ < '2' else None})",
    "x = np.array(v.data, dtype=float, copy=False if np.__version__ < '2' else None)",
    "x = np.array([v.data, None], dtype=object)",
    "x = np.histogram([1.0, 2.0], v.data)",
    "x = np.nan_to_num(v.data, *[False])",
    "x = v.data.T",
    "x = np.sum(v.data)",
    "x = v.data.sum()",
    "try: x = np.sum(v.data, axis=7)\nexcept Exception as e: keeps(e.__traceback__.tb_next.tb_frame.f_locals)",
    "import sys\nsys.setprofile(lambda *e: keeps(e)); x = v.data.copy(); sys.setprofile(None)",
    "x = v.data.reshape(2, 2)",
    "x = [v.data] * 2",
    "x = (v.data,) + (1,)",
    "x = [v.data]",
    "x = v.data if v.data is not None else 0",
    "x = v.data is 1",
    "x = v.data.astype(float, copy=False)",
    "x = v.data.astype(float, 'K', 'unsafe', False, False)",
    "x = v.data.astype(*(float, 'K', 'unsafe', True, False))",
    "x = v.data.view(np.int64)",
    "v.data.view(np.int64)[0]; x = 0",
    "x = np.add(1.0, 1.0, v.data)",
    "x = np.add(1.0, 1.0, out=v.data)",
    "try: x = v.data.sum(out=keeps)\nexcept TypeError: pass",
    "try: x = v.data.clip(keeps, 1)\nexcept TypeError: pass",
    "try: x = v.data.sum(keeps)\nexcept TypeError: pass",
    "x = v.data + keeps",
    "x = v.data | keeps",
    "x = keeps + v.data",
    "try: x = np.add(v.data, keeps)\nexcept TypeError: pass",
    "x = v.data in keeps",
    "x = v.data == keeps",
    "try: v.data[:] += keeps\nexcept TypeError: pass",
    "try: v.data += keeps\nexcept TypeError: pass",
    "x = keeps(v.data)",
    "x = keeps(v.data[1:])",
    "x = keeps[v.data]",
    "x = keeps.of(np.sum)(v.data)",
    "x = keeps.of(v.data.sum)()",
    "x = dict(a=v.data)['a'][0]",
    "np.set_printoptions(override_repr=keeps); x = repr(v.data); np.set_printoptions(override_repr=None)",
    "def g():\n    class np: array = keeps\n    return np.array(v.data)\nx = g()",
    "float = keeps; x = float(v.data)",
    "def g(float): return float(v.data)\nx = g(keeps)",
    "g = np.sum\ndef h():\n    global g\n    g = np.sum; return v\ng = keeps; x = g(h().data)",
    "class box: array = keeps\nx = box.array(v.data)",
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
        "print(w.data[0, 7], 1)",
        "print(v.data[9])",
        "print(np.sum(w.data, axis=4))",
        "w.data += [1, 2]",
        "print(w.data[0] @ v.data)",
        "print(w.dat[0])",
        "class Has: data = {2: 2}\nh = Has(); h.data[2] += 1\nprint(h.data[2], h.data)",
        "class Has:\n    @property\n    def data(self): print('asked'); return [1, 2]\n"
        "def key(): print('key'); return 1\nprint(Has().data[key()], Has().data[1], Has().data * 2)",
        "class Box:\n    @property\n    def array(self): print('asked'); return np.sum\n"
        "b = Box(); print(b.array(v.data), Box().array(v.data), Box().array(v.data[1:]))",
        "class NP:\n    @property\n    def array(self): print('asked'); return np.sum\n"
        "def f(np): return np.array(v.data)\nprint(f(NP()))",
        "print(memoryview(b'ab')[0], (5).__index__(), np.arange(3).data[1])",
        "class C:\n    n = 0\n    def __index__(self): C.n += 1; return C.n\n"
        "print(v.data[C():], C.n, v.data[C()], C.n)",
        "def f(): v.resize(0, 2); return 3\nprint(v.data[f()])",
        "a = v.data; a.flags.writeable = False\ntry: v.data += 1.0\nexcept ValueError as e: print(e)\n"
        "try: v.data.sort()\nexcept ValueError as e: print(e)\nprint(a, v.data.sum())",
        "a = w.data; a.shape = (3, 2); print(w.data.sum(axis=1), w.data[2, 1])",
        "x = v.data; print(np.array(v.data) is x, v.data is x, v.data is v.data)",
        "import inspect\nclass Old:\n    @property\n    def data(self): print(inspect.stack()[1].function); return [1]\n"
        "print(Old().data[0], Old().data * 2)",
        "def f(h): return h(dele(), v.data)\ndef dele():\n    global h\n    del h\nh = two = lambda a, b: 0\nprint(f(h))",
    ],
)
def test_what_it_does_is_what_the_program_does(text: str, run: Runner) -> None:
    text = HEAD + text + TAIL
    assert outcome(run, text, True) == outcome(run, text, False)


def test_which_elements_they_are() -> None:
    """One of all axes, or it is an array."""
    view = pk.View([2, 3], pk.double)
    assert [type(lent.lent(view, n)) is lent._Lent for n in range(4)] == [True, False, True, False]
    assert lent.lent(3, 1) == 3


def test_which_functions_they_are() -> None:
    assert all(map(lent.keeps_nothing, (np.sqrt, np.array, float)))
    for other in (
        np.sum,
        np.add,
        np.asarray,
        np.ravel,
        np.frombuffer,
        np.add.at,
        list,
        iter,
        repr,
        None,
    ):
        assert not lent.keeps_nothing(other)


def test_methods_that_are_said_to_give_new_arrays_do() -> None:
    given = {"astype": (float,), "fill": (1.0,)}
    for name in sorted(lending._METHODS):
        array = np.arange(16.0).reshape(4, 4)
        result = getattr(array[(0, slice(1)) if name == "item" else ...], name)(
            *given.get(name, ())
        )
        for part in result if isinstance(result, tuple) else (result,):
            assert not (isinstance(part, np.ndarray) and np.shares_memory(part, array)), name


def _rewritten(text: str) -> str:
    tree = ast.parse(text)
    rewriter = lending.Lending(list(ast.walk(tree)))
    before = [ast.unparse(node) for node in tree.body]
    made = [ast.unparse(rewriter.statement(node)) for node in tree.body]
    return "\n".join(new for old, new in zip(before, made, strict=True) if new != old)


@pytest.mark.parametrize(
    "text",
    [
        "f.g(v.data)", "f(*v.data)", "np.sum(v.data)", "import numpy as np\nnp.sum(v.data, *k)",
        "import numpy as np\nnp.sum(v.data, out=x)", "import numpy as np\nnp = 1\nnp.sum(v.data)",
        "import numpy as np\nnp.sum = 1\nnp.sum(v.data)",
        "import numpy as np\nfrom x import *\nnp.sum(v.data)", "from x import *\nlen(v.data)",
        "import lib as np\nnp.sum(v.data)", "from numpy import sum as np\nnp.sum(v.data)",
        "import numpy as np\ntry: pass\nexcept E as np: pass\nnp.sum(v.data)",
        "import numpy as np\nmatch x:\n    case np: pass\nnp.sum(v.data)",
        "import numpy as np\nmatch x:\n    case {**np}: pass\nnp.sum(v.data)",
        "import numpy as np\ndef f():\n    global np\nnp.sum(v.data)",
        "import numpy as np\ndef f(np): pass\nnp.sum(v.data)",
        "import numpy as np\nclass np: pass\nnp.sum(v.data)",
        "def len(): pass\nlen(v.data)", "del len\nlen(v.data)", "g(v.data.copy)()", "g(np.sum)(v.data)",
        "v.data.argmax(k)", "v.data.argmax(0, k)", "v.data.argmax(axis=0, out=k)", "v.data + ~3",
        "import numpy as np\nnp.sum(v.data, axis=0, out=k)", "v.data.argmax(*k)", "v.data.argmax(out=k)", "v.data.astype(*k)", "v.data[k]",
        "v.data[1, k]", "v.data is 3", "3 in v.data", "v.data < 3 < k", "v.data + k", "v.datum[0]",
        "v.data += k", "v.data[:] += k", "v.data[True]", "not v.data", "v.data + 'a'",
    ],
)  # fmt: skip
def test_what_is_not_changed(text: str) -> None:
    assert _rewritten(text) == ""


def test_what_is_changed() -> None:
    text = "import numpy as np\nnp.abs(f.g(v.data[0]).data)\nx[v.data[1]] = v.data[-2]"
    assert _rewritten(text) == (
        "np.abs(__pyfuser_lent_to__(f.g(__pyfuser_lent__(v, 1).data[0]), np, 'abs').data)\n"
        "x[v.data[1]] = __pyfuser_lent__(v, 1).data[-2]"
    )
    assert _rewritten("v.data[1:], w.data[0] = 1, 2") == (
        "__pyfuser_lent__(v).data[1:], __pyfuser_lent__(w).data[0] = (1, 2)"
    )
    assert (
        _rewritten("__pyfuser_top__(v.data.copy)()")
        == "__pyfuser_top__(__pyfuser_lent__(v).data.copy)()"
    )
    for text, made in (
        ("v.data.astype(float)", "__pyfuser_lent__(v).data.astype(float)"),
        ("v.data[1, 2]", "__pyfuser_lent__(v, 2).data[1, 2]"),
        ("v.data.argmax(axis=f(x))", "__pyfuser_lent__(v).data.argmax(axis=f(x))"),
        ("float(v.data[k])", "float(__pyfuser_lent_to__(v, float).data[k])"),
        ("-v.data < 3", "-__pyfuser_lent__(v).data < 3"),
        ("v.data <= 3", "__pyfuser_lent__(v).data <= 3"),
        ("v.data.ndim", "__pyfuser_lent__(v).data.ndim"),
        ("2 ** v.data", "2 ** __pyfuser_lent__(v).data"),
        ("v.data **= 2", "__pyfuser_lent__(v).data **= 2"),
        ("v.data[k:] += 2", "__pyfuser_lent__(v).data[k:] += 2"),
    ):
        assert _rewritten(text) == made
