"""Random workunits: parameters, statements, and the call."""

from __future__ import annotations

import random

from tests.fuzz.cells import view_cells
from tests.fuzz.expressions import INT_MODULUS, ExpressionMaker, Scope, View
from tests.fuzz.program import Base, Call, Expr, Statement
from tests.fuzz.slices import part

STEPS = 0.03
"""The share of statements that choose a step for an index. Those of `tests.corpus` have none, and
no ranges around an index."""

CHOSEN = 0.04
"""The share of statements that choose an index under conditions; none in `tests.corpus`."""


class CallMaker(ExpressionMaker):
    """Makes one call over the bases; the last of them is of integers."""

    def __init__(
        self,
        rng: random.Random,
        mixed: bool,
        size: int,
        bases: tuple[Base, ...],
        results: dict[int, str],
    ) -> None:
        super().__init__(rng, mixed, results)
        self.size, self.bases = size, bases
        self.parameters: list[tuple[str, str]] = []
        self.names = 0
        self.loops = 0

    # ----------------------------------------------------------------- the call

    def call(self, rank: int) -> Call:
        """A call over `rank` indices; where results are known, one may limit the space."""
        rng = self.rng
        self.begin, self.end = self.space(rank)
        pattern = rng.choices(("for", "reduce", "scan"), (72, 23, 5 if rank == 1 else 0))[0]
        for name in "xyzw"[: rng.randint(1, 4)]:
            self.add_view(name)
        scope = Scope(self.begin[0], self.end[0] - 1)
        count = rng.choice((1, 1, 2, 2, 3, 4)) if pattern == "for" else rng.randint(0, 1)
        body = self.body(scope, count, 0)
        accumulator = ""
        if pattern != "for":
            accumulator = "pk.double"
            if pattern == "reduce" and rng.random() < 0.5:
                accumulator = "int"
            body += self.accumulate(scope, pattern, accumulator)
        limits = [n for n, dtype in self.results.items() if dtype == "int"]
        limit = f"result[{rng.choice(limits)}]" if limits and rng.random() < 0.2 else ""
        views = tuple(self.parameters)
        scalars = tuple(self.scalars.items())
        return Call(pattern, self.begin, self.end, body, views, scalars, accumulator, limit)

    def space(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Often the whole box, which most calls share; else a part, one index or none."""
        rng, size, kind = self.rng, self.size, self.rng.random()
        if kind < 0.6:
            return (0,) * rank, (size,) * rank
        if kind < 0.75:
            return (1,) * rank, (size - 1,) * rank
        if kind < 0.8:
            low = rng.randint(0, size)
            return (low, *(0,) * (rank - 1)), (low, *(size,) * (rank - 1))
        if kind < 0.85:
            low = rng.randint(0, size - 1)
            return (low, *(0,) * (rank - 1)), (low + 1, *(size,) * (rank - 1))
        begin = tuple(rng.randint(0, min(3, size - 1)) for _ in range(rank))
        return begin, tuple(rng.randint(low + 1, size) for low in begin)

    def accumulate(self, scope: Scope, pattern: str, dtype: str) -> tuple[Statement, ...]:
        """The sum; one of dtype int is never negative, so that it can be an index."""
        integer = dtype == "int"
        value = self.integer(scope, 1) if integer else self.whole(self.floating(scope, 2))
        add = Statement("acc += {}", (value,))
        if pattern == "scan":
            target = self.target(scope)
            if target and target[0].kind == "float" and not self.mixed:
                store = Statement("if last:", (), ((Statement(f"{target[1]} = acc"),),))
                return (add, store)
            return (add,)
        if self.rng.random() < 0.3:
            return (Statement("if {}:", (self.condition(scope),), ((add,),)),)
        return (add,)

    def add_view(self, name: str) -> None:
        """A parameter bound to a part of some base, large enough for most indices."""
        rng = self.rng
        base = rng.choice(self.bases[:-1] if rng.random() < 0.85 else self.bases[-1:])
        text, read_only = part(rng, base, self.end)
        if self.views and rng.random() < 0.12:  # one view under two names
            base, text, read_only = (
                self.views[-1].base, self.views[-1].text, self.views[-1].read_only
            )  # fmt: skip
        numbers = view_cells(text, base.name, base.shape)
        self.views.append(View(name, base, text, numbers, read_only))
        self.parameters.append((name, text))

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
            elif 0.21 <= kind < 0.21 + STEPS:
                statements += self.step(scope)
            elif 0.24 <= kind < 0.24 + CHOSEN:
                statements += self.chosen(scope)
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

    def step(self, scope: Scope) -> list[Statement]:
        """A local that data chooses among few; at times only the index keeps `i + d` inside."""
        rng = self.rng
        self.names += 1
        name = f"d{self.names}"
        values = rng.sample((0, 1, 2), rng.randint(2, 3))
        if rng.random() < 0.3 and scope.low < scope.high:
            values = [0, 1]
            body = [Statement(f"if i < {scope.high}:", (), ((Statement(f"{name} = 1"),),))]
            most = scope.high
        else:
            last = Statement(f"{name} = {values[-1]}")
            then = Statement(f"{name} = {values[1]}")
            sides = ((then,), (last,)) if len(values) > 2 else ((then,),)
            text = "if {}:\nelse:" if len(values) > 2 else "if {}:"
            body = [Statement(text, (self.condition(scope),), sides)]
            most = scope.high + max(values)
        scope.ints.append(name)
        scope.steps.append((name, most))
        return [Statement(f"{name}: int = {values[0]}"), *body]

    def chosen(self, scope: Scope) -> list[Statement]:
        """A local from 0 to the last index, which conditions change, mostly by what divides it."""
        rng, high = self.rng, max(scope.high, 0)
        self.names += 1
        name = f"c{self.names}"

        def value() -> str:
            base = rng.choice(("i", f"({high} - i)", name))
            around = f"({base} + {rng.randint(0, high)}) % {high + 1}"
            return rng.choice((base, f"{base} // 2", f"{base} % 3", f"{base} & 1", around))

        def change(depth: int) -> tuple[Statement, ...]:
            test = f"{rng.choice(('i', name))} {rng.choice(('==', '!=', '<', '>'))} "
            then: tuple[Statement, ...] = (Statement(f"{name} = {value()}"),)
            if depth and rng.random() < 0.3:
                then = (*then, *change(depth - 1))
            if rng.random() < 0.3:
                sides = (then, (Statement(f"{name} = {value()}"),))
                return (Statement(f"if {test}{rng.randint(0, high)}:\nelse:", (), sides),)
            return (Statement(f"if {test}{rng.randint(0, high)}:", (), (then,)),)

        first = rng.choice(("i", f"{high} - i", "i // 2"))
        changes = [each for _ in range(rng.randint(1, 2)) for each in change(1)]
        scope.chosen.append((name, high))
        return [Statement(f"{name}: int = {first}"), *changes]

    def store(self, scope: Scope) -> list[Statement]:
        target = self.target(scope)
        if target is None:
            return []
        view, element = target
        if view.kind == "int":
            return [Statement(f"{element} = {{}} % {INT_MODULUS}", (self.integer(scope, 2),))]
        if view.kind == "word":
            op = self.rng.choice(("=", "=", "=", "+=", "-=", "*=", "^=", "&=", ">>="))
            value = ("({} & 3)", self.integer(scope, 1)) if op == ">>=" else self.wrapping(scope)
            return [Statement(f"{element} {op} {{}}", (value,))]
        if view.kind == "bool":
            return [Statement(f"{element} = {{}}", (self.condition(scope),))]
        if view.kind == "complex":
            return [Statement(f"{element} = {{}}", (self.complex(scope),))]
        value = self.floating(scope, self.rng.randint(1, 3))
        if self.mixed:
            return [Statement(f"{element} = {{}}", (self.whole(value),))]
        op = self.rng.choices(("=", "+=", "-=", "*="), (75, 12, 8, 5))[0]
        return [Statement(f"{element} {op} {{}}", (value,))]

    def atomic(self, scope: Scope) -> list[Statement]:
        """A sum into places that iterations share: whole numbers into a base used for nothing else.

        A base that was read or written cannot be used, so this is often nothing.
        """
        free = [v for v in self.views if v.kind == "float" and len(v.shape) == 1]
        free = [v for v in free if v.base.name not in self.used and not v.read_only]
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
        if STEPS and rng.random() < 0.2:
            add = Statement(f"{total} += {{}}", (self.whole(self.floating(inner, 1)),))
            around = Statement(f"for {variable} in range({self.around()}):", (), ((add,),))
            scope.floats.append(total)
            return [Statement(f"{total}: float = 0.0"), around]
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
            limit = self.bound(bound)
            if rng.random() < 0.25:
                body = (Statement(f"for {variable}b in range({rng.randint(0, 3)}):", (), (body,)),)
            loop = Statement(f"for {variable} in range({limit}):", (), (body,))
            start = [Statement(f"{total}: float = 0.0")]
        else:
            step = Statement(f"{variable} += 1")
            loop = Statement(f"while {variable} < {bound}:", (), ((add, step),))
            start = [Statement(f"{total}: float = 0.0"), Statement(f"{variable}: int = 0")]
        scope.floats.append(total)
        return [*start, loop]

    def around(self) -> str:
        """A range around the first index, or a part of it."""
        rng = self.rng
        low, high = f"i - {rng.randint(0, 2)}", f"i + {rng.randint(1, 3)}"
        if rng.random() < 0.7:
            low = f"max({low}, {rng.randint(0, 2)})"
        if rng.random() < 0.7:
            high = f"min({high}, {rng.randint(2, 12)})"
        return f"{low}, {high}"

    def bound(self, constant: int) -> str:
        """Of a loop: a constant, or a result that is not negative."""
        whole = [step for step, dtype in self.results.items() if dtype == "int"]
        if not whole or self.rng.random() < 0.4:
            return str(constant)
        name = f"r{len(self.scalars)}"
        self.scalars[name] = f"result[{self.rng.choice(whole)}]"
        return f"{name} % 4"
