"""Random programs over Python's grammar, whose foreign parts read arrays whenever they are called.

`python -m tests.run.programs --programs 20000` compares `pyfuser run` with plain runs of them. The reference interpreter runs their calls; with
`--compiled` kernels do, and the extension launches those that run at once.
"""

# ruff: noqa: E501

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pyfuser.runtime.flush import flush
from pyfuser.runtime.session import SESSION
from tests.conftest import Interpreted
from tests.run import grammar
from tests.run.conftest import PREAMBLE, outcome, runner

ATOMS = (
    "a", "r", "o", "v", "zero", "1", "0.5", "'t'", "o.a", "o.n", "o.s", "o.first", "o.get()", "a[0]", "a[1:3]", "a[o.n]", "v[1]", "v[1:]",
    "len(a)", "a.shape", "a.shape[0]", "a.T", "x", "y", "x", "y", "d['a']", "d['n']", "s.a", "s.n", "t.x", "t.y", "t[0]", "l[0]", "l[-1]", "nothing()", "identity(a)",
    "identity(o.n)", "box().a", "box(a).n", "deep(a)", "r()", "r.x", "r[0]", "lib.see(a)", "lib.call(launch, a)", "lib.Dying(a)", "np.zeros(4)",
    "np.zeros_like(a)", "a.sum()", "float(a[1])", "math.sqrt(4.0)", "pk.parallel_reduce(4, total, a=a)", "None", "launch", "Box", "shared",
    "v.data", "v.data[0]", "v.data[1:]", "v.data.sum()", "np.array(v.data)", "v.data.T", "np.add(v.data, 1.0)",
)  # fmt: skip
OPERATORS = (
    "{} + {}", "{} * {}", "-{}", "not {}", "{} and {}", "{} or {}", "{} < {}", "{} == {}", "{} is {}", "{} in [{}]", "({}, {})", "[{}, {}]",
    "({} if {} else {})", "f'{{{}!r:.9}}'", "identity({})", "two({}, {})", "lib.call(identity, {})", "str({})", "np.sum({})", "np.copy({})", "[q for q in [{}]]", "(lambda: {})()",
    "{{'k': {}}}", "{{1: {}}}[1]", "({})[0]", "({}).n", "({}).a", "({},)[0]", "sorted([{}], key=str)", "(z := {})", "max({}, 1)", "print({})", "l.append({})",
)  # fmt: skip
STATEMENTS = (
    "v.data[1] = v.data[:2] = 3.0", "v.data += 1.0", "v.data[1:] *= {e}", "x = v.data[lib.see(v.data)]", "launch(a)", "launch(a)", "launch(a, 0.5)", "launch(a[1:])", "launch(o.a)", "launch(v)", "launch(x)", "launch(s.a); launch(d['a'])", "launch(t.x); launch(l[0])",
    "o.step()", "o.step(0.5)", "o.fused()", "both(a, v)", "x = both(a, v)", "y = deep(a)", "deep(a, 2)", "x = o.get()", "y = a[1:]", "x = a", "x = o.n + 1", "o.n += 1", "swap()",
    "pk.parallel_for(pk.RangePolicy(0, 4), add, a=a, s=0.5)", "pk.parallel_for(4, copy, b=v, a=a)", "pk.parallel_for('label', 4, divide, a=a, k=k, n=o.n)",
    "x = {e}", "y = {e}", "x = {e}", "y = {e}", "x, y = {e}, {e}", "x = y = {e}", "print({e})", "{e}", "{e}", "a[0] = {e}", "o.s = {e}", "o.a[1] += 1.0", "d['n'] = {e}", "l[0] = a",
    "x += 1", "x: object = {e}", "assert a is not None, {e}", "del x; x = 1", "x = None", "y = lib.Dying(a)", "s.n = {e}", "shared = a", "k[1] = zero", "k[1] = 1",
    "two({e}, {e})", "launch({e})", "identity({e})", "x, (y, _) = 1, a[:2]", "(x, y), z = (a, v), {e}", "(x, y), z = {e}, 1", "pairs[0] = {e}", "pairs[1:] = [(a, {e})]", "x = l[len(l) - 1]", "x = l[int(o.s)]",
    "x = [a, {e}][len(d) % 2]", "def f(p):\n    def g(): return p\n    launch(p); q = g(); launch(q); q, r = g(), 1\n    return q\nx = f(a)", "def f(p={e}): launch(a); return p\nx = f()", "x = [launch(a) for q in range(2)]",
)  # fmt: skip
BLOCKS = (
    "if {e}:", "if o.n > 1:", "for x in range(2):", "for x in [a, v]:", "for x in {e}:", "for x, y in [a[:2], a[2:]]:", "for x, y in enumerate([a, o.a]):", "for x in lib.generator(a):",
    "for x, y in ((a, v), (v, 0.5)):", "for x, y in ((a, {e}), {e}):", "for x, (y, _) in [(a, (v, 1)), ({e}, [a, {e}])]:", "for x, y in pairs:",
    "for (x, _), y in zip(((a, 1), (v, 2)), [a, {e}]):", "for (x, _), y in zip(pairs, [a, v]):", "for x, (y, _) in enumerate([(a, v), {e}]):", "for x, y in d.items():",
    "for k[0], y in zip([1, 2], [a, a]):", "for x in own(a):", "with r:", "with contextlib.suppress(ZeroDivisionError):", "with opened(a) as x:", "with contextlib.ExitStack() as x:\n    x.callback(lib.see, a)",
    "for o.s in [0.5, 1.0]:", "try:", "try:", "try:", "while o.n < 3:\n    o.n += 1", "for x in range(3):\n    if x == 1: continue\n    if x == 2: break",
)  # fmt: skip
HANDLERS = (
    "except Exception as e:\n    print(type(e).__name__)",
    "except ZeroDivisionError:\n    launch(a)",
    "except (lib.see(a) and Exception):\n    launch(a)",
    "finally:\n    lib.see(a)",
    "except Exception: pass\nelse:\n    launch(a)",
)

HELPERS = """
@pk.workunit
def divide(i, a, k, n):
    a[i] = a[i] + k[i] // n + n // k[i]
shared = 1.0
def box(a=np.ones(4)): return Box(a)
def two(p, q): return q
def both(p, q): launch(p); pk.parallel_for(4, copy, b=q, a=p); return p
def deep(p, n=1):
    d = [p]
    if n: launch(d[0]); return deep(p, n - 1)
    return p
def swap():
    global shared
    shared = np.ones(4) if type(shared) is float else 1.0
    return 0
def own(p):
    for k in range(2): launch(p); yield k
@contextlib.contextmanager
def opened(p):
    launch(p)
    try: yield p
    finally: lib.see(p)
"""
_NAMES = "x, y, z, s, t, d, l, k, pairs = 0, 0, 0, types.SimpleNamespace(a=a, n=1), pair(a, 1), {'a': a, 'n': 1}, [a, 1], np.ones(4, dtype=np.int64), [(a, v), (v, a)]"


def expression(rng: random.Random, depth: int) -> str:
    """An expression; operators at most `depth` deep."""
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(ATOMS)
    text = rng.choice(OPERATORS)
    return text.format(*[expression(rng, depth - 1) for _ in range(3)])


def filled(text: str, rng: random.Random) -> list[str]:
    """A statement's lines, with expressions in it."""
    while "{e}" in text:
        text = text.replace("{e}", expression(rng, 2), 1)
    return text.split("\n")


def block(rng: random.Random, depth: int, context: str) -> list[str]:
    """Some statements; at most `depth` blocks inside each other."""
    lines: list[str] = []
    for _ in range(rng.randint(1, 4)):
        chance = rng.random()
        if depth and chance < 0.3:
            head = rng.choice(BLOCKS)
            lines += filled(head, rng) + ["    " + line for line in block(rng, depth - 1, context)]
            lines += filled(rng.choice(HANDLERS), rng) if head == "try:" else []
        elif chance < 0.5:
            lines += rng.choice(grammar.pieces(context))[1].split("\n")
        else:
            lines += filled(rng.choice(STATEMENTS), rng)
    return lines


def guarded(lines: list[str]) -> list[str]:
    """Statements whose errors are part of what is compared."""
    body = ["    " + line for line in lines]
    return ["try:", *body, "except Exception as error: print(type(error).__name__, error)"]


def program(rng: random.Random) -> str:
    """A script of statements in one of the contexts."""
    context = rng.choice(list(grammar.CONTEXTS))
    lines = [_NAMES]
    for _ in range(rng.randint(1, 3)):
        part = block(rng, 2, context)
        lines += guarded(part) if rng.random() < 0.8 and "return" not in "".join(part) else part
    text = grammar.SETUP + grammar.placed("\n".join(lines), context)
    return text.replace("def nothing(): return 0\n", "def nothing(): return 0\n" + HELPERS)


#: After it the extension knows the calls of `launch` and `copy`, and lets some run at once.
WARM = """
for w in [np.zeros(4), np.zeros(3), pk.View([4], pk.double)]:
    list(map(launch, [w] * 3))
    for _ in range(40): launch(w); w[0]
"""


class Compiled:
    """The engine itself."""

    flush = staticmethod(flush)


def compare(first: int, programs: int, compiled: bool = False) -> int:
    """Compare fused with plain runs of programs; prints and counts those that differ."""
    different = 0
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        engine = Compiled() if compiled else Interpreted()
        if isinstance(engine, Interpreted):
            patch.setattr(SESSION, "run", engine.run)
        run = runner(Path(folder), engine, patch)
        start = time.monotonic()
        for seed in range(first, first + programs):
            text = (WARM if compiled else "") + program(random.Random(seed))
            fused, plain = (_without_calls(outcome(run, text, fuse)) for fuse in (True, False))
            if fused != plain:
                different += 1
                print(f"seed {seed} differs", flush=True)
            if (seed - first) % 500 == 499:
                print(
                    f"{seed - first + 1} programs, {different} different, {time.monotonic() - start:.0f} s",
                    flush=True,
                )
    return different


def _without_calls(ended: tuple[str, str]) -> list[str]:
    """What a script printed, but where a call was made: known of errors in recorded calls only."""
    lines = "\n".join(ended).split("\n")
    return [line for line in lines if not line.startswith("  called as ")]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="run kernels")
    parser.add_argument("--show", action="store_true", help="print the program of the seed")
    options = parser.parse_args()
    if options.show:
        print(PREAMBLE + program(random.Random(options.seed)))
        return 0
    return 1 if compare(options.seed, options.programs, options.compiled) else 0


if __name__ == "__main__":
    sys.exit(main())
