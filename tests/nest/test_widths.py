"""Random bodies with bytes beside doubles: what is split, and that it computes what it did."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.codegen.build import from_text
from tests.nest.harness import Sample, assert_interpreted

NARROW = ("byte[i]", "gap[i]", "gap[i + 1]", "mark[i]", "(1 if flag[i] else 0)", "byte[i + 1]")
STORES = (
    "mark[i] = {n}", "mark[i] = int({w}) % 9", "if {w} > 0.5:\n        mark[i] = {n} + 1",
    "if {n} > 3:\n        mark[i] = 1\n    else:\n        z[i] = {w}",
    "mark[i] = mark[i] + 1", "flag[i] = {w} > {w}", "if flag[i]:\n        {l} = {w}",
    "while {l} > 2.5:\n        {l} = {l} * 0.5", "{l} = lgamma({l} * {l} + 1.0)",
    "u{k}: float = {l} * 0.5\n    {l} = {w}\n    z[i] = u{k}", "{l} = {w}",
    "if flag[i] and {w} > 0.0:\n        mark[i] = 3", "label[i] = {n}", "k{k}: pk.uint8 = {n}",
)  # fmt: skip
NAMES = ("byte", "gap", "mark", "flag", "label", "x", "y", "z")


def sample(seed: int) -> Sample:
    """A body; always the same one for a seed."""
    rng = random.Random(seed)
    known = ["x[i]", "y[i]", "0.5"]
    lines: list[str] = []

    def wide() -> str:
        value = rng.choice(known)
        for _ in range(rng.randint(1, 3)):
            other = rng.choice(NARROW) if rng.random() < 0.2 else rng.choice(known)
            value = f"({value} {rng.choice('+-*')} {other})"
        return value

    for k in range(rng.randint(3, 9)):
        local = f"t{k}"
        lines.append(f"{local}: float = {wide()}")
        known.append(local)
        for again in range(rng.choice((0, 0, 1, 1, 2))):
            line = rng.choice(STORES)
            lines.append(line.format(n=rng.choice(NARROW), w=wide(), l=local, k=2 * k + again))
        if rng.random() < 0.2:
            lines.append(f"{local} = {local} * 0.5 + {rng.choice(NARROW)}")
    sums = rng.random() < 0.25
    lines.append(f"z[i] = {wide()}")
    if sums:
        lines.append(f"acc += {wide()}")
    text = "\n    ".join(lines)
    names = [name for name in NAMES if f"{name}[" in text]
    given = ", ".join([*["acc"] * sums, *names])
    may = {"byte", "mark"} <= {*names} and "byte[i + 1]" not in text
    aliased = "byte mark" if may and rng.random() < 0.4 else ""
    return Sample(
        from_text(f"def random_{seed}(i, {given}):\n    {text}\n"), frozenset(), aliased=aliased
    )


@pytest.mark.parametrize("part", range(4))
def test_random_bodies(part: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(part, 160, 4):
        n = (3, 16, 17, 40)[seed % 4]
        made = sample(seed).case(n, begin=seed % 2 * (n // 3))
        done.update(assert_interpreted(made, seed, on=("avx2", "wide")[seed // 4 % 2]))
    assert done["split-widths"] >= 12


def test_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyfuser.nest.passes.split_widths.left_out", lambda name: True)
    for seed in range(20):
        assert "split-widths" not in assert_interpreted(sample(seed).case(17), seed)
