"""Rows: calls over n * c elements, whose i // c is a row, among calls over the n rows."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_ELEMENTS, _ROWS = "EFG", "LM"


class RowMaker:
    """Views of n * c elements (or n by c) and of n rows, and calls of both kinds in any order.

    Some break the law of coarsened loops: they look into the next row, across rows of another
    length, or write a row from another one. No iteration writes what another one touches.
    """

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.rows, self.columns = size, rng.choice((2, 2, 3, 4, 5, 6, 8))
        self.flat = rng.random() < 0.75
        cells = self.rows * self.columns
        shape = (cells,) if self.flat else (self.rows, self.columns)
        dtype = rng.choice(("float64", "float64", "float32"))
        self.double = dtype == "float64"
        self.bases = (
            *(Base(name, shape, dtype, rng.random() < 0.6) for name in _ELEMENTS),
            *(Base(name, (self.rows,), dtype, rng.random() < 0.5) for name in _ROWS),
        )

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_ELEMENTS, 3)
        rows = rng.sample(_ROWS, 2)
        makers = [
            lambda: self.element(names[0], names[1], rows[0]),
            lambda: self.best(names[0], rows[0]),
            lambda: self.element(names[1], names[0], rows[0]),
            lambda: self.total(names[1], rows[1]),
            lambda: self.element(names[2], names[1], rows[1]),
            lambda: self.scaled(names[1], rows[0]),
            lambda: self.factor(names[0], rows[0]),
            lambda: self.summed(rng.choice(rows)),
        ]
        start = rng.choice((0, 0, 1, 2))
        count = rng.randint(2, len(makers) - start)
        calls = [make() for make in makers[start : start + count]]
        if rng.random() < 0.2:
            rng.shuffle(calls)
        return calls

    # ----------------------------------------------------------------- an element an iteration

    def element(self, sink: str, source: str, row: str) -> Call:
        """sink at an element, from source there (or beside it) and the element's row."""
        rng, c = self.rng, self.columns
        if not self.flat and rng.random() < 0.4:
            return self.written_out(sink, source, row)
        if not self.flat:
            at, beside = "[i, j]", f"[i, {rng.randint(0, c - 1)}]"
            if rng.random() < 0.3:
                beside = rng.choice((f"[{self.rows} - 1 - i, j]", "[p, j]"))
            begin, end, whose = (0, 0), (self.rows, c), "[i]"
        else:
            at, beside = "[i]", f"[(i // s0) * s0 + {rng.randint(0, c - 1)}]"
            if rng.random() < 0.15:
                beside = f"[{self.rows * c} - 1 - i]"
            begin, end, whose = (0,), (self.rows * c,), "[i // s0]"
            if rng.random() < 0.1:
                whose = "[i % 2]"
        place = beside if rng.random() < 0.4 or "p" in beside else at
        value: Expr = ("({} - {})", (f"(0.5 * y{place})",), (f"z{whose}",))
        if rng.random() < 0.3:
            value = ("({} + {})", value, ("float(i % s0)" if self.flat else "float(j)",))
        body = (Statement(f"x{at} = {{}}", (value,)),)
        if place == "[p, j]":
            body = (*self.mirrored(), *body)
        elif rng.random() < 0.15:
            body = (Statement(f"if i != {rng.randint(1, 4)}:", (), (body,)),)
        elif rng.random() < 0.15:
            update = Statement(f"x{at} += {{}}", (value,))
            body = (Statement("for k in range(s1):", (), ((update,),)),)
        scalars = (("s0", str(c)), ("s1", str(rng.randint(1, 3))), ("s2", str(self.rows)))
        return Call("for", begin, end, body, (("x", sink), ("y", source), ("z", row)), scalars)

    def mirrored(self) -> tuple[Statement, ...]:
        """A neighbouring row, or beyond the first or the last one the row as far inside."""
        shift = self.rng.randint(-2, 2)
        return (
            Statement(f"p: int = i + {shift}"),
            Statement("if p < 0:", (), ((Statement("p = -p"),),)),
            Statement("if p >= s2:", (), ((Statement("p = 2 * s2 - 2 - p"),),)),
        )

    # ----------------------------------------------------------------- a row an iteration

    def written_out(self, sink: str, source: str, row: str) -> Call:
        """The elements of a row one after the other, as people write pairs and triples."""
        rng, c = self.rng, self.columns
        form = rng.choice(("y[i, {}] + z[i]", "0.5 * y[i, {}]", "z[i] - 3.0 * y[i, {}]"))
        order = rng.sample(range(c), c) if rng.random() < 0.2 else range(c)
        body = tuple(Statement(f"x[i, {k}] = {form.format(k)}") for k in order)
        if rng.random() < 0.2:
            body = body[: rng.randint(1, c)]
        views = (("x", sink), ("y", source), ("z", row))
        return Call("for", (0,), (self.rows,), body, views)

    def cell(self, column: str) -> str:
        return f"x[i * s0 + {column}]" if self.flat else f"x[i, {column}]"

    def over(self, body: tuple[Statement, ...], source: str, row: str) -> Call:
        scalars = (("s0", str(self.columns)),)
        return Call("for", (0,), (self.rows,), body, (("x", source), ("y", row)), scalars)

    def best(self, source: str, row: str) -> Call:
        """The row's greatest element, looked up by where it is."""
        cell, first = self.cell, self.rng.choice((1, 1, 0))
        better = (Statement("best = k"),)
        test = (Statement(f"if {cell('k')} > {cell('best')}:", (), (better,)),)
        last = cell("best") if self.rng.random() < 0.9 else cell(f"(best % {self.columns})")
        body = (
            Statement("best: int = 0"),
            Statement(f"for k in range({first}, s0):", (), (test,)),
            Statement(f"y[i] = {last}"),
        )
        return self.over(body, source, row)

    def total(self, source: str, row: str) -> Call:
        """The row's sum, or of all of it but the first."""
        add = (Statement(f"value += {self.cell('k')}"),)
        body = (
            Statement("value: float = 0.0"),
            Statement(f"for k in range({self.rng.choice((0, 0, 1))}, s0):", (), (add,)),
            Statement("y[i] = 0.25 * value"),
        )
        return self.over(body, source, row)

    def factor(self, source: str, row: str) -> Call:
        """Elements of the row less products of those before: loops that bound loops.

        The oracle rounds products of single precision more often.
        """
        cell = self.cell
        if not self.double:
            return self.total(source, row)
        less = (Statement(f"{cell('r')} -= 0.25 * {cell('k')} * {cell('c')}"),)
        inner = (
            Statement("for k in range(c):", (), (less,)),
            Statement(f"{cell('r')} /= 1.0 + {cell('c')} * {cell('c')}"),
        )
        over = Statement("for r in range(c + 1, s0):", (), (inner,))
        body = (
            Statement(f"for c in range({self.rng.choice(('s0', '2', '3'))}):", (), ((over,),)),
            Statement(f"y[i] = {cell('s0 - 1')}"),
        )
        return self.over(body, source, row)

    def scaled(self, source: str, row: str) -> Call:
        """The row, changed in place; sometimes only its first element."""
        scale = (Statement(f"{self.cell('k')} = 0.5 * {self.cell('k')} + y[i]"),)
        stop = self.rng.choice(("s0", "s0", "1"))
        return self.over((Statement(f"for k in range({stop}):", (), (scale,)),), source, row)

    def summed(self, row: str) -> Call:
        """The sum over all rows."""
        body = (Statement("acc += math.fmod(pk.floor(x[i]), 64.0)"),)
        return Call("reduce", (0,), (self.rows,), body, (("x", row),), (), "pk.double")
