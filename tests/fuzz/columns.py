"""Columns: calls over the columns of tables, whose inner loops walk down through the rows."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Statement, fixed

_TABLES, _LINES, _WEIGHTS = "XYZ", "LM", "W"


class ColumnMaker:
    """Tables narrower and wider than strips of iterations, and what is kept for each column.

    Some break the law of strips: trips that differ from column to column, that end early, sums
    whose order is free. Some calls read a neighbouring column, or another row, of what the call
    before wrote.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows, self.columns = (
            rng.choice((1, 2, 3, 5, 9, 30)),
            rng.choice((2, 15, 16, 17, 40, 70)),
        )
        self.flat = rng.random() < 0.2
        shape = (self.rows * self.columns,) if self.flat else (self.rows, self.columns)
        kind = rng.choice(("float64", "float64", "float64", "float32", "int32"))
        self.real = kind != "int32"
        self.times = "-" if kind == "float32" else "*"  # every number is exact, as the oracle's
        self.bases = (
            *(Base(name, shape, kind, rng.random() < 0.3) for name in _TABLES),
            *(Base(name, (self.columns,), kind, rng.random() < 0.3) for name in _LINES),
            Base(_WEIGHTS, (self.rows,), kind),
        )

    def calls(self) -> list[Call]:
        return [self.call() for _ in range(self.rng.randint(1, 4))]

    def call(self) -> Call:
        rng = self.rng
        parts = rng.sample(
            (
                self.total, self.spread, self.recurrence, self.backwards, self.product, self.least,
                self.nested, self.mapped, self.prefix, self.beside, self.ragged, self.until,
                self.classes, self.held, self.sometimes, self.sometimes, self.in_some_trips,
                self.climbed, self.copied, self.window, self.shared,
            ),
            rng.choice((1, 1, 1, 2, 2, 3)),
        )  # fmt: skip
        body = [stmt for n, part in enumerate(parts) for stmt in part(f"{'abc'[n]}")]
        names, lines = rng.sample(_TABLES, 2), rng.sample(_LINES, 2)
        views = (
            ("x", names[0]),
            ("y", names[1]),
            ("l", lines[0]),
            ("u", lines[1]),
            ("w", _WEIGHTS),
        )
        scalars = (("s0", str(self.rows)), ("s1", str(self.columns)))
        begin = rng.choice((0, 0, 0, 1))
        pattern, kind = "for", ""
        if rng.random() < 0.25:
            pattern, kind = "reduce", "pk.double"
            body += self.added()
        return Call(pattern, (begin,), (self.columns,), tuple(body), views, scalars, kind)

    # ----------------------------------------------------------------- elements and loops

    def at(self, view: str, row: str) -> str:
        return f"{view}[({row}) * s1 + i]" if self.flat else f"{view}[{row}, i]"

    def walk(self) -> str:
        return f"for j in range({self.rng.choice((0, 0, 0, 1))}, s0):"

    def bounded(self, value: str) -> str:
        """So that no loop lets numbers grow."""
        return f"math.fmod({value}, 64.0)" if self.real else f"(({value}) & 63)"

    def zero(self, name: str) -> Statement:
        return fixed(f"{name}: float = 0.0" if self.real else f"{name}: int = 0")

    # ----------------------------------------------------------------- parts of bodies

    def total(self, v: str) -> list[Statement]:
        at = self.at("x", self.rng.choice(("j", "j", "s0 - 1 - j", "0")))
        add = fixed(f"{v} += {at}")
        return [self.zero(v), fixed(self.walk(), (add,)), fixed(f"l[i] = {self.bounded(v)}")]

    def spread(self, v: str) -> list[Statement]:
        """The mean of a column, then how far its elements are from it."""
        add = self.bounded(f"{v}d {self.times} {v}d")
        far = (fixed(f"{v}d = {self.at('x', 'j')} - {v}"), fixed(f"{v}q += {add}"))
        return [
            *self.total(v)[:2],
            fixed(f"{v} = {self.bounded(v)}"),
            self.zero(f"{v}q"),
            self.zero(f"{v}d"),
            fixed(self.walk(), far),
            fixed(f"l[i] = {self.bounded(f'{v}q - {v}')}"),
        ]

    def recurrence(self, v: str) -> list[Statement]:
        value = f"{self.at('x', 'j')} - {self.at('x', 'j - 1')}"
        return [
            fixed(
                "for j in range(1, s0):", (fixed(f"{self.at('x', 'j')} = {self.bounded(value)}"),)
            )
        ]

    def backwards(self, v: str) -> list[Statement]:
        step = self.rng.choice((-1, -1, -2))
        here = self.at("x", "j")
        body = (fixed(f"{v} = {self.bounded(f'{here} + {v} - w[j]')}"), fixed(f"{here} = {v}"))
        return [self.zero(v), fixed(f"for j in range(s0 - 1, -1, {step}):", body)]

    def product(self, v: str) -> list[Statement]:
        value = self.bounded(f"{self.at('y', 'j')} {self.times} w[j]")
        add = fixed(f"l[i] += {value}")
        return [fixed(self.walk(), (add,))]

    def least(self, v: str) -> list[Statement]:
        then = (fixed(f"{v} = {self.at('x', 'j')}"), fixed(f"{v}n = j"))
        if self.rng.random() < 0.5:
            then += (fixed(f"{self.at('y', 'j')} = {v}"),)
        test = fixed(f"if {self.at('x', 'j')} < {v}:", then)
        return [
            self.zero(v),
            fixed(f"{v}n: int = 0"),
            fixed(self.walk(), (test,)),
            fixed(f"l[i] = {v} + {v}n"),
        ]

    def nested(self, v: str) -> list[Statement]:
        """Loops in loops, with what is kept in a trip of the outer one."""
        inner = fixed(self.walk(), (fixed(f"{v}t += {self.at('y', 'j')} {self.times} w[{v}k]"),))
        set_zero = fixed(f"{v}t = {'0.0' if self.real else '0'}")
        start = (
            fixed(f"{v}m: int = {v}k + 1") if self.rng.random() < 0.5 else fixed(f"{v}m: int = 1")
        )
        place, value = self.at("x", f"{v}k"), self.bounded(f"{v}t + {v}m")
        add = fixed(f"{place} = {value}")
        body = (set_zero, start, inner, add)
        return [self.zero(f"{v}t"), fixed(f"for {v}k in range(s0):", body)]

    def mapped(self, v: str) -> list[Statement]:
        source = self.at("y", self.rng.choice(("j", "j", "s0 - 1 - j")))
        sign = self.rng.choice(("=", "=", "+="))
        return [
            fixed(self.walk(), (fixed(f"{self.at('x', 'j')} {sign} {self.bounded(source)} - 3"),))
        ]

    def copied(self, v: str) -> list[Statement]:
        """In inexact programs not as it is (see `inexact`): divided, maybe."""
        store = Statement(f"{self.at('x', 'j')} = {{}}", ((self.at("y", "j"),),))
        return [fixed(self.walk(), (store,))]

    def prefix(self, v: str) -> list[Statement]:
        value = self.bounded(f"{v} + {self.at('y', 'j')}")
        body = (fixed(f"{v} = {value}"), fixed(f"{self.at('x', 'j')} = {v}"))
        return [self.zero(v), fixed(self.walk(), body)]

    def beside(self, v: str) -> list[Statement]:
        """Of the next column of another table: what writes that may not share the loop."""
        if self.flat:
            return self.mapped(v)
        store = fixed(f"x[j, i] = {self.bounded('y[j, s1 - 1 - i] + y[j, i]')}")
        return [fixed(self.walk(), (store,))]

    def ragged(self, v: str) -> list[Statement]:
        """Trips that differ from column to column."""
        stop = self.rng.choice(("i % s0", "s0 - i % 2"))
        add = fixed(f"{v} += {self.at('y', 'j')}")
        loop = fixed(f"for j in range({stop}):", (add,))
        return [self.zero(v), loop, fixed(f"l[i] = {self.bounded(v)}")]

    def until(self, v: str) -> list[Statement]:
        """Trips that end early, or are skipped."""
        leave = (fixed(self.rng.choice(("break", "continue"))),)
        body = (fixed(f"if {self.at('x', 'j')} > 1:", leave), fixed(f"{v} += {self.at('x', 'j')}"))
        return [self.zero(v), fixed(self.walk(), body), fixed(f"l[i] = {self.bounded(v)}")]

    def window(self, v: str) -> list[Statement]:
        """Neighbours of a line, each iteration some of its own: sums in order, or a maximum."""
        here = self.rng.choice(("u[i + j]", "u[i + s0 - 1 - j]", "u[i]"))
        value = self.rng.choice((f"{v} + {here}", f"{here} - {v}", f"w[j] - {v} + {here}"))
        then = fixed(f"{v} = {here}")
        step = self.rng.choice((fixed(f"{v} = {value}"), fixed(f"if {here} > {v}:", (then,))))
        inside = fixed("if i + s0 <= s1:", (self.zero(v), fixed(self.walk(), (step,)),
                    fixed(f"l[i] = {self.bounded(v)}")))  # fmt: skip
        return [inside]

    def shared(self, v: str) -> list[Statement]:
        """What all iterations share, against what each has."""
        step = fixed(f"{v} = {self.rng.choice(('u[i]', 'i', 'l[i]'))} + w[j] - {v}")
        return [self.zero(v), fixed(self.walk(), (step,)), fixed(f"l[i] = {self.bounded(v)}")]

    def array(self, name: str, length: int) -> Statement:
        kind, zero = ("float", "0.0") if self.real else ("int", "0")
        return fixed(f"{name}: List[{kind}] = [{', '.join([zero] * length)}]")

    def classes(self, v: str) -> list[Statement]:
        """Sums of every third element in an array of the iteration."""
        add = fixed(f"{v}[j % 3] += {self.at('x', 'j')}")
        total = self.bounded(f"{v}[0] - {v}[1] + {v}[2]")
        return [self.array(v, 3), fixed(self.walk(), (add,)), fixed(f"l[i] = {total}")]

    def held(self, v: str) -> list[Statement]:
        """A column that the iteration keeps, from one loop to the next."""
        last = f"{v}l"
        value = self.bounded(f"{self.at('y', 'j')} - 1")
        step = (fixed(f"{last} = {self.bounded(f'{v}[j] - {last}')}"), fixed(f"{v}[j] = {last}"))
        place = self.rng.choice(("j", "s0 - 1 - j"))
        back = (fixed(f"{v}k: int = {place}"), fixed(f"{self.at('x', f'{v}k')} = {v}[{v}k]"))
        return [
            self.array(v, self.rows),
            self.zero(last),
            fixed(self.walk(), (fixed(f"{v}[j] = {value}"),)),
            *([fixed("for j in range(s0):", step)] if self.rng.random() < 0.7 else []),
            fixed("for j in range(s0):", back),
        ]

    def condition(self) -> str:
        """One that is the same for all columns, or not, or that loops may change."""
        same = ("s0 > 2", "s1 < 17 or s0 == 1")
        own = ("l[i] > 1", "i % 3 != 1", f"{self.at('x', '0')} > 0 and i > 1", "i == 3", "i != 3")
        return self.rng.choice((*same, *own, *own))

    def sometimes(self, v: str) -> list[Statement]:
        """Loops under a condition, maybe in both sides, maybe under another one."""
        parts = (self.total, self.spread, self.recurrence, self.product, self.nested, self.mapped,
                 self.prefix, self.classes, self.held, self.until, self.ragged)  # fmt: skip
        then, orelse = self.rng.sample(parts, 2)
        inside = then(f"{v}t")
        if self.rng.random() < 0.3:
            add = fixed(f"l[i] = {self.bounded('l[i] + 2')}")
            inside = [add, fixed(f"if {self.condition()}:", tuple(inside)), add]
        if self.rng.random() < 0.4:
            sides = tuple(inside), tuple(orelse(f"{v}e"))
            return [fixed(f"if {self.condition()}:\nelse:", *sides)]
        return [fixed(f"if {self.condition()}:", tuple(inside))]

    def in_some_trips(self, v: str) -> list[Statement]:
        """A loop under a condition in a loop: of a trip, of a column, or of both."""
        test = self.rng.choice((f"{v}k % 2 == 0", f"{self.at('x', f'{v}k')} > 1", "l[i] < 9"))
        inner = fixed(self.walk(), (fixed(f"{v} = {self.bounded(f'{v} + ' + self.at('y', 'j'))}"),))
        store = fixed(f"{self.at('x', f'{v}k')} = {v}")
        body = (fixed(f"if {test}:", (inner, store)),)
        return [self.zero(v), fixed(f"for {v}k in range(s0):", body), fixed(f"l[i] = {v}")]

    def climbed(self, v: str) -> list[Statement]:
        """A while loop along the column."""
        steps = (
            fixed(f"{v} = {self.bounded(f'{v} - ' + self.at('y', f'{v}k'))}"),
            fixed(f"{v}k += 1"),
        )
        start = fixed(f"{v}k: int = 0")
        return [self.zero(v), start, fixed(f"while {v}k < s0:", steps), fixed(f"l[i] = {v}")]

    def added(self) -> list[Statement]:
        """What a sum over all columns takes."""
        if self.rng.random() < 0.2:
            return [fixed(f"if {self.condition()}:", tuple(self._added()))]
        return self._added()

    def _added(self) -> list[Statement]:
        value = self.at("x", "j")
        term = fixed(f"acc += {f'math.fmod({value}, 64.0)' if self.real else f'({value} & 63)'}")
        if self.rng.random() < 0.5:
            return [fixed(f"acc += {self.bounded('l[i]')}")]
        return [fixed(self.walk(), (term,))]
