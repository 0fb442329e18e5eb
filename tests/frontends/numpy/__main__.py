"""`python -m tests.frontends.numpy --programs N --seed S --tier numpy|interpret|device ...`."""

from __future__ import annotations

import argparse
import os
import sys
import time

TIERS = ("numpy", "interpret", "compiled", "eager", "mixed", "device")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tier",
        default="interpret",
        choices=["numpy", "interpret", "compiled", "eager", "mixed", "device"],
    )
    parser.add_argument("--large", action="store_true", help="arrays as large as what is recorded")
    parser.add_argument("--lazy-from", type=int, help="elements from which operations are recorded")
    parser.add_argument("--ripe", type=int, help="bytes that make functions ripe; --lazy-from, too")
    parser.add_argument("--exact", action="store_true", help="as PYFUSER_NUMPY_EXACT=1")
    parser.add_argument("--statements", type=int, default=14)
    given = parser.parse_args()
    if given.tier == "mixed":
        given.programs *= 3
    if given.tier not in ("eager", "mixed"):
        os.environ["PYFUSER_NUMPY_LAZY"] = "always"
    os.environ["PYFUSER_FRONTEND"] = "embedded"
    from pyfuser.frontends.numpy.switches import LIMITS
    from tests.frontends.numpy import programs, tiers

    tiers.use(given.tier)
    programs.WARNINGS[0] = given.tier in ("numpy", "eager")
    if given.tier == "mixed":
        LIMITS.most = LIMITS.costly = LIMITS.sure = LIMITS.rows = LIMITS.columns = 1
    if given.lazy_from is not None:
        LIMITS.most, LIMITS.costly = given.lazy_from, max(given.lazy_from // 2, 1)
        LIMITS.sure = 1 << 30 if given.ripe else 1
    if given.ripe:
        from pyfuser.frontends.numpy import known
        from pyfuser.tuning.thresholds import tuned

        known.MIDDLE = LIMITS.most
        with tuned(ripe_bytes=given.ripe):
            known.bind()
    LIMITS.exact = programs.EXACT[0] = given.exact
    if given.large:
        programs.SHAPES[:] = programs.LARGE
        programs.MOST_ELEMENTS = 1 << 20
    with tiers.place(given.tier):
        return run(given)


def run(given: argparse.Namespace) -> int:
    """Try programs; 1 if one is wrong."""
    from tests.frontends.numpy.programs import DONE, Mismatch, Program

    wrong = 0
    start = time.perf_counter()
    for n in range(given.programs):
        seed = given.seed + (n // 3 if given.tier == "mixed" else n)
        try:
            Program(seed, given.statements).run()
        except Exception as error:
            if not isinstance(error, Mismatch):
                print("seed", seed, flush=True)
                raise
            wrong += 1
            print(error, flush=True)
            if wrong >= 5:
                break
    print(f"{given.programs} programs, {wrong} wrong, {time.perf_counter() - start:.0f} s")
    print(dict(DONE.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
