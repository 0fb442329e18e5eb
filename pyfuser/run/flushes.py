"""What `pyfuser run --report` prints: what was fused, and where the program waited and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pyfuser import report
from pyfuser.frontends.embedded.careful import AT_ONCE
from pyfuser.frontends.modes import SWITCHES
from pyfuser.report import text
from pyfuser.runtime.flush import flush
from pyfuser.runtime.program import Flush
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.places import short_path
from pyfuser.support.units import count
from pyfuser.trace.reason import Place, place_of
from pyfuser.trace.tracer import Tracer

_AT_ONCE = "its effect could be seen at once"
MAX_PROGRAMS = 64  # of which a report shows the kernels


class FlushLog:
    """Stands before the runtime's flush and counts, by place and reason, what it runs.

    source: whether its text shows the fused kernels.
    """

    def __init__(self, source: bool = False) -> None:
        self.source = source
        self.flushes: Counter[Place] = Counter()
        self.calls: Counter[Place] = Counter()
        self.programs: dict[tuple[int, int], tuple[Flush, int]] = {}

    def install(self) -> None:
        TRACER.flush_function = self.flush
        SWITCHES.watched = True

    def flush(self, tracer: Tracer) -> None:
        """Count a flush, then run it."""
        place = place_of(tracer.why)
        self.flushes[place] += 1
        before = tracer.calls
        flush(tracer)
        self.calls[place] += len(before) - len(tracer.calls)
        if not SESSION.flushes:  # PYFUSER_CHECK runs calls one by one
            return
        latest = SESSION.flushes[-1]
        key = id(latest.program), hash(latest.made)
        if key in self.programs or len(self.programs) < MAX_PROGRAMS:
            self.programs[key] = latest, self.programs.get(key, (latest, 0))[1] + 1

    def text(self) -> str:
        """The report."""
        alone = sum(AT_ONCE.values())
        total, launches = sum(self.calls.values()) + alone, COUNTERS.launches
        flushes = sum(self.flushes.values())
        if not total:
            why = "the program made none" if SWITCHES.allowed else "fusion is switched off"
            return f"pyfuser: 0 calls were recorded: {why}"
        ran = f"{count(total, 'call')} ran as {count(launches, 'kernel')}"
        if flushes == len(self.programs) == 1 and not alone:
            told = report.explanation([seen for seen, _ in self.programs.values()], self.source)
            if (told.recorded, told.launches) == (total, launches):  # all there is to say
                return f"pyfuser: {told}"
        lines = [f"pyfuser: {ran}, waited for {_times(flushes)}:"]
        for (file, line, why), times in sorted(self.flushes.items(), key=lambda e: e[0][:2]):
            where = f"{short_path(file)}:{line}: " if line else ""
            calls = count(self.calls[Place(file, line, why)], "call")
            lines.append(f"  {where}{why} ({_times(times)}, {calls})")
        for (file, line), times in sorted(AT_ONCE.items()):
            where = f"{short_path(file)}:{line}"
            lines.append(f"  {where}: {_AT_ONCE} ({_times(times)}, {count(times, 'call')})")
        alike: dict[object, tuple[report.Explanation, int]] = {}  # tuning made several of one
        for seen, times in self.programs.values():
            told = replace(report.explanation([seen], self.source), asked=())
            key = tuple(map(text.key, told.kernels)), str(told.rejections)
            alike[key] = told, times + alike.get(key, (told, 0))[1]
        lines += [f"\n{_times(times)}: {told}" for told, times in alike.values()]
        return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
