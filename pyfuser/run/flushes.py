"""What `pyfuser run --report` prints: what was fused, and where the program waited and why."""

from __future__ import annotations

import os
import sys
from collections import Counter

from pyfuser import driver, report
from pyfuser.counters import COUNTERS
from pyfuser.driver import Flush
from pyfuser.plan.explain import short_path
from pyfuser.run.guards import REASON
from pyfuser.trace.tracer import Tracer

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
MAX_PROGRAMS = 64  # of which a report shows the kernels

_ASKED = {
    "parallel_for": "another thread, printf or code that is not rewritten could see its effect",
    "parallel_reduce": "its result is a number",
    "parallel_scan": "its result is a number",
    "fence": "pk.fence()",
    "sync": "pyfuser.sync()",
}

Place = tuple[str, int, str]


class FlushLog:
    """Stands before the driver's flush and counts, by place and reason, what it runs.

    source: whether its text shows the fused kernels.
    """

    def __init__(self, source: bool = False) -> None:
        self.source = source
        self.flushes: Counter[Place] = Counter()
        self.calls: Counter[Place] = Counter()
        self.programs: dict[tuple[int, int], tuple[Flush, int]] = {}

    def install(self) -> None:
        driver.TRACER.flush_function = self.flush

    def flush(self, tracer: Tracer) -> None:
        """Count a flush, then run it."""
        place = REASON.now or _asked_for()
        self.flushes[place] += 1
        self.calls[place] += len(tracer.calls)
        driver.flush(tracer)
        if not driver.FLUSHES:  # PYFUSER_CHECK runs calls one by one
            return
        latest = driver.FLUSHES[-1]
        key = id(latest.program), hash(latest.calls)
        if key in self.programs or len(self.programs) < MAX_PROGRAMS:
            self.programs[key] = latest, self.programs.get(key, (latest, 0))[1] + 1

    def text(self) -> str:
        """The report."""
        total, launches = sum(self.calls.values()), COUNTERS.launches
        flushes = sum(self.flushes.values())
        lines = [f"pyfuser: {total} calls ran as {launches} kernels in {flushes} flushes"]
        for (file, line, why), count in sorted(self.flushes.items(), key=lambda e: e[0][:2]):
            where = f"{short_path(file)}:{line}: " if line else ""
            calls = self.calls[file, line, why]
            lines.append(f"  {where}{why} ({_times(count)}, {calls} calls)")
        for flush, count in self.programs.values():
            lines.append(f"\n{_times(count)}: {report.explanation([flush], self.source)}")
        return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _asked_for() -> Place:
    """Who asked, and by what, if no guard did."""
    name = ""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or name in ("run", "main", "<module>"):
        return "", 0, "the end of the program"
    why = _ASKED.get(name, "a View is read or written")
    return frame.f_code.co_filename, frame.f_lineno, why
