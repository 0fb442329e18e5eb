"""Fused runs of each program in this state and in another revision, in turns; and first runs.

    python experiments/revisions.py REVISION [PROGRAM ...]

Ratios are the time of this state over that of the other: below 1 it has become faster. First runs
are of new processes with an empty cache, so importing PyFuser, planning and compiling count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median

from pyfuser.compare import serve
from pyfuser.compare.peer import PeerError, Served

ROOT = Path(__file__).resolve().parents[1]
SERVE = Path(serve.__file__).resolve()
FUSED = """
import runpy, sys
import pyfuser
pyfuser.enable()
script = sys.argv.pop(1)
runpy.run_path(script, run_name="__main__")
"""


class At(Served):
    """A program that the PyFuser in a checkout fuses."""

    def __init__(self, checkout: Path, program: Path, size: str, cache: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYFUSER_CACHE_DIR": cache}
        environment["PYTHONPYCACHEPREFIX"] = str(checkout / "build/bytecode")  # as installed
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        arguments = [str(SERVE), str(program), size, ""]
        super().__init__([sys.executable, "-c", FUSED, *arguments], checkout, environment)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A folder with that revision's files."""
    with tempfile.TemporaryDirectory(prefix="pyfuser-revision-") as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "pyfuser"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield Path(folder)


def first_run(folder: Path, program: Path, size: str) -> float:
    """Seconds from the start of a process to the end of its first run, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        process = At(folder, program, size, cache)
        try:
            process.run()
            return time.perf_counter() - start
        finally:
            process.close()


def in_turns(folders: tuple[Path, Path], program: Path, size: str, rounds: int) -> float:
    """The median over neighbouring pairs of runs, the first folder's time over the second's."""
    with tempfile.TemporaryDirectory() as cache:
        both = [
            At(folder, program, size, f"{cache}/{place}") for place, folder in enumerate(folders)
        ]
        try:
            for process in both:  # compiles
                process.run()
                process.run()
            pairs = [[process.run() for process in both] for _ in range(rounds)]
        finally:
            for process in both:
                process.close()
    return median(new / old for new, old in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--size", default="default")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--first", type=int, default=1, help="how often first runs are repeated")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    programs = given.programs or sorted((ROOT / "kernels").glob("[!_]*.py"))
    rows: dict[str, dict[str, float]] = {}
    with checkout(given.revision) as old:
        folders = (ROOT, old)
        for program in (path.resolve() for path in programs):
            try:
                ratio = in_turns(folders, program, given.size, given.rounds)
                firsts = [
                    first_run(ROOT, program, "small") / first_run(old, program, "small")
                    for _ in range(given.first)
                ]
            except PeerError as error:
                print(f"{program.stem}: {error}", flush=True)
                continue
            rows[program.stem] = {"warm": ratio, "first": median(firsts)}
            print(f"{program.stem:24} {ratio:6.3f} {median(firsts):6.3f}", flush=True)
    for kind in ("warm", "first"):
        values = {name: row[kind] for name, row in rows.items()}
        worst = max(values, key=lambda name: values[name])
        mean = geometric_mean(values.values())
        print(f"{kind}: geometric mean {mean:.3f}, worst {worst} {values[worst]:.3f}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
