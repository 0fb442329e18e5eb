"""Programs as data: base arrays, workunits as nested statements, and the calls a host makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

    views: parameter -> a slicing expression of a base, such as `A[2:9:2]`. scalars: parameter ->
    a literal, or `result[k]` for the result of the program's k-th call.
    """

    pattern: str
    begin: tuple[int, ...]
    end: tuple[int, ...]
    body: tuple[Statement, ...]
    views: tuple[tuple[str, str], ...]
    scalars: tuple[tuple[str, str], ...] = ()
    accumulator: str = ""

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


@dataclass(frozen=True)
class Program:
    """Calls in order over base arrays."""

    bases: tuple[Base, ...]
    calls: tuple[Call, ...]
    seed: int = 0

    def source(self) -> str:
        """The module text that defines all workunits, `work0`, `work1`, ..."""
        units = [call.source(f"work{n}") for n, call in enumerate(self.calls)]
        return "import math\n\nimport pykokkos as pk\n\n\n" + "\n\n".join(units)
