"""`python -m tests.mutants`: break the laws of fusion in many ways, and see the tests notice.

Tried are the mutants of laws that have a permissive answer, and of other laws those that people
thought of (checklist.txt): a sample, drawn by --seed, if there are more than .ci/run has time for.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

from tests.mutants.generated import Mutant, checklist, laws, mutants_of, sample
from tests.mutants.killers import mirror, paths, remember, remembered
from tests.mutants.laboratory import Job, Laboratory
from tests.mutants.untried import backlog, declared, postpone, unused

MOST = 700


def main(arguments: list[str] | None = None) -> int:
    """Judge mutants and print a table; 1 if one survives that is not declared equivalent."""
    options = _options(arguments)
    every = [mutant for law in laws() for mutant in mutants_of(law)]
    equivalent = declared()
    chosen = [m for m in every if options.only in m.name and m.name not in equivalent]
    if not options.all:
        listed = checklist()
        chosen = [m for m in chosen if m.law.answer.text or m.name in listed]
    later = {m.name for m in chosen} & backlog() if not options.backlog else set[str]()
    chosen = [m for m in chosen if m.name not in later]
    if not chosen:
        print(f"no mutant has {options.only!r} in its name", file=sys.stderr)
        return 2
    for name in unused({m.name for m in every}):
        print(f"equivalent or in the backlog, but not generated: {name}")
    tried = chosen if options.all or options.learn else sample(chosen, MOST, options.seed)
    survivors: list[str] = []
    known = remembered()

    def work(laboratory: Laboratory) -> None:
        survivors.extend(_judge(laboratory, tried, known, options))

    start = time.perf_counter()
    Laboratory(paths({m.law.name for m in tried}, known, options.patience > 0), work)
    for name in survivors:
        print(f"SURVIVES: {name}")
    if options.learn:
        remember(known)
        names = {m.name for m in tried}
        postpone((backlog() - names) | (names & set(survivors)))
    seconds = time.perf_counter() - start
    print(
        f"laws {len(laws())}, mutants {len(every)}, tried {len(tried)}, "
        f"not tried as none has judged them {len(later)}, "
        f"survivors {len(survivors)}, seconds {seconds:.0f}"
    )
    return 1 if survivors else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--all", action="store_true", help="of all laws, no sample")
    parser.add_argument("--backlog", action="store_true", help="and those not judged yet")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--learn", action="store_true", help="no sample; write killers.txt and backlog.txt anew"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=5.0,
        help="CPU seconds for tests of which none has killed a mutant of the law yet",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


def _judge(
    laboratory: Laboratory,
    tried: list[Mutant],
    known: dict[str, list[str]],
    options: argparse.Namespace,
) -> list[str]:
    """What survives; `known` gets the tests that kill the others."""
    counts: dict[str, Counter[str]] = {}
    survivors = []
    jobs = []
    reaching = laboratory.reaching(laws()) if options.learn else {}
    for mutant in tried:
        own, others = mirror(mutant.law.file, list(laboratory.items))
        first = dict.fromkeys((*laboratory.named(known.get(mutant.law.name, ())), *own))
        could = reaching.get(mutant.law.name) or others
        jobs.append(Job(mutant, [*first], [test for test in could if test not in first]))
    for mutant, killer, seconds in laboratory.judged(jobs, options.workers, options.patience):
        print(f"{seconds:5.1f} s  {mutant.name}  {killer or 'SURVIVES'}", flush=True)
        if not killer:
            survivors.append(mutant.name)
        elif killer in laboratory.items:
            counts.setdefault(mutant.law.name, Counter())[killer] += 1
    if sick := laboratory.sick(sorted({test for counter in counts.values() for test in counter})):
        survivors.append(f"{sick}: fails without any mutant, mend that first")
    for law, counter in counts.items():
        known[law] = [test for test, _ in counter.most_common()]
    return survivors


if __name__ == "__main__":
    sys.exit(main())
