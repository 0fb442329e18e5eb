"""Prefix sums: scans among maps over the same iterations, as in compactions and histograms."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_NAMES = "HJKN"
_SPARE = 2  # elements that views may leave out


class PrefixMaker:
    """Maps that make what is summed, the scan, and maps that use the sums or their total.

    Some break the law of scans beside maps: they look at neighbours or from the other end, two
    parameters are different parts of one base, or the scan writes where its sum says.
    """

    def __init__(self, rng: random.Random, first: int) -> None:
        """`first`: the number of the first step that it makes."""
        self.rng, self.first = rng, first
        self.size = rng.choice((5, 7, 8, 9, 12, 13))
        self.rim = rng.choice((0, 0, 0, 1))
        dtype = rng.choice(("float64", "float64", "float32", "int64"))
        self.whole = dtype == "int64"
        self.bases = tuple(
            Base(name, (self.size + _SPARE,), dtype, rng.random() < 0.3) for name in _NAMES
        )
        self.total: int | None = None  # the step of the last scan
        self.made: list[Call] = []

    def calls(self) -> list[Call]:
        rng = self.rng
        source, sums, other = rng.sample(_NAMES, 3)
        for _ in range(rng.choice((0, 1, 1, 2))):
            self.add(self.map(rng.choice((source, source, other)), rng.choice(_NAMES)))
        self.scan(source, rng.choice((sums, sums, sums, source)))
        for _ in range(rng.choice((0, 1, 1, 2))):
            self.add(self.map(rng.choice((other, other, source, sums)), rng.choice((sums, source))))
        if rng.random() < 0.15:
            self.scan(sums, other)
        if rng.random() < 0.3:
            self.add(self.map(other, sums))
        return self.made

    def add(self, call: Call) -> None:
        self.made.append(call)

    # ----------------------------------------------------------------- what both have

    def part(self, name: str) -> str:
        """Mostly the base; else a part that is as long as the space."""
        texts = (f"{name}[1:]", f"{name}[:-1]", f"{name}[::-1]", f"{name}[{_SPARE}:]")
        return self.rng.choice(texts) if self.rng.random() < 0.12 else name

    def space(self) -> tuple[tuple[int], tuple[int]]:
        return (self.rim,), (self.size - self.rim,)

    def index(self, doubt: float) -> str:
        """Mostly the iteration's own."""
        if self.rng.random() >= doubt:
            return "i"
        # A view is longer than the space.
        beside = ["i + 1", f"{self.size} - 1 - i", "i // 2", str(self.rng.randint(0, 3))]
        return self.rng.choice([*beside, "i - 1"] if self.rim else beside)

    # ----------------------------------------------------------------- the calls

    def map(self, sink: str, source: str) -> Call:
        """An element of the sink from one of the source, sometimes with a scan's total."""
        rng = self.rng
        value: Expr = (f"y[{self.index(0.15)}]",)
        if not self.whole:
            value = ("(0.5 * {})", value)
        scalars: tuple[tuple[str, str], ...] = ()
        if self.total is not None and not self.whole and rng.random() < 0.25:
            value = ("({} - s0)", value)
            scalars = (("s0", f"result[{self.total}]"),)
        op = rng.choice(("=", "=", "+="))
        body = (Statement(f"x[{self.index(0.08)}] {op} {{}}", (value,)),)
        if rng.random() < 0.15:
            body = (Statement(f"if y[i] > {rng.randint(0, 2)}:", (), (body,)),)
        begin, end = self.space()
        if rng.random() < 0.08:
            end = (end[0] - 1,)
        return Call("for", begin, end, body, self.views(sink, source), scalars)

    def scan(self, source: str, sink: str) -> None:
        """Its last pass writes the sums, before or after it adds, or moves the elements."""
        rng = self.rng
        # What is added is looked up first: the last pass may write it, and only that pass.
        look = Statement(f"value: {'int' if self.whole else 'float'} = x[{self.index(0.1)}]")
        counts = rng.random() < 0.25
        add = Statement(f"acc += {'1' if counts else 'value'}")
        if counts:
            add = Statement("if value > 1:", (), ((add,),))
        elif rng.random() < 0.15:
            add = Statement("for k in range(2):", (), ((add,),))
        kind = "int" if counts or self.whole else "pk.double"
        at = self.index(0.08)
        if counts and rng.random() < 0.5:
            move = Statement("if value > 1:", (), ((Statement("y[int(acc)] = value"),),))
            body: tuple[Statement, ...] = (look, Statement("if last:", (), ((move,),)), add)
        else:
            # Not `float`, of 32 bits: what loops add up has more.
            write = (Statement(f"y[{at}] = {'int' if self.whole else 'pk.double'}(acc)"),)
            if rng.random() < 0.1:
                write = (Statement("if x[i] > 0:", (), (write,)),)
            flag = "last" if rng.random() < 0.95 else "last and x[i] > 0"
            store = Statement(f"if {flag}:", (), (write,))
            body = (look, add, store) if rng.random() < 0.6 else (look, store, add)
        if rng.random() < 0.08:
            body = (Statement("if i > 1:", (), (body,)),)
        views = self.views(source, sink)
        self.total = self.first + len(self.made)
        self.add(Call("scan", *self.space(), body, views, (), kind))

    def views(self, x: str, y: str) -> tuple[tuple[str, str], ...]:
        return (("x", self.part(x)), ("y", self.part(y)))
