"""Loops over the rows or windows of arrays: the same calls again, a step further on each time."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Statement

_NAMES = "FGUV"
_KEPT = "L"

_Part = tuple[str, int, int]
_Work = tuple[tuple[Statement, ...], list[_Part], str]


class MovingMaker:
    """A few calls on parts that move on, in so many rounds; then a copy of what they have made.

    Most parts are rows of tables, some are windows that overlap the next one, or every other
    element; they go up or down, at speeds that differ, and start apart from each other. So some
    rounds are independent, some depend on the one before element by element, and some break the
    law of calls that stand for all rounds: across elements, or as a later call of a round meets
    what an earlier one does in the next. Here and there a round differs, or a number counts.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rounds = rng.choice((3, 4, 5, 7))
        self.columns = rng.choice((4, 5, 6))
        self.rows = self.rounds + 4
        self.flat = rng.random() < 0.3
        shape = (self.rows * self.columns,) if self.flat else (self.rows, self.columns)
        dtype = rng.choice(("float64", "float64", "float32", "int32"))
        self.whole = dtype == "int32"
        self.bases = (
            *(Base(name, shape, dtype, rng.random() < 0.8) for name in _NAMES),
            Base(_KEPT, shape, dtype),
        )

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_NAMES, rng.choice((1, 2, 3)))
        body = [self.work(names) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        made = [self.at(call, number) for number in range(self.rounds) for call in body]
        if rng.random() < 0.15:
            place = rng.randrange(len(made))
            made[place] = self.other(made[place])
        return [*made, *(self.copy(name) for name in names)]

    def other(self, call: Call) -> Call:
        """One that is like the others but for its range."""
        return Call("for", (1,), call.end, call.body, call.views, call.scalars)

    def copy(self, name: str) -> Call:
        rows, columns = (1, self.rows * self.columns) if self.flat else (self.rows, self.columns)
        at = "i" if self.flat else "i, j"
        body = (Statement(f"x[{at}] += y[{at}]"),)
        end = (columns,) if self.flat else (rows, columns)
        return Call("for", (0,) * len(end), end, body, (("x", _KEPT), ("y", name)))

    # ----------------------------------------------------------------- a call of a round

    def work(
        self, names: list[str]
    ) -> tuple[tuple[Statement, ...], list[tuple[str, int, int]], str]:
        """What it does, its parts (base, first row, speed), and a number that may count."""
        rng = self.rng
        parts = [self.part(rng.choice(names)) for _ in range(2)]
        index = rng.choice(("i", "i", "i", "i", f"{self.columns} - 1 - i", "i // 2"))
        value = f"y[{index}]" if self.whole else f"0.5 * y[{index}]"
        value += rng.choice(("", " + x[i]", " + s0"))
        store = Statement(f"x[i] {rng.choice(('=', '=', '+='))} {value}")
        body = (store,)
        if rng.random() < 0.2:
            body = (Statement(f"if y[i] > {rng.randint(0, 2)}:", (), (body,)),)
        if rng.random() < 0.2:  # a neighbour that a branch keeps inside
            guard, near = rng.choice((("i > 0", "i - 1"), (f"i < {self.columns} - 1", "i + 1")))
            inside = (Statement(f"x[i] += y[{near}]"),)
            body = (*body, Statement(f"if {guard}:", (), (inside,)))
        return body, parts, rng.choice(("", "", "k", "-k", "c"))

    def part(self, name: str) -> _Part:
        speed = self.rng.choice((1, 1, 1, 1, 0, -1))
        slack = self.rows - self.rounds
        first = self.rng.randint(0, slack) if speed >= 0 else self.rounds - 1
        return name, first, speed

    def at(self, call: _Work, number: int) -> Call:
        """A call in a round."""
        body, parts, counts = call
        count = {"": "2", "c": "3", "k": str(number + 1), "-k": str(20 - 2 * number)}[counts]
        scalars = (("s0", count),) if any("s0" in s for s in self.texts(body)) else ()
        x, y = (self.text(name, first + number * speed) for name, first, speed in parts)
        return Call("for", (0,), (self.columns,), body, (("x", x), ("y", y)), scalars)

    def texts(self, body: tuple[Statement, ...]) -> list[str]:
        return [line for statement in body for line in statement.render(0)]

    def text(self, name: str, row: int) -> str:
        if not self.flat:
            return f"{name}[{row}]"
        start = 2 * row  # windows: the next one begins inside
        return f"{name}[{start}:{start + self.columns}]"
