"""Scripts that use NumPy arrays and know nothing of PyFuser print what they print unfused.

`together` says how many calls ran in one flush at most (0: each ran alone, unrecorded): a legal
case has more than 1, and its illegal twin, which differs in one use of an array, less.
"""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from tests.run.conftest import Runner

# name: (calls that ran together, script)
SCRIPTS: dict[str, tuple[int, str]] = {
    "launches in a row": (2, "a = np.zeros(4)\nlaunch(a); launch(a)\nprint(a)"),
    "print between": (1, "a = np.zeros(4)\nlaunch(a); print(a); launch(a)\nprint(a)"),
    "a loop over a range": (3, "a = np.zeros(4)\nfor k in range(3): launch(a)\nprint(a)"),
    "a loop over an array": (
        1,
        "a = np.zeros(4)\nfor k in a: launch(a); print(k)\n",
    ),
    "a loop over a list": (3, "a = np.zeros(4)\nfor k in [1, 2, 3]: launch(a, k)\nprint(a)"),
    "a loop over a list that unpacks arrays": (
        1,
        """
a = np.zeros(2)
for x, y in [a, a, a]:
    print(x, y)
    launch(a)
""",
    ),
    "unpacking before any body": (
        2,
        """
a = np.zeros(2)
launch(a); launch(a)
for x, y in [a]:
    print(x, y)
""",
    ),
    "a loop over a range that sets an attribute": (
        3,
        """
class C:
    def run(self, a):
        for self.k in range(3):
            launch(a, self.k)
        print(a, self.k, sorted(vars()))
C().run(np.zeros(2))
""",
    ),
    "a loop that sets a property": (
        1,
        """
class C:
    @property
    def k(self): return 1.0
    @k.setter
    def k(self, value): print(value, self.a)
    def run(self):
        self.a = np.zeros(2)
        for self.k in range(3):
            launch(self.a)
C().run()
""",
    ),
    "a loop that sets an attribute on the way of a class that changes": (
        2,
        """
class C:
    def run(self, a):
        for self.k in range(4):
            launch(a)
            if self.k == 1:
                C.__setattr__ = lambda self, name, value: print(a)
                break
        for self.k in range(2):
            launch(a)
        print(a)
C().run(np.zeros(2))
""",
    ),
    "a stopwatch": (
        2,
        "a = np.zeros(3)\nt = pk.Timer()\nlaunch(a)\ns = t.seconds()\nt.reset()\nlaunch(a)\nprint(a)",
    ),
    "a stopwatch that reads an array": (
        1,
        """
class Watch(pk.Timer):
    def seconds(self): print(a)
a = np.zeros(3)
t = Watch()
launch(a)
s = t.seconds()
launch(a)
print(a)
""",
    ),
    "a stopwatch with its own method": (
        1,
        "a = np.zeros(3)\nt = pk.Timer()\nt.seconds = lambda: print(a)\nlaunch(a)\ns = t.seconds()\nlaunch(a)\nprint(a)",
    ),
    "a clock": (
        2,
        "import time\na = np.zeros(3)\nlaunch(a)\ns = time.perf_counter() - time.time()\nlaunch(a)\nprint(a)",
    ),
    "elements and slices of a View that nothing pending touches": (
        2,
        """
def f(s):
    b = np.zeros(3)
    w = pk.View([2, 2])
    launch(b)
    w[0][1] = 2; w[1, 0] += s; w.fill(1.5)
    n: float = w[0][1] + w[1, 1]
    if s > 0 and s < 9: n += 1
    part = w[0, :]
    launch(b, n)
    print(b, part, w, n)
f(2.0)
""",
    ),
    "a class derived from View": (
        2,
        """
class V(pk.View):
    def __init__(self, n): super().__init__([n, 2])
def f():
    b = np.zeros(3); v = V(2)
    launch(b); v.fill(2.0); v[0][1] = v[1, 1] + v.extent(0); launch(b); print(b, v)
f()
""",
    ),
    "a class derived from View with its own items": (
        1,
        """
b = np.zeros(3)
class V(pk.View):
    def __getitem__(self, key): return b[0]
    def fill(self, x): print(b)
v = V([2])
launch(b); s = v[0]; launch(b, s); v.fill(1.0); print(b)
""",
    ),
    "an element of a View that something pending touches": (
        1,
        """
def f():
    v = pk.View([3]); b = np.zeros(3)
    launch(v, 2.0); launch(b, v[0]); print(b, v)
f()
""",
    ),
    "a View is set to an array that is written": (
        1,
        "a = np.zeros(3)\nv = pk.View([3])\nlaunch(a)\nv[:] = a\nlaunch(a)\nprint(a, v)",
    ),
    "an element of a View of an array": (
        1,
        "a = np.zeros(3)\nv = pk.View([3], array=a)\nlaunch(a)\ns = v[0]\nlaunch(a, s)\nprint(a)",
    ),
    "a row of a View read by NumPy": (
        1,
        "a = np.zeros(3)\nv = pk.View([3, 3])\nlaunch(a)\ns = np.sum(v[0] + a)\nlaunch(a, s)\nprint(a)",
    ),
    "enumerate a list": (
        3,
        "a = np.zeros(2)\nfor k, s in enumerate([1.0, 2.0, 3.0]): launch(a, s + k)\nprint(a)",
    ),
    "enumerate an array": (
        1,
        "a = np.zeros(3)\nfor k, s in enumerate(a): launch(a); print(k, s)",
    ),
    "zip lists": (2, "a = np.zeros(3)\nfor x, y in zip([1, 2], (3, 4)): launch(a, x)\nprint(a)"),
    "zip an array": (1, "a = np.zeros(3)\nfor x, y in zip(a, 'ab'): launch(a); print(x)\n"),
    "items of a dict": (
        2,
        "a = np.zeros(3)\nd = {'x': 1.0, 'y': 2.0}\nfor k, s in d.items(): launch(a, s)\nprint(a)",
    ),
    "a loop over a map": (
        1,
        "a = np.zeros(3)\nfor x in map(lambda k: a[k], range(3)): launch(a); print(x)",
    ),
    "a while loop": (
        3,
        "a = np.zeros(3)\nk = 0\nwhile k < 3:\n    launch(a)\n    k += 1\nprint(a)",
    ),
    "a while loop on an array": (1, "a = np.zeros(3)\nwhile a[0] < 3:\n    launch(a)\nprint(a)"),
    "while with continue": (
        1,
        """
a = np.zeros(3)
while a[0] < 3:
    launch(a)
    if a is not None:
        continue
print(a)
""",
    ),
    "scalar arithmetic": (
        2,
        "def f():\n  a = np.zeros(3); s = 1.0\n  launch(a)\n  s = 2 * s + 1\n  launch(a, s)\n"
        "  print(a, s)\nf()",
    ),
    "array arithmetic": (
        1,
        "def f():\n  a = np.zeros(3); s = a\n  launch(a)\n  s = 2 * s + 1\n  launch(a)\n"
        "  print(a, s)\nf()",
    ),
    "local hides a global number": (
        1,
        "s = 3\ndef f(s):\n  launch(s)\n  t = abs(s)\n  launch(s)\n  print(s, t)\nf(np.zeros(3))",
    ),
    "number in place": (2, "a = np.zeros(3)\nn = 1\nlaunch(a)\nn += 1\nlaunch(a, n)\nprint(a)"),
    "array in place": (1, "a = np.zeros(3)\nlaunch(a)\na += 1\nlaunch(a)\nprint(a)"),
    "element write": (1, "a = np.zeros(3)\nlaunch(a)\na[0] = 7\nlaunch(a)\nprint(a)"),
    "list element write": (
        2,
        "a = np.zeros(3)\nl = [0]\nlaunch(a)\nl[0] = 7\nlaunch(a)\nprint(a)",
    ),
    "shape only": (
        2,
        "a = np.zeros(3)\nlaunch(a)\nn = a.shape[0]\nm = len(a)\nlaunch(a)\nprint(a, n)",
    ),
    "flat instead of shape": (
        1,
        "a = np.zeros(3)\nlaunch(a)\nn = a.flat[0]\nlaunch(a)\nprint(a, n)",
    ),
    "swap": (
        2,
        "a, b = np.zeros(3), np.ones(3)\nlaunch(a)\na, b = b, a\nlaunch(a)\nprint(a, b)",
    ),
    "swap of contents": (
        1,
        "a, b = np.zeros(3), np.ones(3)\nlaunch(a)\na[:], b[:] = b.copy(), a.copy()\nlaunch(a)\n"
        "print(a, b)",
    ),
    "fresh array": (2, "a = np.zeros(3)\nlaunch(a)\nb = np.zeros((3,))\nlaunch(b)\nprint(a, b)"),
    "array of an array": (1, "a = np.zeros(3)\nlaunch(a)\nb = np.array(a)\nlaunch(b)\nprint(a, b)"),
    "number function": (2, "a = np.zeros(3)\nlaunch(a)\ns = abs(-2.0)\nlaunch(a, s)\nprint(a)"),
    "number function on an array": (
        1,
        "a = np.zeros(3)\nlaunch(a)\ns = abs(a)\nlaunch(a)\nprint(a, s)",
    ),
    "alias": (
        2,
        "a = np.zeros((2, 2))\nb = a.T.reshape(-1)\nc = a[0]\nlaunch(c)\nlaunch(c)\nprint(a, b)",
    ),
    "out=": (
        1,
        "a = np.zeros(3)\nlaunch(a)\nnp.add(a, 1, out=a)\nlaunch(a)\nprint(a)",
    ),
    "sort": (1, "a = np.arange(3.0)[::-1].copy()\nlaunch(a)\na.sort()\nlaunch(a)\nprint(a)"),
    "deleted": (2, "a = np.zeros(3)\nb = a[:2]\nlaunch(a)\ndel a\nlaunch(b)\nprint(b)"),
    "in a container": (
        1,
        "d = {'x': [np.zeros(3)]}\nlaunch(d['x'][0])\nprint(d)\nlaunch(d['x'][0])\nprint(d)",
    ),
    "from a container": (
        2,
        "d = {'x': [np.zeros(3)]}\nlaunch(d['x'][0])\nlaunch(d['x'][0])\nprint(d)",
    ),
    "in an object": (
        2,
        """
class Simulation:
    def __init__(self):
        self.a = np.zeros(3)
        self.time = 0.0
    def step(self):
        launch(self.a)
        self.time += 0.5
    def __repr__(self):
        return f"{self.time} {self.a}"
s = Simulation()
s.step(); s.step()
print(s)
""",
    ),
    "a property reads": (
        1,
        """
class Simulation:
    def __init__(self):
        self.a = np.zeros(3)
    @property
    def first(self):
        return self.a[0]
s = Simulation()
launch(s.a)
x = s.first
launch(s.a)
print(x, s.first)
""",
    ),
    "an operator launches": (
        2,
        """
class Launcher:
    def __add__(self, a):
        launch(a); launch(a)
        return 0.0
a = np.zeros(3)
print(Launcher() + a + a[0], a)
""",
    ),
    "setattr reads": (
        1,
        """
class Watcher:
    def __setattr__(self, name, value):
        print(a)
a = np.zeros(3)
w = Watcher()
launch(a)
w.x = 1
launch(a)
print(a)
""",
    ),
    "in a closure": (
        2,
        """
def make():
    a = np.zeros(3)
    def step(): launch(a)
    def show(): print(a)
    return step, show
step, show = make()
step(); step()
show()
""",
    ),
    "a function returns the array": (
        2,
        "def f(a):\n    launch(a)\n    launch(a)\n    return a\nprint(f(np.zeros(3)))",
    ),
    "argument after a launch": (
        1,
        "def f(a):\n    launch(a)\n    return 1\na = np.zeros(3)\nprint(f(a), a[0], f(a), a.sum())",
    ),
    "comprehension": (1, "a = np.zeros(3)\nlaunch(a)\nb = [x for x in a]\nlaunch(a)\nprint(b, a)"),
    "comprehension launches": (
        1,
        "a = np.zeros(3)\nb = [launch(a) or a[0] for x in range(3)]\nprint(b)",
    ),
    "callback": (
        1,
        """
a = np.arange(3.0)
def key(k):
    launch(a, -2.0 * k)
    return a[k:k + 1]
print(sorted(range(3), key=key), a)
""",
    ),
    "callback of a partial": (
        1,
        """
from functools import partial
a = np.zeros(3)
print(list(map(float, (a[0] for f in [partial(launch, a)] * 3 if f() is None))))
for x in map(lambda f: f() or a[0], [partial(pk.parallel_for, 3, add, a=a, s=1.0)] * 3):
    print(x)
""",
    ),
    "generator": (
        1,
        """
def steps(a):
    for k in range(3):
        launch(a)
        launch(a)
        yield a[0]
a = np.zeros(3)
for x in steps(a):
    print(x)
    launch(a)
print(list(steps(a)), a)
""",
    ),
    "generator dropped": (
        2,
        """
def reader(a):
    try:
        yield
    finally:
        print(a)
a = np.zeros(3)
g = reader(a)
next(g)
launch(a); launch(a)
g = None
launch(a)
print(a)
""",
    ),
    "finaliser": (
        2,
        """
class Reader:
    def __del__(self):
        print(a)
a = np.zeros(3)
r = Reader()
launch(a); launch(a)
r = None
""",
    ),
    "with": (
        2,
        """
class Show:
    def __enter__(self): return self
    def __exit__(self, *error): print(a, error[0])
a = np.zeros(3)
with Show():
    launch(a); launch(a)
try:
    with Show():
        launch(a); launch(a)
        raise ValueError
except ValueError:
    print(a)
for k in range(2):
    with Show():
        launch(a)
        continue
""",
    ),
    "with of the library": (
        2,
        """
import contextlib
@contextlib.contextmanager
def show():
    yield
    print(a)
a = np.zeros(3)
with show(), contextlib.suppress(ValueError):
    launch(a); launch(a)
    raise ValueError
print(a)
""",
    ),
    "exceptions": (
        2,
        """
def fail(a):
    launch(a); launch(a)
    raise ValueError
a = np.zeros(3)
try:
    fail(a)
except ValueError:
    print(a)
finally:
    launch(a)
print(a)
""",
    ),
    "exception seen by a library": (
        1,
        """
import contextlib
def fail(k):
    launch(a)
    raise ValueError
a = np.zeros(3)
try:
    sorted([1], key=fail)
except (KeyError, ValueError):
    print(a)
with contextlib.suppress(ValueError):
    fail(0)
print(a)
""",
    ),
    "expression in except": (
        2,
        """
def kinds():
    print(a)
    return ValueError
def fail(a):
    launch(a); launch(a)
    raise ValueError
a = np.zeros(3)
try:
    fail(a)
except kinds():
    print("caught")
""",
    ),
    "a thread reads": (
        0,
        """
import threading
a = np.zeros(3)
go, done = threading.Event(), threading.Event()
seen = []
def read():
    go.wait()
    seen.append(a.copy())
    done.set()
t = threading.Thread(target=read)
t.start()
launch(a); launch(a)
go.set()
done.wait()
t.join()
print(seen)
""",
    ),
    "threads launch": (
        0,
        """
import threading
a, b = np.zeros(3), np.zeros(3)
def work(x):
    for k in range(5):
        launch(x)
ts = [threading.Thread(target=work, args=(x,)) for x in (a, b)]
for t in ts: t.start()
for t in ts: t.join()
print(a, b)
""",
    ),
    "a thread that has ended": (
        2,
        """
import threading
t = threading.Thread(target=print); t.start(); t.join()
import time; time.sleep(0.05)
a = np.zeros(3)
launch(a); launch(a)
print(a)
""",
    ),
    "a signal handler": (
        2,
        """
import signal
a = np.zeros(3)
signal.signal(signal.SIGUSR1, lambda *_: print(a))
launch(a); launch(a)
signal.raise_signal(signal.SIGUSR1)
launch(a)
print(a)
""",
    ),
    "memory of a View": (
        1,
        """
v = pk.View([3], pk.double)
a = v.data
launch(v)
print(a)
launch(v)
print(a, v)
""",
    ),
    "Views only": (
        3,
        """
v = pk.View([3], pk.double)
launch(v); print("between"); launch(v)
[launch(v) for k in range(1)]
print(v)
""",
    ),
    "a reduction is a number": (
        3,
        """
def f(a):
    launch(a); launch(a)
    t = pk.parallel_reduce(len(a), total, a=a)
    print(type(t), isinstance(t, float), t)
f(np.zeros(3))
""",
    ),
    "a reduction in an expression": (
        2,
        """
def f(a):
    launch(a); launch(a)
    t = 2 * pk.parallel_reduce(len(a), total, a=a) + a[0]
    print(t)
    launch(a)
    print(t, a)
f(np.zeros(3))
""",
    ),
    "eval and exec": (
        1,
        "a = np.zeros(3)\nlaunch(a)\nprint(eval('a[0]'))\nexec('launch(a); print(a)')\nlaunch(a)\nprint(a)",
    ),
    "a class body": (
        2,
        "a = np.zeros(3)\nlaunch(a); launch(a)\nclass C:\n    x = a[0]\n    launch(a)\n    y = a[0]\n"
        "print(C.x, C.y)",
    ),
    "a decorator": (
        2,
        """
import functools
def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)
    return wrapper
@logged
def step(a, s=1.0):
    launch(a, s)
a = np.zeros(3)
step(a); step(a, s=2.0)
print(a)
""",
    ),
    "a decorator of the library": (
        1,
        """
import functools
@functools.lru_cache
def step(k):
    launch(a)
a = np.zeros(3)
step(1); print(a); step(2); step(2)
print(a)
""",
    ),
    "a default argument": (
        2,
        "a = np.zeros(3)\nlaunch(a); launch(a)\ndef f(x=a[0]): return x\nlaunch(a)\nprint(f())",
    ),
    "if": (
        2,
        "def f(a, n):\n  launch(a)\n  if n % 2 == 0 and n > 3: print(a)\n  launch(a)\n  print(a)\n"
        "f(np.zeros(3), 3)",
    ),
    "if on an array": (
        1,
        "def f(a, n):\n  launch(a)\n  if n % 2 == 0 and n > 3: print(a)\n  launch(a)\n  print(a)\n"
        "f(np.zeros(1), np.ones(1))",
    ),
    "elif": (
        1,
        "a = np.zeros(3)\nk = 1\nlaunch(a)\nif k > 1: pass\nelif a[0] > 0: print(a)\nlaunch(a)\nprint(a)",
    ),
    "an unbound name that is not needed": (
        1,
        """
def f(a, n):
    launch(a)
    if n and late:
        print(late)
    launch(a)
    late = 1
    print(a)
f(np.zeros(3), 0)
""",
    ),
    "an unbound name": (
        1,
        """
def f(a):
    launch(a)
    s = 2 * late
    late = 1
a = np.zeros(3)
try:
    f(a)
except UnboundLocalError as error:
    print(a, error)
""",
    ),
    "match": (
        2,
        """
a = np.zeros(3)
launch(a); launch(a)
match a[0]:
    case x if x > 1:
        print(x, a)
        launch(a)
    case _:
        print("wrong")
print(a)
""",
    ),
    "assert": (1, "a = np.zeros(3)\nlaunch(a)\nassert a[0] == 1\nlaunch(a)\nprint(a)"),
    "assert on a number": (
        2,
        "a = np.zeros(3)\nn = 3\nlaunch(a)\nassert n == 3, 'no'\nlaunch(a)\nprint(a)",
    ),
    "walrus and lambda": (
        1,
        "a = np.zeros(3)\nlaunch(a)\nf = lambda: a[0]\nprint(y := f())\nlaunch(a)\nprint(y, f())",
    ),
    "star arguments": (
        2,
        "def f(*x, **y): launch(*x, **y)\nk = {'s': 1.0}\na = np.zeros(3)\n"
        "f(a, s=2.0)\nf(*[a], **k)\nprint(a)",
    ),
    "star arguments from an array": (
        1,
        "def f(*x): return x\na = np.zeros(3)\nlaunch(a)\ny = f(*a)\nlaunch(a)\nprint(y)",
    ),
    "async": (
        1,
        """
import asyncio
a = np.zeros(3)
async def work(k):
    launch(a)
    await asyncio.sleep(0)
    print(a)
    return a[0]
async def main():
    print(await asyncio.gather(work(1), work(2)))
    async for x in ticks():
        launch(a)
async def ticks():
    for k in range(2):
        yield k
        print(a)
asyncio.run(main())
print(a)
""",
    ),
    "C extension": (
        1,
        "import struct\na = np.zeros(2)\nlaunch(a)\nprint(bytes(memoryview(a)))\nlaunch(a)\n"
        "b = bytearray(16)\nstruct.pack_into('2d', b, 0, *a)\nprint(b)",
    ),
    "recursion": (
        4,
        "def f(a, n):\n  launch(a)\n  if n > 1:\n    f(a, n - 1)\na = np.zeros(3)\nf(a, 4)\nprint(a)",
    ),
    "globals of another name": (
        2,
        "def f():\n  global a\n  a = np.zeros(3)\n  launch(a)\n  launch(a)\nf()\nprint(a)",
    ),
    "a rebound builtin": (
        1,
        "a = np.zeros(3)\ndef abs(x): return a[0]\nlaunch(a)\ny = float(abs(1))\nlaunch(a)\nprint(y)",
    ),
    "len of an object": (
        1,
        """
class Sized:
    def __len__(self): return int(a[0])
a = np.zeros(3)
o = Sized()
launch(a)
n = len(o)
launch(a)
print(n)
""",
    ),
    "end without a read": (2, "a = np.zeros(3)\nimport atexit\nlaunch(a); launch(a)"),
    "helpers of workunits": (
        2,
        """
def twice(x: float) -> float:
    return 2.0 * x
@pk.workunit
def double(i, a):
    a[i] = twice(a[i])
a = np.ones(3)
pk.parallel_for(3, double, a=a)
pk.parallel_for(3, double, a=a)
print(a, twice(1))
""",
    ),
    "the docstring stays": (
        1,
        'def f(a):\n    "Doc."\n    launch(a)\n    print(a)\nf(np.zeros(3))\nprint(f.__doc__, f.__name__)',
    ),
    "locals": (
        1,
        "def f(a):\n    launch(a)\n    print(sorted(locals()), locals())\n    launch(a)\nf(np.zeros(3))",
    ),
    "a workload": (
        2,
        """
@pk.workload
class Work:
    def __init__(self):
        self.a = np.zeros(3)
    @pk.main
    def run(self):
        pk.parallel_for(3, self.add)
        pk.parallel_for(3, self.add)
        print(self.a)
        pk.parallel_for(3, self.add)
    @pk.workunit
    def add(self, i):
        self.a[i] += 1
    @pk.callback
    def after(self):
        print(self.a)
w = Work()
pk.execute(pk.ExecutionSpace.OpenMP, w)
print(w.a)
""",
    ),
    "super": (
        2,
        """
class A:
    def step(self, a): launch(a)
class B(A):
    def step(self, a):
        super().step(a)
        launch(a)
        return self.step is not None
a = np.zeros(3)
B().step(a)
print(a)
""",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_output_is_that_of_an_unfused_run(name: str, run: Runner) -> None:
    together, text = SCRIPTS[name]
    fused = run(text)
    wanted = run(text, fuse=False)
    assert fused.output == wanted.output
    assert wanted.together == 0
    assert fused.together == together
