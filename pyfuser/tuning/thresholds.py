"""The numbers that kernels are tuned by: `Tuning`, a value that a kernel's spec carries.

Passes over kernels, which come before there is a spec, take those of DEFAULT.

Each has a unit, a meaning, and where it was measured; "" means that it was chosen, not measured.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

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
    unrolled_trips: int = number(16, "trips", "of a loop that is unrolled")
    unrolled_nodes: int = number(1500, "expressions", "that one loop may unroll to")
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
    smallest_tile: int = number(8, "iterations", "of a tile where there are few")
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
        "that groups are faster for",
        "logistic_regression: nine sums gain nothing",
    )
    group: int = number(
        2, "sums", "that share a loop: of doubles, each takes four vectors of 64 bytes"
    )
    gpu_threads: int = number(256, "threads", "of a block of a GPU; a guess")
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


DEFAULT = Tuning()


def along(target: Target, tuning: Tuning) -> int:
    """Iterations of a block along memory."""
    return tuning.along_on_intel if target.intel else tuning.along
