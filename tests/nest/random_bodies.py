"""Random bodies of what passes over loops look for, legal and not (see `harness`)."""

from __future__ import annotations

import random
import re

from tests.codegen.build import from_text
from tests.nest.harness import Sample

VALUES = (
    "a[i][j]", "b[i][j]", "c[j][i]", "o[j][i]", "c[29 - j][i]", "w[j]", "x[i]", "x[j]", "y[i]",
    "a[i][29 - j]", "c[0][i]", "b[i][0]", "p", "q", "x[near[i][j]]",
)  # fmt: skip
TRIPS = ("m", "m", "m", "1, m", "5", "1, 5", "30", "m - 1, 0, -1", "i % m", "t", "int(x[i]) % 4")
STEPS = (
    "p += {v}", "q = 0.5 * q + {v}", "p = p * {v} - q", "b[i][j] = {v} + p", "o[j][i] = {v} - q",
    "a[i][j] = q + {v}", "c[j][i] = c[j][i] - 0.5 * {v}", "y[i] += {v} * {u}", "d[j % 3] += {v}",
    "r{k}: float = {v} * {u}\n        p -= r{k} * r{k}",
    "if {v} > q:\n            q = {u}",
    "if {v} > 1.5:\n            break\n        p += {u}",
    "if {v} > 1.5:\n            continue\n        q += {u}",
    "for l in range(4):\n            p = 0.5 * p + c[l][i] * {v}",
    "for l in range(i % 3):\n            q += c[l][i]",
    "for l in range(five):\n            p = 0.5 * p + a[i][l] * {v}",
    "r{k}: float = {v} - x[i]\n        p = p * 0.5 + 1.0 / (1.0 + r{k} * r{k})"
    " + {u} / (2.0 + r{k} * r{k}) + q\n        q = q / (2.0 + r{k} * r{k}) - p / (3.0 + q * q)",
)  # fmt: skip
OTHERS = (
    "t = m - 1",
    "p = exp(-p * p) * sin(x[i])",
    "q = log(2.0 + q * q)",
    "v[i] = exp(-v[i]) + q",
    "far[to[i]] = p",
    "z[i] = x[to[i]] + p",
    "if hit[i] == 1:\n        z[i] = cos(x[i]) * p",
    "q = sin(p) if p > 0.5 else q",
    "pk.atomic_add(few, [int(x[i]) + 3], 1.0)",
    "if p > 0.0:\n        q = p - q",
    "while t > 0:\n        t -= 2\n        p = 0.5 * p",
    "if i > 0 and i < n - 1:\n        p += x[i - 1] - x[i + 1]",
    "i = i // 2 * 2 + i % 2",
    "g{k}: float = 2.0 * x[i]\n    h{k}: float = g{k} - 1.0\n    z[i] = h{k} * g{k}",
)
SUMS = (
    "acc += p", "acc -= q * {v}", "if {v} > 0.5:\n        acc += {v}",
    "for j in range(m):\n        acc += {v} * w[j]",
)  # fmt: skip


def random_sample(seed: int, sums: int = 0) -> Sample:
    """A body with loops, conditions and calls; always the same one for a seed.

    sums: statements that add to an accumulator.
    """
    rng = random.Random(seed)
    lines = ["p: float = 0.0", "q: float = " + rng.choice(("0.0", "x[i]", "1.0 * i", "y[i]"))]
    lines += ["t: int = m"]
    if rng.random() < 0.4:
        zeros = "[0.0, 0.0, 0.0]"
        lines.append("d: List[float] = " + rng.choice((zeros, zeros, zeros, "[1.0, p, 0.0]")))
    trips, walk = rng.choice(TRIPS), rng.choice(("[j][i]", "[i][j]", ""))
    for k in range(rng.randint(2, 6)):
        lines.append(_statement(rng, k, trips if rng.random() < 0.7 else rng.choice(TRIPS), walk))
    lines.append("z[i] = p + q")
    for k in range(sums):
        lines.insert(len(lines) - k, rng.choice(SUMS).format(v=rng.choice(("x[i]", "y[i]"))))
    text = "\n    ".join(line for line in lines if "d[" not in line or "d: List" in "".join(lines))
    names = [n for n in _NAMES if re.search(rf"\b{n}\b[\[,]", text)]
    given = ", ".join([*["acc"] * bool(sums), *names, "m", "n", "five"])
    source = f"def random_{seed}(i, {given}):\n    {text}\n"
    pair = rng.choice(("c o", "a b"))
    aliased = pair if rng.random() < 0.2 and {*pair.split()} <= {*names} else ""
    return Sample(from_text(source), frozenset(), aliased=aliased, m=rng.choice((1, 5, 21)))


_NAMES = ("a", "b", "c", "o", "w", "x", "y", "v", "z", "far", "to", "near", "hit", "few")


def _statement(rng: random.Random, k: int, trips: str, walk: str) -> str:
    if rng.random() < 0.3:
        return rng.choice(OTHERS).format(k=k)
    near = VALUES
    if walk and rng.random() < 0.8:
        near = tuple(v for v in VALUES if walk in v or "[" not in v)
    steps = [s for s in STEPS if walk in s or "[j]" not in s.partition("=")[0]]
    chosen = [rng.choice(steps if rng.random() < 0.8 else STEPS) for _ in range(rng.randint(1, 2))]
    body = "\n        ".join(
        step.format(v=rng.choice(near), u=rng.choice(near), k=f"{k}_{n}")
        for n, step in enumerate(chosen)
    )
    loop = f"for j in range({trips}):\n        {body}"
    if rng.random() < 0.2:
        test = rng.choice(("y[i] > 0.0", "x[i] > 1.7", "p > q", "m > 3", "hit[i] == 1"))
        return f"if {test}:\n        " + loop.replace("\n", "\n    ")
    return loop
