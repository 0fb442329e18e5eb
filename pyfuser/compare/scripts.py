"""Any script, fused against unfused: run in turns as child processes, its output compared."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyfuser.compare.summary import speedup, spread

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(slots=True)
class Runs:
    """The runs of one kind. Times are in seconds, of the script alone; `first` may compile."""

    options: tuple[str, ...]
    first: float = 0.0
    times: list[float] = field(default_factory=list)
    outputs: list[list[bytes]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    launches: int = 0


@dataclass(slots=True)
class ScriptResult:
    """A script's comparison; `difference` says what is wrong with the fused runs."""

    name: str
    unfused: Runs
    fused: Runs
    difference: str | None
    varying: int

    @property
    def speedup(self) -> float:
        return speedup(self.unfused.times, self.fused.times)


def compare(script: Path, repeat: int, space: str | None) -> ScriptResult:
    """Run a script `repeat` times of each kind after a run that compiles."""
    choice = () if space is None else ("--space", space)
    unfused, fused = Runs(("--no-fusion", *choice)), Runs(choice)
    for number in range(repeat + 1):
        for runs in (unfused, fused):
            seconds = _run(script, runs)
            if number:
                runs.times.append(seconds)
            else:
                runs.first = seconds
    difference, varying = differing(unfused, fused)
    return ScriptResult(script.stem, unfused, fused, difference, varying)


def _run(script: Path, runs: Runs) -> float:
    """Run once; seconds of the script itself, or of the process if it did not end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts.json"
        command = [sys.executable, "-m", "pyfuser", "run", *runs.options]
        done = subprocess.run(
            [*command, "--json", str(facts), str(script)],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        found = json.loads(facts.read_text("utf-8")) if facts.exists() else {}
    runs.codes.append(done.returncode)
    runs.outputs.append(done.stdout.splitlines())
    runs.launches = found.get("launches", 0)
    return float(found.get("seconds", 0.0))


def differing(unfused: Runs, fused: Runs) -> tuple[str | None, int]:
    """What differs between the outputs, and how many lines differ among the unfused runs already.

    Those, times for example, are not compared.
    """
    if set(unfused.codes) != set(fused.codes):
        return f"exit codes {sorted(set(unfused.codes))} and {sorted(set(fused.codes))}", 0
    wanted = unfused.outputs[0]
    if any(len(output) != len(wanted) for output in unfused.outputs):
        return None, len(wanted)
    varying = {
        n for output in unfused.outputs for n, line in enumerate(output) if line != wanted[n]
    }
    for output in fused.outputs:
        if len(output) != len(wanted):
            return f"{len(wanted)} and {len(output)} lines of output", len(varying)
        for number, line in enumerate(output):
            if line != wanted[number] and number not in varying:
                shown = line.decode(errors="replace")[:60]
                return f"line {number + 1} of the output: {shown}", len(varying)
    return None, len(varying)


def table(results: Sequence[ScriptResult]) -> Table:
    """One row a script."""
    from rich.table import Table

    made = Table(title="Scripts, fused against unfused: median (min-max) of one run in seconds")
    for heading in ("script", "unfused", "fused", "speedup", "kernels", "output"):
        made.add_column(heading, justify="left" if heading in ("script", "output") else "right")
    for result in results:
        made.add_row(
            result.name,
            _times(result.unfused.times),
            _times(result.fused.times),
            f"{result.speedup:.2f}x",
            f"{result.unfused.launches:,} -> {result.fused.launches:,}",
            _verdict(result),
        )
    return made


def _times(times: Sequence[float]) -> str:
    values = spread(times)
    return f"{values.median:.3g} ({values.low:.3g}-{values.high:.3g})"


def _verdict(result: ScriptResult) -> str:
    if result.difference is not None:
        return f"differs: {result.difference}"
    if result.varying:
        return f"equal, but for {result.varying} lines that vary from run to run"
    return "equal"
