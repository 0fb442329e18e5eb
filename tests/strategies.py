"""Random PyKokkos programs: several calls over shared, overlapping arrays.

Python's and C++'s arithmetic agree on everything generated here:

* "double" programs have float64 arrays and any arithmetic;
* "mixed" programs have float32, integer, bool and complex arrays too, and all values are small
  dyadic numbers, so every operation is exact in every type;
* integers are never negative, and sums that different iterations add to are of integers;
* programs with unsigned integers, or ones of 8 and 16 bits, have an oracle that computes by C++'s
  rules: what these hold is of any size and sign, and wraps.

Whether two iterations collide is not decided here: the harness finds races by running, and drops
the program. Generation only makes them rare.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.fuzz.boundary import BoundaryMaker
from tests.fuzz.chains import ChainMaker
from tests.fuzz.columns import ColumnMaker
from tests.fuzz.components import ComponentMaker
from tests.fuzz.cxx import WORDS
from tests.fuzz.host import random_host, random_resize
from tests.fuzz.inferred import inferred
from tests.fuzz.loops import LoopMaker
from tests.fuzz.moving import MovingMaker
from tests.fuzz.pairs import PairMaker
from tests.fuzz.pipelines import PipelineMaker
from tests.fuzz.prefixes import PrefixMaker
from tests.fuzz.producers import ProducerMaker
from tests.fuzz.program import Base, Call, Host, Program, Step
from tests.fuzz.reads import ReadsMaker
from tests.fuzz.rows import RowMaker
from tests.fuzz.statements import CallMaker
from tests.fuzz.sums import SumMaker
from tests.fuzz.tables import TableMaker
from tests.fuzz.tiles import TileMaker
from tests.fuzz.words import WordMaker

_LONG = 0.06  # of all programs have enough iterations for several vectors, and blocks
_WORDS = 4  # of the mixed programs, one in so many times eleven has words among its arrays
_MIXED = ("float64", "float32", "float32", "int32", "int64", "bool", "complex64", "complex128")
_MIXED_WORDS = (*_MIXED, *WORDS, *WORDS)


def random_program(seed: int, focus: str | None = None) -> Program:
    """The program of a seed: always the same one. focus: calls of that maker only (of FOCUSES)."""
    maker = _ProgramMaker(random.Random(seed), seed // 11 % _WORDS == 0)
    return inferred(maker.program(seed) if focus is None else maker.focused(seed, focus))


class _ProgramMaker:
    def __init__(self, rng: random.Random, words: bool) -> None:
        self.rng, self.words = rng, words
        self.mixed = rng.random() < 0.35
        self.rank = 2 if rng.random() < 0.25 else 1
        self.size = rng.randint(7, 10) if self.rank == 1 else rng.randint(3, 5)
        if self.rank == 1 and rng.random() < _LONG:
            self.size = rng.randint(40, 140)
        self.spare = rng.randint(0, 6)
        self.results: dict[int, str] = {}  # step -> "int" or "float"
        self.steps: list[Step] = []

    def program(self, seed: int) -> Program:
        rng = self.rng
        bases = tuple(self.base(name) for name in "ABCD"[: rng.choice((2, 3, 3, 4))])
        integers = Base("Q", (16,), rng.choice(("int32", "int64")))
        original = (*bases, integers)
        bases = original
        chain = rng.random() < 0.55
        for _ in range(rng.randint(0, 2) if chain else rng.choice((2, 2, 2, 3, 3, 4, 5))):
            self.add_call(bases)
            if rng.random() < 0.15:
                self.repeat(bases)
            if rng.random() < 0.15:
                self.steps.append(random_host(rng, bases, self.results))
            if rng.random() < 0.02:
                bases = self.resize(bases)
        if chain:
            self.add_chain(bases)
        if rng.random() < 0.25:
            original = self.add_pipeline(original)
        elif self.rank == 1 and rng.random() < 0.2:
            original = self.add_made(original, "rows")
        elif self.rank == 1 and rng.random() < 0.4:
            original = self.add_made(original, "prefixes")
        for kind, share in _SHARES:
            if rng.random() < share:
                original = self.add_made(original, kind)
        if len(self.steps) < 2:
            self.add_call(bases)
            self.add_call(bases)
        self.add_mode()
        return Program(original, tuple(self.steps), seed)

    def focused(self, seed: int, focus: str) -> Program:
        bases = self.add_made((Base("Q", (16,), "int32"),), focus)
        self.add_mode()
        return Program(bases, tuple(self.steps), seed)

    def base(self, name: str) -> Base:
        rng = self.rng
        dtype = "float64"
        if self.mixed:
            dtype = rng.choice(_MIXED_WORDS if self.words else _MIXED)
        extent = self.size + (self.spare if rng.random() < 0.7 else rng.randint(0, 8))
        shape = (extent,) * self.rank
        if self.rank == 1 and rng.random() < 0.3:
            shape = (2 * extent,)
        return Base(name, shape, dtype, rng.random() < 0.3)

    # ----------------------------------------------------------------- steps

    def add(self, call: Step) -> None:
        if isinstance(call, Call) and call.accumulator in ("int", "pk.double"):
            self.results[len(self.steps)] = "int" if call.accumulator == "int" else "float"
        self.steps.append(call)

    def add_call(self, bases: tuple[Base, ...]) -> None:
        maker = CallMaker(self.rng, self.mixed, self.size, bases, self.results)
        self.add(maker.call(self.rank if self.rng.random() < 0.9 else 1))

    def repeat(self, bases: tuple[Base, ...]) -> None:
        """The last call again, with two bases exchanged or other numbers: time steps of a loop."""
        rng = self.rng
        last = self.steps[-1]
        assert isinstance(last, Call)
        alike = [b for b in bases if (b.shape, b.dtype) == (bases[0].shape, bases[0].dtype)]
        for _ in range(rng.randint(1, 2)):
            if len(alike) > 1 and rng.random() < 0.6:
                a, b = (base.name for base in rng.sample(alike, 2))
                swap = str.maketrans(a + b, b + a)
                views = tuple((name, text.translate(swap)) for name, text in last.views)
                last = replace(last, views=views)
            scalars = [
                (name, str(int(text) - 1) if text.isdigit() and int(text) else text)
                for name, text in last.scalars
            ]
            last = replace(last, scalars=tuple(scalars))
            self.add(last)

    def add_chain(self, bases: tuple[Base, ...]) -> None:
        """A stencil chain over bases of one shape, somewhere in the program's second half."""
        rng = self.rng
        floats = [b for b in bases[:-1] if b.dtype.startswith("float")]
        groups = [[b for b in floats if b.shape == first.shape] for first in floats]
        group = max(groups, key=len, default=[])
        if len(group) < 2:
            return
        rng.shuffle(group)
        count = rng.choice((2, 2, len(group)))
        for call in ChainMaker(rng, self.mixed, tuple(group[:count])).calls():
            self.add(call)

    def add_pipeline(self, bases: tuple[Base, ...]) -> tuple[Base, ...]:
        """Stages over temporaries of their own; returns all bases."""
        floats = [b for b in bases[:-1] if b.dtype.startswith("float") and not b.temporary]
        if not floats or any(
            isinstance(step, Host) and "resize" in step.text for step in self.steps
        ):
            return bases
        source, sink = self.rng.choice(floats), self.rng.choice(floats)
        maker = PipelineMaker(self.rng, self.mixed, source, sink)
        for call in maker.calls():
            self.add(call)
        return (*bases[:-1], *maker.bases, bases[-1])

    def add_made(self, bases: tuple[Base, ...], kind: str) -> tuple[Base, ...]:
        """The calls of a maker over bases of its own; returns all bases."""
        maker = _MAKERS[kind](self)
        if {base.name for base in maker.bases} & {base.name for base in bases}:
            return bases
        for call in maker.calls():
            self.add(call)
        return (*bases[:-1], *maker.bases, bases[-1])

    def resize(self, bases: tuple[Base, ...]) -> tuple[Base, ...]:
        kept = [n for n, base in enumerate(bases[:-1]) if not base.temporary]
        if not kept:
            return bases
        place = self.rng.choice(kept)
        step, shape = random_resize(self.rng, bases[place], self.size)
        self.steps.append(step)
        changed = replace(bases[place], shape=shape)
        return (*bases[:place], changed, *bases[place + 1 :])

    def add_mode(self) -> None:
        """Sometimes put a few steps into a block of their own."""
        rng = self.rng
        if rng.random() < 0.06:
            mode = rng.choice(("fusing", "unfused"))
            start = rng.randrange(len(self.steps))
            for n in range(start, min(start + rng.randint(1, 3), len(self.steps))):
                step = self.steps[n]
                if isinstance(step, Call):
                    self.steps[n] = replace(step, mode=mode)


_Maker = (
    BoundaryMaker
    | RowMaker
    | PrefixMaker
    | SumMaker
    | LoopMaker
    | TableMaker
    | TileMaker
    | PairMaker
    | ColumnMaker
    | ComponentMaker
    | ProducerMaker
    | ReadsMaker
    | WordMaker
    | MovingMaker
)
_MAKERS: dict[str, Callable[[_ProgramMaker], _Maker]] = {
    "rows": lambda program: RowMaker(program.rng, program.size),
    "prefixes": lambda program: PrefixMaker(program.rng, len(program.steps)),
    "sums": lambda program: SumMaker(program.rng),
    "loops": lambda program: LoopMaker(program.rng),
    "columns": lambda program: ColumnMaker(program.rng),
    "components": lambda program: ComponentMaker(program.rng),
    "pairs": lambda program: PairMaker(program.rng),
    "tiles": lambda program: TileMaker(program.rng, program.size),
    "tables": lambda program: TableMaker(program.rng, len(program.steps)),
    "boundary": lambda program: BoundaryMaker(program.rng),
    "recompute": lambda program: ProducerMaker(program.rng, program.size),
    "reads": lambda program: ReadsMaker(program.rng, len(program.steps)),
    "words": lambda program: WordMaker(program.rng),
    "moving": lambda program: MovingMaker(program.rng),
}
_SHARES = (
    ("sums", 0.25),
    ("loops", 0.15),
    ("columns", 0.05),
    ("tables", 0.15),
    ("boundary", 0.1),
    ("recompute", 0.15),
    ("reads", 0.1),
    ("words", 0.15),
    ("tiles", 0.1),
    ("pairs", 0.05),
    ("components", 0.05),
)
"""Of all programs, those that have steps of a kind."""

FOCUSES = tuple(_MAKERS)
