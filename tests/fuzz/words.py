"""Words: calls over integers of all sizes, signed and not, whose stores and sums really wrap."""

from __future__ import annotations

import random

import numpy as np

from tests.fuzz.cxx import WORDS
from tests.fuzz.program import Base, Call, Expr, Statement

_NAMES = "SUVW"
_KINDS = (*WORDS, "uint8", "uint8", "uint16", "int8", "int32", "int64", "bool", "float64")
_LOCALS = ("int", "pk.int8", "pk.int16", "pk.int64", "pk.uint8", "pk.uint16", "pk.uint32",
           "pk.uint64", "bool", "float")  # fmt: skip
_ADDS = ("+=", "+=", "-=", "^=")
_CASTS = ("int", *(name for name in _LOCALS if name.startswith("pk.")), "pk.bool")
_SUMS = ("int", "pk.double", *(name for name in _LOCALS if name.startswith("pk.")))
_LITERALS = ("0", "1", "2", "3", "5", "7", "100", "127", "128", "200", "255", "256", "300",
             "-1", "-5", "-100", "-200", "40000", "65535", "70000", "2147483647",
             "3000000000")  # fmt: skip
_SCALARS = ("7", "-3", "200", "3000000000", "np.uint8(200)", "np.int8(-100)", "np.uint16(50000)",
            "np.int16(-300)", "np.uint32(3000000000)", "np.uint64(2**63 + 5)")  # fmt: skip
_INDICES = ("pk.uint8({})", "pk.uint8({} + 256)", "pk.int8({})", "pk.int16({} - 65536)",
            "pk.uint64({})", "(pk.uint32({} + 3) - pk.uint32(3))")  # fmt: skip
"""The index again, in another type, whose value wraps in some."""


class WordMaker:
    """Maps, sums, scans, gathers and inner loops over arrays of one shape and different types.

    Each value is made by C++'s promotions and conversions, and stored modulo 2**bits: a value that
    is passed on without its store's conversion shows. Some calls break the law of fusion: they look
    at neighbours, from the other end, or where data say.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rank = 2 if rng.random() < 0.2 else 1
        size = rng.randint(40, 90) if self.rank == 1 and rng.random() < 0.15 else rng.randint(8, 11)
        self.shape = (
            (size,) if self.rank == 1 else (rng.randint(2, 4), rng.choice((5, 9, 33, 80, 80)))
        )
        kinds = [rng.choice(WORDS), *(rng.choice(_KINDS) for _ in _NAMES[1:])]
        self.bases = tuple(
            Base(name, self.shape, kind, rng.random() < 0.35)
            for name, kind in zip(_NAMES, kinds, strict=True)
        )
        self.dtypes = {base.name: base.dtype for base in self.bases}

    def calls(self) -> list[Call]:
        rng = self.rng
        names = rng.sample(_NAMES, 4)
        makers = [self.map, self.map, self.map, self.map, self.sum, self.update]
        makers += [self.gather, self.atomic, self.scan] if self.rank == 1 else [self.walk] * 3
        calls = [self.map(names[1], names[0], names[2])]
        if rng.random() < 0.4 and "float64" not in (self.dtypes[names[0]], self.dtypes[names[1]]):
            calls = self.pair(*names[:3])
        last = names[1]
        for _ in range(rng.randint(1, 5)):
            sink, source, other = rng.sample(names, 3)
            if rng.random() < 0.7 and sink != last:  # what was just stored is read
                source, other = last, rng.choice([n for n in names if n not in (sink, last)])
            last = sink
            maker = rng.choice(makers)
            if maker in (self.map, self.update, self.walk) and rng.random() < 0.3:
                other = sink
            calls.append(maker(sink, source, other))
        return calls

    # ----------------------------------------------------------------- the calls

    def map(self, sink: str, source: str, other: str) -> Call:
        """x at the iteration's own place from y and z, some by a local, some under conditions."""
        rng = self.rng
        scope = _Scope(self, sink, (("y", source), ("z", other)))
        body: list[Statement] = []
        if rng.random() < 0.35:
            body += self.local(scope)
        store = self.store(scope, scope.value(3))
        if rng.random() < 0.2:
            guarded = Statement("if {}:", (scope.condition(),), ((store,),))
            other_store = self.store(scope, scope.value(1))
            if rng.random() < 0.5:
                guarded = Statement(
                    "if {}:\nelse:", (scope.condition(),), ((store,), (other_store,))
                )
            body.append(guarded)
        else:
            body.append(store)
        return self.call("for", body, sink, scope)

    def pair(self, first: str, second: str, third: str) -> list[Call]:
        """A number that wraps in most types, and what shows whether it did."""
        rng = self.rng
        shown = rng.choice(("({} >> 1)", "({} // 3)", "({} % 7)", "({} + 0)", "(1 * ({} < 100))"))
        made = rng.choice(("({} * 100)", "({} + 200)", "({} - 77)"))
        calls = []
        for sink, source, form in ((second, first, made), (third, second, shown)):
            scope = _Scope(self, sink, (("y", source),))
            store = self.store(scope, (form, (f"y[{scope.here}]",)))
            calls.append(self.call("for", [store], sink, scope))
        return calls

    def update(self, sink: str, source: str, other: str) -> Call:
        """`x[i] op= e`, also by operators that floats do not have."""
        scope = _Scope(self, sink, (("y", source), ("z", other)))
        if self.dtypes[sink] in ("float64", "bool"):
            return self.map(sink, source, other)
        op = self.rng.choice(("+=", "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "%="))
        value = scope.value(2)
        if op == "%=":
            value = ("({} | 1)", value)
        elif op in ("<<=", ">>="):
            value = ("({} & 7)", value)
        body = [Statement(f"x[{scope.own_place()}] {op} {{}}", (value,))]
        return self.call("for", body, sink, scope)

    def gather(self, sink: str, source: str, other: str) -> Call:
        """x from the element of y that z, kept in range, says."""
        scope = _Scope(self, sink, (("y", source), ("z", other)))
        if self.dtypes[other] == "float64":
            return self.map(sink, source, other)
        mask = "({} & 7)" if self.dtypes[other][0] != "u" or self.rng.random() < 0.5 else "({} % 8)"
        place: Expr = (mask, (f"z[{scope.place()}]",))
        value: Expr = ("y[{}]", place)
        if self.dtypes[source] != "float64":
            value = ("({} + {})", value, scope.value(1))
        elif self.dtypes[sink] != "float64":
            value = scope.whole(value)
        return self.call("for", [Statement("x[i] = {}", (value,))], sink, scope)

    def sum(self, sink: str, source: str, other: str) -> Call:
        """A sum in any type; of doubles, one of small numbers."""
        scope = _Scope(self, sink, (("x", sink), ("y", source)))
        kind = self.rng.choice(_SUMS)
        value = scope.value(2)
        if kind == "pk.double":
            value = ("({} % 64)", value)
        add = Statement(f"acc {self.rng.choice(('+=', '+=', '-='))} {{}}", (value,))
        if self.rng.random() < 0.25:
            add = Statement("if {}:", (scope.condition(),), ((add,),))
        return self.call("reduce", [add], sink, scope, kind)

    def scan(self, sink: str, source: str, other: str) -> Call:
        """A prefix sum, stored in the type of x."""
        scope = _Scope(self, sink, (("y", source),))
        kind = self.rng.choice(_SUMS[2:])
        last = Statement("if last:", (), ((Statement("x[i] = acc"),),))
        body = [Statement("acc += {}", (scope.value(1),)), last]
        return self.call("scan", body, sink, scope, kind)

    def atomic(self, sink: str, source: str, other: str) -> Call:
        """Atomic updates of a few elements by operators whose order does not show."""
        scope = _Scope(self, sink, (("y", source), ("z", other)))
        if self.dtypes[sink] in ("float64", "bool"):
            return self.map(sink, source, other)
        name = self.rng.choice(("add", "add", "add", "sub", "and", "or", "xor", "min", "max"))
        place = self.rng.choice(("i // 2", "i % 3", "0", "i"))
        body = [Statement(f"pk.atomic_{name}(x, [{place}], {{}})", (scope.value(2),))]
        return self.call("for", body, sink, scope)

    def walk(self, sink: str, source: str, other: str) -> Call:
        """A row's or column's elements one after the other, added up in a local, or changed."""
        rng = self.rng
        line = rng.choice(("row", "row", "column"))
        scope = _Scope(self, sink, (("y", source), ("z", other)), line)
        scope.scalars["s9"] = str(self.shape[line == "row"])
        if line == "row" and rng.random() < 0.25:
            return self.call("for", self.totals(), sink, scope)
        if rng.random() < 0.4:
            body = [Statement("for j in range(s9):", (), ((self.store(scope, scope.value(2)),),))]
            return self.call("for", body, sink, scope)
        trips, adds = "s9", [Statement(f"total {rng.choice(_ADDS)} {{}}", (scope.value(2),))]
        if line == "row" and rng.random() < 0.4:
            trips, adds = self.several()
        body = [
            Statement(f"total: {rng.choice(_LOCALS[:-2])} = {rng.choice(('0', '1'))}"),
            Statement(f"for j in range({trips}):", (), (tuple(adds),)),
            Statement(f"x[{'i, 0' if line == 'row' else '0, i'}] = total"),
        ]
        return self.call("for", body, sink, scope)

    def totals(self) -> list[Statement]:
        """Two or three sums of a known number of trips, of which the low bits are kept."""
        rng, step = self.rng, self.rng.choice((2, 2, 3))
        kind = rng.choice(_LOCALS[:-2])
        names = [f"total{n}" for n in range(rng.randint(2, 3))]
        view, op, at = rng.choice("yyz"), rng.choice(("+=", "+=", "-=")), rng.sample(range(step), 2)
        floats = "float64" in self.dtypes.values()
        form = "int(math.fmod({}, 1000.0))" if floats else "{}"
        adds = [
            Statement(f"{name} {op} " + form.format(f"{view}[i, {step} * j + {at[n % 2]}]"))
            for n, name in enumerate(names)
        ]
        low = " + ".join(f"{7 * n + 1} * ({name} & 127)" for n, name in enumerate(names))
        body = (
            *(Statement(f"{name}: {kind} = 0") for name in names),
            Statement(f"for j in range({self.shape[1] // step}):", (), (tuple(adds),)),
            Statement(f"x[i, 0] = {low}"),
        )
        if rng.random() < 0.7:
            return [Statement("if {}:", (("z[i, 0] != 77",),), (body,))]
        return list(body)

    def several(self) -> tuple[str, list[Statement]]:
        """Several elements a trip, in any order; and how many trips."""
        rng, width = self.rng, self.rng.randint(2, 4)
        places = rng.sample(range(width), rng.randint(2, width))
        floats = "float64" in self.dtypes.values()
        form = "int(math.fmod({}, 1000.0))" if floats else "{}"
        terms = [form.format(f"{rng.choice('yyyz')}[i, {width} * j + {at}]") for at in places]
        return f"s9 // {width}", [Statement(f"total {rng.choice(_ADDS)} {term}") for term in terms]

    def call(
        self, pattern: str, body: list[Statement], sink: str, scope: _Scope, kind: str = ""
    ) -> Call:
        rng, shape = self.rng, self.shape
        if scope.line:
            shape = self.shape[:1] if scope.line == "row" else self.shape[1:]
        begin, end = (0,) * len(shape), shape
        if pattern != "scan" and rng.random() < 0.08:
            begin, end = rng.choice((((1,) * len(shape), end), (begin, (end[0] - 1, *end[1:]))))
        views = scope.views if scope.views[0][0] == "x" else (("x", sink), *scope.views)
        views = tuple([(name, self.seen_as(base)) for name, base in views])
        return Call(pattern, begin, end, tuple(body), views, tuple(scope.scalars.items()), kind)

    def seen_as(self, name: str) -> str:
        """The base, or its memory as elements of another type that are as large or smaller."""
        rng, dtype = self.rng, self.dtypes[name]
        if dtype in ("bool", "float64") or rng.random() >= 0.012:
            return name
        size = np.dtype(dtype).itemsize
        kinds = [kind for kind in WORDS if np.dtype(kind).itemsize <= size and kind != dtype]
        return f"{name}.view(np.{rng.choice(kinds)})"

    # ----------------------------------------------------------------- statements

    def store(self, scope: _Scope, value: Expr) -> Statement:
        return Statement(f"x[{scope.own_place()}] = {{}}", (value,))

    def local(self, scope: _Scope) -> list[Statement]:
        """A local of some type, which converts what it is given, and is sometimes changed."""
        rng = self.rng
        kind = rng.choice(_LOCALS)
        body = [Statement(f"t: {kind} = {{}}", (scope.value(2),))]
        if kind not in ("float", "bool") and rng.random() < 0.3:
            op = rng.choice(("+=", "*=", "^=", "="))
            body.append(Statement(f"t {op} {{}}", (scope.value(1),)))
        scope.locals.append(scope.whole(("t",)) if kind == "float" else ("t",))
        return body


class _Scope:
    """What the expressions of one call may use: views to read, scalars, a local."""

    def __init__(
        self,
        maker: WordMaker,
        sink: str,
        views: tuple[tuple[str, str], ...],
        line: str = "",
    ) -> None:
        """line: whether an iteration walks over a "row" or "column" by j."""
        self.maker, self.rng, self.views, self.line = maker, maker.rng, views, line
        # What is written is read at the iteration's own place alone.
        self.own = {name for name, base in views if base == sink and name != "x"}
        self.here = "i" if maker.rank == 1 else "j, i" if line == "column" else "i, j"
        self.scalars: dict[str, str] = {}
        self.locals: list[Expr] = []

    def own_place(self) -> str:
        """`here`, sometimes by indices of other types."""
        first, comma, rest = self.here.partition(", ")
        if self.rng.random() < 0.04:
            first = self.rng.choice(_INDICES).format(first)
        return first + comma + rest

    def place(self) -> str:
        """Mostly the iteration's own."""
        rng, shape = self.rng, self.maker.shape
        if rng.random() < 0.8:
            return self.own_place()
        first, comma, rest = self.here.partition(", ")
        others = (f"{shape[0] - 1} - {first}", f"{first} // 2", str(rng.randrange(shape[0])))
        return rng.choice(others) + comma + rest

    def leaf(self) -> Expr:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.65:
            name, base = rng.choice(self.views)
            place = self.own_place() if name in self.own else self.place()
            element: Expr = (f"{name}[{place}]",)
            return self.whole(element) if self.maker.dtypes[base] == "float64" else element
        if kind < 0.75 and self.locals:
            return rng.choice(self.locals)
        if kind < 0.8:
            return (rng.choice(("i", "j")) if self.maker.rank == 2 else "i",)
        if kind < 0.87:
            name = f"s{len(self.scalars)}"
            self.scalars[name] = rng.choice(_SCALARS)
            return (name,)
        return (rng.choice(_LITERALS),)

    def whole(self, value: Expr) -> Expr:
        """A float as an int: one that is in range."""
        return ("int(math.fmod({}, 1000.0))", value)

    def value(self, depth: int) -> Expr:
        """An integer of any type and size."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.12:
            return self.leaf()
        a, kind = self.value(depth - 1), rng.random()
        if kind < 0.5:
            return (f"({{}} {rng.choice('++--*&|^')} {{}})", a, self.value(depth - 1))
        if kind < 0.6:
            return (f"({{}} {rng.choice(('<<', '>>', '>>'))} {rng.randint(0, 7)})", a)
        if kind < 0.7:
            divisor = rng.choice((*_LITERALS[1:12], "({} | 1)", "({} | 1)"))
            parts = (self.value(0),) if "{" in divisor else ()
            return (f"({{}} {rng.choice(('//', '%'))} {divisor})", a, *parts)
        if kind < 0.82:
            return (f"{rng.choice(_CASTS)}({{}})", a)
        if kind < 0.9:
            return (rng.choice(("(-{})", "(~{})", "abs({})", "(+{})")), a)
        if kind < 0.96:
            return ("({} if {} else {})", a, self.condition(), self.value(depth - 1))
        return ("(1 * ({}))", self.condition())

    def condition(self) -> Expr:
        """A comparison, often of signed with unsigned; or whether a number is not 0."""
        rng = self.rng
        if rng.random() < 0.15:
            return ("({} & 1) != 0", self.value(1)) if rng.random() < 0.7 else self.value(1)
        comparison = rng.choice(("<", ">", "<=", ">=", "==", "!="))
        return (f"{{}} {comparison} {{}}", self.value(1), self.value(rng.randint(0, 1)))
