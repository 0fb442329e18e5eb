"""Tables: calls over all elements by one index, `i // m` and `i % m`, among those by two."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_TABLES, _LINES = "EFG", "LM"


class TableMaker:
    """Tables, a bit larger than what is used of them, and lines of as many elements.

    Some break what makes one index two: a range that is no whole number of rows or begins later, a
    length of rows that is computed, another divisor, an index that changes. Some break the law of
    fusion: they read another row, or the row from behind.
    """

    def __init__(self, rng: random.Random, first: int) -> None:
        self.rng, self.first = rng, first
        self.rows, self.columns = rng.randint(2, 4), rng.randint(2, 5)
        self.size = self.rows * self.columns
        shape = (self.rows + 1, self.columns + 1)
        dtype = rng.choice(("float64", "float64", "float32"))
        self.bases = (
            *(Base(name, shape, dtype, rng.random() < 0.5) for name in _TABLES),
            *(Base(name, (self.size,), dtype, rng.random() < 0.5) for name in _LINES),
        )
        self.length = str(self.columns)

    def calls(self) -> list[Call]:
        rng = self.rng
        calls: list[Call] = []
        if rng.random() < 0.1:  # the length of a row is a result
            body = (Statement("acc += 1"),)
            calls.append(Call("reduce", (0,), (self.columns,), body, (), (), "int"))
            if rng.random() < 0.5:
                self.length = f"result[{self.first}]"
        makers = (self.flat, self.flat, self.flat, self.box, self.box, self.line, self.total)
        return calls + [rng.choice(makers)() for _ in range(rng.randint(2, 5))]

    # ----------------------------------------------------------------- one index

    def flat(self) -> Call:
        """A cell, or an element of a line, from cells and an element."""
        rng = self.rng
        names, lines = rng.sample(_TABLES, 2), rng.sample(_LINES, 2)
        own, body = self.cell()
        value: Expr = (f"0.5 * y[{self.other(own)}]",)
        if rng.random() < 0.4:
            value = ("({} + {})", value, (rng.choice(("float(i)", "v[i]", "v[i // 2]")),))
        target = f"x[{own}]" if rng.random() < 0.75 else "w[i]"
        store = Statement(f"{target} {rng.choice(('=', '=', '=', '+='))} {{}}", (value,))
        if rng.random() < 0.25:
            row, column = own.split(", ")
            guard = rng.choice((f"{row} > 0 and {column} < s0 - 1", f"{column} != 1", "i > 2"))
            store = Statement(f"if {guard}:", (), ((store,),))
        return self.over((*body, store), names, lines)

    def cell(self) -> tuple[str, tuple[Statement, ...]]:
        """The iteration's own cell, and the statements that name its parts."""
        rng = self.rng
        row, column = "i // s0", "i % s0"
        kind = rng.random()
        if kind < 0.45:
            return f"{row}, {column}", ()
        rest = "i - r * s0" if kind > 0.8 else column
        parts = [Statement(f"r: int = {row}"), Statement(f"c: int = {rest}")]
        if kind < 0.5:  # the index changes before, between or after
            change = rng.choice((f"i = {self.size - 1} - i", "i = 0 + i"))
            parts.insert(rng.randint(0, 2), Statement(change))
        elif kind < 0.55:
            parts.append(Statement(f"r = {self.rows - 1} - r"))
        return "r, c", tuple(parts)

    def other(self, own: str) -> str:
        """Mostly the same cell."""
        rng = self.rng
        if rng.random() < 0.7:
            return own
        row, column = own.split(", ")
        return rng.choice(
            (
                f"{row} + 1, {column}",
                f"{row}, {column} + 1",
                f"{row}, s0 - 1 - {column}",
                f"{self.rows - 1} - {row}, {column}",
                f"i // 3 % {self.rows}, {column}",
                f"{row}, 0",
            )
        )

    def total(self) -> Call:
        """The sum of cells, or of a line's elements."""
        rng = self.rng
        own, body = self.cell()
        if rng.random() < 0.3:
            own, body = "i, j", ()
        value = f"x[{own}]" if rng.random() < 0.7 or own == "i, j" else "w[i]"
        add = Statement(f"acc += math.fmod(pk.floor({value}), 64.0)")
        names, lines = rng.sample(_TABLES, 2), rng.sample(_LINES, 2)
        return self.over((*body, add), names, lines, "pk.double", boxed=own == "i, j")

    def line(self) -> Call:
        """An element of a line from one of the other."""
        at = self.rng.choice(("i", "i", "i", f"{self.size - 1} - i"))
        names, lines = self.rng.sample(_TABLES, 2), self.rng.sample(_LINES, 2)
        return self.over((Statement(f"w[i] = 0.5 * v[{at}] + 1.0"),), names, lines)

    # ----------------------------------------------------------------- two indices

    def box(self) -> Call:
        """A cell by row and column."""
        rng = self.rng
        source = rng.choice(("i, j", "i, j", "i, j", "i + 1, j", "i, j + 1"))
        store = Statement(f"x[i, j] {rng.choice(('=', '=', '+='))} 0.5 * y[{source}] - 1.0")
        return self.over((store,), rng.sample(_TABLES, 2), rng.sample(_LINES, 2), boxed=True)

    def over(
        self,
        body: tuple[Statement, ...],
        names: list[str],
        lines: list[str],
        kind: str = "",
        boxed: bool = False,
    ) -> Call:
        rng = self.rng
        views = (("x", names[0]), ("y", names[1]), ("w", lines[0]), ("v", lines[1]))
        pattern = "reduce" if kind else "for"
        length = self.length
        begin, end = (0,), (self.size,)
        if boxed:
            begin, end = (0, 0), (self.rows, self.columns)
        elif rng.random() < 0.08:
            begin, end = rng.choice((((1,), end), (begin, (self.size - 1,)), (begin, (0,))))
        elif rng.random() < 0.05:
            length = str(self.columns + 1)
        return Call(pattern, begin, end, body, views, (("s0", length),), kind)
