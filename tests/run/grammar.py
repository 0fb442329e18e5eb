"""Every construct of Python, with something in it that reads an array while a launch is pending.

`CONSTRUCTS` has pieces of programs by the name of the construct; `CONTEXTS` puts one at module
level, in functions, generators, coroutines and class bodies. What is foreign comes from `LIBRARY`,
whose code `pyfuser run` does not rewrite and which reads the array in every way that Python calls.
"""

# ruff: noqa: E501

from __future__ import annotations

import sys

LIBRARY = '''
import numpy as np

class Reader:
    """Prints what it finds in an array whenever Python calls it."""
    def __init__(self, a): object.__setattr__(self, "_a", a)
    def see(self, what):
        print(what, *object.__getattribute__(self, "_a").tolist())
        return 1.0
    def __getattr__(self, name): return self.see("getattr")
    def __setattr__(self, name, value): self.see("setattr")
    def __delattr__(self, name): self.see("delattr")
    def __call__(self, *args, **kwargs): return self.see("call")
    def __getitem__(self, key): return self.see("getitem")
    def __setitem__(self, key, value): self.see("setitem")
    def __delitem__(self, key): self.see("delitem")
    def __contains__(self, key): return bool(self.see("contains"))
    def __iter__(self): self.see("iter"); yield 1.0; self.see("next"); yield 2.0
    def __len__(self): self.see("len"); return 2
    def __bool__(self): self.see("bool"); return True
    def __eq__(self, other): self.see("eq"); return True
    def __hash__(self): self.see("hash"); return 1
    def __lt__(self, other): self.see("lt"); return True
    def __add__(self, other): return self.see("add")
    def __radd__(self, other): return self.see("radd")
    def __iadd__(self, other): self.see("iadd"); return self
    def __neg__(self): return self.see("neg")
    def __index__(self): self.see("index"); return 1
    def __float__(self): return self.see("float")
    def __str__(self): self.see("str"); return "reader"
    def __format__(self, spec): self.see("format"); return "reader"
    def __enter__(self): self.see("enter"); return self
    def __exit__(self, *error): self.see("exit"); return False
    async def __aenter__(self): self.see("aenter"); return self
    async def __aexit__(self, *error): self.see("aexit"); return False
    def __aiter__(self): self.see("aiter"); return Steps(self, 2)
    def __await__(self): self.see("await"); return iter(())
    def keys(self): self.see("keys"); return ["s"]

class Steps:
    def __init__(self, reader, left): self.reader, self.left = reader, left
    async def __anext__(self):
        self.reader.see("anext")
        if not self.left: raise StopAsyncIteration
        self.left -= 1
        return 1.0

class Dying:
    """Prints an array when it goes."""
    def __init__(self, a): self.a = a
    def __del__(self): print("del", *self.a.tolist())

class Lazy:
    """A proxy: its class is computed when somebody asks for it."""
    def __init__(self, a): object.__setattr__(self, "a", a)
    @property
    def __class__(self):
        object.__setattr__(self, "seen", object.__getattribute__(self, "a").tolist())
        return float
    real = 1.0
    def show(self):
        print("lazy", object.__getattribute__(self, "__dict__").get("seen"))

class Meta(type):
    """A class whose attributes are computed."""
    array = None
    def __getattribute__(kind, name):
        if name == "watched": print("meta", *Meta.array.tolist())
        return type.__getattribute__(kind, name)

class Computed(metaclass=Meta):
    watched = 1.0

class Descriptor:
    def __init__(self, a): self.a = a
    def __get__(self, owner, kind): print("get", *self.a.tolist()); return 1.0
    def __set__(self, owner, value): print("set", *self.a.tolist())
    def __delete__(self, owner): print("delete", *self.a.tolist())

def generator(a, n=3):
    try:
        for k in range(n):
            print("yields", *a.tolist())
            yield a[:2]
    finally:
        print("closed", *a.tolist())

def decorator(a):
    def decorate(function): print("decorates", *a.tolist()); return function
    return decorate

def call(function, *args): return function(*args)
def see(a): print("sees", *a.tolist()); return 1.0
def fails(a): print("fails", *a.tolist()); raise ValueError("library")
'''

SETUP = f"""
import asyncio, contextlib, functools, itertools, math, operator, types
from collections import namedtuple
lib = types.ModuleType("lib")
exec({LIBRARY!r}, vars(lib))
sys.modules["lib"] = lib
pair = namedtuple("pair", "x y")
class Box:
    def __init__(self, a): self.a, self.n, self.s = a, 1, 0.5
    def get(self): return self.a
    def step(self, s=1.0): launch(self.a, s); self.n += 1
    def fused(self): launch(self.a); launch(self.a); return self.a
    @property
    def first(self): return float(self.a[0])
def fresh():
    a = np.arange(4.0)
    lib.Meta.array = a
    return a, lib.Reader(a), Box(a), pk.View([4], pk.double)
def identity(x): return x
def nothing(): return 0
"""

#: By construct: pieces that begin with a launch on `a`; `r` is a Reader of it, `o` a Box, `v` a View.
CONSTRUCTS: dict[str, list[str]] = {
    "Expr": [
        "launch(a)\nr()",
        "launch(a)\nnp.negative(a, out=a)",
        "launch(a)\nlib.see(a)\nlaunch(a)",
    ],
    "Assign": [
        "launch(a)\nx = a.sum()\nlaunch(a)\nprint(x)",
        "launch(a)\nx, y = a[:2]\nprint(x, y)",
        "launch(a)\na[0] = 5.0\nlaunch(a)",
        "launch(a)\n(x, y), z = (a[:2], 1)\nprint(x, y)",
        "launch(a)\no.a[1] = 2.0\nlaunch(a)",
        "launch(a)\nr.x = 1.0",
        "launch(a)\nr[0] = 1.0",
        "x = lib.Dying(a)\nlaunch(a)\nx = None",
        "o.x = lib.Dying(a)\nlaunch(a)\no.x = None",
        "d = {'k': lib.Dying(a)}\nlaunch(a)\nd['k'] = 1",
        "x = [lib.Dying(a)]\nlaunch(a)\nx = 0",
        "x, *y = a\nlaunch(a)\nx, *y = a\nprint(x, y)",
        "launch(a)\nx = y = o.a\nlaunch(x)\nprint(y)",
        "d = [0, 1]\nlaunch(a)\nd[r] = a[0]\nprint(d)",
        "launch(a)\n[x, *y] = r\nlaunch(a)",
        "x = [0, 1, 2]\nlaunch(a)\nx[0:2] = a[:2]\nprint(x)",
        "launch(a)\nx = y, *a[:2] = (1, 2, 3)\nlaunch(a)\nprint(x)",
        "launch(a)\no.x, a[2] = o.a, 9.0\nlaunch(a)",
    ],
    "AnnAssign": ["launch(a)\nx: float = a[1]\nprint(x)", "launch(a)\nx: r.x = 1.0\nprint(x)"],
    "AugAssign": [
        "launch(a)\na += 1.0\nlaunch(a)",
        "launch(a)\na[1] += 1.0",
        "x = r\nlaunch(a)\nx += 1",
        "launch(a)\no.a *= 2.0\nlaunch(a)",
        "launch(a)\no.n += 1\nlaunch(a)\nprint(o.n, a)",
        "d = {'k': r}\nlaunch(a)\nd['k'] += 1\nlaunch(a)",
        "o.x = r\nlaunch(a)\no.x += 1\nlaunch(a)",
        "x = [1]\nlaunch(a)\nx += r\nprint(x)",
        "x = [1.0]\nlaunch(a)\nx[0] += a[0]\nprint(x)",
        "launch(a)\na[1:3] *= 2.0\nlaunch(a)",
    ],
    "Assert": ["launch(a)\nassert a[0] > 0, a", "launch(a)\nassert r"],
    "Delete": [
        "x = lib.Dying(a)\nlaunch(a)\ndel x",
        "launch(a)\ndel r[0]",
        "launch(a)\ndel r.x",
        "x = {'k': lib.Dying(a)}\nlaunch(a)\ndel x['k']",
        "x = o.a\nlaunch(x)\ndel x\nlaunch(a)\nprint(a)",
        "x = np.nditer(a, flags=['buffered'], op_flags=[['readwrite']], op_dtypes=['f4'], casting='unsafe')\nlaunch(a)\ndel x",
        "x = [lib.Dying(a), 1, 2]\nlaunch(a)\ndel x[0:2], o.n",
        "x, y = lib.Dying(a), lib.Dying(a)\nlaunch(a)\ndel (x, y)",
    ],
    "If": [
        "launch(a)\nif a[0] > 1: print('big')\nelse: print('small')",
        "launch(a)\nif r: launch(a)",
        "launch(a)\nif o.n > 5: pass\nelif a[0] > 0: launch(a)",
    ],
    "While": [
        "launch(a)\nwhile a[0] < 3: launch(a)",
        "launch(a)\nwhile r:\n    launch(a)\n    break",
    ],
    "For": [
        "launch(a)\nfor x in a: launch(a); print(x)",
        "launch(a)\nfor x, y in [a[:2], a[2:]]: launch(a); print(x, y)",
        "launch(a)\nfor a[0] in [1.0, 2.0]: launch(a)",
        "for x in lib.generator(a):\n    launch(a)\n    break",
        "for x in lib.generator(a): launch(a)",
        "launch(a)\nfor x in r: launch(a)",
        "launch(a)\nfor x in o.get(): launch(a); print(x)",
        "launch(a)\nfor k, (x, y) in enumerate([a[:2]]): launch(a); print(x, y)",
        "launch(a)\nfor (x, y), z in zip([a[:2], a[:2]], [1, 2]): launch(a); print(x, y)",
        "launch(a)\nfor k, (x, y) in {'a': a[:2], 'b': a[:2]}.items(): launch(a); print(x, y)",
        "for x, a[1] in zip([1, 2], [3.0, 4.0]): launch(a)",
        "launch(a)\nfor o.s in range(3): launch(a)\nlib.see(a)",
        "for x in [lib.Dying(a)]: pass\nfor x in range(2): launch(a)",
        "for x in map(lib.see, [a, a]): launch(a)",
        "for x in lib.generator(a):\n    launch(a)\n    if o.n: continue\nelse: launch(a)",
        "for x in lib.generator(a):\n    try:\n        launch(a)\n        {}['no']\n    except KeyError: break",
    ],
    "Try": [
        "try:\n    launch(a)\n    x = 1 // zero\nexcept (lib.see(a) and ZeroDivisionError): launch(a)",
        "try:\n    launch(a)\n    lib.fails(a)\nexcept ValueError as e: launch(a); print(e)\nelse: print(a)\nfinally: print(a)",
        "try:\n    x = lib.Dying(a)\n    def f(y): raise ValueError\n    f(lib.Dying(a))\nexcept ValueError: launch(a)",
        "try: launch(a)\nfinally: lib.see(a)",
        "try: launch(a)\nexcept ValueError: pass\nelse: r()",
    ],
    "TryStar": [
        "try:\n    launch(a)\n    raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\nexcept* ValueError as e: launch(a); print(e)\nexcept* (lib.see(a) and TypeError): launch(a)\nelse: print(0)\nfinally: print(a)",
        "try:\n    launch(a)\n    lib.fails(a)\nexcept* (lib.see(a) and ValueError): launch(a)\nlib.see(a)",
    ],
    "With": [
        "with r: launch(a)",
        "with contextlib.ExitStack() as x:\n    x.callback(lib.see, a)\n    launch(a)",
        "launch(a)\nwith r as x, r: launch(a)",
        "with np.nditer(a, flags=['buffered'], op_flags=[['readwrite']], op_dtypes=['f4'], casting='unsafe') as x: launch(a)",
        "with contextlib.suppress(ValueError):\n    launch(a)\n    lib.fails(a)\nlaunch(a)\nprint(a)",
        "with (lib.Reader(a) as x, lib.Reader(a) as y): launch(a)",
        "with r as a[0]: launch(a)",
        "class C:\n    def __enter__(self): launch(a); return a\n    def __exit__(self, *error): launch(a); return True\nwith C() as x: launch(x); lib.fails(a)\nprint(a)",
    ],
    "Raise": [
        "try:\n    launch(a)\n    raise ValueError(float(a[0]))\nexcept ValueError as e: print(e)"
    ],
    "Match": [
        "launch(a)\nmatch a[0]:\n    case x if r: launch(a); print(x)",
        "launch(a)\nmatch r:\n    case 1.0: launch(a)",
        "launch(a)\nmatch a:\n    case [x, *y]: print(x)\n    case _: launch(a); print(a)",
        "launch(a)\nmatch {'k': a[0]}:\n    case {'k': x, **y}: launch(a); print(x)",
        "launch(a)\nmatch pair(a[0], r):\n    case pair(x=1.0, y=lib.Reader()): launch(a)\n    case pair(x, y) if y < x: launch(a); print(x)",
        "launch(a)\nmatch o.n:\n    case 1 | 2 as x: launch(a)\n    case o.n: launch(a)\nprint(a)",
        "launch(a)\nmatch [a[:2], 1]:\n    case [[x, y], 1]: print(x)\n    case [x, int(y)]: launch(x); print(y)",
    ],
    "Import": ["launch(a)\nimport lib as x", "launch(a)\nimport string"],
    "ImportFrom": ["launch(a)\nfrom lib import see as x\nx(a)"],
    "FunctionDef": [
        "launch(a)\n@lib.decorator(a)\ndef f(): pass",
        "launch(a)\ndef f(x=a[0]): print(x)\nf()",
        "def f(x):\n    y = lib.Dying(x)\n    launch(x)\nf(a)\nlaunch(a)",
        "def f(x):\n    y = r\n    launch(x)\n    return y\nf(a)()",
        "def f(x): launch(x); return lambda: x[1]\nlaunch(a)\nprint(f(a)())",
        "def f(x, y): launch(x)\nf(a, lib.Dying(a))\nlaunch(a)",
        "launch(a)\ndef f() -> r.x: pass",
        "launch(a)\ndef f(*, x=r()): pass",
        "def f(x, /, *y, z=a, **k): launch(x); launch(z); return y\nlaunch(a)\nprint(f(a, 1, k=r))\nlib.see(a)",
        "@functools.lru_cache\ndef f(x): launch(a); return a[0]\nlaunch(a)\nprint(f(1), f(1))",
        "@functools.wraps(launch)\ndef f(x): launch(x)\nf(a)\nf(a)\nlib.see(a)",
        "@contextlib.contextmanager\ndef f():\n    launch(a)\n    yield a\n    launch(a)\nwith f() as x: launch(x); print(x)\nlib.see(a)",
    ],
    "ClassDef": [
        "launch(a)\nclass C:\n    x = a[0]\nprint(C.x)",
        "launch(a)\n@lib.decorator(a)\nclass C: pass",
        "class C:\n    d = lib.Descriptor(a)\nx = C()\nlaunch(a)\nprint(x.d)\nlaunch(a)\nx.d = 1\nlaunch(a)\ndel x.d",
        "launch(a)\nclass C(metaclass=type(lib.Computed)): pass\nlaunch(a)\nC.watched = 1\nprint(C.watched)",
        "class B:\n    def __init_subclass__(kind, x=None): launch(a); print(x, a)\nlaunch(a)\nclass C(B, x=a[0]): launch(a)\nlib.see(a)",
        "launch(a)\nclass C(lib.Descriptor, *[]): y = launch(a)\nlib.see(a)",
        "class C:\n    def __set_name__(self, kind, name): launch(a); print(a)\nlaunch(a)\nclass D: x = C()\nlib.see(a)",
    ],
    "AsyncFunctionDef": [
        "async def f(): launch(a); print(a[0])\nlaunch(a)\nlib.call(lambda: f().close())"
    ],
    "TypeAlias": [
        "launch(a)\ntype X = lib.see(a)\nlaunch(a)\nX.__value__",
        "launch(a)\ndef f[T: lib.see(a)](x: T) -> T: launch(x); return x\nlaunch(f(a))\nprint(f.__type_params__[0].__bound__)\ntype Y = int",
        "launch(a)\nclass C[T: (lib.see(a), int)]:\n    x = launch(a)\nlaunch(a)\nprint(len(C.__type_params__[0].__constraints__))\ntype Y = int",
        "type X[T] = lib.see(a)\ndef f(x): launch(x); return X.__value__\nlaunch(a)\nprint(f(a))\nlib.see(a)",
    ],
    "Pass": ["launch(a)\npass\nlaunch(a)\nprint(a)"],
    "Break": ["for k in range(3):\n    launch(a)\n    break\nprint(a)"],
    "Continue": ["for k in range(3):\n    launch(a)\n    continue\nprint(a)"],
    "Constant": ["launch(a)\nx = 1.0\nprint('text')\nlaunch(a)\nprint(a)"],
    "Name": ["launch(a)\nx = a\nlaunch(x)\nprint(x)", "launch(a)\nprint(a)"],
    "Tuple": [
        "launch(a)\nx = (a, o.n, 1)\nlaunch(x[0])\nprint(x)",
        "launch(a)\nx = (a[0], r())\nprint(x)",
    ],
    "List": ["launch(a)\nx = [a, 1]\nlaunch(x[0])\nprint(x)", "launch(a)\nx = [*a]\nprint(x)"],
    "Starred": [
        "launch(a)\nx = identity(*[a])\nlaunch(*[a, 1.0])\nprint(x)",
        "launch(a)\nprint(*a)",
        "launch(a)\nx = (*r,)",
        "launch(a)\nfor x in *a[:2], *r: launch(a)",
        "launch(a)\nx = [*r, *a]\nprint(x)",
        "launch(a)\nx = {*a.tolist()}\nprint(len(x))",
    ],
    "Slice": [
        "launch(a)\nx = a[1:3]\nlaunch(x)\nprint(a)",
        "launch(a)\nx = a[:r]",
        "launch(v)\nx = v[1:3]\nlaunch(x)\nprint(v)",
    ],
    "Attribute": [
        "launch(a)\nx = r.x",
        "launch(a)\nx = o.first\nlaunch(a)\nprint(x)",
        "launch(a)\nx = lib.Computed.watched",
        "x = lib.Lazy(a)\nlaunch(a)\ny = x.real\nlaunch(a)\nx.show()",
        "launch(a)\nx = a.T\nlaunch(x)\nprint(a.flat[1])",
        "s = types.SimpleNamespace(a=a)\nlaunch(s.a)\nlaunch(s.a)\nprint(s)",
        "s = pair(a, 1)\nlaunch(s.x)\nlaunch(s[0])\nprint(s)",
        "launch(a)\nx = v.data\nlaunch(v)\nprint(x)",
    ],
    "Subscript": [
        "launch(a)\nx = a[1]\nlaunch(a)\nprint(x)",
        "launch(a)\nx = r[0]",
        "d = {'a': a}\nlaunch(d['a'])\nlaunch(d['a'])\nprint(d)",
        "x = a.reshape(2, 2)\nfor k in range(2): launch(x[k])\nprint(a)",
        "x = [a, 1]\nlaunch(x[0])\nprint(x[o.n])",
        "launch(a)\nx = a[[0, 1]]\nlaunch(a)\nprint(x)",
        "launch(a)\nx = a[True]\nlaunch(a)\nprint(x)",
        "launch(a)\nx = a[...]\nlaunch(x)\nprint(x)",
        "d = {r: 1}\nlaunch(a)\nx = d[r]",
        "launch(v)\nx = v[1]\nlaunch(v)\nprint(x)",
        "launch(a)\nx = a[1:3, ...]\nlaunch(x)\nprint(x)",
        "x = (slice(1),)\nlaunch(a)\ny = a[(*x,)]\nlaunch(a)\nprint(y)",
        "launch(a)\nx = a[-1:r]",
    ],
    "BinOp": [
        "launch(a)\nx = 2 * a\nlaunch(a)\nprint(x)",
        "launch(a)\nx = 1 + r",
        "launch(a)\nx = identity(nothing(), ) + a\nprint(x)",
        "launch(a)\nx = o.n * 2 + 1\nlaunch(a)\nprint(x, a)",
    ],
    "UnaryOp": [
        "launch(a)\nx = -a\nprint(x)",
        "launch(a)\nx = not r",
        "launch(a)\nx = -o.n\nlaunch(a)\nprint(a)",
    ],
    "Compare": [
        "launch(a)\nx = a == 1.0\nprint(x)",
        "launch(a)\nx = r < 1",
        "launch(a)\nx = 1 in r",
        "launch(a)\nx = a is None\nlaunch(a)\nprint(a)",
        "launch(a)\nx = 0 < a[0] < 5 < r",
        "launch(a)\nx = 0 < o.n < 5 != o.s\nlaunch(a)\nprint(a)",
        "launch(a)\nx = a is not r in [r]",
        "launch(a)\nx = 0 < o.n < r",
    ],
    "BoolOp": ["launch(a)\nx = r or 1", "launch(a)\nx = o.n and a[0]\nprint(x)"],
    "IfExp": [
        "launch(a)\nx = 1 if r else 2",
        "launch(a)\nx = a[0] if o.n else 2\nprint(x)",
        "launch(a)\nx = a if o.n else 1\nlaunch(x)\nprint(x)",
    ],
    "JoinedStr": [
        "launch(a)\nx = f'{a}'\nprint(x)",
        "launch(a)\nx = f'{o.n}'\nlaunch(a)\nprint(x, a)",
        "launch(a)\nx = f'{f\"{a[0]}\":>{o.n}}'\nprint(x)",
        "launch(a)\nx = f'{o.n=}{r=}'\nprint(x)",
        "launch(a)\nx = f'{f\"{o.n}\":>{o.n + 3}}'\nlaunch(a)\nprint(x, a)",
        "launch(a)\nx = f'{r!s:{r}}'",
    ],
    "FormattedValue": [
        "launch(a)\nx = f'{r:x}'",
        "launch(a)\nx = f'{o.n:{o.n}}'\nprint(x)",
        "launch(a)\nx = f'{a[0]!r:>9}'\nprint(x)",
    ],
    "Call": [
        "launch(a)\nx = float(a[0])\nprint(x)",
        "launch(a)\nx = identity(r())",
        "launch(a)\nlaunch(o.get())\nlaunch(a)\nprint(a)",
        "launch(a)\nlib.call(launch, a)\nlib.see(a)",
        "o.step()\no.step(0.5)\nlib.see(a)",
        "launch(a)\nx = np.zeros_like(a)\nlaunch(a)\nprint(x, a)",
        "launch(a)\nx = np.copy(a)\nlaunch(a)\nprint(x)",
        "x = lib.Dying(a)\nlaunch(a)\nidentity(lib.Dying(a))",
        "launch(a)\nx = len(r)",
        "x = Box(a)\nx.fused()\nlib.see(a)",
        "Box.step(o)\nBox(a).step()\nlib.see(a)",
        "launch(a)\nx = max(a)\nprint(x)",
        "launch(a)\nlaunch(**{'a': a})\nlib.see(a)",
        "launch(a)\nidentity(**r) if zero else print(*r)",
        "launch(a)\nx = functools.partial(launch, a)\nx()\nx()\nlib.see(a)",
        "x = pk.parallel_reduce(4, total, a=a)\nlaunch(a, x)\nprint(pk.parallel_reduce(4, total, a=a))",
        "launch(a)\nprint(o.n, 'text')\nlaunch(a)\nprint(a)",
        "x = []\nlaunch(a)\nx.append(a)\nlaunch(a)\nx.append(a[0])\nprint(x)",
        "launch(a)\nsetattr(o, 'x', a.sum())\nprint(o.x)",
        "o.x = 1.0\ndef swap(): o.x = a; return 0\ndef two(p, q): return q\nlaunch(a)\nx = two(swap(), o.x + 1.0)\nprint(x)",
    ],
    "Lambda": [
        "f = lambda: launch(a) or a[0]\nlaunch(a)\nprint(lib.call(f))",
        "launch(a)\nx = lambda y=a[0]: y\nprint(x())",
        "launch(a)\nx = (lambda p=r(), *q, k=a: launch(k) or k[0])\nlaunch(a)\nprint(x())",
        "launch(a)\nx = (lambda *q: q)(*a[:2])\nprint(x)",
        "x = sorted([2, 1], key=lambda k: launch(a) or a[k])\nlaunch(a)\nprint(x)",
    ],
    "NamedExpr": [
        "launch(a)\nif (x := a[0]) > 1: launch(a)\nprint(x)",
        "launch(a)\nx = [y for k in range(3) if (y := launch(a) or a[k]) > 1]\nprint(x)",
        "launch(a)\nlaunch((x := a))\nlaunch(x)\nprint(x)",
        "launch(a)\nwhile (x := a[0]) < 4: launch(a)\nprint(x)",
    ],
    "Dict": [
        "launch(a)\nx = {'a': a, 'b': a[0]}\nprint(x)",
        "launch(a)\nx = {r: 1}",
        "launch(a)\nx = {**r}",
    ],
    "Set": ["launch(a)\nx = {r}", "launch(a)\nx = {float(a[0])}\nprint(x)"],
    "ListComp": [
        "launch(a)\nx = [y for y in a]\nprint(x)",
        "x = [launch(a) or a[0] for y in range(3)]\nprint(x)",
        "launch(a)\nx = [launch(y) or z for y in [a, a] for z in y if z > 1]\nprint(x)",
    ],
    "SetComp": ["launch(a)\nx = {float(y) > 1 for y in a}\nprint(sorted(x))"],
    "DictComp": ["launch(a)\nx = {k: launch(a) or float(a[k]) for k in range(3)}\nprint(x)"],
    "GeneratorExp": [
        "x = (launch(a) or lib.see(a) for k in range(3))\nlaunch(a)\nprint(next(x))\nlaunch(a)\nprint(sum(x))",
        "launch(a)\nx = max(launch(a) or a[k] for k in range(3))\nprint(x)",
        "x = (launch(a) or y for y in lib.generator(a))\nlaunch(a)\nfor y in x: launch(a); print(y)",
    ],
    "TemplateStr": ["launch(a)\nx = t'{a[0]}'\nprint(x.values)"],
    "Interpolation": ["launch(a)\nx = t'{float(a[0])}'\nprint(x.values)"],
}
#: Constructs that only some contexts have.
ONLY_IN: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "Return": (("function", "watched", "library", "method"), ["launch(a)\nreturn a.sum()", "launch(a)\nreturn a", "launch(a)\nreturn *a[:2], r", "launch(a)\nreturn o.n if o.n else r", "try:\n    launch(a)\n    return a\nfinally: launch(a)", "x = lib.Dying(a)\nlaunch(a)\nreturn 1",
               "for x in lib.generator(a):\n    launch(a)\n    return 1", "with r: return launch(a)"]),
    "Global": (("function", "watched", "library"), ["global shared\nlaunch(a)\nshared = a\nlaunch(shared)\nprint(shared)", "global shared\nshared = lib.Dying(a)\nlaunch(a)\nshared = 1"]),
    "Nonlocal": (("function", "watched", "library"), ["y = a\ndef f():\n    nonlocal y\n    launch(y)\n    y = y[0]\nlaunch(a)\nf()\nprint(y)"]),
    "Yield": (("generator",), ["launch(a)\nyield a[0]\nlaunch(a)\nyield a", "launch(a)\nx = (yield a), (yield a[0])\nlaunch(a)\nprint(x)", "try:\n    launch(a)\n    yield a\nfinally: launch(a); lib.see(a)", "x = yield launch(a)\nprint(x, a)"]),
    "YieldFrom": (("generator",), ["launch(a)\nyield from r", "launch(a)\nyield from lib.generator(a)", "launch(a)\nx = yield from (launch(a) or y for y in a[:2])\nlaunch(a)\nprint(x)", "def f():\n    launch(a)\n    y = yield a\n    launch(a)\n    return a\nx = yield from f()\nlaunch(x)\nprint(x)"]),
    "Await": (("coroutine",), ["launch(a)\nawait r", "launch(a)\nawait asyncio.sleep(0)\nprint(a)", "async def f(): launch(a); return a\nlaunch(a)\nx = await f()\nlaunch(x)\nprint(x)", "async def f(): launch(a); await asyncio.sleep(0); return a[0]\nlaunch(a)\nprint(await asyncio.gather(f(), f()))"]),
    "AsyncFor": (("coroutine",), ["launch(a)\nasync for x in r: launch(a)", "launch(a)\nasync for x in r: launch(a); break\nelse: launch(a)", "async def f():\n    for k in range(2): launch(a); yield a\nasync for x in f(): launch(x); print(x)"]),
    "ListComp": (("coroutine",), ["launch(a)\nx = [launch(a) or y async for y in r if (await asyncio.sleep(0)) or a[0]]\nprint(x)"]),
    "GeneratorExp": (("coroutine",), ["x = (launch(a) or y async for y in r)\nlaunch(a)\nasync for y in x: launch(a); print(y)"]),
    "DictComp": (("coroutine",), ["launch(a)\nx = {y: launch(a) or float(a[0]) async for y in r}\nprint(x)"]),
    "AsyncWith": (("coroutine",), ["launch(a)\nasync with r: launch(a)", "launch(a)\nasync with (r as x, r): launch(a); return a", "async with contextlib.aclosing(x for x in []) if zero else r as a[0]: launch(a)"]),
}  # fmt: skip

_CALL = "(*fresh(), 0)"
#: Where a piece stands; `{body}` is the piece, indented as the line that it is in.
CONTEXTS: dict[str, str] = {
    "module": "a, r, o, v, zero = *fresh(), 0\n{body}\nlib.see(a)",
    "function": "def main(a, r, o, v, zero):\n    {body}\nx = fresh()\nprint(main(*x, 0))\nlib.see(x[0])",
    "watched": "def inner(a, r, o, v, zero):\n    {body}\ndef main(a, r, o, v, zero):\n    launch(a)\n    inner(a, r, o, v, zero)\n    launch(a)\n    x = inner(a, r, o, v, zero)\n    print(x)\n    lib.see(a)\nmain(*fresh(), 0)",
    "library": "def inner(a, r, o, v, zero):\n    {body}\nx = fresh()\nprint(lib.call(inner, *x, 0))\nlib.see(x[0])\nprint(list(map(inner, *zip(x + (0,)))))\nlib.see(x[0])",
    "method": "class Main:\n    def run(self, a, r, o, v, zero):\n        {body}\n    def twice(self, *x):\n        self.run(*x)\n        self.run(*x)\nx = fresh()\nMain().twice(*x, 0)\nlib.see(x[0])",
    "generator": "def main(a, r, o, v, zero):\n    {body}\n    yield 0\nx = fresh()\nfor y in main(*x, 0): lib.see(x[0]); print(y)\nprint(list(main(*x, 0)))\nlib.see(x[0])",
    "coroutine": "async def main(a, r, o, v, zero):\n    {body}\nx = fresh()\nprint(asyncio.run(main(*x, 0)))\nlib.see(x[0])",
    "class": "a, r, o, v, zero = *fresh(), 0\nclass Main:\n    {body}\nlib.see(a)",
}


def placed(piece: str, context: str) -> str:
    """What comes behind SETUP in a script: a piece in a context."""
    template = CONTEXTS[context]
    line = next(line for line in template.split("\n") if "{body}" in line)
    indent = line[: len(line) - len(line.lstrip())]
    return template.replace("{body}", piece.replace("\n", "\n" + indent))


def pieces(context: str) -> list[tuple[str, str]]:
    """The construct and the text of every piece that this Python can have in a context."""
    found = [(name, piece) for name, texts in CONSTRUCTS.items() for piece in texts]
    for name, (contexts, texts) in ONLY_IN.items():
        found += [(name, piece) for piece in texts if context in contexts]
    return [(name, piece) for name, piece in found if _exists(name)]


def _exists(name: str) -> bool:
    """Whether this Python has a construct."""
    since = {
        "TryStar": (3, 11),
        "TypeAlias": (3, 12),
        "TemplateStr": (3, 14),
        "Interpolation": (3, 14),
    }
    return sys.version_info >= since.get(name, (3, 0))
