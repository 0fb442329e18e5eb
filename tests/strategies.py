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

from tests.fuzz.expressions import INT_MODULUS, ExpressionMaker, Scope, View
from tests.fuzz.program import Base, Call, Expr, Program, Statement


def random_program(seed: int) -> Program:
    """The program of a seed: always the same one."""
    return _ProgramMaker(random.Random(seed)).program(seed)


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


class _CallMaker(ExpressionMaker):
    def __init__(self, program: _ProgramMaker, bases: tuple[Base, ...]) -> None:
        super().__init__(program.rng, program.mixed, program.results)
        self.program, self.bases = program, bases
        self.parameters: list[tuple[str, str]] = []
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
        self.begin, self.end = begin, end
        pattern = rng.choices(("for", "reduce", "scan"), (75, 20, 5 if rank == 1 else 0))[0]
        for name in "xyzwv"[: rng.randint(1, 4)]:
            self.add_view(name)
        scope = Scope(begin[0], end[0] - 1)
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

    def accumulate(self, scope: Scope, pattern: str) -> tuple[Statement, ...]:
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

    def add_view(self, name: str) -> None:
        """A parameter bound to a slice of some base, large enough for most indices."""
        rng = self.rng
        base = rng.choice(self.bases[:-1] if rng.random() < 0.85 else self.bases[-1:])
        if len(base.shape) == 2:
            text, shape = self.matrix_slice(base)
        else:
            text, shape = self.vector_slice(base)
        self.views.append(View(name, base, text, shape))
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

    # ----------------------------------------------------------------- statements

    def body(self, scope: Scope, count: int, depth: int) -> tuple[Statement, ...]:
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

    def declaration(self, scope: Scope) -> Statement:
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

    def store(self, scope: Scope) -> list[Statement]:
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

    def atomic(self, scope: Scope) -> list[Statement]:
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

    def branch(self, scope: Scope, depth: int) -> Statement:
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

    def loop(self, scope: Scope) -> list[Statement]:
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
