"""Producers: maps whose values stencils and gathers read, so that they can compute them again."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Call, Expr, Statement

_SOURCES, _MADE, _SINKS = "IJ", "KN", "OR"
_PLACES = "H"  # of a gather


class ProducerMaker:
    """Sources, what maps make of them, and sinks that read those at other places.

    Some break the law of recomputing: what was read is overwritten, by another call or the reader;
    an element that is read was not stored, or only under a condition, or twice; a view has other
    names; the map updates what it stores, or waits for itself.
    """

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.rank = 2 if rng.random() < 0.3 else 1
        self.size = rng.randint(4, 6) if self.rank == 2 else size + 2
        shape = (self.size,) * self.rank
        types = ("float64", "float64", "float64", "float32", "int32", "int64")
        self.bases = (
            *(Base(name, shape, rng.choice(types)) for name in _SOURCES),
            *(Base(name, shape, rng.choice(types), rng.random() < 0.75) for name in _MADE),
            *(Base(name, shape, "float64") for name in _SINKS),
            Base(_PLACES, (self.size,), "int32"),
        )
        self.integers = {base.name for base in self.bases if base.dtype.startswith("int")}

    def calls(self) -> list[Call]:
        rng = self.rng
        calls = [self.places()] if rng.random() < 0.4 else []
        gathers = bool(calls)
        names = [rng.choice(_SOURCES)]
        for name in _MADE[: rng.choice((1, 1, 2))]:
            calls.append(self.made(rng.choice(names), name))
            names.append(name)
            if rng.random() < 0.15:
                calls.append(self.disturbance(names))
        for _ in range(rng.choice((1, 1, 2, 3))):
            calls.append(self.reader(names, gathers))
            if rng.random() < 0.1:
                calls.append(self.disturbance(names))
        return calls

    # ----------------------------------------------------------------- what is made

    def made(self, source: str, name: str) -> Call:
        """y at a place of the iteration's own, from x there and z around it."""
        rng = self.rng
        other = rng.choice(_SOURCES)
        rim = rng.choice((0, 0, 0, 0, 1))
        here = self.here()
        value: Expr = rng.choice(
            (("(0.5 * {})", (f"x[{here}]",)), ("({} + 1.0)", (f"x[{here}]",)), ("float(i)",))
        )
        views = [("x", source), ("y", name)]
        scalars: tuple[tuple[str, str], ...] = ()
        if rng.random() < 0.4:
            views.append(("z", other))
            step = rng.choice((-1, 0, 1)) if rim else 0
            value = ("({} - {})", value, (f"z[{self.at(step)}]",))
        if rng.random() < 0.2:
            value, scalars = ("({} * s0)", value), (("s0", "2.0"),)
        if rng.random() < 0.06:
            value = ("({} + {})", value, (f"y[{here}]",))
        target = here
        if rng.random() < 0.2:
            target = rng.choice((self.behind(), self.at(1) if rim else here, self.turned()))
        body = self.body(target, value, name)
        return Call("for", *self.space(rim), body, tuple(views), scalars)

    def body(self, target: str, value: Expr, name: str) -> tuple[Statement, ...]:
        rng = self.rng
        whole = name in self.integers
        store = Statement(f"y[{target}] = {{}}", (self.fit(value, whole),))
        other = Statement(f"y[{target}] = {'3' if whole else '0.25'}")
        kind = rng.random()
        if kind < 0.55:
            return (store,)
        if kind < 0.7:
            held = Statement("t: float = {}", (value,))
            parts: Expr = ("({} + {})", ("t",), ("(t * t)",))
            return held, Statement(f"y[{target}] = {{}}", (self.fit(parts, whole),))
        guard = rng.choice((f"i > {rng.randint(0, 2)}", f"i < {self.size - 1}", f"x[{target}] > 1"))
        if kind < 0.8:
            return (Statement(f"if {guard}:\nelse:", (), ((store,), (other,))),)
        if kind < 0.9:
            return other, Statement(f"if {guard}:", (), ((store,),))
        return (Statement(f"if {guard}:", (), ((store,),)),)

    def fit(self, value: Expr, whole: bool) -> Expr:
        return ("int(math.fmod(pk.floor({}), 64.0))", value) if whole else value

    # ----------------------------------------------------------------- who reads it

    def reader(self, names: list[str], gathers: bool) -> Call:
        """y, or a sum, of what was made around a place, or at one that data name."""
        rng = self.rng
        name, other = names[-1], rng.choice(names)
        rim = rng.choice((1, 1, 1, 0))
        steps = (-1, 0, 1) if rim else (0,)
        offsets = rng.sample(steps, rng.randint(1, len(steps)))
        texts = [f"x[{self.at(step)}]" for step in offsets]
        if rng.random() < 0.3:
            texts.append(rng.choice((f"x[{self.behind()}]", f"x[{self.turned()}]")))
        if gathers and rng.random() < 0.7:
            place = "w[i]" if rng.random() < 0.8 else "(w[i] // 2)"
            texts = [f"x[{place}]" if self.rank == 1 else f"x[{place}, j]"]
        views = [("x", name), ("y", rng.choice(_SINKS))]
        if any("w[" in text for text in texts):
            views.append(("w", _PLACES))
        value: Expr = (texts[0],)
        for text in texts[1:]:
            value = (rng.choice(("({} + {})", "({} - 0.5 * {})")), value, (text,))
        if rng.random() < 0.25:
            views.append(("z", other))
            value = ("({} + {})", value, (f"z[{self.here()}]",))
        if rng.random() < 0.06:  # a part of it by another name
            views[0] = ("x", f"{name}[1:]" if self.rank == 1 and not rim else name)
        if rng.random() < 0.2:
            value = ("({} if i > 1 else 0.5)", value)
        if rng.random() < 0.2:
            body = (Statement("acc += {}", (("math.fmod(pk.floor({}), 64.0)", value),)),)
            views = [view for view in views if view[0] != "y"]
            return Call("reduce", *self.space(rim), body, tuple(views), (), "pk.double")
        if rng.random() < 0.06:  # overwrites what the values were made of
            views[1] = ("y", names[0])
            value = self.fit(value, names[0] in self.integers)
        store = Statement(f"y[{self.here()}] = {{}}", (value,))
        return Call("for", *self.space(rim), (store,), tuple(views))

    # ----------------------------------------------------------------- what comes between

    def disturbance(self, names: list[str]) -> Call:
        """Another value for a part of what is read, or of what was made of it."""
        rng = self.rng
        name = rng.choice(names)
        body = (Statement(f"y[{self.here()}] = {rng.randint(2, 9)}"),)
        begin, end = self.space(0)
        if rng.random() < 0.5:
            begin = (rng.randint(1, 2), *begin[1:])
        return Call("for", begin, end, body, (("y", name),))

    def places(self) -> Call:
        shift, size = self.rng.randint(1, 5), self.size
        body = (Statement(f"y[i] = (3 * i + {shift}) % {size}"),)
        return Call("for", (0,), (size,), body, (("y", _PLACES),))

    # ----------------------------------------------------------------- places

    def here(self) -> str:
        return "i" if self.rank == 1 else "i, j"

    def at(self, step: int) -> str:
        first = f"i {'-' if step < 0 else '+'} {abs(step)}" if step else "i"
        return (
            first
            if self.rank == 1
            else self.rng.choice((f"{first}, j", first.replace("i", "i, j")))
        )

    def behind(self) -> str:
        text = f"{self.size - 1} - i"
        return text if self.rank == 1 else f"{text}, j"

    def turned(self) -> str:
        return self.behind() if self.rank == 1 else "j, i"

    def space(self, rim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (rim,) * self.rank, (self.size - rim,) * self.rank
