"""Run all contestants of a program in turns, each in its own process."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from experiments.peers import program
from experiments.peers.contestants import CONTESTANTS, Copy, DeviceCopy
from pyfuser.compare import serve
from pyfuser.compare.peer import Conversation, PeerError
from pyfuser.compare.summary import speedup

WARM_UPS = 2
CHECK_RUNS = 2
SETTLE = 0.1  # seconds between two runs
ROOT = Path(__file__).parents[2]
EVEN = 0.05  # a ratio within this of 1 is noise


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure: see `python -m experiments.peers --help`.

    space: None for the host. check_size: at which results are checked; None: the size measured.
    """

    programs: tuple[str, ...]
    peers: tuple[str, ...]
    size: str
    repeat: int
    threads: int
    space: str | None = None
    check_size: str | None = None


@dataclass(slots=True)
class Column:
    """One contestant's times, in seconds; `first` includes building and compiling.

    `error` says why there are none, `check` what is wrong with the results (None: nothing).
    """

    first: float = 0.0
    times: list[float] = field(default_factory=list)
    check: str | None = None
    error: str | None = None


@dataclass(slots=True)
class Result:
    """A program's comparison. `floor_bytes` is what a run must move, at `copy`'s bandwidth.

    `copy_bytes` is what a copy moves; `device` the GPU, if it is one.
    """

    name: str
    size: int
    floor_bytes: int
    copy: Column
    columns: dict[str, Column]
    copy_bytes: int = Copy.BYTES
    device: str | None = None

    @property
    def floor(self) -> float:
        """Seconds that moving the necessary bytes takes; 0 if there are none to speak of."""
        return self.floor_bytes / self.copy_bytes * median(self.copy.times)

    def ahead(self, name: str) -> float:
        """How much longer than our fused run a contestant takes: median over rounds."""
        return speedup(self.columns[name].times, self.columns["fused"].times)

    def best_peer(self) -> str | None:
        """The fastest peer whose results are right and whose arithmetic keeps the rules."""
        fair = [
            name
            for name, column in self.columns.items()
            if name in CONTESTANTS and not CONTESTANTS[name].fastmath
            if column.error is None and column.check is None
        ]
        return min(fair, key=self.ahead, default=None)


@contextmanager
def processes(
    names: Sequence[str], threads: int, space: str | None
) -> Iterator[dict[str, Conversation]]:
    """A process for each contestant, with an empty cache of kernels, for as long as needed."""
    count = str(threads)
    variables = ("OMP", "NUMBA", "NUMEXPR", "OPENBLAS", "MKL")
    with ExitStack() as stack:
        cache = stack.enter_context(tempfile.TemporaryDirectory())
        environment = {
            **os.environ,
            **{f"{variable}_NUM_THREADS": count for variable in variables},
            "PYFUSER_THREADS": count,
            "PYFUSER_CACHE_DIR": cache,
        }
        made = {}
        for name in names:
            command = [sys.executable, "-m", "experiments.peers.serve", name, count]
            command += [] if space is None else [space]
            made[name] = Conversation(command, cwd=ROOT, env=environment)
            stack.callback(made[name].close)
        yield made


def steps(options: Options) -> int:
    """How often `measure` calls `advance`."""
    return len(options.programs) * (WARM_UPS + options.repeat)


def measure(options: Options, advance: Callable[[str], None]) -> Iterator[Result]:
    """Measure program after program; `advance(what)` is called after each round of runs."""
    for name in options.programs:
        module, size = program.load(name), serve.size_of(program.kernel(name), options.size)
        columns = {contestant: Column() for contestant in ("fused", "unfused", *options.peers)}
        for peer in options.peers:
            columns[peer].error = CONTESTANTS[peer].lacks(module)
        runnable = [contestant for contestant, column in columns.items() if column.error is None]
        copy = Column()
        names = [*runnable, "copy"]
        with processes(names, options.threads, options.space) as conversations:
            device = conversations["copy"].ask("device")
            everybody = {**{each: columns[each] for each in runnable}, "copy": copy}
            on_gpu = options.space is not None
            _rounds(name, size, everybody, conversations, options.repeat, advance, on_gpu)
            if options.check_size is None:
                _compare(name, size, columns, conversations, WARM_UPS + options.repeat)
            else:
                small = serve.size_of(program.kernel(name), options.check_size)
                check_at(name, small, columns, conversations)
        yardstick = Copy.BYTES if options.space is None else DeviceCopy.BYTES
        yield Result(name, size, module.floor(size), copy, columns, yardstick, device)


def _rounds(
    name: str,
    size: int,
    columns: dict[str, Column],
    conversations: dict[str, Conversation],
    repeat: int,
    advance: Callable[[str], None],
    together: bool,
) -> None:
    """Warm-ups, then `repeat` rounds, each in an order of its own.

    Threads of some libraries go on for a while after their run, and whoever came next each time
    would pay for it: so nobody has the same one before him in all rounds, and each waits a little.
    On a GPU all load at once, as that is most of the time: random numbers, and importing libraries.
    """
    shuffled = random.Random(name)
    if together:
        for contestant in columns:
            conversations[contestant].tell(f"load {name} {size}")

    def one(contestant: str, number: int) -> None:
        column, conversation = columns[contestant], conversations[contestant]
        if column.error is not None:
            return
        try:
            if number == 0:
                if not together:
                    conversation.tell(f"load {name} {size}")
                column.first = conversation.answer()
            seconds = conversation.run()
        except PeerError as error:
            column.error = str(error)
            return
        if number == 0:
            column.first += seconds
        if number >= WARM_UPS:
            column.times.append(seconds)

    for number in range(WARM_UPS + repeat):
        for contestant in shuffled.sample(list(columns), len(columns)):
            time.sleep(SETTLE)
            one(contestant, number)
        advance(f"{name}: round {number + 1}")


def _compare(
    name: str,
    size: int,
    columns: dict[str, Column],
    conversations: dict[str, Conversation],
    runs: int,
) -> None:
    """Hold everybody's results against our fused ones, by the program's own check."""
    ours = conversations["fused"].outputs()
    for contestant, column in columns.items():
        if contestant == "fused" or column.error is not None:
            continue
        try:
            theirs = conversations[contestant].outputs()
        except PeerError as error:
            column.error = str(error)
            continue
        column.check = program.failed_check(name, theirs, size, runs, expected=ours)


def check_at(
    name: str, size: int, columns: dict[str, Column], conversations: dict[str, Conversation]
) -> None:
    """Run everybody at another size, and hold the results against the program's reference."""
    for contestant, column in columns.items():
        if column.error is not None:
            continue
        try:
            conversations[contestant].ask(f"load {name} {size}")
            for _ in range(CHECK_RUNS):
                conversations[contestant].run()
            found = conversations[contestant].outputs()
        except PeerError as error:
            column.error = str(error)
            continue
        column.check = program.failed_check(name, found, size, CHECK_RUNS)
