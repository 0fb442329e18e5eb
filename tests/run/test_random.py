"""Random scripts that launch, read and write arrays in every way print what they print unfused."""

# ruff: noqa: E501

from __future__ import annotations

import contextlib
import random

import pytest

from tests.run import programs
from tests.run.conftest import Runner, outcome

SETUP = """
import contextlib, functools, itertools, math
base = np.arange(12.0)
a, b = base[:8], base[4:]
c = np.zeros(8)
v = pk.View([8], pk.double)
d = {"a": a, "k": 1}
items = [a, c]
n, s = 2, 0.5
class Thing:
    def __init__(self): self.a, self.n = a, 1
    @property
    def first(self): return float(self.a[0])
    def step(self, s=1.0): launch(self.a, s); self.n += 1; return self
    def __getitem__(self, k): launch(c); return self.a[k]
    def __len__(self): return int(c[0]) % 5 + 1
    def __enter__(self): launch(a); return self
    def __exit__(self, *error): print("exit", a[0], c[0])
    def __iadd__(self, x): launch(self.a, x); return self
    def __repr__(self): return f"Thing {self.a}"
    def __del__(self): print("del", a[0])
t = Thing()
def read(x): return float(np.asarray(x).sum())
def both(x, y): launch(x); pk.parallel_for(8, copy, b=y, a=x); return y
def gen(x):
    for k in range(2):
        launch(x); yield k; print(x[k])
def fail(x): launch(x); raise ValueError(x[0])
def later(x): launch(x); return lambda: x[1]
"""

EXPRESSIONS = (
    "n", "s", "a", "c", "a[0]", "a.shape[0]", "len(a)", "len(t)", "t.first", "t.n", "t.a", "t[1]",
    "read(b)", "both(a, c)", "both(a, c)[0]", "2 * n", "2 * a", "a @ c", "abs(s)", "abs(c[1])",
    "d['a']", "d['k']", "items[0]", "items[-1][2]", "[x for x in b]", "list(gen(a))", "t.step()",
    "pk.parallel_reduce(8, total, a=a)", "pk.parallel_for(8, add, a=c, s=s)", "v[0]", "v.data",
    "(lambda: launch(c) or c[0])()", "later(a)()", "sum(map(read, items))", "max(a)", "math.sqrt(n)",
    "n if n > 1 else a[0]", "n > 1 and s > 0", "a is b", "a[0] in [1.0]", "f'{s} {n}'", "f'{a}'",
    "np.zeros(8)", "np.empty_like(a) * 0", "a.T", "a.copy()", "base.sum()", "(a, c)", "{**d}",
    "functools.reduce(lambda p, q: launch(a) or p + a[q], range(3), 0)", "sorted(a, key=lambda k: -k)",
)  # fmt: skip
SIMPLE = (
    "launch(a)", "launch(b)", "launch(c, s)", "launch(v)", "launch(x, n)", "both(c, a)", "x = both(a, c)",
    "t.step()", "t.step(0.5)", "pk.parallel_for(pk.RangePolicy(0, 4), add, a=a, s=2 * s)",
    "pk.parallel_for('label', 8, copy, b=c, a=a)", "a[0] = {e}", "a += 1", "np.add(c, 1, out=c)",
    "n += 1", "s = s / 2 + 0.25", "a, b = b, a", "x = {e}", "y = {e}", "print({e})", "print(n, s)",
    "d['k'] = {e}", "items[1] = c", "t.n = {e}", "t.n += 1", "t += 1.0", "t[0]", "assert n > 0, a", "c.sort()",
    "x, y = {e}, {e}", "x = a", "x = c[:4]", "del y; y = 1", "t = Thing()", "x = later(c)", "b[1:3] = {e}",
    "x = pk.parallel_reduce(8, total, a=b)", "y: float = {e}", "global_ = [a]; global_[0][1] = 5",
)  # fmt: skip
BLOCKS = (
    "for k in range(2):", "for k in [1.0, 2.0]:", "for x in items:", "for x in gen(c):", "for x in list(c[:2]):",
    "for p, q in enumerate([1, 2]):", "for p, q in zip(a[:2], c[:2]):", "for x in map(read, items):",
    "if n > 1:", "if a[0] > 2:", "if not len(items):", "with t:", "with contextlib.suppress(ValueError):",
    "for k in range(3):\n    if k == 1: continue", "try:", "for key, x in d.items():",
    "for p, q in [a[:2], c[:2]]:",
)  # fmt: skip


def block(rng: random.Random, depth: int) -> list[str]:
    """Some statements; at most `depth` blocks inside each other."""
    lines = []
    for _ in range(rng.randint(1, 5)):
        if depth and rng.random() < 0.3:
            head = rng.choice(BLOCKS)
            lines += head.split("\n")
            lines += ["    " + line for line in block(rng, depth - 1)]
            if head == "try:":
                lines += ["    fail(c)"] if rng.random() < 0.5 else []
                lines += ["except ValueError as error:"]
                lines += ["    " + line for line in ["print(error)", *block(rng, 0)]]
        else:
            text = rng.choice(SIMPLE)
            while "{e}" in text:
                text = text.replace("{e}", rng.choice(EXPRESSIONS), 1)
            lines.append(text)
    return lines


def script(rng: random.Random) -> str:
    """Statements at the top or in a function, whose failures are part of what is compared."""
    lines = [*block(rng, 2), *block(rng, 2), "print(base, c)", *block(rng, 1)]
    indented = "\n".join("        " + line for line in lines)
    body = f"    x = y = a\n    try:\n{indented}\n"
    body += "    except Exception as error:\n        print(type(error).__name__, error)\n"
    if rng.random() < 0.7:
        body = f"def main(a, b, c, t, n, s):\n{body}main(a, b, c, t, n, s)\n"
    else:
        body = f"if True:\n{body}"
    return SETUP + body + "print(base, c, np.asarray(v), n, s)\nt = None\n"


@pytest.mark.parametrize("seed", range(60))
def test_random_scripts(seed: int, run: Runner) -> None:
    text = script(random.Random(seed))
    assert run(text).output == run(text, fuse=False).output, text


def test_random_scripts_do_defer(run: Runner) -> None:
    texts = [script(random.Random(seed)) for seed in range(1000, 1010)]
    assert max(run(text).together for text in texts) > 3


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_over_the_grammar(seed: int, run: Runner) -> None:
    text = programs.program(random.Random(seed))
    assert outcome(run, text, True) == outcome(run, text, False), text


def test_random_programs_over_the_grammar_do_defer(run: Runner) -> None:
    sizes = []
    for seed in range(40):
        with contextlib.suppress(Exception):
            sizes.append(run(programs.program(random.Random(seed))).together)
    assert sum(size > 1 for size in sizes) > 10


def test_random_programs_on_kernels() -> None:
    """The extension launches what runs at once, and calls that would wait for nothing."""
    assert programs.compare(0, 25, compiled=True) == 0
