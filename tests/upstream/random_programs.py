"""Random programs in one process: fused, and by PyKokkos itself, must make the same.

Used by `cases.py random`, whose workunits they call: on overlapping parts of a few Views, with
reads and writes by the host in between, and Views that die.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pykokkos as pk

import pyfuser

SIZE = 16
STEPS = 14
LIMIT = 1e6  # numbers are kept exact: a View beyond it starts again


class Program:
    """One random program; the same seed makes the same calls again."""

    def __init__(self, seed: int, workunits: Any) -> None:
        self.random = random.Random(seed)
        self.w = workunits
        self.views = [pk.View([SIZE], pk.double) for _ in range(3)]
        self.seen: list[Any] = []
        for view in self.views:
            pk.parallel_for(SIZE, self.w.index, x=view)

    def part(self, length: int) -> Any:
        """A View, or a part of one, of at least this length."""
        view = self.random.choice(self.views)
        if self.random.random() < 0.4:
            return view
        begin = self.random.randint(0, SIZE - length)
        return view[begin : self.random.randint(begin + length, SIZE)]

    def launch(self) -> None:
        r, w = self.random, self.w
        n = r.randint(1, SIZE - 2)
        kind = r.randrange(6)
        if kind == 0:
            pk.parallel_for(n, w.copy, y=self.disjoint(n), x=self.views[0])
        elif kind == 1:
            pk.parallel_for(pk.RangePolicy(r.randint(0, n), n), w.grow, x=self.part(n))
        elif kind == 2:
            pk.parallel_for(n, w.copy, y=self.disjoint(n), x=self.views[0][SIZE - n : SIZE])
        elif kind == 3:
            pk.parallel_for(n, w.neighbour, y=self.disjoint(n), x=self.views[0], k=r.randint(0, 2))
        elif kind == 4:
            self.seen.append(pk.parallel_reduce(n, w.total, x=self.part(n)))
        else:
            temporary = pk.View([SIZE], pk.double)
            pk.parallel_for(n, w.copy, y=temporary, x=self.part(n))
            pk.parallel_for(n, w.grow, x=temporary)
            pk.parallel_for(n, w.copy, y=self.disjoint(n), x=temporary)

    def disjoint(self, length: int) -> Any:
        """A part to write while views[0] is read, as iterations of a call must not race."""
        view = self.random.choice(self.views[1:])
        begin = self.random.randint(0, SIZE - length)
        return view[begin : begin + length]

    def touch(self) -> None:
        r = self.random
        view = r.choice(self.views)
        kind = r.randrange(6)
        if kind == 0:
            self.seen.append(view[r.randrange(SIZE)])
        elif kind == 1:
            view[r.randrange(SIZE)] = r.randint(0, 9)
        elif kind == 2:
            self.seen.append(str(view[0:4]))
        elif kind == 3:
            self.seen.append(np.sum(view))
        elif kind == 4:
            self.views.sort(key=lambda _: r.random())
        else:
            self.views[1] = pk.View([SIZE], pk.double)

    def run(self) -> list[Any]:
        for _ in range(STEPS):
            (self.launch if self.random.random() < 0.75 else self.touch)()
            if self.random.random() < 0.1:
                self.calm()
        return [float(s) if not isinstance(s, str) else s for s in self.seen] + [
            view.data.tolist() for view in self.views
        ]

    def calm(self) -> None:
        for view in self.views:
            if max(view) > LIMIT:
                view.fill(1)


def check(first: int, count: int, workunits: Any) -> dict[str, int]:
    """Run `count` programs from this seed on, each both ways. Raises AssertionError."""
    blocks: tuple[Callable[[], Any], ...] = (pyfuser.unfused, pyfuser.fusing)
    before = pyfuser.stats()
    for seed in range(first, first + count):
        made = []
        for block in blocks:
            with block():
                made.append(Program(seed, workunits).run())
        assert made[0] == made[1], f"seed {seed}: plain {made[0]}, fused {made[1]}"
    after = pyfuser.stats()
    return {
        "recorded": after.recorded - before.recorded,
        "launches": after.launches - before.launches,
    }
