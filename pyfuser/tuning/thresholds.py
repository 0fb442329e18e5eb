"""The numbers that are chosen: `Tuning`, of plans and kernels; `Running`, of what runs them.

`NOW` has those in force. A kernel's spec carries its Tuning, and what is kept of plans and programs
is that of the Tuning in force: other numbers (`tuned`) are other keys. What `Running` has is asked
for whenever it counts.

Each has a unit, a meaning, and where it was measured; "" means that it was chosen, not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, fields, replace
from typing import Any

from pyfuser.support.caches import cached, renumber
from pyfuser.support.records import dataclass
from pyfuser.tuning.target import Target


def number(value: Any, unit: str, meaning: str, measured: str = "") -> Any:
    """A field of a table of numbers."""
    return field(default=value, metadata={"unit": unit, "meaning": meaning, "measured": measured})


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """The numbers; equal only to itself, as there is one, and others in tests."""

    block: int = number(
        128,
        "iterations",
        "that are run together; of a reduction, terms that are computed before being added",
    )
    strip: int = number(
        8,
        "iterations",
        "that wait for themselves and run side by side: additions take four cycles, and two start "
        "in each; steps of a wave come in multiples of it, as odd ones would run alone",
    )
    tried: int = number(
        128,
        "iterations, a power of two",
        "whose conditions are tried together; neighbours that go the same way run as one loop",
    )
    together: int = number(
        1024,
        "iterations",
        "of short rows that run at a time, as what is asked of their index is asked once for all",
        "Zen 4: rows of 40 doubles take 0.45 of the time, rows of 1,000 the same",
    )
    shortest_row: int = number(
        16,
        "iterations",
        "of rows that the index is divided by; in shorter ones each iteration divides",
        "Zen 4: with 8 a guarded difference takes 1.8 times as long, with 16 as long",
    )
    unrolled_trips: int = number(16, "trips", "of a loop that is unrolled")
    counted_trips: int = number(
        64, "trips", "of a loop that stays one and whose number of trips becomes a constant"
    )
    unrolled_nodes: int = number(1500, "expressions", "that one loop may unroll to")
    gathered_trips: int = number(
        8,
        "trips",
        "of a loop that is unrolled though vectors gather what it accesses one by one",
        "Zen 4: distances between rows of sixteen take 2 times as long",
    )
    gathered_work: float = number(
        1.0,
        "additions",
        "with each element that vectors gather one by one, loads apart, from which on they pay",
        "Zen 4: signs and minima of short lists (1.2) take 0.5 of the time of loops, solving with "
        "3 x 3 matrices (3.6) 0.6; sums of rows of six (0.4) as long",
    )
    choices: int = number(
        8, "elements", "of which one is selected; each costs a compare and a select"
    )
    neighbours: int = number(4, "elements", "of a view of which data chooses one: all are loaded")
    paths: int = number(
        3,
        "paths",
        "through a branch that chooses: of more, g++ copies what follows for each, without vectors",
        "g++ 12; with -fno-thread-jumps it would not",
    )
    row_extent: int = number(256, "elements", "of a row that is contracted")
    row_registers: int = number(16, "elements", "of a row that registers hold until it is stored")
    row_bytes: int = number(
        8192,
        "bytes",
        "of all contracted rows of an iteration: those of several fit into a first-level cache",
    )
    tile: int = number(4096, "iterations", "that a partial result of a large reduction covers")
    tiles: int = number(64, "partial results", "of a small reduction, so that threads can share it")
    smallest_tile: int = number(
        256,
        "iterations",
        "of a tile where there are few",
        "an EPYC: three sums of 1,000 to 2,500 elements took 1.6 to 3 times as long in tiles of 8",
    )
    block_bytes: int = number(
        16384,
        "bytes",
        "that the values kept for a block may take: half of a small first-level cache",
    )
    rows_bytes: int = number(
        1 << 18,
        "bytes",
        "the same where iterations walk along columns and keep arrays: a part of the second level",
    )
    scalars: int = number(
        32,
        "scalars",
        "of a loop that vector registers have room for; of more, blocks are four times as long",
        "AVX-512; without need, long blocks cost up to a tenth",
    )
    strips: tuple[int, ...] = number(
        (2048, 1024, 512, 256, 128, 64),
        "iterations",
        "of a strip whose loops walk along columns: the longer, the better memory is walked along",
    )
    fewest_columns: int = number(
        8, "iterations", "of such a strip; fewer have no vector of floats to gain"
    )
    strip_trips: int = number(
        4,
        "trips",
        "that share a loop over a strip, if they are light: what they keep stays in registers",
    )
    light_trip: int = number(16, "additions", "of a light trip")
    few_branches: int = number(
        4,
        "iterations",
        "a strip of which one iteration in so many, or fewer, takes a branch runs that as written",
    )
    fewest_groups: int = number(
        16,
        "sums",
        "that groups are faster for where registers have no room for a few",
        "logistic_regression: nine sums gain nothing",
    )
    light_sums: int = number(
        60,
        "expressions",
        "of a body whose terms g++ keeps in registers: it unrolls a loop of four vectors",
    )
    group: int = number(2, "sums", "that share a loop where registers have no room for more")
    gpu_threads: int = number(256, "threads", "of a block of a GPU; a guess")
    gpu_few: int = number(
        1 << 17, "iterations", "of maps and sums, below which blocks are small: on an H100 with "
        "132 processors 6000 rows in blocks of 256 threads, four rows a thread, are on 6 of them",
    )  # fmt: skip
    gpu_few_threads: int = number(64, "threads", "of these blocks: a warp of any GPU, at least")
    gpu_row: int = number(
        64, "threads", "that a block has along the last axis, where there are others; a guess"
    )
    gpu_items: int = number(8, "iterations", "of a scan that a thread runs one after the other")
    gpu_terms: int = number(
        4, "iterations", "of each thread of a reduction before it takes more blocks"
    )
    gpu_blocks: int = number(
        1024,
        "blocks",
        "of a reduction at most: they fill every GPU there is; more make more partial results",
    )
    gpu_grid: int = number(
        1 << 22,
        "blocks",
        "along x at most: of 256 threads less than the 2**32 that a grid of HIP may have",
    )
    worth_a_thread: int = number(
        131072,
        "additions",
        "of a thread: 4 us, as vectors do several at a time and compilers drop some",
        "an EPYC: two threads that wait for work are level with one at a quarter of that; but what "
        "other small kernels stored is in the cache of the core that ran them: with a sum over "
        "1,000 short rows between them, six kernels took 53 us on two threads, 42 us on one",
    )
    scan_tile: int = number(4096, "iterations", "of a tile of a scan")
    long_row: int = number(
        64,
        "iterations",
        "of an innermost loop that asks for memory ahead",
        "loops over rows of 3 took 1.3 times as long, over rows of 20 0.95 times",
    )
    along: int = number(
        64,
        "iterations",
        "of a block along memory, where loops are tiled; longer runs are read and written faster, "
        "and more lines meet in one place of the cache",
        "Zen 4: 128 takes 1.03 times as long",
    )
    spins: int = number(
        10_000,
        "trips",
        "that a thread of libgomp's waits for a launch before it sleeps; its own 300,000 are 3 ms, "
        "in which threads of others, such as NumPy's matrix products, find no core",
        "Zen 4, two cores: no launch in 0.2 ms takes longer, with 1,000 it takes 20 us more; "
        "alpha * A @ x of 8 ms takes 37 with 300,000",
    )
    along_on_intel: int = number(128, "iterations", "the same", "a Xeon: 0.85 times as long as 64")
    condition_gain: int = number(
        8, "parts", "of an iteration's cost, one of which conditions have to be worth to be split"
    )
    gather: int = number(
        8,
        "additions",
        "of a load whose place is chosen: a vector gathers its elements",
        "an EPYC: two of them took a sixth of an iteration of 148 additions",
    )
    table_share: int = number(
        8,
        "iterations",
        "for each element of a table that threads have copies of, which is written and read again",
        "1 million int32 counters and 8 million updates: 0.6 of the time",
    )
    coarse_rows: int = number(
        1024, "iterations", "that coarsening leaves, so that threads and vectors have enough to do"
    )
    sunk_rows: int = number(
        64,
        "iterations",
        "that are left when short axes become loops: fewer are no vectors, nor work for threads",
    )
    coarse_bytes: int = number(
        16384, "bytes", "that calls move for which launches are all that counts: none are left then"
    )
    common: float = number(0.75, "of a hull", "what boxes that share a loop have in common")
    exact_calls: int = number(12, "calls", "of a segment whose groups are found exactly")
    wave_columns: int = number(
        512, "steps", "of a wave over loops along columns, at least: a strip"
    )
    sweep_shares: int = number(
        32, "times", "that the outermost axis is as long as what runs between two threads' shares"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """The numbers of what runs kernels, and waits, tries, keeps and tells."""

    long: float = number(2e-4, "seconds, modelled", "below which nobody will notice a launch")
    briefest: float = number(
        2e-5, "seconds", "that a program takes at least if another plan for it is tried"
    )
    soon: float = number(0.05, "seconds", "that a launch must have taken in all: it will go on")
    again: float = number(
        2.0, "seconds", "the same where an earlier trial found nothing: it may have been disturbed"
    )
    most_flushes: int = number(
        256, "flushes", "in which launches are not looked at: their times may change"
    )
    later: int = number(
        16, "flushes", "after which it is asked again whether a trial of calls apart is paid for"
    )
    trial_kernel: float = number(0.15, "seconds", "of compiling, that a trial is charged for")
    plan_credit: tuple[float, float] = number(
        (0.1, 0.05),
        "seconds",
        "of planning that a program has, and for each workunit: twice what 84 programs take",
    )
    kernel_credit: tuple[float, float] = number(
        (0.3, 0.45), "seconds", "the same of compiling, two and three kernels: none takes more"
    )
    launch: float = number(5e-6, "seconds", "that a launch of one of many calls takes")
    element: float = number(
        8e-10, "seconds", "the same of an argument of an iteration: 8 bytes from memory"
    )
    postponed_bytes: int = number(
        4 << 20,
        "bytes",
        "of arrays that need no memory then; below, to see to it takes as long as to store them",
    )
    band_calls: int = number(8, "calls", "that are worth bands, see `plan.bands`")
    band_kinds: int = number(
        8,
        "calls",
        "that are unlike of each workunit, from which bands are better than a plan",
        "79 diagonals of 5 calls: 81 fused kernels take 3 times as long",
    )
    band_share: float = number(0.5, "of the calls", "that are unlike in their numbers then")
    band_caches: float = number(
        1.0, "caches", "whose size a trace's arrays have then, at least: smaller ones stay there"
    )
    band_work: int = number(
        131072, "additions", "of calls that run in bands, from twice which on threads share them"
    )
    misses: int = number(
        6,
        "times",
        "that postponed calls may have run after all, before those of a trace wait no more",
    )
    timed_runs: int = number(8, "runs", "of each launch before work arrays may wait for readers")
    planned_bytes: int = number(
        1 << 30, "bytes", "that NumPy moves while a trace is planned and compiled"
    )
    planned_call_bytes: int = number(1 << 28, "bytes", "and as many again for each of its calls")
    resized_call_bytes: int = number(
        1 << 22, "bytes", "that NumPy moves while each call is given the code of one of other sizes"
    )
    planned_again_bytes: int = number(
        20 << 20,
        "bytes",
        "and while each call is planned that shares a kernel with other sizes",
    )
    lost_bytes: int = number(
        1 << 31,
        "bytes",
        "that calls of one instruction on one shape move without a kernel, in traces that are all "
        "new, until they are given up",
    )
    ripe_bytes: int = number(
        1 << 32,
        "bytes",
        "that operations on few elements in one function of the program move before one is "
        "recorded: NumPy takes as long as compiling some kernels does",
    )
    rolled_rounds: int = number(
        16, "rounds", "of calls that move on, at the least: fewer are planned as they are"
    )
    written_plans: int = number(
        256,
        "entries",
        "that a process writes: where each step has other sizes, they cost more than they save",
    )
    shapes_of_workunit: int = number(
        8192, "shapes", "of its calls: one a step where integers change, about 1 KiB each"
    )
    race_iterations: int = number(
        1_000_000, "iterations", "that the interpreter runs, each in some microseconds"
    )
    graph_launches: int = number(
        3, "launches", "with the same arguments before a graph of them is made, which costs some"
    )
    told_bytes: int = number(1 << 20, "bytes", "of arrays that are worth a line in reports")
    compile_seconds: float = number(300.0, "seconds", "that a compiler has for one kernel")
    lock_seconds: float = number(
        330.0, "seconds", "to wait for another process that compiles the same kernel"
    )
    agree: float = number(
        1.2, "times", "that the best of half the rounds of a calibration may take of the others'"
    )
    alone: float = number(
        0.75, "of the time, by all threads", "spent on a processor if nothing else runs"
    )


DEFAULT = Tuning()


class _Now:
    """The numbers in force."""

    __slots__ = ("_tuning", "running")

    def __init__(self) -> None:
        self._tuning, self.running = DEFAULT, Running()

    @property
    def tuning(self) -> Tuning:
        return self._tuning

    @tuning.setter
    def tuning(self, tuning: Tuning) -> None:
        if tuning is not self._tuning:
            renumber(self._tuning, tuning)
            self._tuning = tuning


NOW = _Now()


@contextmanager
def tuned(**numbers: Any) -> Iterator[None]:
    """With other numbers in force, by their names in either table."""
    before = NOW.tuning, NOW.running
    own = {each.name for each in fields(Tuning)}
    plans = {n: numbers[n] for n in sorted(numbers) if n in own}
    runs = {n: numbers[n] for n in sorted(numbers) if n not in own}
    NOW.tuning, NOW.running = _replaced(NOW.tuning, **plans), _replaced(NOW.running, **runs)
    try:
        yield
    finally:
        NOW.tuning, NOW.running = before


@cached(256)
def _replaced(table: Any, **numbers: Any) -> Any:
    """The same table again for the same numbers, so that what was made under it is found again."""
    return replace(table, **numbers) if numbers else table


def along(target: Target, tuning: Tuning) -> int:
    """Iterations of a block along memory."""
    return tuning.along_on_intel if target.intel else tuning.along
