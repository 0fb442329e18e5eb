"""Random PyKokkos programs: several calls over shared, overlapping arrays.

Python's and C++'s arithmetic agree on everything generated here:

* "double" programs have float64 arrays and any arithmetic;
* "mixed" programs have float32, int32 and int64 arrays too, and all values are small dyadic
  numbers, so every operation is exact in every type;
* integers are never negative, and sums that different iterations add to are of integers.

Whether two iterations collide is not decided here: the harness finds races by running, and drops
the program. Generation only makes them rare.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.fuzz.program import Base, Call, Expr, Program, Statement

INT_MODULUS = 8  # integer arrays hold 0 .. 7, so that each can index any view
_FLOATS = ("0.5", "1.0", "2.0", "3.0", "0.25", "-1.5", "-1.0")


def random_program(seed: int) -> Program:
    """The program of a seed: always the same one."""
    return _ProgramMaker(random.Random(seed)).program(seed)


# --------------------------------------------------------------------------- generation


@dataclass
class _View:
    """A view parameter while its workunit is being made."""

    name: str
    base: Base
    text: str
    shape: tuple[int, ...]
    step: int = 1

    @property
    def is_float(self) -> bool:
        return self.base.dtype.startswith("float")


class _ProgramMaker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.mixed = rng.random() < 0.35
        self.rank = 2 if rng.random() < 0.25 else 1
        self.size = rng.randint(9, 14) if self.rank == 1 else rng.randint(4, 6)
        self.results: list[int] = []

    def program(self, seed: int) -> Program:
        bases = tuple(self.base(name) for name in "ABCD"[: self.rng.randint(2, 4)])
        integers = Base("Q", (16,), self.rng.choice(("int32", "int64")))
        bases += (integers,)
        calls: list[Call] = []
        for n in range(self.rng.randint(2, 6)):
            call = _CallMaker(self, bases).call()
            calls.append(call)
            if call.pattern != "for":
                self.results.append(n)
        return Program(bases, tuple(calls), seed)

    def base(self, name: str) -> Base:
        rng = self.rng
        dtype = "float64"
        if self.mixed:
            dtype = rng.choice(("float64", "float32", "float32", "int32", "int64"))
        extent = self.size + rng.randint(0, 8)
        shape = (extent,) * self.rank if self.rank == 2 else (extent + rng.choice((0, extent)),)
        return Base(name, shape, dtype, rng.random() < 0.3)


@dataclass
class _Scope:
    """What statements may use: the interval of the first index, and declared locals."""

    low: int
    high: int  # inclusive
    floats: list[str] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)

    def inner(self, low: int | None = None, high: int | None = None) -> _Scope:
        return replace(
            self,
            low=self.low if low is None else low,
            high=self.high if high is None else high,
            floats=list(self.floats),
            ints=list(self.ints),
        )


@dataclass
class _Place:
    """An element text, and the scope for which it was made."""

    view: _View
    index: str
    scope: _Scope

    def text(self, scope: _Scope) -> str | None:
        """The text, if it is inside the view and its names are visible in this scope too."""
        narrower = scope.low >= self.scope.low and scope.high <= self.scope.high
        local = any(f"[{name}]" in self.index for name in self.scope.ints)
        return self.view.name + self.index if narrower and not local else None


class _CallMaker:
    def __init__(self, program: _ProgramMaker, bases: tuple[Base, ...]) -> None:
        self.program, self.rng, self.bases = program, program.rng, bases
        self.mixed = program.mixed
        self.views: list[_View] = []  # that may still be used
        self.parameters: list[tuple[str, str]] = []
        self.used: set[str] = set()  # bases
        self.written: dict[str, _Place] = {}  # by base: where it is read and written
        self.scalars: dict[str, str] = {}
        self.names = 0
        self.loops = 0

    # ----------------------------------------------------------------- the call

    def call(self) -> Call:
        rng, size = self.rng, self.program.size
        rank = self.program.rank if rng.random() < 0.9 else 1
        begin, end = (0,) * rank, (size,) * rank
        if rng.random() < 0.25:
            begin = (rng.randint(0, 3), *begin[1:])
        if rng.random() < 0.2:
            end = (rng.randint(begin[0] + 1, size), *end[1:])
        self.begin, self.end, self.rank = begin, end, rank
        pattern = rng.choices(("for", "reduce", "scan"), (75, 20, 5 if rank == 1 else 0))[0]
        for name in "xyzwv"[: rng.randint(1, 4)]:
            self.add_view(name)
        scope = _Scope(begin[0], end[0] - 1)
        body = self.body(scope, rng.randint(1, 4) if pattern == "for" else rng.randint(0, 2), 0)
        if pattern != "for":
            body += self.accumulate(scope, pattern)
        accumulator = ""
        if pattern != "for":
            accumulator = (
                rng.choice(("pk.double", "pk.double", "int"))
                if pattern == "reduce"
                else "pk.double"
            )
        views = tuple(self.parameters)
        return Call(pattern, begin, end, body, views, tuple(self.scalars.items()), accumulator)

    def accumulate(self, scope: _Scope, pattern: str) -> tuple[Statement, ...]:
        value = self.whole(self.floating(scope, 2))
        if pattern == "scan":
            target = self.target(scope)
            statements = (Statement("acc += {}", (value,)),)
            if target and target[0].is_float:
                store = Statement("if last:", (), ((Statement(f"{target[1]} = acc"),),))
                return (*statements, store) if not self.mixed else statements
            return statements
        if self.rng.random() < 0.3:
            return (
                Statement(
                    "if {}:", (self.condition(scope),), ((Statement("acc += {}", (value,)),),)
                ),
            )
        return (Statement("acc += {}", (value,)),)

    def whole(self, value: Expr) -> Expr:
        """A whole number of small magnitude: its sums are exact in any order."""
        return ("math.fmod(pk.floor({}), 64.0)", value)

    def add_view(self, name: str) -> None:
        """A parameter bound to a slice of some base, large enough for most indices."""
        rng = self.rng
        base = rng.choice(self.bases[:-1] if rng.random() < 0.85 else self.bases[-1:])
        if len(base.shape) == 2:
            text, shape = self.matrix_slice(base)
        else:
            text, shape = self.vector_slice(base)
        self.views.append(_View(name, base, text, shape))
        self.parameters.append((name, text))

    def vector_slice(self, base: Base) -> tuple[str, tuple[int, ...]]:
        rng, extent, need = self.rng, base.shape[0], min(self.end[0], base.shape[0])
        forms = ["{0}", "{0}"]
        spare = extent - need
        if spare:
            start = rng.randint(1, spare)
            forms += [f"{{0}}[{start}:]", f"{{0}}[{start}:{start + need}]", f"{{0}}[:{need}]"]
        forms.append("{0}[::-1]")
        if extent >= 2 * need:
            forms += ["{0}[::2]", "{0}[1::2]"]
        text = rng.choice(forms).format(base.name)
        slicing = text[len(base.name) :].strip("[]")
        parts = [int(p) if p else None for p in slicing.split(":")] if slicing else [None]
        return text, (len(range(extent)[slice(*parts)] if slicing else range(extent)),)

    def matrix_slice(self, base: Base) -> tuple[str, tuple[int, ...]]:
        rng, extent = self.rng, base.shape[0]
        need = max(self.end)
        forms: list[tuple[str, tuple[int, ...]]] = [
            ("{0}", base.shape), ("{0}", base.shape), ("{0}.T", base.shape),
            ("{0}[::-1, :]", base.shape), (f"{{0}}[{rng.randrange(extent)}]", (extent,)),
            (f"{{0}}[:, {rng.randrange(extent)}]", (extent,)),
        ]  # fmt: skip
        if extent > need:
            forms += [("{0}[1:, :]", (extent - 1, extent)), ("{0}[:, 1:]", (extent, extent - 1))]
        text, shape = rng.choice(forms)
        return text.format(base.name), shape

    # ----------------------------------------------------------------- indices

    def index(self, view: _View, scope: _Scope, injective: bool) -> str | None:
        """An index expression that stays inside the view, or None."""
        if len(view.shape) == 1:
            forms = self.index_forms(view.shape[0], scope, injective)
            return f"[{self.rng.choice(forms)}]" if forms else None
        first = self.index_forms(view.shape[0], scope, injective)
        second = self.second_forms(view.shape[1], scope, injective)
        if not first or not second:
            return None
        a, b = self.rng.choice(first), self.rng.choice(second)
        if self.rank == 2 and self.rng.random() < 0.2 and max(self.end) <= min(view.shape):
            a, b = "j", "i"
        return f"[{a}][{b}]" if self.rng.random() < 0.5 else f"[{a}, {b}]"

    def index_forms(self, extent: int, scope: _Scope, injective: bool) -> list[str]:
        rng, low, high = self.rng, scope.low, scope.high
        forms = []
        if high < extent:
            forms += ["i"] * 6
        for k in (1, 2, rng.randint(3, 6)):
            if high + k < extent:
                forms.append(f"i + {k}")
            if low - k >= 0 and high - k < extent:
                forms.append(f"i - {k}")
        if low >= 0 and high < extent:
            forms.append(f"{low + high} - i")
        if 2 * high + 1 < extent:
            forms += ["2 * i", "2 * i + 1"]
        if rng.random() < 0.15 and high + 1 < extent:
            forms += [f"i + {self.scalar(rng.randint(0, extent - 1 - high))}"] * 2
        if injective:
            return forms
        if high // 2 < extent:
            forms.append("i // 2")
        forms += [str(rng.randrange(extent)), f"(3 * i) % {extent}"]
        if extent >= INT_MODULUS:
            indirect = self.indirect(scope)
            forms += [indirect] * 2 if indirect else []
            forms += scope.ints[-1:]
        return forms

    def second_forms(self, extent: int, scope: _Scope, injective: bool) -> list[str]:
        if self.rank == 2:
            return self.index_forms_j(extent, injective)
        return [str(self.rng.randrange(extent))] + ([] if injective else ["i % 2"])

    def index_forms_j(self, extent: int, injective: bool) -> list[str]:
        high = self.end[1] - 1
        forms = ["j"] * 4 if high < extent else []
        if high + 1 < extent:
            forms.append("j + 1")
        if high < extent:
            forms.append(f"{high} - j")
        return forms if injective else [*forms, str(self.rng.randrange(extent))]

    def indirect(self, scope: _Scope) -> str | None:
        """An element of an integer array, read at `i`."""
        for view in self.views:
            plain = len(view.shape) == 1 and scope.high < view.shape[0]
            if not view.is_float and plain and view.base.name not in self.written:
                self.used.add(view.base.name)
                return f"{view.name}[i]"
        return None

    def scalar(self, value: float) -> str:
        name = f"s{len(self.scalars)}"
        self.scalars[name] = repr(value)
        return name

    # ----------------------------------------------------------------- accesses

    def target(self, scope: _Scope) -> tuple[_View, str] | None:
        """A view and element text to write: one place a base, so that few programs race."""
        rng = self.rng
        if not self.views:
            return None
        view = rng.choice(self.views)
        self.used.add(view.base.name)
        known = self.written.get(view.base.name)
        if known and rng.random() < 0.97:
            text = known.text(scope)
            return (known.view, text) if text else None
        index = self.index(view, scope, rng.random() < 0.98)
        if index is None or (len(view.shape) < self.rank and rng.random() < 0.98):
            return None
        self.written[view.base.name] = _Place(view, index, scope)
        return view, view.name + index

    def read(self, scope: _Scope, is_float: bool) -> str | None:
        rng = self.rng
        views = [v for v in self.views if v.is_float == is_float]
        if not views:
            return None
        view = rng.choice(views)
        self.used.add(view.base.name)
        known = self.written.get(view.base.name)
        if known and rng.random() < 0.97:
            return known.text(scope)
        index = self.index(view, scope, False)
        if index is None:
            return None
        if rng.random() < 0.6:  # later writes of this base will go to the same place
            self.written.setdefault(view.base.name, _Place(view, index, scope))
        return view.name + index

    # ----------------------------------------------------------------- expressions

    def floating(self, scope: _Scope, depth: int) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.floating_leaf(scope)
        a, b = self.floating(scope, depth - 1), self.floating(scope, depth - 1)
        kind = rng.random()
        if kind < 0.5:
            return (f"({{}} {rng.choice('+-')} {{}})", a, b)
        if kind < 0.7:
            if self.mixed:
                return ("({} * {})", a, (rng.choice(("2.0", "0.5", "-1.0")),))
            return ("({} * {})", a, b)
        if kind < 0.85:
            return (rng.choice(("pk.fmin({}, {})", "pk.fmax({}, {})")), a, b)
        if kind < 0.88:
            return ("({} if {} else {})", a, self.condition(scope), b)
        if self.mixed or kind < 0.92:
            return ("math.fabs({})", a)
        if kind < 0.96:
            return ("({} / (math.fabs({}) + 1.0))", a, b)
        return ("math.sqrt(math.fabs({}))", a)

    def floating_leaf(self, scope: _Scope) -> Expr:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.6:
            text = self.read(scope, True)
            if text:
                return (text,)
        if kind < 0.7 and scope.floats:
            return (rng.choice(scope.floats),)
        if kind < 0.75:
            return (rng.choice((*"i", *scope.ints)),)
        if kind < 0.8 and self.program.results and not self.mixed:
            name = f"r{len(self.scalars)}"
            self.scalars[name] = f"result[{rng.choice(self.program.results)}]"
            return (name,)
        if kind < 0.87:
            return (self.scalar(float(rng.choice(_FLOATS))),)
        return (rng.choice(_FLOATS),)

    def integer(self, scope: _Scope, depth: int) -> Expr:
        """A small integer that is never negative."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            text = self.read(scope, False) if rng.random() < 0.5 else None
            return (text or rng.choice(("i", str(rng.randint(0, 5)), *scope.ints)),)
        a = self.integer(scope, depth - 1)
        kind = rng.random()
        if kind < 0.4:
            return ("({} + {})", a, self.integer(scope, depth - 1))
        if kind < 0.6:
            return (f"({{}} * {rng.randint(2, 4)})", a)
        return (rng.choice(("({} // 2)", "({} // 3)", "({} % 3)", "({} % 5)")), a)

    def condition(self, scope: _Scope) -> Expr:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.35:
            return (f"i {rng.choice(('<', '>=', '==', '!='))} {rng.randint(0, self.end[0])}",)
        if kind < 0.5:
            return (f"i % {rng.randint(2, 3)} == 0",)
        if kind < 0.75:
            comparison = rng.choice(("<", ">", "<=", ">="))
            return (f"{{}} {comparison} {{}}", self.floating(scope, 1), self.floating(scope, 0))
        if kind < 0.85:
            return ("not ({})", self.condition(scope))
        word = rng.choice(("and", "or"))
        return (f"(({{}}) {word} ({{}}))", self.condition(scope), self.condition(scope))

    # ----------------------------------------------------------------- statements

    def body(self, scope: _Scope, count: int, depth: int) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        while count > 0:
            count -= 1
            kind = self.rng.random()
            if kind < 0.12 and depth < 2:
                statements.append(self.branch(scope, depth))
            elif kind < 0.18 and depth < 2:
                statements += self.loop(scope)
            elif kind < 0.21 and depth == 0:
                statements.append(
                    Statement("if {}:", (self.condition(scope),), ((Statement("return"),),))
                )
            elif kind < 0.35:
                statements.append(self.declaration(scope))
            elif kind < 0.39 and scope.floats:
                value = self.floating(scope, 2)
                value = self.whole(value) if self.mixed else value
                statements.append(Statement(f"{self.rng.choice(scope.floats)} = {{}}", (value,)))
            elif kind < 0.42:
                statements += self.atomic(scope)
            else:
                statements += self.store(scope)
        return tuple(statements)

    def declaration(self, scope: _Scope) -> Statement:
        self.names += 1
        if self.rng.random() < 0.3:
            name = f"k{self.names}"
            value = ("({} % 8)", self.integer(scope, 2))
            scope.ints.append(name)
            return Statement(f"{name}: int = {{}}", (value,))
        name = f"t{self.names}"
        value = self.floating(scope, 2)
        value = self.whole(value) if self.mixed else value
        scope.floats.append(name)
        return Statement(f"{name}: float = {{}}", (value,))

    def store(self, scope: _Scope) -> list[Statement]:
        target = self.target(scope)
        if target is None:
            return []
        view, element = target
        if not view.is_float:
            return [Statement(f"{element} = {{}} % {INT_MODULUS}", (self.integer(scope, 2),))]
        value = self.floating(scope, self.rng.randint(1, 3))
        if self.mixed:
            return [Statement(f"{element} = {{}}", (self.whole(value),))]
        op = self.rng.choices(("=", "+=", "-=", "*="), (75, 12, 8, 5))[0]
        return [Statement(f"{element} {op} {{}}", (value,))]

    def atomic(self, scope: _Scope) -> list[Statement]:
        """A sum into places that iterations share: whole numbers into a base used for nothing else.

        A base that was read or written cannot be used, so this is often nothing.
        """
        free = [v for v in self.views if v.is_float and len(v.shape) == 1]
        free = [v for v in free if v.base.name not in self.used]
        if not free or not self.mixed:
            return []
        view = self.rng.choice(free)
        forms = self.index_forms(view.shape[0], scope, False)
        if not forms:
            return []
        # Any other use of the base would be a race.
        self.views = [v for v in self.views if v.base is not view.base]
        index, value = self.rng.choice(forms), self.whole(self.floating(scope, 1))
        return [Statement(f"pk.atomic_add({view.name}, [{index}], {{}})", (value,))]

    def branch(self, scope: _Scope, depth: int) -> Statement:
        """A guard; one on the index lets more indices be used inside."""
        rng = self.rng
        if rng.random() < 0.5 and scope.low < scope.high:
            cut = rng.randint(scope.low + 1, scope.high)
            inner = scope.inner(low=cut) if rng.random() < 0.5 else scope.inner(high=cut - 1)
            test: Expr = (f"i >= {cut}" if inner.low == cut else f"i < {cut}",)
            then = self.body(inner, rng.randint(1, 2), depth + 1)
        else:
            test = self.condition(scope)
            then = self.body(scope.inner(), rng.randint(1, 2), depth + 1)
        if rng.random() < 0.4:
            orelse = self.body(scope.inner(), 1, depth + 1)
            return Statement("if {}:\nelse:", (test,), (then, orelse))
        return Statement("if {}:", (test,), (then,))

    def loop(self, scope: _Scope) -> list[Statement]:
        """A sum over an inner loop, stored afterwards or kept in a local."""
        rng = self.rng
        self.loops += 1
        total, variable = f"sum{self.loops}", f"q{self.loops}"
        inner = scope.inner()
        inner.ints.append(variable)
        step: Statement | None = None
        value = self.whole(self.floating(inner, 1))
        add = Statement(f"{total} += {{}}", (value,))
        bound = rng.randint(1, 4)
        if rng.random() < 0.7:
            skip = Statement(
                "if {}:",
                (self.condition(inner),),
                ((Statement(rng.choice(("continue", "break"))),),),
            )
            body = (skip, add) if rng.random() < 0.3 else (add,)
            loop = Statement(f"for {variable} in range({bound}):", (), (body,))
            start = [Statement(f"{total}: float = 0.0")]
        else:
            step = Statement(f"{variable} += 1")
            loop = Statement(f"while {variable} < {bound}:", (), ((add, step),))
            start = [Statement(f"{total}: float = 0.0"), Statement(f"{variable}: int = 0")]
        scope.floats.append(total)
        return [*start, loop]
