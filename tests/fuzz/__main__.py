"""`python -m tests.fuzz --programs N --seed S --tier interpret|compiled|inexact|device`."""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from tests.fuzz import cxx
from tests.fuzz.features import NAMES, STORE_THAT_WRAPS, features
from tests.fuzz.harness import Outcome
from tests.fuzz.minimise import minimised, write_script
from tests.fuzz.oracle import Rejected
from tests.fuzz.program import Program
from tests.fuzz.tiers import TIERS
from tests.strategies import FOCUSES, random_program


@dataclass
class Totals:
    """What a campaign has seen."""

    programs: int = 0
    rejected: int = 0
    failed: int = 0
    calls: int = 0
    fused: int = 0
    groups: int = 0
    seconds: float = 0.0  # of this process' CPU time
    features: Counter[str] = field(default_factory=Counter)  # of programs that were judged

    def add(self, program: Any, outcome: Outcome) -> None:
        if isinstance(program, Program):
            self.features.update(features(program) | outcome.features)
        self.calls += outcome.calls
        self.fused += outcome.fused
        self.groups += len(outcome.groups)

    def table(self) -> str:
        """The totals, and in how many programs each feature was."""
        cells = [f"{name:32}{self.features[name]:>9,}" for name in NAMES]
        half = (len(cells) + 1) // 2
        rows = [
            f"{left}    {right}".rstrip()
            for left, right in zip_longest(cells[:half], cells[half:], fillvalue="")
        ]
        cost = 1000 * self.seconds / max(self.programs, 1)
        return "\n".join(
            [
                *rows,
                f"programs {self.programs:,}, rejected {self.rejected:,}, failed {self.failed:,}, "
                f"calls {self.calls:,}, fused calls {self.fused:,}, groups {self.groups:,}, "
                f"CPU seconds {self.seconds:.1f} ({cost:.1f} ms a program)",
            ]
        )


def campaign(
    seeds: Iterable[int],
    check: Callable[[Any], Outcome],
    on_failure: Callable[[Any, Exception], None],
    make: Callable[[int], Any] = random_program,
) -> Totals:
    """Judge the programs that `make` makes of seeds; `on_failure` hears of each that fails."""
    totals = Totals()
    start = time.process_time()
    for seed in seeds:
        program = make(seed)
        totals.programs += 1
        wrapped = cxx.STORES["wrapped"]
        try:
            totals.add(program, check(program))
            totals.features[STORE_THAT_WRAPS] += cxx.STORES["wrapped"] > wrapped
        except Rejected:
            totals.rejected += 1
        except Exception as error:  # whatever it is, it is the finding
            totals.failed += 1
            on_failure(program, error)
    totals.seconds = time.process_time() - start
    return totals


def in_time(seeds: Iterable[int], minutes: float | None) -> Iterator[int]:
    """The seeds, until so many minutes have passed."""
    end = math.inf if minutes is None else time.monotonic() + 60.0 * minutes
    return takewhile(lambda _: time.monotonic() < end, seeds)


def same_failure(
    check: Callable[[Program], Outcome], error: Exception
) -> Callable[[Program], bool]:
    """Whether a program fails in the way that `error` tells of."""

    def fails(program: Program) -> bool:
        try:
            check(program)
        except Rejected:
            return False
        except Exception as other:
            return type(other) is type(error)
        return False

    return fails


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--tier", choices=sorted(TIERS), default="interpret")
    parser.add_argument("--minutes", type=float, help="begin no program after so many")
    parser.add_argument("--output", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--focus", choices=FOCUSES, help="programs of these calls only")
    options = parser.parse_args(arguments)
    check = TIERS[options.tier]

    def report(program: Program, error: Exception) -> None:
        small = minimised(program, same_failure(check, error))
        reason = f"{type(error).__name__}: {error}"
        path = write_script(small, options.tier, reason, options.output)
        print(f"seed {program.seed}: {reason}\n{small.listing()}\nwritten to {path}", flush=True)

    gc.freeze()  # most of what is made stays until it falls out of a cache
    gc.set_threshold(100_000, 20, 50)
    seeds = range(options.seed, options.seed + options.programs)
    make = partial(random_program, focus=options.focus)
    totals = campaign(in_time(seeds, options.minutes), check, report, make)
    print(totals.table())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
