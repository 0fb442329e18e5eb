"""How many calls wait together under `pyfuser run`: a legal case, and its twin that reads an array.

Each script's output is that of a plain run; the twin differs in one use of an array.
"""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from tests.run.conftest import Runner, outcome

HEAD = """
import types
from collections import namedtuple
pair = namedtuple("pair", "x y")
a = np.arange(6.0)
m = np.zeros((4, 3))
@pk.workunit
def divide(i, a, k, n):
    a[i] = a[i] + n // k[i]
@pk.workunit
def halve(i, a, n):
    a[i] = a[i] + i // n + i % 2
@pk.function
def wrapped(i: int, n: int) -> int:
    return i // n % 3
@pk.workunit
def turned(i, a, n):
    a[i] = a[i] + wrapped(i, n)
@pk.workunit
def turned_by(i, a, k):
    a[i] = a[i] + wrapped(i, k[i])
k, zero = np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
class Box:
    kind = "box"
    def __init__(self): self.a, self.n, self.items = a, 2, {"a": a}
    @property
    def twice(self): return 2 * self.n
    @property
    def first(self): return self.a[0]
    def get(self): return self.a
    @staticmethod
    def apply(x): launch(x)
    @classmethod
    def create(cls): return cls()
    def __private(self): launch(self.a)
    def run(self): self.__private(); self.__private()
o = Box()
"""
TAIL = "\nprint(a, m, k)\n"

#: What is measured: the legal script with the calls that wait together, and its twin with less.
CASES: dict[str, tuple[int, str, str]] = {
    "rows": (
        4,
        "for j in range(4): launch(m[j])",
        "for j in range(4): launch(m[j]); print(m[j, 0])",
    ),
    "parts": (2, "launch(a[1:3]); launch(a[-2:])", "launch(a[1:3]); x = a[[1, 2]]; launch(a[-2:])"),
    "parts of parts": (
        2,
        "x = m[1:]\nlaunch(x[0])\nlaunch(x[1][1:])",
        "x = m[1:]\nlaunch(x[0])\ny = x[1][1]\nlaunch(x[1])",
    ),
    "computed rows": (
        2,
        "n = 1\nlaunch(m[2 * n]); launch(m[n + 2])",
        "n = 1\nlaunch(m[2 * n]); launch(m[int(m.argmax()) % 4])",
    ),
    "shapes of others": (
        2,
        "launch(a); x = np.zeros_like(a); launch(x)",
        "launch(a); x = np.copy(a); launch(x)",
    ),
    "reshaped": (
        2,
        "x = a.reshape(2, 3)\nlaunch(x[0])\ny = a.reshape(3, 2)\nlaunch(y[0])",
        "x = a.reshape(2, 3)\nlaunch(x[0])\ny = x.T.reshape(6)\nlaunch(y)",
    ),
    "print of numbers": (
        2,
        "launch(a); print('step', o.n); launch(a)",
        "launch(a); print('step', a); launch(a)",
    ),
    "a namespace": (
        2,
        "s = types.SimpleNamespace(a=a, n=1)\nlaunch(s.a); s.n = 2; launch(s.a)",
        "s = types.SimpleNamespace(a=a, n=1)\nlaunch(s.a); s.n = s.a[0]; launch(s.a)",
    ),
    "a named tuple": (
        2,
        "s = pair(a, 1)\nlaunch(s.x); launch(s[0])",
        "s = pair(a, 1)\nlaunch(s.x); x = s._asdict(); launch(s[0])",
    ),
    "a named tuple with a method of its own": (
        2,
        "class P(pair): pass\ns = P(a, 1)\nlaunch(s.x); launch(s[0])",
        "class P(pair):\n    def __getitem__(self, k): print(a); return a\ns = P(a, 1)\nlaunch(s.x); launch(s[0])",
    ),
    "a dictionary": (
        2,
        "launch(o.items['a']); launch(o.items['a'])",
        "class K(str): pass\no.items[K('b')] = a\nlaunch(o.items['a']); launch(o.items['a'])",
    ),
    "a list": (
        2,
        "x = [a]\nlaunch(x[0]); x.append(1); launch(x[0])",
        "x = [a]\nlaunch(x[0]); x.extend(a); launch(x[0])",
    ),
    "an accessor": (
        2,
        "launch(o.get()); launch(o.get())",
        "launch(o.get()); x = o.get() + 1; launch(o.get())",
    ),
    "a property of the program's own": (
        2,
        "launch(a); x = o.twice; launch(a)",
        "launch(a); x = o.first; launch(a)",
    ),
    "an attribute of a class": (
        2,
        "launch(a); x = Box.kind; launch(a)",
        "launch(a); x = Box.mro(); launch(a)",
    ),
    "static methods": (2, "o.apply(a); Box.apply(a)", "o.apply(a); Box.create(); Box.apply(a)"),
    "private methods": (2, "o.run()", "o.run\nlaunch(a); o.run.__self__\nlaunch(a)"),
    "names bound on some ways only": (
        3,
        "def f(n):\n    launch(a)\n    if n: x = 1\n    launch(a)\n    if n: x = x + 1\n    launch(a)\nf(1)",
        "def f(n):\n    launch(a)\n    try: x = x + 1\n    except NameError: print(a)\n    launch(a)\nf(1)",
    ),
    "a division that cannot fail": (
        2,
        "pk.parallel_for(6, halve, a=a, n=2); launch(a)",
        "pk.parallel_for(4, divide, a=a, k=k, n=2); launch(a)",
    ),
    "a division by a number": (
        2,
        "pk.parallel_for(6, halve, a=a, n=2); launch(a)",
        "try: pk.parallel_for(6, halve, a=a, n=0); launch(a)\nexcept ZeroDivisionError: print('divided')",
    ),
    "a division by 0 in its try": (
        2,
        "launch(a); launch(a)",
        "try: pk.parallel_for(4, divide, a=a, k=zero, n=1)\nexcept ZeroDivisionError: print('divided')\nlaunch(a)",
    ),
    "an end without code": (
        2,
        "def f():\n    x = [a[1:], {'k': o}]\n    launch(a)\nf(); f()",
        "class D(list):\n    __del__ = print\ndef f():\n    x = [D()]\n    launch(a)\nf(); f()",
    ),
    "many names of one end": (
        2,
        "def f():\n    x = y = z = w = [o]\n    launch(a)\nf(); f()",
        "class D(list):\n    __del__ = print\ndef f():\n    x = y = z = w = v = D()\n    l = [x] * 9\n    d = {'k': l}\n    launch(a)\nf(); f()",
    ),
    "what another holds": (
        2,
        "keep = [class_ for class_ in ()]\nclass D(list):\n    __del__ = print\nkeep.append(D()); keep += keep * 20\ndef f():\n    x = keep[0]\n    launch(a)\nf(); f()\nkeep.clear()",
        "class D(list):\n    __del__ = print\nkeep = [D()]\ndef f():\n    x = keep.pop()\n    launch(a)\nf(); launch(a)",
    ),
    "a rebound name without code": (
        2,
        "x = Box()\nlaunch(a); x = Box; launch(a)",
        "class D(list):\n    __del__ = lambda self: print(a)\nx = D()\nlaunch(a); x = 1; launch(a)",
    ),
    "a result over a name without code": (
        2,
        "def f(): launch(a); return 1\nx = Box()\nx = f(); x = f()",
        "class D(list):\n    __del__ = print\ndef f(): launch(a); return D()\nx = f(); x = f()",
    ),
    "a loop over a dictionary": (
        2,
        "for p, q in {'a': a, 'b': a}.items(): launch(q)",
        "for p, (q, *_) in {'a': a, 'b': a}.items(): launch(a)",
    ),
    "a loop over a zip": (
        2,
        "for p, q in zip([1, 2], [a, a]): launch(q)",
        "for p, (q, *_) in zip([1, 2], [a, a]): launch(a)",
    ),
    "a loop over tuples": (
        4,
        "for x, k in ((a, 1.0), (a[1:], 2.0)): launch(x, k); launch(a)",
        "for x, k in ((a, 1.0), a[:2]): launch(a)",
    ),
    "a loop over a list of tuples": (
        4,
        "for x, (k, y) in [(a, (1.0, m)), (a[1:], [2.0, m])]: launch(x, k); launch(y[0])",
        "for x, (k, y) in [(a, (1.0, m)), (a[1:], a[:2])]: launch(x); print(k, y)",
    ),
    "a loop over a list that grows": (
        3,
        "l = [(a, 1.0), (a, 2.0)]\nfor x, k in l:\n    launch(x, k)\n    if k == 2.0: l.append((a, 3.0))",
        "l = [(a, 1.0), (a, 2.0)]\nfor x, k in l:\n    launch(a)\n    if len(l) < 4: l.append(a[:2])\n    else: print(k)",
    ),
    "a loop without launches": (
        2,
        "launch(a)\nl = ((a, [1, 2]), (m, [3, 4]))\nfor x, (p, q) in l: pass\nlaunch(a)",
        "launch(a)\nl = ((a, [1, 2]), (m, a[:2]))\nfor x, (p, q) in l: pass\nlaunch(a)",
    ),
    "a loop without launches that changes what is unpacked": (
        2,
        "launch(a)\nl = [1, 2]\nfor x, y in ((a, 1), l): l[0] = 2\nlaunch(a)",
        "launch(a)\nl = [1, [2, 3]]\nfor x, (y, z) in ((a, (1, 2)), l): l[1] = a[:2]\nlaunch(a)",
    ),
    "a loop over a zip of tuples": (
        4,
        "for (x, k), y in zip(((a, 1.0), (a[1:], 2.0)), [m, m]): launch(x, k); launch(y[0])",
        "for (x, k), y in zip((a[:2], a[2:4]), [m, m]): launch(a); print(x, k)",
    ),
    "several names at once": (
        2,
        "launch(a); (x, y), z = (a, m), 1; launch(x)",
        "launch(a); (x, y), z = a[:2], 1; launch(a)",
    ),
    "several names at once, of a list that changes before": (
        2,
        "l = [(1, 2), 3]\nlaunch(a); ((x, y), z), w = (l[0], l[1]), l.append(1); launch(a)",
        "l = [(1, 2), a[:2]]\nlaunch(a); ((x, y), z), w = l, l.reverse(); launch(a); print(x, y)",
    ),
    "an item of a list that changes before": (
        2,
        "l = [o, o]\nlaunch(a); x = l[0].n, l.reverse(); launch(a)",
        "class P:\n    n = property(lambda self: float(a[0]))\nl = [o, P()]\nlaunch(a); x = l.reverse(), l[0].n; launch(a)",
    ),
    "a length that changes before": (
        2,
        "l = [1]\nlaunch(a); x = [o, o][len(l)].n, l.append(1); launch(a)",
        "class P:\n    n = property(lambda self: float(a[0]))\nl = []\nlaunch(a); x = l.append(1), [o, P()][len(l)].n; launch(a)",
    ),
    "a length as a subscript": (
        2,
        "d = {3: a}\nlaunch(a); x = d[len([1, 2, 3])]; launch(x)",
        "d = {3: a}\nlaunch(a); x = d[len(d) + int(a[0] > 0) + 1]; launch(a)",
    ),
    "a number as a subscript": (
        2,
        "l, d = [a, a], {1: a}\nlaunch(a); x = l[int(1.5)]; y = d[int(1.5)]; launch(a)",
        "class K(int):\n    __hash__ = int.__hash__\n    def __eq__(self, other): print(a); return int(self) == other\nd = {K(1): a}\nlaunch(a); y = d[int(1.5)]; launch(a)",
    ),
    "a variable of a function around": (
        2,
        "def f(a):\n    def g(): return a\n    def h():\n        launch(a)\n        x = g()\n        launch(x)\n    h()\nf(a)",
        "def f(a):\n    def g(): return 2 * a\n    def h():\n        launch(a)\n        x = g()\n        launch(a)\n    h()\nf(a)",
    ),
    "a name whose value may run code, beside one without": (
        2,
        "def f(n):\n    x = [n]\n    launch(a); x, y = n, n; launch(a)\nf(1)",
        "class D(list):\n    __del__ = lambda self: print(a)\ndef f(n):\n    x = D()\n    if n: launch(a)\n    x, y = n, n; launch(a)\nf(1)",
    ),
    "a division by a function's parameter": (
        2,
        "pk.parallel_for(6, turned, a=a, n=2); launch(a)",
        "try: pk.parallel_for(6, turned, a=a, n=0); launch(a)\nexcept ZeroDivisionError: print('divided')",
    ),
    "a division by a function's parameter that is an element": (
        2,
        "pk.parallel_for(6, turned, a=a, n=2); launch(a)",
        "pk.parallel_for(4, turned_by, a=a, k=k); launch(a)",
    ),
    "the array of an assignment": (
        2,
        "v = pk.View([4], pk.double); v.data[:] = 1.0\n[launch(v) for _ in range(2)]\nprint(v[0])",
        "v = pk.View([4], pk.double); w = v.data; w[:] = 1.0\n[launch(v) for _ in range(2)]\nprint(w)",
    ),
    "arrays of several targets": (
        2,
        "v = u = pk.View([4], pk.double)\n(v.data[0], [u.data[1:]]) = x = 1.0, [[2, 3, 4]]\n[launch(v) for _ in range(2)]\nprint(v[0], v[3], x)",
        "v = pk.View([4], pk.double); w = v.data[:]; w += 1.0\n[launch(v) for _ in range(2)]\nprint(v[0])",
    ),
    "the array of an assignment that fails": (
        2,
        "v = pk.View([4], pk.double)\ntry: v.data[:] = [1, 2]\nexcept ValueError as e: print(e)\n[launch(v) for _ in range(2)]\nprint(v[0])",
        "v = pk.View([4], pk.double)\ntry: v.data[v.data > 0] = [1, 2]\nexcept ValueError as e: print(e)\n[launch(v) for _ in range(2)]\nprint(v[0])",
    ),
    "an object whose data is set": (
        2,
        "class Has: pass\nh = Has(); h.data = {}; h.data['k'] = 2\nlaunch(a); launch(a)\nprint(h.data)",
        "class Has: pass\nh = Has(); h.data = a; launch(a); h.data[0] = 2\nlaunch(a)\nprint(h.data)",
    ),
    "a handler": (
        2,
        "launch(a)\ntry: pass\nexcept ValueError: pass\nlaunch(a)",
        "launch(a)\ntry: x = 1 // o.zero\nexcept (print(a) or AttributeError): pass\nlaunch(a)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_waits(name: str, run: Runner) -> None:
    together, legal, _ = CASES[name]
    text = HEAD + legal + TAIL
    fused = run(text)
    assert fused.output == run(text, fuse=False).output
    assert fused.together == together


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_wait(name: str, run: Runner) -> None:
    together, _, twin = CASES[name]
    text = HEAD + twin + TAIL
    assert outcome(run, text, True) == outcome(run, text, False)
    assert run(text).together < together


@pytest.mark.parametrize("used", ["", "torch.compile(len)", "torch.jit.script(len)"])
def test_modules_that_use_torch(used: str, run: Runner, tmp_path) -> None:
    (tmp_path / "torch.py").write_text("class jit:\n    script = len\ndef compile(f): return f\n")
    text = f"import torch\na = np.zeros(3)\nif a is None: {used or 'pass'}\nlaunch(a); launch(a)\nprint(a)"
    fused = run(text)
    assert fused.output == run(text, fuse=False).output
    assert fused.together == (0 if used else 2)
