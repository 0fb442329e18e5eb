"""`python -m tests.mutants [--only TEXT]`: break the law of fusion, and see the tests notice."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.laboratory import Laboratory


def main(arguments: list[str] | None = None) -> int:
    """Judge the mutants and print a table; 1 if one survives, 2 if a test fails without any."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.name]
    if not chosen:
        parser.error(f"no mutant has {options.only!r} in its name")
    start = time.perf_counter()
    survivors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pyfuser-mutants-") as directory:
        laboratory = Laboratory(Path(directory))
        sick = laboratory.healthy(sorted({mutant.test for mutant in chosen}))
        if sick:
            print(f"{sick} fails without any mutation: mend that first", file=sys.stderr)
            return 2
        with ThreadPoolExecutor(options.workers) as pool:
            verdicts = pool.map(laboratory.judge, chosen)
            for mutant, (killer, seconds) in zip(chosen, verdicts, strict=True):
                survivors += [] if killer else [mutant.name]
                fate = f"killed by {killer}" if killer else "SURVIVES"
                print(f"{seconds:5.1f} s  {mutant.name:<56}  {fate}", flush=True)
    seconds = time.perf_counter() - start
    print(f"mutants {len(chosen)}, survivors {len(survivors)}, seconds {seconds:.1f}")
    for name in survivors:
        print(f"SURVIVES: {name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
