"""Sums: several reductions over one space, among the maps that make what they add up."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_NUMBERS, _LABELS = "OPR", "I"


class SumMaker:
    """More iterations than a vector takes, so that sums have whole rounds and a rest.

    Some break what sums in one loop need: they read what a map beside them writes elsewhere, an
    element that another iteration writes, or run over a part of the space.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.size = rng.choice((33, 40, 64, 65, 97, 130))
        self.whole = rng.random() < 0.25
        kind = "int64" if self.whole else "float64"
        self.bases = (
            *(Base(name, (self.size,), kind, rng.random() < 0.3) for name in _NUMBERS),
            Base(_LABELS, (self.size,), "int32"),
        )

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_NUMBERS, 3)
        calls = [self.map(names[1], names[0])] if rng.random() < 0.6 else []
        for n in range(rng.randint(2, 5)):
            calls.append(self.sum(*rng.sample(names, 2), n))
            if rng.random() < 0.15:
                calls.append(self.map(names[2], names[1]))
        return calls

    # ----------------------------------------------------------------- the calls

    def map(self, sink: str, source: str) -> Call:
        """An element of the sink from one of the source, or its label."""
        rng = self.rng
        at = self.index(0.1)
        if rng.random() < 0.3:
            test = Statement(f"if y[{at}] > {rng.randint(-1, 2)}:", (), ((self.label("2"),),))
            return self.call("for", (self.label("1"), test), sink, source)
        value: Expr = (f"y[{at}] + z[i]",) if self.whole else (f"0.5 * y[{at}] + z[i]",)
        store = Statement(f"x[i] {rng.choice(('=', '=', '+='))} {{}}", (value,))
        return self.call("for", (store,), sink, source)

    @staticmethod
    def label(text: str) -> Statement:
        return Statement(f"z[i] = {text}")

    def sum(self, x: str, y: str, number: int) -> Call:
        """The elements of x, or products of both, where the label or the other one says so."""
        rng = self.rng
        at = self.index(0.06)
        value: Expr = (f"x[{at}]",)
        if rng.random() < 0.4:
            value = ("({} * y[i])" if rng.random() < 0.5 else "({} - y[i])", value)
        add = Statement(f"acc {rng.choice(('+=', '+=', '+=', '-='))} {{}}", (value,))
        if rng.random() < 0.5:
            test = rng.choice((f"z[i] == {number % 3}", "y[i] > 0", f"z[i] > {number} - 2"))
            other = ((add,), (Statement("acc += 1"),)) if rng.random() < 0.2 else ((add,),)
            add = Statement("\n".join((f"if {test}:", "else:")[: len(other)]), (), other)
        body = (add,)
        if rng.random() < 0.08:
            body = (Statement("value: int = z[i] + 1"), add, Statement("acc += value"))
        return self.call("reduce", body, x, y, "int" if self.whole else "pk.double")

    def call(
        self, pattern: str, body: tuple[Statement, ...], x: str, y: str, kind: str = ""
    ) -> Call:
        begin, end = 0, self.size
        if self.rng.random() < 0.06:
            begin, end = self.rng.choice(((1, end), (0, end - 1), (3, 35)))
        views = (("x", x), ("y", y), ("z", _LABELS))
        return Call(pattern, (begin,), (min(end, self.size),), body, views, (), kind)

    def index(self, doubt: float) -> str:
        """Mostly the iteration's own."""
        if self.rng.random() >= doubt:
            return "i"
        return self.rng.choice((f"{self.size} - 1 - i", "i // 2", str(self.rng.randint(0, 32))))
