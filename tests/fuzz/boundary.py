"""Boundaries: steps over the inner cells of grids, and small calls over the edges between them."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_GRIDS = "IOP"
_WEIGHTS = ("0.25", "0.5", "-0.5", "0.125")


class BoundaryMaker:
    """Two to four steps from one of two or three grids to the next, with edges set in between.

    Edges are set from the cells beside them or further inside, from a constant or another grid; by
    a call an edge, or several edges in one workunit; by index, or inside a loop of one iteration.
    Some are periodic, which no sweep takes: their source is as far away as may be. Some read and
    write rows by columns, or cells that other iterations of theirs write, which is a race.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rank = rng.choice((1, 2, 2, 2))
        self.rows, self.columns = rng.randint(7, 15), rng.randint(3, 5)
        if rng.random() < 0.2:
            self.rows = self.columns = rng.randint(6, 8)
        self.shape = (self.rows, self.columns)[: self.rank]
        count = rng.choice((2, 2, 2, 3, 1))
        names = _GRIDS[:count]
        self.bases = tuple(Base(n, self.shape, "float64", rng.random() < 0.25) for n in names)
        self.rim = 1 if rng.random() < 0.8 else 2

    def calls(self) -> list[Call]:
        rng = self.rng
        names = [base.name for base in self.bases]
        step, edges = self.step(), [self.edge() for _ in range(rng.choice((1, 2, 2, 3, 4)))]
        steps = rng.randint(2, 4)
        calls = []
        for n in range(steps):
            if rng.random() < 0.15:
                step = self.step()
            source, sink = names[n % len(names)], names[(n + 1) % len(names)]
            other = rng.choice(names)
            calls.append(self.bound(step, source, sink))
            if rng.random() < 0.1:
                edges = [self.edge() for _ in range(rng.choice((1, 2, 4)))]
            # Of a step in place, or with the old values at times, the edges are set all the same.
            where = sink if rng.random() < 0.9 else source
            calls += [self.bound(edge, other, where) for edge in edges if rng.random() < 0.95]
        if rng.random() < 0.2:
            calls.append(self.total(rng.choice(names)))
        return calls

    def bound(self, call: Call, source: str, sink: str) -> Call:
        """The call with y for the sink, and x for the source."""
        names = {"x": source, "y": sink}
        views = tuple((name, names[name]) for name, _ in call.views)
        return Call(call.pattern, call.begin, call.end, call.body, views, call.scalars)

    # ----------------------------------------------------------------- steps

    def step(self) -> Call:
        """Cells inside the rim from those around them; in place, from themselves alone."""
        rng, rim = self.rng, self.rim
        begin = tuple(rim for _ in self.shape)
        end = tuple(extent - rim for extent in self.shape)
        two = self.rank == 2
        if two and rng.random() < 0.2:  # to the edges of rows
            begin, end = (rim, 0), (end[0], self.columns)
        by_loop = two and rng.random() < 0.3
        column = "q" if by_loop else "j"
        here = f"i, {column}" if two else "i"
        if len(self.bases) == 1:
            value: Expr = (f"0.5 * y[{here}] + 1.0",)
        else:
            value = (f"{rng.choice(_WEIGHTS)} * x[{here}]",)
            for row in range(-rim, rim + 1):
                for other in (-1, 0, 1) if two and begin[1] and rng.random() < 0.5 else (0,):
                    if (row or other) and rng.random() < 0.7:
                        at = _shifted("i", row) + (f", {_shifted(column, other)}" if two else "")
                        value = ("({} + {})", value, (f"{rng.choice(_WEIGHTS)} * x[{at}]",))
        store = Statement(f"y[{here}] {rng.choice(('=', '=', '=', '+='))} {{}}", (value,))
        if rng.random() < 0.1:
            store = Statement(f"if i > {rng.randint(0, 3)}:", (), ((store,),))
        views = (("x", ""), ("y", ""))
        if by_loop:
            bounds = f"{begin[1]}, {end[1]}"
            store = Statement(f"for q in range({bounds}):", (), ((store,),))
            return Call("for", begin[:1], end[:1], (store,), views)
        return Call("for", begin, end, (store,), views)

    # ----------------------------------------------------------------- edges

    def edge(self) -> Call:
        rng = self.rng
        if self.rank == 1:
            return self.single()
        kind = rng.random()
        if kind < 0.5:
            return self.row()
        if kind < 0.65:
            return self.column()
        if kind < 0.75:
            return self.corner()
        if kind < 0.9:
            return self.several()
        return self.one_iteration()

    def numbers(self, extent: int) -> tuple[str, str]:
        """A row at or near an end, and one that its values come from."""
        rng = self.rng
        target = rng.choice((0, 0, extent - 1, extent - 1, 1, extent - 2))
        inside = 1 if target < 2 else -1
        source = target + inside * rng.choice((1, 1, 1, 2, 3))
        if rng.random() < 0.12:  # periodic
            source = extent - 2 if target < 2 else 1
        if rng.random() < 0.08:
            source = rng.randrange(extent)
        source = min(max(source, 0), extent - 1)
        return self.number(target, extent), self.number(source, extent)

    def number(self, row: int, extent: int) -> str:
        """As a number, or from the extent, which the workunit is given."""
        if row > 1 and self.rng.random() < 0.4:
            return f"s0 - {extent - row}" if extent == self.rows else str(row)
        return str(row)

    def value(self, source: str) -> Expr:
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return (f"y[{source}]",)
        if kind < 0.65:
            return (rng.choice(("1.5", "s1", "0.0")),)
        if kind < 0.8:
            return (f"0.5 * y[{source}] + s1",)
        if kind < 0.9:
            return (f"x[{source}]",)
        return (f"x[{source}] - 0.5 * y[{source}]",)

    def set_row(self, along: str = "i") -> Statement:
        rng = self.rng
        target, source = self.numbers(self.rows)
        other = along
        if rng.random() < 0.06:
            other = f"{self.columns - 1} - {along}"
        elif rng.random() < 0.05:
            other = f"{along} // 2"
        op = "=" if rng.random() < 0.9 else "+="
        store = Statement(f"y[{target}, {along}] {op} {{}}", (self.value(f"{source}, {other}"),))
        if rng.random() < 0.1:
            store = Statement(f"if {along} > 1:", (), ((store,),))
        return store

    def over(self, body: tuple[Statement, ...], extent: int) -> Call:
        """Over all of an edge, its inside, or some of it."""
        rng = self.rng
        begin, end = 0, extent
        if rng.random() < 0.35:
            begin, end = 1, extent - 1
        if rng.random() < 0.08:
            end = rng.randint(begin, extent)
        return self.call((begin,), (end,), body)

    def call(self, begin: tuple[int, ...], end: tuple[int, ...], body: Body) -> Call:
        scalars = (("s0", str(self.rows)), ("s1", self.rng.choice(("1.5", "0.25"))))
        return Call("for", begin, end, body, (("x", ""), ("y", "")), scalars)

    def row(self) -> Call:
        rng = self.rng
        if rng.random() < 0.15:  # as a box, by two indices
            inside = rng.random() < 0.5
            row, other = (0, "i + 1") if inside else (self.rows - 1, "i - 1")
            store = Statement("y[i, j] = {}", (self.value(f"{other}, j"),))
            return self.call((row, 0), (row + 1, self.columns), (store,))
        return self.over((self.set_row(),), self.columns)

    def set_column(self) -> Statement:
        target, source = self.numbers(self.columns)
        target, source = (str(n).replace("s0", str(self.rows)) for n in (target, source))
        at = f"i, {source}" if self.rng.random() < 0.9 else f"{source}, i"
        return Statement(f"y[i, {target}] = {{}}", (self.value(at),))

    def column(self) -> Call:
        return self.over((self.set_column(),), self.rows)

    def corner(self) -> Call:
        if self.rng.random() < 0.4:
            return self.cell()
        row, column = self.rng.choice((0, self.rows - 1)), self.rng.choice((0, self.columns - 1))
        beside = (row + 1 if row == 0 else row - 1), (column + 1 if column == 0 else column - 1)
        value = (f"0.5 * (y[{row}, {beside[1]}] + y[{beside[0]}, {column}])",)
        return self.call((0,), (1,), (Statement(f"y[{row}, {column}] = {{}}", (value,)),))

    def cell(self) -> Call:
        """A source of one cell, whose row is the index of the one iteration and a constant."""
        rng = self.rng
        begin, row = rng.randint(0, self.rows - 1), rng.randint(0, self.rows - 1)
        at = f"{_shifted('i', row - begin)}, {rng.randint(0, self.columns - 1)}"
        op = "=" if rng.random() < 0.3 else "+="
        return self.call((begin,), (begin + 1,), (Statement(f"y[{at}] {op} {{}}", (("s1",),)),))

    def several(self) -> Call:
        """Some edges in one workunit, perhaps with a local that both use."""
        rng = self.rng
        body: Body = tuple(self.set_row() for _ in range(rng.choice((2, 2, 2, 3, 4))))
        if rng.random() < 0.2:
            body = (Statement("t: float = 0.5 * float(i)"), *body)
            target, _ = self.numbers(self.rows)
            body = (*body, Statement(f"y[{target}, i] = t"))
        if rng.random() < 0.1:
            body = (*body, Statement("i = 0 + i"))
        if self.rows == self.columns and rng.random() < 0.5:
            body = (*body, self.set_column())
        return self.over(body, self.columns)

    def one_iteration(self) -> Call:
        """An edge by a loop inside the one iteration of a call."""
        rng = self.rng
        body = [self.set_row("q") for _ in range(rng.choice((1, 1, 2)))]
        low = rng.choice((0, 1))
        loop = Statement(f"for q in range({low}, {self.columns - low}):", (), (tuple(body),))
        begin = rng.choice((0, 0, 0, 1, self.rows - 1))
        return self.call((begin,), (begin + 1,), (loop,))

    def single(self) -> Call:
        """One or more elements of a line, in one iteration."""
        rng = self.rng
        body = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            target, source = self.numbers(self.rows)
            body.append(Statement(f"y[{target}] = {{}}", (self.value(source),)))
        begin = rng.choice((0, 0, 0, 1, self.rows - 1))
        if begin and rng.random() < 0.5:
            body = [Statement("y[i] = {}", (self.value("i - 1"),))]
        return self.call((begin,), (begin + 1,), tuple(body))

    def total(self, name: str) -> Call:
        at = "i, j"[: 3 * self.rank - 2]
        body = (Statement(f"acc += math.fmod(pk.floor(x[{at}]), 64.0)"),)
        begin = (0,) * self.rank
        return Call("reduce", begin, self.shape, body, (("x", name),), (), "pk.double")


Body = tuple[Statement, ...]


def _shifted(index: str, step: int) -> str:
    return f"{index} {'-' if step < 0 else '+'} {abs(step)}" if step else index
