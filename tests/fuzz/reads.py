"""Loops that read a result in each trip, among maps that it may or may not need."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from tests.fuzz.program import Base, Call, Host, Statement

_NAMES = "TUVW"
WATCHED = "TUV"  # Views in all compiled programs: only calls on Views may wait
_STATEMENTS = (
    "x[i] = y[i]",
    "x[i] = y[i] - (0.5 * z[i])",
    "x[i] += y[i]",
    "x[i] = (0.5 * x[i]) + (s * y[i])",
    "z[i] = s\nx[i] = y[i]",
    "if y[i] > 0.5:\n    x[i] = z[i]",
    "x[i] = y[i + 1] - z[i]",
    "x[i] = y[i + 1]\nz[i] = x[i]",
    "x[i] = y[{n} - 1 - i]",
    "x[i] = y[i // 2]",
    "pk.atomic_add(x, [i // 2], 1.0)",
)
_SUMS = ("x[i]", "x[i] - y[i]", "x[i] * y[i]", "x[{n} - 1 - i]", "x[i // 2]")


class ReadsMaker:
    """Two to four trips of some maps and sums over four bases, some of them parts of one.

    first: the place of its first step in the program.
    """

    def __init__(self, rng: random.Random, first: int) -> None:
        self.rng, self.first = rng, first
        self.size = rng.randint(6, 10)
        self.bases = tuple(
            Base(name, (self.size + 2,), "float64", rng.random() < 0.35) for name in _NAMES
        )

    def calls(self) -> list[Call | Host]:
        rng = self.rng
        items = [
            self.sum() if rng.random() < 0.35 else self.map() for _ in range(rng.randint(2, 5))
        ]
        items.insert(rng.randint(1, len(items)), self.sum())
        reads = [rng.random() < 0.8 for _ in items]
        steps: list[Call | Host] = []
        latest = ""
        for _ in range(rng.randint(2, 4)):
            for item, read in zip(items, reads, strict=True):
                here = f"result[{self.first + len(steps)}]"
                steps.append(_with_scalar(item, latest))
                if item.pattern != "for":
                    latest = here
                    if read:
                        steps.append(Host(f"read({here})"))
            if rng.random() < 0.15:
                steps.append(self.host())
        if rng.random() < 0.4:
            steps += self.last_use(self.first + len(steps))
        return steps

    def last_use(self, place: int) -> list[Call | Host]:
        """What a sum and a map after it read is read by nobody else."""
        source, made, sink = self.rng.sample(_NAMES, 3)
        write, use = (Statement("x[i] = 0.5 * y[i]"),), (Statement("x[i] += y[i]"),)
        add = (Statement("acc += math.fmod(pk.floor(x[i]), 16.0)"),)
        whole = {"begin": (0,), "end": (self.size,)}
        return [
            Call("for", body=write, views=(("x", made), ("y", source)), **whole),
            Call("reduce", body=add, views=(("x", made),), accumulator="pk.double", **whole),
            Call("for", body=use, views=(("x", sink), ("y", made)), **whole),
            Host(f"read(result[{place + 1}])"),
        ]

    def map(self) -> Call:
        lines = self.rng.choice(_STATEMENTS).format(n=self.size).split("\n")
        return self.call("for", _block(lines), 3)

    def sum(self) -> Call:
        """Of whole numbers, so that no order of additions shows."""
        value = self.rng.choice(_SUMS).format(n=self.size)
        add = Statement(f"acc += math.fmod(pk.floor({value}), 16.0)")
        return self.call("reduce", (add,), 2)

    def call(self, pattern: str, body: tuple[Statement, ...], count: int) -> Call:
        rng, text = self.rng, " ".join(statement.template for statement in body)
        begin, end = 0, self.size
        if rng.random() < 0.15:
            begin, end = rng.choice(((1, end - 1), (0, end // 2), (2, end)))
        names = rng.sample(_NAMES, 3)
        if rng.random() < 0.15:
            names[1] = names[0]
        views = tuple(
            (name, self.part(base)) for name, base in zip("xyz"[:count], names, strict=False)
        )
        scalars = (("s", "0.5"),) if re.search(r"\bs\b", text) else ()
        accumulator = "pk.double" if pattern == "reduce" else ""
        return Call(pattern, (begin,), (end,), body, views, scalars, accumulator)

    def part(self, name: str) -> str:
        """Mostly the whole."""
        rng = self.rng
        return name if rng.random() < 0.8 else f"{name}[{rng.randint(0, 1)}:{self.size + 2}]"

    def host(self) -> Host:
        rng, name = self.rng, self.rng.choice(_NAMES)
        at = rng.randrange(self.size)
        return Host(rng.choice((f"read({name}[{at}])", f"{name}[{at}] = 0.5", f"{name}.fill(0.5)")))


def _with_scalar(call: Call, latest: str) -> Call:
    """The call with the latest result as its scalar."""
    return replace(call, scalars=(("s", latest),)) if call.scalars and latest else call


def _block(lines: list[str]) -> tuple[Statement, ...]:
    if lines[0].startswith("if"):
        return (Statement(lines[0], (), (_block([line.strip() for line in lines[1:]]),)),)
    return tuple(Statement(line) for line in lines)
