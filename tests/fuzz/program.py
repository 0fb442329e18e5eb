"""Programs as data: base arrays, workunits as nested statements, and what the host does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

# An expression is (template, *children) and renders by filling the children in.
Expr = tuple  # type: ignore[type-arg]


@dataclass(frozen=True)
class Statement:
    """One statement; `bodies` are the blocks below it, each introduced by its header.

    kind: "store", "let", "assign", "if", "for", "while", "return", ... `parts` are expressions.
    """

    template: str
    parts: tuple[Expr, ...] = ()
    bodies: tuple[tuple[Statement, ...], ...] = ()

    def render(self, depth: int) -> Iterator[str]:
        """Source lines; `{}` of the template are the parts, lines of it alternate with bodies."""
        texts = self.template.format(*map(render, self.parts)).split("\n")
        for n, text in enumerate(texts):
            yield "    " * depth + text
            if n < len(self.bodies):
                yield from _block(self.bodies[n], depth + 1)


def fixed(template: str, *bodies: tuple[Statement, ...]) -> Statement:
    """A statement whose text is the template."""
    return Statement(template, (), bodies)


def render(expr: Expr) -> str:
    """The text of an expression."""
    return str(expr[0]).format(*map(render, expr[1:]))


def _block(body: tuple[Statement, ...], depth: int) -> Iterator[str]:
    if not body:
        yield "    " * depth + "pass"
    for statement in body:
        yield from statement.render(depth)


@dataclass(frozen=True)
class Base:
    """A NumPy array of the program. temporary: nothing reads it after the program."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    temporary: bool = False


@dataclass(frozen=True)
class Call:
    """One workunit and its call.

    views: parameter -> an expression for a part of a base, such as `A[2:9:2]`. scalars: parameter
    -> a literal, or `result[k]` for the result of the program's k-th step. limit: such a result,
    which makes the first dimension's end smaller. mode: "fusing" or "unfused", a block inside the
    one that the program runs in.
    """

    pattern: str
    begin: tuple[int, ...]
    end: tuple[int, ...]
    body: tuple[Statement, ...]
    views: tuple[tuple[str, str], ...]
    scalars: tuple[tuple[str, str], ...] = ()
    accumulator: str = ""
    limit: str = ""
    mode: str = ""

    def source(self, name: str) -> str:
        """The workunit's source."""
        params = [f"{index}: int" for index in "ij"[: len(self.begin)]]
        if self.accumulator:
            params.append(f"acc: pk.Acc[{self.accumulator}]")
        if self.pattern == "scan":
            params.append("last: bool")
        params += [name for name, _ in (*self.views, *self.scalars)]
        lines = ["@pk.workunit", f"def {name}({', '.join(params)}):", *_block(self.body, 1)]
        return "\n".join(lines) + "\n"

    def stop(self, results: list[object]) -> tuple[int, ...]:
        """`end`, made smaller by the result that limits it."""
        if not self.limit:
            return self.end
        value = int(eval(self.limit, {"result": results}))
        return self.begin[0] + value % (self.end[0] - self.begin[0] + 1), *self.end[1:]


@dataclass(frozen=True)
class Host:
    """A statement of the host, between calls, on the base arrays.

    Its names: the bases; `result[k]`; `read(value)`, which keeps a number to compare;
    `resize(base, extent)`, which gives the base with another length; `np`.
    """

    text: str


Step = Call | Host


@dataclass(frozen=True)
class Program:
    """Steps in order over base arrays. inexact: their floats have full mantissas (see `oracle`)."""

    bases: tuple[Base, ...]
    steps: tuple[Step, ...]
    seed: int = 0
    inexact: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple([step for step in self.steps if isinstance(step, Call)])

    @cached_property
    def _sources(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The different workunits, and the number of each call's: calls of one source share it."""
        numbers: dict[str, int] = {}
        units = tuple([numbers.setdefault(c.source("{}"), len(numbers)) for c in self.calls])
        return tuple(numbers), units

    @property
    def units(self) -> tuple[int, ...]:
        """Of each call, the number of its workunit."""
        return self._sources[1]

    def source(self) -> str:
        """The module text that defines all workunits, `work0`, `work1`, ..."""
        texts = [text.replace("{}", f"work{n}", 1) for n, text in enumerate(self._sources[0])]
        return "import math\n\nimport pykokkos as pk\n\n\n" + "\n\n".join(texts)

    def listing(self) -> str:
        """The workunits, then the steps, for people."""
        units = iter(self.units)
        lines = [self.source(), ""]
        for n, step in enumerate(self.steps):
            if isinstance(step, Host):
                lines.append(f"{n}: {step.text}")
                continue
            arguments = [f"{name}={text}" for name, text in (*step.views, *step.scalars)]
            extra = [f"limited by {step.limit}"] * bool(step.limit) + [step.mode] * bool(step.mode)
            lines.append(
                f"{n}: {step.pattern} {step.begin} to {step.end} work{next(units)} "
                + " ".join(arguments + extra)
            )
        return "\n".join(lines)
