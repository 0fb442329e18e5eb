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
    """Judge the mutants, and print a table; 1 if one survives."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.name]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pyfuser-mutants-") as directory:
        laboratory = Laboratory(Path(directory))
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        sick = laboratory.healthy(tests) if tests else ""
        if sick:
            print(f"{sick} fails without any mutation: mend that first", file=sys.stderr)
            return 2
        with ThreadPoolExecutor(options.workers) as pool:
            survivors = 0
            for mutant, (killer, seconds) in zip(
                chosen, pool.map(laboratory.judge, chosen), strict=True
            ):
                survivors += not killer
                what = f"killed by {killer}" if killer else "SURVIVES"
                print(f"{seconds:6.1f} s  {mutant.name:<58}  {what}", flush=True)
    print(
        f"mutants {len(chosen)}, survivors {survivors}, "
        f"seconds {time.perf_counter() - start:.1f}"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
