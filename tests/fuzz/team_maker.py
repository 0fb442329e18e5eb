"""Random programs of teams: workunits as phases, between which all threads of a team meet.

Within a phase no thread touches what another one writes, so every order of the threads gives the
same; what a phase needs of an earlier one lies behind a barrier, unless threads would not notice.
All numbers are whole and small: sums have one value in whatever order they are added.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Phase:
    """Lines of a workunit's body."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class TeamCall:
    """A call. size: of teams, 0 for pk.AUTO, -1 for a RangePolicy, whose phases are loops."""

    phases: tuple[Phase, ...]
    size: int
    reduces: bool
    arrays: tuple[str, ...]

    def source(self, name: str) -> str:
        """The workunit."""
        first = "j: int" if self.size < 0 else "team: pk.TeamMember"
        acc = ["acc: pk.Acc[float]"] if self.reduces else []
        parameters = ", ".join([first, *acc, *self.arrays, "n", "m"])
        start = [] if self.size < 0 else ["j: int = team.league_rank()"]
        lines = start + [line for phase in self.phases for line in phase.lines]
        body = "\n".join("    " + line for line in lines or ["pass"])
        return f"@pk.workunit\ndef {name}({parameters}):\n{body}\n"


@dataclass(frozen=True)
class TeamProgram:
    """Calls over a league. columns: the length of rows; depth: that of their cells."""

    seed: int
    league: int
    columns: int
    depth: int
    single: frozenset[str]  # arrays of single precision
    temporary: frozenset[str]
    calls: tuple[TeamCall, ...]

    def source(self) -> str:
        """The module that defines the workunits."""
        units = [call.source(f"work{n}") for n, call in enumerate(self.calls)]
        return "import math\n\nimport pykokkos as pk\n\n\n" + "\n\n".join(units)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of an array: its first letter tells."""
        rows, cells = (self.league, self.columns), (self.league, self.columns, self.depth)
        return {"s": (self.league,), "a": rows, "d": cells, "x": (self.columns,)}[name[0]]


_ROWS, _CELLS, _SUMS = ("a0", "a1", "a2"), ("d0", "d1"), ("s0", "s1")
ARRAYS = (*_ROWS, *_CELLS, *_SUMS, "x0")


def random_teams(seed: int) -> TeamProgram:
    """The program of a seed: always the same one."""
    rng = random.Random(seed)
    usual = rng.choice((0, 0, 1, 2, 3, 4))
    sizes = [
        rng.choice((usual, usual, usual, -1, rng.randint(1, 4))) for _ in range(rng.randint(1, 5))
    ]
    kept = (*_ROWS, *_CELLS)
    return TeamProgram(
        seed,
        league=rng.randint(1, 5),
        columns=rng.randint(1, 9) if rng.random() < 0.8 else rng.randint(30, 150),
        depth=rng.randint(1, 5) if rng.random() < 0.8 else rng.randint(30, 40),
        single=frozenset(name for name in (*kept, *_SUMS) if rng.random() < 0.2),
        temporary=frozenset(name for name in (*_ROWS, *_SUMS) if rng.random() < 0.25),
        calls=tuple(_Maker(rng, size).call() for size in sizes),
    )


@dataclass
class _Maker:
    """Makes one call. `reads` and `writes` are those since the last barrier."""

    rng: random.Random
    size: int
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    numbers: list[str] = field(default_factory=list)  # locals, equal in all threads
    own: list[str] = field(default_factory=list)  # locals of which each thread has its own
    used: set[str] = field(default_factory=set)
    scratch: list[str] = field(default_factory=list)
    count: int = 0
    touched: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))

    def call(self) -> TeamCall:
        rng = self.rng
        reduces = rng.random() < 0.3
        phases = []
        if self.size >= 0 and rng.random() < 0.4:
            phases.append(self._declared())
        phases += [self._phase(0) for _ in range(rng.randint(1, 5))]
        if reduces:
            phases.append(self._accumulated())
        names = tuple(name for name in ARRAYS if name in self.used)
        return TeamCall(tuple(phases), self.size, reduces, names)

    # ------------------------------------------------------------------- phases

    def _phase(self, depth: int) -> Phase:
        """One phase, with a barrier before it where it needs one."""
        self.touched = (set(), set())
        rng = self.rng
        if self.size < 0:
            lines = rng.choice((self._loop, self._loop, self._loop_sum, self._row))()
            return Phase(tuple(lines))
        makers = [
            self._map, self._map, self._sum, self._store, self._vectors, self._vectors,
            self._sums_of_sums, self._box, self._strided, self._atomics, self._vector_alone,
            self._local, self._changed,
        ]  # fmt: skip
        if not depth:
            makers += [self._repeated, self._conditional, self._while, self._flat]
        reads, writes = self.reads, self.writes
        lines = rng.choice(makers)()
        read, written = self.touched
        clash = written & (reads | writes) or read & writes
        if clash or rng.random() < 0.1:
            lines = ["team.team_barrier()", *lines]
            self.reads, self.writes = set(), set()
        self.reads |= read
        self.writes |= written
        return Phase(tuple(lines))

    def _declared(self) -> Phase:
        """Scratch memory, which is zero."""
        lines = []
        for _ in range(self.rng.randint(1, 2)):
            name = f"w{self._next()}"
            lines.append(
                f"{name}: pk.ScratchView1D[float] = pk.ScratchView1D(team.team_scratch(0), n)"
            )
            self.scratch.append(name)
        return Phase(tuple(lines))

    def _flat(self) -> list[str]:
        """A small matrix in scratch memory, shared by a flat range; a sum over all of it."""
        rng, number = self.rng, self._next()
        rows, columns, name = rng.randint(1, 4), rng.randint(1, 5), f"w{number}"
        start = self._number(None)
        other = rng.choice(
            (
                f"{name}[k // {columns}][k % {columns}]",
                f"{name}[k % {rows}][k // {rows}]",
                f"{name}[k // {columns}][k // {columns} % {columns}]",
            )
        )
        self.numbers.append(f"t{number}")
        self.reads, self.writes = set(), set()  # there is a barrier
        return [
            f"{name}: pk.ScratchView2D[float] = "
            f"pk.ScratchView2D(team.team_scratch({rng.randrange(2)}), {rows}, {columns})",
            f"def g{number}(k: int):",
            f"    {name}[k // {columns}][k % {columns}] += k % {rng.randint(2, 9)} + {start}",
            self._for("TeamThreadRange", str(rows * columns), f"g{number}"),
            "team.team_barrier()",
            f"def f{number}(k: int, q{number}: pk.Acc[float]):",
            f"    q{number} += {other} * {rng.randint(1, 3)} - k % {rng.randint(2, 6)}",
            f"t{number}: float = "
            + self._reduce("TeamThreadRange", str(rows * columns), f"f{number}"),
        ]

    def _map(self) -> list[str]:
        name = f"f{self._next()}"
        body = self._guarded([self._element(self.own)], "i")
        return [f"def {name}(i: int):", *_deeper(body), self._for("TeamThreadRange", "n", name)]

    def _sum(self) -> list[str]:
        number = self._next()
        value = self._expression("i", None, self.own)
        body = self._guarded([f"q{number} += {value}"], "i")
        return self._total(number, "TeamThreadRange", body)

    def _store(self) -> list[str]:
        """A number of the team, by all threads or by one of them."""
        target = self.rng.choice(_SUMS)
        self._writes(target)
        way = self.rng.randrange(3)
        if way == 0:  # all threads store the same
            return [f"{target}[j] = {self._whole(self._number(None))}"]
        line = f"{target}[j] = {self._whole(self._number(target))}"
        if way == 1:
            return ["if team.team_rank() == 0:", "    " + line]
        name = f"f{self._next()}"
        return [f"def {name}():", "    " + line, f"pk.single(pk.PerTeam(team), {name})"]

    def _vectors(self) -> list[str]:
        """Rows of cells, each by the lanes of a thread."""
        rng, number = self.rng, self._next()
        cells, other = rng.sample(_CELLS, 2)
        fills, target = rng.random() < 0.6, rng.choice(_ROWS)
        adds = not fills or rng.random() < 0.7
        if adds:
            self._writes(target)
        body: list[str] = []
        if fills:
            self._writes(cells)
            value = self._whole(self._inner(other))
            body += [f"def g{number}(k: int):", f"    {cells}[j][i][k] = {value}"]
            body.append(self._for("ThreadVectorRange", "m", f"g{number}"))
        else:
            self._reads(cells)
        if adds:
            place = rng.choice(("k", "m - 1 - k"))
            value = self._whole(f"v{number} + " + self._read("i", None))
            body += [
                f"def h{number}(k: int, q{number}: pk.Acc[float]):",
                f"    q{number} += {cells}[j][i][{place}] * {rng.randint(1, 3)}",
                f"v{number}: float = {self._reduce('ThreadVectorRange', 'm', f'h{number}')}",
            ]
            store = f"{target}[j][i] = {value}"
            if rng.random() < 0.4:
                single = f"pk.single(pk.PerThread(team), o{number})"
                body += [f"def o{number}():", "    " + store, single]
            else:
                body.append(store)
        last = self._for("TeamThreadRange", "n", f"f{number}")
        return [f"def f{number}(i: int):", *_deeper(body), last]

    def _sums_of_sums(self) -> list[str]:
        number, cells = self._next(), self.rng.choice(_CELLS)
        self._reads(cells)
        guard = self._guarded([f"q{number} += p{number} * {self.rng.randint(1, 2)}"], "i")
        body = [
            f"def g{number}(k: int, r{number}: pk.Acc[float]):",
            f"    r{number} += {cells}[j][i][k]",
            f"p{number}: float = {self._reduce('ThreadVectorRange', 'm', f'g{number}')}",
            *guard,
        ]
        return self._total(number, "TeamThreadRange", body)

    def _box(self) -> list[str]:
        number = self._next()
        cells, other = self.rng.sample(_CELLS, 2)
        if self.rng.random() < 0.5:
            self._reads(cells)
            self.numbers.append(f"t{number}")
            reduced = self._reduce("TeamThreadMDRange", "n, m", f"f{number}")
            return [
                f"def f{number}(i: int, k: int, q{number}: pk.Acc[float]):",
                f"    q{number} += {cells}[j][i][m - 1 - k]",
                f"t{number}: float = {reduced}",
            ]
        self._writes(cells)
        return [
            f"def f{number}(i: int, k: int):",
            f"    {cells}[j][i][k] = {self._whole(self._inner(other))}",
            self._for("TeamThreadMDRange", "n, m", f"f{number}"),
        ]

    def _strided(self) -> list[str]:
        """Elements dealt to the threads one by one, without a nested pattern."""
        element = self._element(self.own)
        return ["for i in range(team.team_rank(), n, team.team_size()):", "    " + element]

    def _atomics(self) -> list[str]:
        number, target = self._next(), self.rng.choice(_SUMS)
        self._writes(target)
        place = self.rng.choice((None, "a"))
        rank = self.rng.choice((*self.own, "(1 + team.team_rank())"))
        value = f"{rank} * {self.rng.randint(1, 3)}.0"
        if place is None:  # once by each thread
            return [f"pk.atomic_add({target}, [j], {value})"]
        return [
            f"def f{number}(i: int):",
            f"    pk.atomic_add({target}, [j], {self._expression('i', None)})",
            self._for("TeamThreadRange", "n", f"f{number}"),
        ]

    def _vector_alone(self) -> list[str]:
        """A sum that each thread has for itself."""
        number = self._next()
        body = [f"q{number} += {self._expression('i', None)}"]
        return self._total(number, "ThreadVectorRange", body)

    def _local(self) -> list[str]:
        """A local, of the team or of each thread."""
        name = f"u{self._next()}"
        value = self._number(None)
        if self.rng.random() < 0.5:
            self.own.append(name)
            return [f"{name}: float = team.team_rank() * 2.0 + {value}"]
        self.numbers.append(name)
        return [f"{name}: float = {value}"]

    def _changed(self) -> list[str]:
        """Another value for a local."""
        names = [name for name in (*self.numbers, *self.own) if name.startswith("u")]
        if not names:
            return self._local()
        name, value = self.rng.choice(names), self._number(None)
        if name in self.own and self.rng.random() < 0.5:
            value = self._read("team.team_rank() % n", None)
        return [f"{name} = {self._whole(f'{name} * {self.rng.randint(1, 2)} + {value}')}"]

    def _while(self) -> list[str]:
        """A loop whose condition all threads see alike."""
        name, test = f"c{self._next()}", self._number(None)
        head = f"while {name} < {self.rng.randint(1, 3)}:"
        if self.rng.random() < 0.3:
            head = f"while {name} < 2 and {test} > 0:"
        nested = [*self._nested(), f"    {name} += 1", "    team.team_barrier()"]
        return [f"{name}: int = 0", head, *nested, "team.team_barrier()"]

    def _repeated(self) -> list[str]:
        return [f"for r{self._next()} in range({self.rng.randint(1, 3)}):", *self._nested()]

    def _conditional(self) -> list[str]:
        value = self._number(None)
        nested = [f"if {value} > {self.rng.randint(-2, 6)}:", *self._nested()]
        return [*nested, "team.team_barrier()"]  # those inside may not be reached

    def _nested(self) -> list[str]:
        """Phases under a condition or in a loop: barriers at both ends, names of their own."""
        known, own, touched = len(self.numbers), len(self.own), self.touched
        self.reads, self.writes = set(), set()
        lines = ["team.team_barrier()"]
        for _ in range(self.rng.randint(1, 2)):
            lines += self._phase(1).lines
        del self.numbers[known:], self.own[own:]
        self.reads, self.writes = set(), set()
        self.touched = touched
        return _deeper([*lines, "team.team_barrier()"])

    def _accumulated(self) -> Phase:
        value = self._number(None)
        if self.size < 0:
            return Phase((f"acc += {value}",))
        way = self.rng.randrange(3)
        barrier = "team.team_barrier()"
        if way == 0:
            return Phase((barrier, f"acc += {value}"))  # by every thread
        if way == 1:
            return Phase((barrier, "if team.team_rank() == 0:", f"    acc += {value}"))
        lines = ("def last():", "    nonlocal acc", f"    acc += {value}")
        return Phase((barrier, *lines, "pk.single(pk.PerTeam(team), last)"))

    # ------------------------------------------------------------------- loops of a range

    def _loop(self) -> list[str]:
        body = self._guarded([self._element()], "i")
        return ["for i in range(n):", *_deeper(body)]

    def _loop_sum(self) -> list[str]:
        number = self._next()
        value = self._expression("i", None)
        self.numbers.append(f"t{number}")
        return [f"t{number}: float = 0.0", "for i in range(n):", f"    t{number} += {value}"]

    def _row(self) -> list[str]:
        target = self.rng.choice(_SUMS)
        self._writes(target)
        return [f"{target}[j] = {self._whole(self._number(target))}"]

    # ------------------------------------------------------------------- expressions

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _element(self, own: Sequence[str] = ()) -> str:
        """A store to the element [i] of a row."""
        target = self._target()
        value = self._expression("i", target, own)
        return f"{self._cell(target, 'i')} = {self._whole(value)}"

    def _total(self, number: int, kind: str, body: list[str]) -> list[str]:
        """A nested sum over a row, whose value all threads have from here on."""
        self.numbers.append(f"t{number}")
        return [
            f"def f{number}(i: int, q{number}: pk.Acc[float]):",
            *_deeper(body),
            f"t{number}: float = {self._reduce(kind, 'n', f'f{number}')}",
        ]

    def _for(self, kind: str, extent: str, name: str) -> str:
        return f"pk.parallel_for(pk.{kind}(team, {extent}), {name})"

    def _reduce(self, kind: str, extent: str, name: str) -> str:
        return f"pk.parallel_reduce(pk.{kind}(team, {extent}), {name})"

    def _reads(self, name: str) -> None:
        self.touched[0].add(name)
        self.used.add(name)

    def _writes(self, name: str) -> None:
        self.touched[1].add(name)
        self.used.add(name)

    def _target(self) -> str:
        found = self.rng.choice((*_ROWS, *_ROWS, *self.scratch, *self.scratch))
        self._writes(found)
        return found

    def _cell(self, name: str, index: str) -> str:
        return f"{name}[{index}]" if name[0] in "wx" else f"{name}[j][{index}]"

    def _read(self, index: str, target: str | None) -> str:
        """An element of a row: of the target only the one that this iteration writes."""
        names = [
            n for n in (*_ROWS, *self.scratch, "x0") if n not in self.touched[1] or n == target
        ]
        name = self.rng.choice(names)
        if name == target:
            return self._cell(name, index)
        self._reads(name)
        return self._cell(name, self.rng.choice((index, index, "n - 1 - " + index, "0")))

    def _expression(self, index: str, target: str | None, own: Sequence[str] = ()) -> str:
        terms = [self._read(index, target)]
        more = [self._read(index, target), self._number(None), index, *own[-2:]]
        terms += self.rng.sample(more, self.rng.randint(0, 2))
        factor = self.rng.choice(("", "", " * 2", " * -1"))
        return self.rng.choice((" + ", " - ")).join(terms) + factor

    def _inner(self, cells: str) -> str:
        """A value for the cell [j][i][k]."""
        self._reads(cells)
        place = self.rng.choice(("k", "m - 1 - k", "0"))
        other = self.rng.choice((self._read("i", None), "k", "i", self._number(None)))
        return f"{cells}[j][i][{place}] + {other}"

    def _number(self, target: str | None) -> str:
        """What is the same in all threads of a team."""
        sums = [name for name in _SUMS if name not in self.touched[1] or name == target]
        ways = ["j", str(self.rng.randint(-3, 5)), *self.numbers, *self.numbers]
        if sums:
            name = self.rng.choice(sums)
            ways += [f"{name}[j]", f"{name}[j]"]
        found = self.rng.choice(ways)
        if found.startswith("s"):
            self._reads(found[:2])
        return found

    def _whole(self, value: str) -> str:
        return f"math.fmod({value}, 64.0)"

    def _guarded(self, lines: list[str], index: str) -> list[str]:
        """The lines, perhaps under a condition."""
        if self.rng.random() < 0.7:
            return lines
        value = self.rng.choice((f"{index} % 2", self._read(index, None), self._number(None)))
        return [
            f"if {value} {self.rng.choice(('>', '<='))} {self.rng.randint(-1, 2)}:",
            *_deeper(lines),
        ]


def _deeper(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
