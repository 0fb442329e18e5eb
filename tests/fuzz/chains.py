"""Stencil chains: stages that read neighbours of what the stage before wrote."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.fuzz.program import Base, Call, Expr, Statement

_WEIGHTS = ("0.25", "0.5", "-0.5", "1.0")


class ChainMaker:
    """Two to five stages over some bases of one shape: ping-pong time steps, or one into the next.

    Every stage writes another base than it reads, or its own point only, so that none races.
    """

    def __init__(self, rng: random.Random, mixed: bool, bases: tuple[Base, ...]) -> None:
        self.rng, self.mixed = rng, mixed
        self.bases = bases
        self.rank = len(bases[0].shape)
        self.extents = bases[0].shape
        self.width = 1 if rng.random() < 0.75 else 2
        self.axes = [0] if self.rank == 1 or rng.random() < 0.3 else [0, 1]
        # How a neighbour beyond the end is found, along each axis; "": no iteration has one.
        kinds = ("modulo", "modulo", "chosen", "clamped", "branch") if rng.random() < 0.5 else ("",)
        self.ends = tuple(rng.choice(kinds) for _ in range(self.rank))

    def calls(self) -> list[Call]:
        rng, stages = self.rng, self.rng.choice((2, 2, 2, 3, 3, 4, 5))
        shrinking, same = rng.random() < 0.25, rng.random() < 0.5
        first = self.stage(0, shrinking)
        calls: list[Call] = []
        for n in range(stages):
            call = first if same else self.stage(n, shrinking)
            source, sink = (self.bases[(n + k) % len(self.bases)].name for k in (0, 1))
            views = {"x": source, "y": sink, "z": self.bases[(n + 2) % len(self.bases)].name}
            bound = tuple((name, views[name]) for name, _ in call.views)
            calls.append(replace(call, views=bound, **self.space(n, shrinking)))
            if rng.random() < 0.15:
                calls.append(self.boundary(sink, source))
            if rng.random() < 0.2:
                calls.append(self.pointwise(sink, source))
        if rng.random() < 0.3:
            calls.append(self.residual(self.bases[0].name, self.bases[1].name))
        return calls

    def space(self, stage: int, shrinking: bool) -> dict[str, tuple[int, ...]]:
        """The inside, with a rim that may grow by the stage."""
        rim = self.width * (stage + 1 if shrinking else 1)
        if self.ends[0]:
            return {"begin": (0,) * self.rank, "end": self.extents}
        begin = tuple(min(rim, extent // 2) for extent in self.extents)
        end = tuple(max(extent - rim, b) for extent, b in zip(self.extents, begin, strict=True))
        if self.rank == 2 and len(self.axes) == 1 and not shrinking:
            begin, end = (begin[0], 0), (end[0], self.extents[1])
        return {"begin": begin, "end": end}

    def stage(self, number: int, shrinking: bool) -> Call:
        """y at a point from x around it, perhaps with z at the point."""
        rng = self.rng
        offsets = [(0,) * self.rank]
        for axis in self.axes:
            for k in range(1, self.width + 1):
                offsets += [
                    tuple(step if a == axis else 0 for a in range(self.rank))
                    for step in (-k, k)
                    if rng.random() < 0.85
                ]
        before: list[Statement] = []
        if self.ends[0] and rng.random() < 0.3:
            window = self.window(before)
            offsets = offsets[:1]
        else:
            window = ""
        terms: list[Expr] = [
            (f"({rng.choice(_WEIGHTS)} * {self.neighbour(offset, before)})",) for offset in offsets
        ]
        terms += [(window,)] * bool(window)
        views = ["x", "y"]
        if len(self.bases) > 2 and rng.random() < 0.3:
            views.append("z")
            terms.append((element("z", (0,) * self.rank),))
        value: Expr = terms[0]
        for term in terms[1:]:
            value = (rng.choice(("({} + {})", "({} - {})", "({} + {})")), value, term)
        statements = (self.store(element("y", (0,) * self.rank), value),)
        if self.ends[0]:
            statements = (*before, *statements)
        elif rng.random() < 0.2:
            cut = rng.randint(1, self.extents[0] - 1)
            statements = (Statement(f"if i {rng.choice('<>')} {cut}:", (), (statements,)),)
        elif rng.random() < 0.15:
            low, high = 2 * self.width, self.extents[0] - 2 * self.width
            outer = (Statement(f"if i < {low} or i >= {high}:", (), ((Statement("return"),),)),)
            statements = (*outer, *statements)
        return Call("for", (), (), statements, tuple((name, "") for name in views))

    def neighbour(self, offset: tuple[int, ...], before: list[Statement]) -> str:
        """An element of x; `before` gets statements that find its indices."""
        if not self.ends[0]:
            return element("x", offset)
        parts = []
        for index, step, extent, end in zip("ij", offset, self.extents, self.ends, strict=False):
            if not step:
                parts.append(index)
                continue
            step = max(min(step, extent), -extent)
            moved = f"{index} {'-' if step < 0 else '+'} {abs(step)}"
            inside = f"{index} < {extent - step}" if step > 0 else f"{index} >= {-step}"
            around = f"{moved} {'-' if step > 0 else '+'} {extent}"
            last = extent - 1 if step > 0 else 0
            text = {
                "modulo": f"({index} + {step % extent or extent}) % {extent}",
                "chosen": f"({moved} if {inside} else {around})",
                "clamped": f"({moved} if {inside} else {last})",
            }.get(end, "")
            if not text and self.rng.random() < 0.5:
                text = f"k{len(before)}"
                before += self.corrected(text, moved, extent, abs(step))
            elif not text:
                text = f"k{len(before)}"
                change = Statement(f"{text} = {last if self.rng.random() < 0.5 else around}")
                before.append(Statement(f"{text}: int = {moved}"))
                before.append(Statement(f"if not ({inside}):", (), ((change,),)))
            elif self.rng.random() < 0.4:
                before.append(Statement(f"k{len(before)}: int = {text}"))
                text = f"k{len(before) - 1}"
            parts.append(text)
        return f"x[{', '.join(parts)}]"

    def corrected(
        self, name: str, moved: str, extent: int, reach: int, declared: bool = False
    ) -> tuple[Statement, ...]:
        """A local with an index that statements bring back, which leaves by up to `reach`."""
        rng = self.rng
        below, above = ["0"], [f"{extent - 1}"]
        if reach < extent:
            below += [f"{name} + {extent}", f"-{name}"]
            above += [f"{name} - {extent}", f"{2 * extent - 2} - {name}"]
        first = Statement(f"{name} = {moved}" if declared else f"{name}: int = {moved}")
        tests = [f"if {name} < 0:", f"if {name} {rng.choice((f'>= {extent}', f'> {extent - 1}'))}:"]
        changes = [Statement(f"{name} = {rng.choice(values)}") for values in (below, above)]
        if rng.random() < 0.2:
            text = f"{name} = min(max({name}, 0), {extent - 1})"
            return (first, Statement(text))
        if rng.random() < 0.3:
            return (first, Statement("\nel".join(tests), (), tuple((c,) for c in changes)))
        ways = [Statement(t, (), ((c,),)) for t, c in zip(tests, changes, strict=True)]
        return (first, *(ways if rng.random() < 0.5 else ways[::-1]))

    def window(self, before: list[Statement]) -> str:
        """A local with the sum over a window along an axis, for which `before` gets a loop."""
        rng, axis = self.rng, self.rng.choice(self.axes)
        index, extent, low = "ij"[axis], self.extents[axis], rng.randint(0, 1)
        moved = rng.choice(
            (f"{index} + k", f"k + {index}", f"{index} - k", f"{index} + (k - {low})")
        )
        inside = f"{moved} >= 0 and {moved} < {extent}"
        around = extent * (1 + (self.width + low) // extent)
        found = {
            "modulo": f"({moved} + {around}) % {extent}",
            "chosen": f"({moved} if {inside} else {index})",
            "clamped": rng.choice(("min(max({0}, 0), {1})", "max(min({0}, {1}), 0)")).format(
                f"({moved})", extent - 1
            ),
            "branch": moved,
        }[self.ends[axis]]
        at = [found if other == axis else "ij"[other] for other in range(self.rank)]
        body: tuple[Statement, ...] = ()
        if self.ends[axis] == "branch" and rng.random() < 0.5:
            early = rng.random() < 0.5
            body = self.corrected("p", moved, extent, self.width + 2, early)
            before += [Statement("p: int = 0")] * early
            at[axis] = "p"
        add = Statement(f"w += 0.25 * x[{', '.join(at)}]")
        if self.ends[axis] == "branch" and not body:
            add = Statement(f"if {inside}:", (), ((add,),))
        reach = self.width + rng.choice((0, 0, 1))
        loop = Statement(f"for k in range({-self.width}, {reach}):", (), ((*body, add),))
        before += [Statement("w: float = 0.0"), loop]
        return "w"

    def store(self, target: str, value: Expr) -> Statement:
        if self.mixed:
            value = ("math.fmod(pk.floor({}), 64.0)", value)
        return Statement(f"{target} = {{}}", (value,))

    def boundary(self, sink: str, source: str) -> Call:
        """The rim at the low end."""
        here = (0,) * self.rank
        body = (self.store(element("y", here), (element("x", here),)),)
        end = (self.width, *self.extents[1:])
        return Call("for", here, end, body, (("x", source), ("y", sink)))

    def pointwise(self, sink: str, source: str) -> Call:
        """An update in place, over everything."""
        here = (0,) * self.rank
        value: Expr = (f"({element('y', here)} - (0.5 * {element('x', here)}))",)
        body = (self.store(element("y", here), value),)
        return Call("for", here, self.extents, body, (("x", source), ("y", sink)))

    def residual(self, left: str, right: str) -> Call:
        here = (0,) * self.rank
        value: Expr = (f"({element('x', here)} - {element('y', here)})",)
        body = (Statement("acc += {}", (("math.fmod(pk.floor({}), 64.0)", value),)),)
        return Call(
            "reduce", here, self.extents, body, (("x", left), ("y", right)), (), "pk.double"
        )


def element(name: str, offset: tuple[int, ...]) -> str:
    """`x[i - 1, j]`."""
    parts = []
    for index, step in zip("ij", offset, strict=False):
        parts.append(f"{index} {'-' if step < 0 else '+'} {abs(step)}" if step else index)
    return f"{name}[{', '.join(parts)}]"
