"""Tiles: calls an element, whose loops fill, change and add up small matrices of its own."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Statement, fixed

_TILES, _GIVEN, _LINES = "TU", "A", "LM"


class TileMaker:
    """Matrices that iterations pass from loop to loop: whole ones, triangles, single elements.

    Some break the law of contracted tiles: an element is read that no loop has surely stored, or
    that is another iteration's.
    """

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.count, self.m = max(size, 2), rng.choice((2, 3, 3, 4, 17))
        shape = (self.count, self.m, self.m)
        kind = rng.choice(("float64", "float64", "int32"))
        self.real = kind != "int32"
        self.bases = (
            *(Base(name, shape, kind, rng.random() < 0.8) for name in _TILES),
            *(Base(name, shape, kind) for name in _GIVEN),
            *(Base(name, (self.count,), kind, rng.random() < 0.3) for name in _LINES),
        )

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_TILES, 2)
        makers = [self.filled, self.changed, self.changed, self.totalled]
        if rng.random() < 0.2:
            rng.shuffle(makers)
        made = [make(*names) for make in makers[: rng.randint(2, 4)]]
        return [*made, self.totalled(*names)] if rng.random() < 0.7 else made

    def call(self, body: list[Statement], t: str, u: str) -> Call:
        views = (("x", t), ("y", u), ("z", _GIVEN), ("l", self.rng.choice(_LINES)))
        return Call("for", (0,), (self.count,), tuple(body), views, (("s0", str(self.m)),))

    def loops(self, *inside: Statement, part: bool = False) -> Statement:
        inner, outer = "0, s0", "0, s0"
        if part:
            inner = self.rng.choice(("0, s0", "0, s0", "j, s0", "0, j + 1", "1, s0", "i % 2, s0"))
            outer = self.rng.choice(("0, s0", "0, s0", "1, s0", "0, s0, 2"))
        return fixed(f"for j in range({outer}):", (fixed(f"for k in range({inner}):", inside),))

    def at(self, view: str, sure: bool = False) -> str:
        place = "j, k" if sure or self.rng.random() < 0.5 else ""
        place = place or self.rng.choice(("k, j", "j, j", "j, 0", "1, k", "s0 - 1 - j, k"))
        row = f"{self.count - 1} - i" if not sure and self.rng.random() < 0.03 else "i"
        return f"{view}[{row}, {place}]"

    def bounded(self, value: str) -> str:
        return f"math.fmod({value}, 64.0)" if self.real else f"(({value}) & 63)"

    def filled(self, t: str, u: str) -> Call:
        """All of a tile, or nearly."""
        store = fixed(f"{self.at('x', True)} = {self.bounded(self.at('z') + ' - 3')}")
        part = self.rng.random() < 0.2
        if self.rng.random() < 0.15:
            store = fixed(f"if {self.at('z')} > 0:", (store,))
        return self.call([self.loops(store, part=part)], t, u)

    def changed(self, t: str, u: str) -> Call:
        rng = self.rng
        if rng.random() < 0.5:
            t, u = u, t
        source = rng.choice(("y", "y", "x", "z"))
        value = f"{self.at(source)} - {self.at(rng.choice('yz'))}"
        steps = [fixed(f"{self.at('x', rng.random() < 0.7)} = {self.bounded(value)}")]
        if rng.random() < 0.1:
            steps.insert(0, fixed(f"if {self.at('z')} > 2:", (fixed("break"),)))
        body = [self.loops(*steps, part=rng.random() < 0.5)]
        if rng.random() < 0.4:
            body.append(fixed("for j in range(s0):", (fixed("x[i, j, j] += 1"),)))
        return self.call(body, t, u)

    def totalled(self, t: str, u: str) -> Call:
        zero = fixed("v: float = 0.0" if self.real else "v: int = 0")
        first, second = self.at("x"), self.at("y")
        add = fixed(f"v = {self.bounded(f'v + {first} - {second}')}")
        return self.call(
            [zero, self.loops(add, part=self.rng.random() < 0.2), fixed("l[i] = v")], t, u
        )
