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
