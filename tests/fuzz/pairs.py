"""Pairs: each row of a table against each row of another one, in loops or over boxes of pairs."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Statement, fixed

_ROWS, _PAIRS, _LINES = "AB", "RS", "LM"


class PairMaker:
    """Rows that many trips, or iterations along another axis, read again (see `copy_rows`).

    Some break its law: rows that the call changes, that some trips skip or never reach, that end
    where data says, or that are of another loop's trip; loops without trips, and ends of views.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.n, self.m = rng.choice((2, 7, 8, 9, 30, 66)), rng.choice((1, 3, 15, 16, 17, 20))
        self.d = rng.choice((1, 2, 5, 17, 18, 33, 65))
        kind = rng.choice(("float64", "float64", "float32", "int32"))
        self.real = kind != "int32"
        self.bases = (
            Base(_ROWS[0], (self.n, self.d), kind, rng.random() < 0.2),
            Base(_ROWS[1], (max(self.m, self.n), self.d), kind, rng.random() < 0.2),
            *(Base(name, (self.n, self.m), kind, rng.random() < 0.3) for name in _PAIRS),
            *(Base(name, (self.n,), kind, rng.random() < 0.3) for name in _LINES),
        )

    def calls(self) -> list[Call]:
        makers = (self.in_loops, self.in_loops, self.over_pairs, self.over_pairs, self.changed)
        return [self.rng.choice(makers)() for _ in range(self.rng.randint(1, 3))]

    def call(self, body: list[Statement], begin: tuple[int, ...], end: tuple[int, ...]) -> Call:
        rng = self.rng
        first, second = _ROWS if rng.random() < 0.8 else (_ROWS[1], _ROWS[1])
        pairs, lines = rng.choice(_PAIRS), rng.sample(_LINES, 2)
        views = (("x", first), ("y", second), ("r", pairs), ("l", lines[0]), ("u", lines[1]))
        scalars = (("s0", str(self.m)), ("s1", str(self.d)))
        pattern, kind = "for", ""
        if len(end) == 1 and rng.random() < 0.2:
            pattern, kind = "reduce", "pk.double"
            body = [*body, fixed("acc += l[i]")]
        return Call(pattern, begin, end, tuple(body), views, scalars, kind)

    def bounded(self, value: str) -> str:
        return f"math.fmod({value}, 64.0)" if self.real else f"(({value}) & 63)"

    def zero(self, name: str) -> Statement:
        return fixed(f"{name}: float = 0.0" if self.real else f"{name}: int = 0")

    def row(self, mine: str, other: str) -> list[Statement]:
        """A loop over the elements of two rows, each named by its subscript."""
        rng = self.rng
        at = rng.choice(("c", "c", "c", "s1 - 1 - c", "0"))
        bounds = rng.choice(("s1", "s1", "s1", "s1", "s1 - 1", "1, s1", "0, s1, 2", f"{mine} % s1"))
        add = fixed(f"v = {self.bounded(f'v + x[{mine}, {at}] - y[{other}, c]')}")
        body: tuple[Statement, ...] = (add,)
        if rng.random() < 0.15:
            body = (fixed(f"if y[{other}, c] > 0:", body),)
        if rng.random() < 0.15:
            body = (*body, fixed(rng.choice((f"r[{mine}, 0] = v", f"x[{mine}, c] = v"))))
        if rng.random() < 0.1:
            body = (fixed("if v > 9:", (fixed(rng.choice(("break", "continue"))),)), *body)
        return [fixed(f"for c in range({bounds}):", body)]

    def in_loops(self) -> Call:
        """The least of all pairs, or what they add up to, for each row."""
        rng = self.rng
        mine = rng.choice(("i", "i", "i", "i", "s2 - i"))
        trip = [fixed("v = 0.0" if self.real else "v = 0"), *self.row(mine, "k")]
        if rng.random() < 0.15:
            trip = [fixed("if l[i] > k:", tuple(trip))]
        if rng.random() < 0.1:
            trip.append(fixed("if v == 3:", (fixed(rng.choice(("break", "continue"))),)))
        kept = fixed(f"if v < t:", (fixed("t = v"), fixed("n = k")))  # noqa: F541
        trip += [kept if rng.random() < 0.6 else fixed(f"t = {self.bounded('t + v')}")]
        bounds = rng.choice(("s0", "s0", "s0", "1, s0", "i % s0", "0", "s0, s0"))
        loop = fixed(f"for k in range({bounds}):", tuple(trip))
        body = [self.zero("t"), self.zero("v"), fixed("n: int = 0"), loop, fixed("l[i] = t + n")]
        end, begin = self.n, rng.choice((0, 0, 1))
        found = self.call(body, (begin,), (end,))
        return Call(
            found.pattern, found.begin, found.end, found.body, found.views,
            (*found.scalars, ("s2", str(self.n - 1))), found.accumulator,
        )  # fmt: skip

    def over_pairs(self) -> Call:
        """A number for each pair, over a box, whose rows are those of the one or the other."""
        rng = self.rng
        mine, other = rng.choice((("i", "j"), ("i", "j"), ("j", "i"), ("i", "i"), ("j", "j")))
        if max(self.n, self.m) > self.n and mine == "j":
            mine, other = "i", "j"
        body = [self.zero("v"), *self.row(mine, other)]
        body.append(fixed(rng.choice(("r[i, j] = v", "r[i, j] = v", "r[i, j] += v"))))
        rows = self.n if other != "i" and mine != "j" else min(self.n, self.m)
        begin = (0, 0) if rng.random() < 0.7 else (1, 0)
        return self.call(body, begin, (rows, min(self.m, rows if mine == "j" else self.m)))

    def changed(self) -> Call:
        """A map of the rows, before or after others read them."""
        store = fixed(f"x[i, c] = {self.bounded('x[i, c] - l[i]')}")
        return self.call([fixed("for c in range(s1):", (store,))], (0,), (self.n,))
