"""What each pass is worth: every program timed with all passes, and with all but one, in turns.

Programs are those of kernels/ and of experiments/unseen/ (written for this, before measuring), or
the files that are given. Each runs on one thread, and processor time counts: other processes hardly
move it, where they move the time that has passed by a quarter. What counts is the least of several
runs. A program whose plans and sources are the same without a pass is not timed: its ratio is 1.
Passes that act while a program runs (RUNTIME) change no text, so all are timed without those.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from pyfuser.pipeline import NAMES

ROOT = Path(__file__).resolve().parents[1]
SETS = ("kernels", "experiments/unseen")
RUNTIME = ("size-generic", "autotune", "turns", "lone-calls")
SERVER = Path(__file__).with_name("serve_timed.py")


class Served:
    """A program in a process of its own, with or without some passes; the first run compiles."""

    def __init__(self, program: Path, without: str, cache: str, size: str) -> None:
        environment = {
            **os.environ, "PYFUSER_WITHOUT": without, "PYFUSER_CACHE_DIR": cache,
            "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        command = [sys.executable, str(SERVER), str(program), size]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()
        self.first, self.second = self.seconds(), self.seconds()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended")
        return line

    def seconds(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def digests(programs: Sequence[Path], names: str = "") -> dict[Path, str]:
    """By program, the digests of its plans, ir and C++ at the default size."""
    output = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.corpus",
            "--digests",
            *(f"{p.stem}-default" for p in programs),
        ],
        cwd=ROOT,
        env={**os.environ, "PYFUSER_WITHOUT": names},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    lines = (line.split() for line in output.splitlines())
    found = {line[0].removesuffix("-default"): " ".join(line[1:4]) for line in lines}
    return {program: found[program.stem] for program in programs}


def ratio(program: Path, name: str, repeat: int, cache: str, size: str) -> float:
    """The least time without the pass over the least with it; runs alternate."""
    sides = [Served(program, without, f"{cache}/{bool(without)}", size) for without in ("", name)]
    times: list[list[float]] = [[], []]
    for number in range(repeat):
        for side in (0, 1) if number % 2 else (1, 0):
            times[side].append(sides[side].seconds())
    for side in sides:
        side.close()
    return min(times[1]) / min(times[0])


def measured(
    name: str, programs: Sequence[Path], of: Sequence[Path], repeat: int, size: str
) -> dict[str, Any]:
    """One row of the table: programs are those whose code changes, out of all."""
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for program in programs:
            ratios[program.stem] = ratio(program, name, repeat, cache, size)
    means = []
    for folder in SETS:
        own = [ratios.get(p.stem, 1.0) for p in of if p.parent == ROOT / folder]
        means.append(geometric_mean(own) if own else 1.0)
    return {"pass": name, "programs": ratios, "means": means}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: the passes that gain most first."""
    lines = [
        "| without | programs it changes | kernels/ | unseen | takes longest | takes less |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for row in sorted(rows, key=lambda row: -max(row["means"])):
        ends = sorted(row["programs"].items(), key=lambda item: item[1])
        most = [f"{name} {value:.2f}" for name, value in reversed(ends) if value > 1.05][:4]
        least = [f"{name} {value:.2f}" for name, value in ends if value < 0.95][:3]
        lines.append(
            f"| {row['pass']} | {len(ends)} | {row['means'][0]:.3f} | {row['means'][1]:.3f} "
            f"| {', '.join(most)} | {', '.join(least)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passes", nargs="*", help="all, if left out")
    parser.add_argument("--programs", nargs="+", type=Path, help="both sets, if left out")
    parser.add_argument("--size", default="default", help="of all programs")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=Path, default=ROOT / "experiments/results/ablation.json")
    given = parser.parse_args()
    programs = [p.resolve() for p in given.programs or ()]
    programs = programs or sorted(p for folder in SETS for p in (ROOT / folder).glob("*.py"))
    rows = json.loads(given.json.read_text()) if given.json.exists() else []
    before = digests(programs)
    for name in given.passes or NAMES:
        after = digests(programs, name) if name not in RUNTIME else {}
        changed = [program for program in programs if before[program] != after.get(program)]
        row = measured(name, changed, programs, given.repeat, given.size)
        rows = [*(r for r in rows if r["pass"] != name), row]
        print(table([row]).splitlines()[-1], flush=True)
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(table([row for row in rows if row["pass"] in NAMES]))


if __name__ == "__main__":
    main()
