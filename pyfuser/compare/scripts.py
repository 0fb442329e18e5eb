"""Any script, fused against unfused: run in turns as child processes, its output compared."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pyfuser.compare import peer, report
from pyfuser.compare.summary import Interval, median_interval, ratios, speedup
from pyfuser.support.errors import UsageError
from pyfuser.support.records import dataclass
from pyfuser.support.units import seconds

if TYPE_CHECKING:
    from rich.console import Console, Group


@dataclass(slots=True)
class Runs:
    """The runs of one kind; times in seconds, without the first run, which may compile.

    times: of the script alone, as far as it tells. wall, cpu: of the whole process (the latter of
    all its threads).
    """

    command: tuple[str, ...]
    environment: dict[str, str] | None = None
    folder: Path | None = None
    first: float = 0.0
    times: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    outputs: list[list[bytes]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    launches: int = 0

    def as_json(self) -> dict[str, object]:
        """The raw times."""
        return {
            "first": self.first,
            "times": self.times,
            "wall": self.wall,
            "cpu": self.cpu,
            "launches": self.launches,
        }


@dataclass(slots=True)
class ScriptResult:
    """A script's comparison; `difference` says what is wrong with the fused runs.

    varying: how many words of the output vary from run to run. pykokkos: the same script run by an
    installed PyKokkos, with what differs there.
    """

    name: str
    unfused: Runs
    fused: Runs
    difference: str | None
    varying: int
    arguments: tuple[str, ...] = ()
    pykokkos: Runs | None = None
    peer_difference: str | None = None

    @property
    def speedup(self) -> float:
        return speedup(self.unfused.times, self.fused.times)

    @property
    def interval(self) -> Interval:
        """Of the speedup, from the pairs' ratios."""
        return median_interval(ratios(self.unfused.times, self.fused.times))

    @property
    def peer_speedup(self) -> float | None:
        """Of the whole process over one with PyKokkos."""
        return speedup(self.pykokkos.wall, self.fused.wall) if self.pykokkos else None

    def as_json(self) -> dict[str, object]:
        """All that was measured."""
        return {
            "name": self.name,
            "arguments": list(self.arguments),
            "unfused": self.unfused.as_json(),
            "fused": self.fused.as_json(),
            "pykokkos": self.pykokkos.as_json() if self.pykokkos else None,
            "speedup": self.speedup,
            "speedup_interval": asdict(self.interval),
            "speedup_over_pykokkos": self.peer_speedup,
            "difference": self.difference,
            "difference_from_pykokkos": self.peer_difference,
            "varying_words": self.varying,
        }


def compare(
    script: Path,
    repeat: int,
    space: str | None,
    arguments: Sequence[str] = (),
    peer_python: str | None = None,
) -> ScriptResult:
    """Run a script `repeat` times of each kind after a run that compiles.

    peer_python: a Python whose PyKokkos runs the script, too. Raises UsageError if the script does
    not even run unfused.
    """
    ours = (sys.executable, "-m", "pyfuser", "run")
    choice = () if space is None else ("--space", space)
    unfused, fused = Runs((*ours, "--no-fusion", *choice)), Runs((*ours, *choice))
    kinds = [unfused, fused]
    if peer_python is not None:
        folder = peer.working_folder(script)
        folder.mkdir(parents=True, exist_ok=True)
        kinds.append(Runs((peer_python,), peer.activated(peer_python), folder))
    for number in range(repeat + 1):
        for runs in kinds:
            _run(script.absolute(), arguments, runs, timed=number > 0)
            if unfused.codes[0] != 0:
                raise UsageError(
                    f"{script}: ends with exit status {unfused.codes[0]} when it runs unfused; "
                    "compare takes scripts that end with 0"
                )
    difference, varying = differing(unfused, fused)
    result = ScriptResult(script.stem, unfused, fused, difference, varying, tuple(arguments))
    if peer_python is not None:
        result.pykokkos = kinds[-1]
        result.peer_difference = differing(unfused, kinds[-1])[0]
    return result


def _run(script: Path, arguments: Sequence[str], runs: Runs, timed: bool) -> None:
    """Run once; what PyKokkos prints while it compiles is not kept.

    Errors pass through this process, whose progress they would overwrite.
    """
    ours = runs.environment is None
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts.json"
        options = ("--json", str(facts)) if ours else ()
        before, start = _children_seconds(), time.perf_counter()
        done = subprocess.run(
            [*runs.command, *options, str(script), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=runs.environment,
            cwd=runs.folder,
            check=False,
        )
        wall, cpu = time.perf_counter() - start, _children_seconds() - before
        sys.stderr.write(done.stderr.decode(errors="replace"))
        sys.stderr.flush()
        found = json.loads(facts.read_text("utf-8")) if facts.exists() else {}
    seconds = float(found.get("seconds", 0.0 if ours else wall))
    if timed or ours:
        runs.codes.append(done.returncode)
        runs.outputs.append(done.stdout.splitlines())
    if timed:
        runs.times.append(seconds)
        runs.wall.append(wall)
        runs.cpu.append(cpu)
    else:
        runs.first = seconds
    runs.launches = found.get("launches", 0)


def _children_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def differing(unfused: Runs, fused: Runs) -> tuple[str | None, int]:
    """What differs between the outputs, and how many words differ among the unfused runs already.

    Those, times for example, are not compared; nor are lines that vary in their number of words.
    """
    if set(unfused.codes) != set(fused.codes):
        return f"exit codes {sorted(set(unfused.codes))} and {sorted(set(fused.codes))}", 0
    wanted = unfused.outputs[0]
    if any(len(output) != len(wanted) for output in unfused.outputs):
        return None, sum(len(line.split()) for line in wanted)
    varying = [_varying([output[n] for output in unfused.outputs]) for n in range(len(wanted))]
    count = sum(map(len, varying))
    for output in fused.outputs:
        if len(output) != len(wanted):
            return f"{len(wanted)} and {len(output)} lines of output", count
        for number, line in enumerate(output):
            if _kept(line, varying[number]) != _kept(wanted[number], varying[number]):
                shown = line.decode(errors="replace")[:60]
                return f"line {number + 1} of the output: {shown}", count
    return None, count


def _varying(lines: Sequence[bytes]) -> frozenset[int]:
    """The words, by number, in which versions of a line differ; all, if their numbers do."""
    words = [line.split() for line in lines]
    most = max(map(len, words))
    if any(len(version) != most for version in words):
        return frozenset(range(most))
    return frozenset(n for n in range(most) if len({version[n] for version in words}) > 1)


def _kept(line: bytes, varying: frozenset[int]) -> list[bytes] | bytes:
    """What of a line is compared: all of it if nothing varies, else the words that do not."""
    if not varying:
        return line
    words = line.split()
    if len(varying) == len(words):
        return b""
    return [word for n, word in enumerate(words) if n not in varying]


def table(results: Sequence[ScriptResult], console: Console) -> Group:
    """One row a script; as wide as the console at most."""
    columns = {
        "script": [result.name for result in results],
        "unfused": [seconds(median(result.unfused.times)) for result in results],
        "fused": [seconds(median(result.fused.times)) for result in results],
        "speedup": [report.with_interval(result.speedup, result.interval) for result in results],
        "launches": [
            f"{result.unfused.launches:,} -> {result.fused.launches:,}" for result in results
        ],
        "output": [_verdict(result) for result in results],
    }
    caption = report.explained(results[0].interval, len(results[0].fused.times))
    if any(result.pykokkos for result in results):
        columns["PyKokkos"] = [_peer_verdict(result) for result in results]
        caption += "\nPyKokkos: a whole process, and the speedup of a whole fused process over it"
    return report.fitted(columns, {}, "Scripts, fused against unfused: one run", caption, console)


def _peer_verdict(result: ScriptResult) -> str:
    if result.pykokkos is None or result.peer_speedup is None:
        return ""
    verdict = f"differs: {result.peer_difference}" if result.peer_difference else "same output"
    return (
        f"{seconds(median(result.pykokkos.wall))}, {report.digits(result.peer_speedup)}x, {verdict}"
    )


def _verdict(result: ScriptResult) -> str:
    if result.difference is not None:
        return f"differs: {result.difference}"
    if result.varying:
        return f"same but for {result.varying} words that vary"
    return "same"
