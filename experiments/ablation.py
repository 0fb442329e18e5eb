"""What each pass is worth: every program timed with all passes, and with all but one, in turns.

A program whose plans and sources are the same without a pass is not timed: its ratio is 1. Passes
that act while a program runs (RUNTIME) change no text, so all programs are timed without those.
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
from statistics import geometric_mean, median
from typing import Any

from pyfuser.pipeline import NAMES

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ("size-generic", "partial-flush", "autotune")
GPU = ("packed",)


def digests(names: str = "") -> dict[str, str]:
    """By program, the digests of its plans, ir and C++ at the default size."""
    output = subprocess.run(
        [sys.executable, "-m", "tests.corpus", "--digests", "*-default"],
        cwd=ROOT,
        env={**os.environ, "PYFUSER_WITHOUT": names},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    lines = (line.split() for line in output.splitlines())
    return {line[0].removesuffix("-default"): " ".join(line[1:4]) for line in lines}


def compared(programs: Sequence[str], name: str, repeat: int) -> list[dict[str, Any]]:
    """What `pyfuser compare --without` measures for the programs."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "pyfuser", "compare", "--without", name, "--no-check"]
        command += ["--repeat", str(repeat), "--json", str(result)]
        command += [str(ROOT / "kernels" / f"{program}.py") for program in programs]
        cache = {**os.environ, "PYFUSER_CACHE_DIR": f"{folder}/cache"}
        subprocess.run(command, cwd=ROOT, env=cache, stdout=subprocess.DEVNULL, check=True)
        found: list[dict[str, Any]] = json.loads(result.read_text())["programs"]
    return found


def ratio(program: dict[str, Any]) -> float:
    """The time without the pass over the time with it: the median of the pairs."""
    pairs = zip(program["peer"]["variant"]["times"], program["fused"]["times"], strict=True)
    return median(without / fused for without, fused in pairs)


def measured(name: str, programs: Sequence[str], total: int, repeat: int) -> dict[str, Any]:
    """One row of the table."""
    results = compared(programs, name, repeat) if programs else []
    ratios = {result["name"]: ratio(result) for result in results}
    first = [r["peer"]["variant"]["first"] / r["fused"]["first"] for r in results]
    every = [*ratios.values(), *[1.0] * (total - len(ratios))]
    return {
        "pass": name,
        "programs": ratios,
        "mean": geometric_mean(every),
        "first_run": geometric_mean(first) if first else 1.0,
        "wrong": [r["name"] for r in results if not r["correct"]],
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: the passes that gain most first."""
    lines = [
        "| without | programs it changes | time, geometric mean of all | loses most | gains most "
        "| first run of those |",
        "| --- | ---: | ---: | --- | --- | ---: |",
    ]
    for row in sorted(rows, key=lambda row: -row["mean"]):
        ends = sorted(row["programs"].items(), key=lambda item: item[1])
        most = [f"{name} {value:.2f}" for name, value in reversed(ends) if value > 1.05][:3]
        least = [f"{name} {value:.2f}" for name, value in ends if value < 0.95][:2]
        lines.append(
            f"| {row['pass']} | {len(ends)} | {row['mean']:.3f} | {', '.join(most)} "
            f"| {', '.join(least)} | {row['first_run']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passes", nargs="*", help="all, if left out")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, default=ROOT / "experiments/results/ablation.json")
    given = parser.parse_args()
    before = digests()
    rows: list[dict[str, Any]] = []
    for name in given.passes or [name for name in NAMES if name not in GPU]:
        after = digests(name) if name not in RUNTIME else {}
        changed = [program for program in before if before[program] != after.get(program)]
        rows.append(measured(name, changed, len(before), given.repeat))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
