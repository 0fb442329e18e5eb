"""Pipelines: temporaries that one stage writes and the next reads close by, and then nobody."""

from __future__ import annotations

import random
from itertools import pairwise

from tests.fuzz.chains import element
from tests.fuzz.program import Base, Call, Expr, Statement

NAMES = "TUVW"


class PipelineMaker:
    """A source, one to three temporaries of its shape (a window of which would do), and a sink.

    Some temporaries are changed in place, before or after they are read. Some break the rules of
    rolling windows: what is read or changed was not written, or only under a condition, or is far
    away.
    """

    def __init__(self, rng: random.Random, mixed: bool, source: Base, sink: Base) -> None:
        self.rng, self.mixed = rng, mixed
        self.source, self.sink = source, sink
        self.rank, self.extents = len(source.shape), source.shape
        count = rng.choice((1, 1, 2, 3))
        self.bases = tuple(Base(n, source.shape, source.dtype, True) for n in NAMES[:count])

    def calls(self) -> list[Call]:
        rng, rim = self.rng, 1
        names = [self.source.name, *(base.name for base in self.bases)]
        calls = []
        if rng.random() < 0.1:  # nothing was written yet
            calls.append(self.stage(rng.choice(names[1:]), self.sink.name, rim, False))
        for source, sink in pairwise(names):
            calls.append(self.stage(source, sink, rim, rng.random() < 0.2))
            if rng.random() < 0.1:
                calls.append(self.stage(self.source.name, sink, rim, False))
            if rng.random() < 0.5:
                calls.append(self.change(rng.choice(names[1:]), rim + rng.choice((0, 0, 1, 1, -1))))
            rim += rng.choice((1, 1, 1, 1, 0))
        if rng.random() < 0.4:
            calls.append(self.total(names[-1], rim))
        elif self.sink.shape == self.extents:
            calls.append(self.stage(names[-1], self.sink.name, rim, False))
        if rng.random() < 0.3:
            calls.append(self.total(rng.choice(names[1:]), rim))
        return calls

    def stage(self, source: str, sink: str, rim: int, shifted: bool) -> Call:
        """y at a point (or beside it) from x around it, inside a rim."""
        rng = self.rng
        here = (0,) * self.rank
        offsets = [here]
        for axis in range(self.rank):
            offsets += [
                tuple(step if a == axis else 0 for a in range(self.rank))
                for step in (-1, 1)
                if rng.random() < 0.7
            ]
        value: Expr = (f"(0.5 * {element('x', offsets[0])})",)
        for offset in offsets[1:]:
            value = (rng.choice(("({} + {})", "({} - {})")), value, (element("x", offset),))
        target = element("y", (rng.choice((-1, 1)), *here[1:])) if shifted else element("y", here)
        body = (self.store(target, value),)
        if rng.random() < 0.1:
            body = (Statement(f"if i != {rng.randint(1, 4)}:", (), (body,)),)
        return Call("for", *self.space(rim), body, (("x", source), ("y", sink)))

    def change(self, name: str, rim: int) -> Call:
        """y at a point from itself, or from the source there, perhaps in some iterations."""
        here = element("y", (0,) * self.rank)
        source = element("x", (0,) * self.rank)
        values: list[Expr] = [(f"({here} + 3.0)",), (f"(0.5 * {here})",), (f"({here} - {source})",)]
        body = (self.store(here, self.rng.choice([*values, (source,)])),)
        if self.rng.random() < 0.3:
            body = (Statement(f"if {source} > 1.0:", (), (body,)),)
        views = (("x", self.source.name), ("y", name))
        return Call("for", *self.space(max(rim, 0)), body, views)

    def space(self, rim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        begin = tuple(min(rim, extent // 2) for extent in self.extents)
        end = tuple(max(extent - rim, b) for extent, b in zip(self.extents, begin, strict=True))
        return begin, end

    def store(self, target: str, value: Expr) -> Statement:
        if self.mixed:
            value = ("math.fmod(pk.floor({}), 64.0)", value)
        return Statement(f"{target} = {{}}", (value,))

    def total(self, source: str, rim: int) -> Call:
        here = (0,) * self.rank
        value: Expr = (element("x", here),)
        body = (Statement("acc += {}", (("math.fmod(pk.floor({}), 64.0)", value),)),)
        return Call("reduce", *self.space(rim), body, (("x", source),), (), "pk.double")
