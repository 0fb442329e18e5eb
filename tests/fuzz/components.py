"""Components: a short outermost axis over which some calls run; others use it point by point."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, fixed

_STATES, _LINE = "UVW", "P"


class ComponentMaker:
    """States of a few components, and a line of numbers by point.

    Some calls cannot give up the axis: sums whose order shows, atomics, parts of the axis. Some
    read another component, or a neighbouring point, of what a call before wrote.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.components = rng.choice((2, 3, 3, 4, 9, 10))
        self.points = rng.choice((5, 9, 16, 40, 70))
        self.bases = (
            *(
                Base(name, (self.components, self.points), "float64", rng.random() < 0.3)
                for name in _STATES
            ),
            Base(_LINE, (self.points,), "float64", rng.random() < 0.3),
        )

    def calls(self) -> list[Call]:
        return [
            self.by_component() if self.rng.random() < 0.5 else self.by_point()
            for _ in range(self.rng.randint(2, 6))
        ]

    def by_component(self) -> Call:
        rng = self.rng
        x, y, p = "x[i, j]", "y[i, j]", "p[j]"
        body = rng.choice(
            (
                (f"{x} = math.fmod({y} + 2.0 * {p}, 64.0)",),
                (f"{x} += math.fmod({y}, 8.0) - {p}", f"{x} = math.fmod({x}, 64.0)"),
                (f"{x} = y[s0 - 1 - i, j] - 1.0",),
                (f"{x} = y[i, (j + 1) % s1]",),
                (f"{x} = y[0, j] + {p}",),
                (f"w: float = {y} - i", f"{x} = math.fmod(w * {p}, 64.0)"),
                ("acc += " + x,),
                ("pk.atomic_add(p, [j], 1.0)",),
            )
        )
        begin = rng.choice((0, 0, 0, 0, 1))
        pattern, kind = ("reduce", "pk.double") if body[0].startswith("acc") else ("for", "")
        lines = tuple(fixed(line) for line in body)
        if rng.random() < 0.2 and pattern == "for" and "w:" not in body[0]:
            lines = (fixed(f"if {p} > 1.0:", lines),)
        end = self.components, self.points
        return Call(pattern, (begin, 0), end, lines, self.views(), self.scalars(), kind)

    def by_point(self) -> Call:
        rng = self.rng
        one, other = (rng.randrange(self.components) for _ in range(2))
        x, y, p = f"x[{one}, i]", f"y[{other}, i]", "p[i]"
        add, total = (fixed("a += x[c, i]"),), fixed(f"{p} = math.fmod(a, 64.0)")
        body = rng.choice(
            (
                (fixed(f"{x} = math.fmod({y} * {p}, 64.0)"),),
                (fixed(f"{p} = math.fmod({x} + {y}, 64.0)"),),
                (fixed(f"{p} = x[{one}, (i + 1) % s1]"),),
                (fixed("a: float = 0.0"), fixed("for c in range(s0):", add), total),
                (fixed(f"{x} = {x} + 1.0"), fixed(f"{p} = {y}")),
                (fixed(f"acc += {x}"),),
            )
        )  # fmt: skip
        pattern, kind = ("reduce", "pk.double") if body[0].template[:3] == "acc" else ("for", "")
        return Call(pattern, (0,), (self.points,), body, self.views(), self.scalars(), kind)

    def views(self) -> tuple[tuple[str, str], ...]:
        one, other = self.rng.sample(_STATES, 2)
        return ("x", one), ("y", other), ("p", _LINE)

    def scalars(self) -> tuple[tuple[str, str], ...]:
        return ("s0", str(self.components)), ("s1", str(self.points))
