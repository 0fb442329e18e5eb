"""Inner loops: calls over rows that walk over each row's elements, and sums of these."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Statement

_CELLS = "SXYZ"


class LoopMaker:
    """Rows below, at and beyond the lengths at which sums inside an iteration are taken in blocks.

    Some break the law of joined loops: they read another element of the row than its last writer
    wrote, walk over a part of it, or pass a value from trip to trip.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows, self.columns = rng.randint(2, 4), rng.choice((5, 23, 24, 40, 64, 65, 130))
        shape = (self.rows, self.columns)
        dtype = rng.choice(("float64", "float64", "float32"))
        self.bases = tuple(Base(name, shape, dtype, rng.random() < 0.4) for name in _CELLS)

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_CELLS, 3)
        calls = [self.map(names[0], names[1]), self.map(names[1], names[0])]
        calls = calls[: rng.randint(1, 2)]
        for _ in range(rng.randint(1, 3)):
            calls.append(self.sum(*rng.sample(names, 2)))
            if rng.random() < 0.4:
                calls.append(self.map(*rng.sample(names, 2)))
            if rng.random() < 0.3:
                calls.append(self.several(*rng.sample(names, 2)))
        return calls

    # ----------------------------------------------------------------- the calls

    def map(self, sink: str, source: str) -> Call:
        """Each element of a row from one of another row; sometimes from the one before it."""
        rng = self.rng
        if rng.random() < 0.1:
            body = (
                Statement("last: float = 0.5"),
                Statement("x[i, j] = last"),
                Statement(f"last = y[i, j] - {rng.randint(0, 2)}"),
            )
            loop = Statement(self.walk(), (), (body[1:],))
            return self.call("for", (body[0], loop), sink, source)
        store = Statement(f"x[i, j] {rng.choice(('=', '=', '+='))} 0.5 * y[i, {self.column()}] + i")
        return self.call("for", (self.loop(store),), sink, source)

    def sum(self, x: str, y: str) -> Call:
        """The elements of x, or what they differ from those of y, of all rows."""
        rng, at = self.rng, self.column()
        value = f"x[i, {at}]" if rng.random() < 0.5 else f"(x[i, {at}] - y[i, {at}])"
        add = Statement(f"acc {rng.choice(('+=', '+=', '+=', '-='))} math.fmod({value}, 64.0)")
        body = (add,)
        if rng.random() < 0.2:
            body = (Statement("if y[i, j] > 0:", (), (body,)),)
        elif rng.random() < 0.1:
            body = (Statement("x[i, j] = y[i, j]"), add)
        return self.call("reduce", (self.loop(*body),), x, y)

    def several(self, x: str, y: str) -> Call:
        """Several elements a trip, in any order, added to a number of the row."""
        rng, width = self.rng, self.rng.randint(2, 5)
        places = rng.sample(range(width), rng.randint(2, width))
        terms = [f"{'x' if rng.random() < 0.9 else 'y'}[i, {width} * j + {at}]" for at in places]
        if rng.random() < 0.3:
            adds = ["total = total + " + " + ".join(terms)]
        else:
            adds = [f"total {rng.choice(('+=', '+=', '-='))} {term}" for term in terms]
        body = tuple(map(Statement, adds))
        return self.call(
            "for",
            (
                Statement("total: float = 0.0"),
                Statement(f"for j in range(s0 // {width}):", (), (body,)),
                Statement("x[i, 0] = math.fmod(total, 64.0)"),
            ),
            x,
            y,
        )

    def loop(self, *body: Statement) -> Statement:
        return Statement(self.walk(), (), (body,))

    def walk(self) -> str:
        start = self.rng.choice((0, 0, 0, 0, 0, 0, 1))
        return f"for j in range({start}, s0):"

    def column(self) -> str:
        """Mostly the trip's own."""
        if self.rng.random() < 0.85:
            return "j"
        return self.rng.choice(("s0 - 1 - j", "j // 2", "0"))

    def call(self, pattern: str, body: tuple[Statement, ...], x: str, y: str) -> Call:
        views = (("x", x), ("y", y))
        kind = "pk.double" if pattern == "reduce" else ""
        scalars = (("s0", str(self.columns)),)
        return Call(pattern, (0,), (self.rows,), body, views, scalars, kind)
