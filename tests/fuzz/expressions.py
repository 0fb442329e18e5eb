"""Random element texts and expressions of one workunit, and what keeps them inside their views."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fuzz.cells import Cells
from tests.fuzz.cxx import WORDS
from tests.fuzz.program import Base, Expr

INT_MODULUS = 8  # integer arrays hold 0 .. 7, so that each can index any view
_FLOATS = ("0.5", "1.0", "2.0", "3.0", "0.25", "-1.5", "-1.0")


_KINDS = {"f": "float", "i": "int", "b": "bool", "c": "complex"}
_WORD_LEAVES = ("({} & 7)", "({} & 7)", "({} % 8 & 7)", "({} >> 3 & 7)")


@dataclass
class View:
    """A view parameter while its workunit is being made."""

    name: str
    base: Base
    text: str
    numbers: Any  # its cells
    read_only: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.numbers.shape
        return shape

    @property
    def kind(self) -> str:
        """float, int, bool, complex, or word: an integer of any size and sign."""
        dtype = self.base.dtype
        return "word" if dtype in WORDS else _KINDS[dtype[0]]


@dataclass
class Scope:
    """What statements may use: the interval of the first index, and declared locals.

    steps: locals of few values that are added to the first index, and the most that gives.
    chosen: locals that are indices, and the most that each may be.
    """

    low: int
    high: int  # inclusive
    floats: list[str] = field(default_factory=list)
    ints: list[str] = field(default_factory=list)
    steps: list[tuple[str, int]] = field(default_factory=list)
    chosen: list[tuple[str, int]] = field(default_factory=list)

    def inner(self, low: int | None = None, high: int | None = None) -> Scope:
        return replace(
            self,
            low=self.low if low is None else low,
            high=self.high if high is None else high,
            floats=list(self.floats),
            ints=list(self.ints),
            steps=list(self.steps),
            chosen=list(self.chosen),
        )


@dataclass
class Place:
    """An element text, and the scope for which it was made."""

    view: View
    index: str
    scope: Scope

    def text(self, scope: Scope) -> str | None:
        """The text, if it is inside the view and its names are visible in this scope too."""
        narrower = scope.low >= self.scope.low and scope.high <= self.scope.high
        chosen = (name for name, _ in self.scope.chosen)
        local = {*self.scope.ints, *chosen} & set(re.findall(r"\w+", self.index))
        return self.view.name + self.index if narrower and not local else None


class ExpressionMaker:
    """Expressions over the views of a workunit.

    mixed: values must stay exact in every type. results: the earlier steps whose result may be an
    argument, and their types. `begin` and `end` are the iteration space.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]

    def __init__(self, rng: random.Random, mixed: bool, results: dict[int, str]) -> None:
        self.rng, self.mixed, self.results = rng, mixed, results
        self.views: list[View] = []  # that may still be used
        self.used: set[str] = set()  # bases
        self.places: dict[str, Place] = {}  # by base: where it is read and written
        self.cells = Cells()
        self.scalars: dict[str, str] = {}

    @property
    def rank(self) -> int:
        return len(self.end)

    def whole(self, value: Expr) -> Expr:
        """A whole number of small magnitude: its sums are exact in any order."""
        return ("math.fmod(pk.floor({}), 64.0)", value)

    # ----------------------------------------------------------------- indices

    def index(self, view: View, scope: Scope, injective: bool) -> str | None:
        """An index expression that stays inside the view, or None."""
        if len(view.shape) == 1:
            forms = self.index_forms(view.shape[0], scope, injective)
            return f"[{self.rng.choice(forms)}]" if forms else None
        if not all(view.shape):
            return None
        first = self.index_forms(view.shape[0], scope, injective)
        second = self.second_forms(view.shape[1], scope, injective)
        if not first or not second:
            return None
        a, b = self.rng.choice(first), self.rng.choice(second)
        if self.rank == 2 and self.rng.random() < 0.2 and max(self.end) <= min(view.shape):
            a, b = "j", "i"
        return f"[{a}][{b}]" if self.rng.random() < 0.5 else f"[{a}, {b}]"

    def index_forms(self, extent: int, scope: Scope, injective: bool) -> list[str]:
        rng, low, high = self.rng, scope.low, scope.high
        forms: list[str] = []
        if not extent:
            return forms
        if high < extent:
            forms += ["i"] * 6
        for k in (1, 2, rng.randint(3, 6)):
            if high + k < extent:
                forms.append(f"i + {k}")
            if low - k >= 0 and high - k < extent:
                forms.append(f"i - {k}")
        if low >= 0 and high < extent:
            forms += [f"{low + high} - i", f"{extent - 1} - i"]
        if 2 * high + 1 < extent:
            forms += ["2 * i", "2 * i + 1"]
        if rng.random() < 0.15 and high + 1 < extent:
            forms += [f"i + {self.scalar(rng.randint(0, extent - 1 - high))}"] * 2
        if injective:
            return forms
        forms += [f"i + {name}" for name, most in scope.steps[-1:] if most < extent] * 8
        forms += [name for name, most in scope.chosen[-1:] if most < extent] * 8
        if high // 2 < extent:
            forms += ["i // 2", "i % 4"]
        forms += [str(rng.randrange(extent)), f"(3 * i) % {extent}"]
        if extent >= INT_MODULUS:
            indirect = self.unknown(extent, scope) if rng.random() < 0.4 else None
            forms += [indirect] * 6 if indirect else []
            forms += scope.ints[-1:]
        return forms

    def second_forms(self, extent: int, scope: Scope, injective: bool) -> list[str]:
        if self.rank == 2:
            return self.index_forms_j(extent, injective)
        return [str(self.rng.randrange(extent))] + ([] if injective else ["i % 2"])

    def index_forms_j(self, extent: int, injective: bool) -> list[str]:
        low, high = self.begin[1], self.end[1] - 1
        forms = ["j"] * 4 if high < extent else []
        if low:
            forms.append("j - 1")
        if high + 1 < extent:
            forms.append("j + 1")
        if high < extent:
            forms.append(f"{high} - j")
        return forms if injective else [*forms, str(self.rng.randrange(extent))]

    def unknown(self, extent: int, scope: Scope) -> str | None:
        """An index that only running tells: an element of an integer array, or a result."""
        whole = [step for step, dtype in self.results.items() if dtype == "int"]
        if whole and self.rng.random() < 0.5:
            name = f"r{len(self.scalars)}"
            self.scalars[name] = f"result[{self.rng.choice(whole)}]"
            return f"({name} + i) % {extent}"
        for view in self.views:
            plain = len(view.shape) == 1 and scope.high < view.shape[0]
            whole_view = view.kind in ("int", "word")
            if whole_view and plain and self.admitted(view, "[i]", scope, False):
                return f"{view.name}[i]" if view.kind == "int" else f"({view.name}[i] & 7)"
        return None

    def scalar(self, value: float) -> str:
        name = f"s{len(self.scalars)}"
        self.scalars[name] = repr(value)
        return name

    # ----------------------------------------------------------------- accesses

    def admitted(self, view: View, index: str, scope: Scope, write: bool) -> bool:
        """Whether an access stays inside its view and races with none that was made before."""
        js = range(self.begin[1], self.end[1]) if self.rank == 2 else (0,)
        points = [
            (1000 * i + j, i, j) for i in range(scope.low, scope.high + 1) for j in js
        ]  # fmt: skip
        touches = self.cells.touches(view.numbers, index, points, self.scalars)
        if touches is None or (write and view.read_only):
            return False
        admitted = self.cells.admit(view.base.name, touches, write)
        if admitted:
            self.used.add(view.base.name)
        return admitted

    def target(self, scope: Scope) -> tuple[View, str] | None:
        """A view and element text to write."""
        for _ in range(3):
            found = self._place(self.views, scope, True)
            if found:
                return found
        return None

    def read(self, scope: Scope, kind: str) -> str | None:
        views = [v for v in self.views if v.kind == kind]
        for _ in range(2):
            found = self._place(views, scope, False)
            if found:
                return found[1]
        return None

    def _place(self, views: list[View], scope: Scope, write: bool) -> tuple[View, str] | None:
        """A new access of one of the views, often where its base was accessed before."""
        rng = self.rng
        if not views:
            return None
        view = rng.choice(views)
        known = self.places.get(view.base.name)
        if known and known.view.kind == view.kind and rng.random() < 0.6:
            text = known.text(scope)
            if text and self.admitted(known.view, known.index, scope, write):
                return known.view, text
        index = self.index(view, scope, write)
        if index is None or not self.admitted(view, index, scope, write):
            return None
        if write or rng.random() < 0.6:  # later accesses of this base will go to the same place
            self.places.setdefault(view.base.name, Place(view, index, scope))
        return view, view.name + index

    # ----------------------------------------------------------------- expressions

    def floating(self, scope: Scope, depth: int) -> Expr:
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
        return (rng.choice(("math.sqrt(math.fabs({}))", "(math.fabs({}) ** 0.5)")), a)

    def floating_leaf(self, scope: Scope) -> Expr:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.6:
            text = self.read(scope, "float")
            if text:
                return (text,)
        if kind < 0.7 and scope.floats:
            return (rng.choice(scope.floats),)
        if kind < 0.75:
            word = self.word(scope, "({} % 64)")
            return (word or rng.choice((*"i", *scope.ints)),)
        if kind < 0.8 and self.results and not self.mixed:
            name = f"r{len(self.scalars)}"
            self.scalars[name] = f"result[{rng.choice(list(self.results))}]"
            return (name,)
        if kind < 0.87:
            return (self.scalar(float(rng.choice(_FLOATS))),)
        return (rng.choice(_FLOATS),)

    def integer(self, scope: Scope, depth: int) -> Expr:
        """A small integer that is never negative."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            text = self.read(scope, "int") if rng.random() < 0.5 else None
            text = text or self.word(scope, *_WORD_LEAVES)
            return (text or rng.choice(("i", str(rng.randint(0, 5)), *scope.ints)),)
        a = self.integer(scope, depth - 1)
        kind = rng.random()
        if kind < 0.4:
            return ("({} + {})", a, self.integer(scope, depth - 1))
        if kind < 0.6:
            return (f"({{}} * {rng.randint(2, 4)})", a)
        return (rng.choice(("({} // 2)", "({} // 3)", "({} % 3)", "({} % 5)")), a)

    def word(self, scope: Scope, *forms: str) -> str | None:
        """One of the forms of an integer of any size, where there is one to read."""
        text = self.read(scope, "word")
        return self.rng.choice(forms).format(text) if text else None

    def wrapping(self, scope: Scope) -> Expr:
        """An integer of any size and sign, which a store makes fit."""
        rng = self.rng
        text = self.read(scope, "word") if rng.random() < 0.6 else None
        value: Expr = (text,) if text else self.integer(scope, 1)
        form = rng.choice(("({} * {})", "({} - {})", "({} + {})", "({} ^ {})", "(({}) | (-{}))"))
        value = (form, value, (rng.choice(("1", "3", "100", "200", "300", "70000")),))
        return ("({} - {})", value, self.integer(scope, 1)) if rng.random() < 0.3 else value

    def complex(self, scope: Scope) -> Expr:
        """Sums of complex numbers: exact, and the same in every order of rounding."""
        text = self.read(scope, "complex")
        if text is None:
            return (self.rng.choice(_FLOATS),)
        other = self.read(scope, "complex") if self.rng.random() < 0.6 else None
        if other:
            return (f"({text} {self.rng.choice('+-')} {other})",)
        return (f"(-{text})" if self.rng.random() < 0.4 else text,)

    def part_of_index(self) -> str:
        """A comparison of a quotient or remainder of the index, each of any sign.

        Only for programs with words: the oracle of others divides as Python does.
        """
        rng = self.rng
        index = rng.choice(("i", "i", "i", "(i + 1)", "(i - 3)", "(5 - i)"))
        by = rng.choice((-7, -3, -2, 2, 3, 6))
        divisor = self.scalar(by) if rng.random() < 0.5 else str(by)
        comparison = rng.choice(("<", "<=", ">", ">=", "==", "!="))
        return f"{index} {rng.choice(('//', '%'))} {divisor} {comparison} {rng.randint(-3, 3)}"

    def condition(self, scope: Scope) -> Expr:
        rng, kind = self.rng, self.rng.random()
        flag = self.read(scope, "bool") if rng.random() < 0.4 else None
        if flag:
            return (flag,)
        if kind < 0.35:
            return (f"i {rng.choice(('<', '>=', '==', '!='))} {rng.randint(0, self.end[0])}",)
        word = self.word(scope, "{}") if kind < 0.5 else None
        if word and rng.random() < 0.4:
            return (self.part_of_index(),)
        if word:
            comparison = rng.choice(("<", ">=", "==", "!="))
            return (f"{word} {comparison} {{}}", self.wrapping(scope))
        if kind < 0.5:
            return (f"i % {rng.randint(2, 3)} == 0",)
        if kind < 0.75:
            comparison = rng.choice(("<", ">", "<=", ">="))
            return (f"{{}} {comparison} {{}}", self.floating(scope, 1), self.floating(scope, 0))
        if kind < 0.85:
            return ("not ({})", self.condition(scope))
        word = rng.choice(("and", "or"))
        return (f"(({{}}) {word} ({{}}))", self.condition(scope), self.condition(scope))
