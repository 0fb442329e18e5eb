"""The report of what was fused, what was not and why, in the user's names and lines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyfuser.ir.nodes import SourceLocation
from pyfuser.units import seconds, size

Text = TypeVar("Text")

_WHY = {
    "space": "they run over different spaces",
    "pattern": "a scan, or a reduction that does not only add, shares a loop with no other call",
    "scalar": "the second takes the first one's result as an argument",
    "order": "the bits of their sums depend on different orders of additions",
    "threads": "their teams ask for blocks of different sizes on a GPU",
    "opaque": "one has an effect whose order must be kept (printf)",
    "unknown-access": "an access cannot be analysed",
    "profit": "sharing a loop would not pay",
    "registers": "the GPU's compiler needed more registers for both than fit many threads",
    "measured": "both ways are timed, as the cost model is in doubt, and the faster is kept",
    "cycle": "a call between them has to run after one and before the other",
    "limit": "the kernel would have too many calls or arguments",
}


@dataclass(frozen=True, slots=True)
class CallReport:
    """One recorded call: its label or workunit's name, and the line that made it."""

    name: str
    location: str

    def __str__(self) -> str:
        return f"{self.name} ({self.location})"


@dataclass(frozen=True, slots=True)
class GroupReport:
    """Calls that share one loop: a kernel of its own, or one loop of a sweep.

    contracted: names of views that cost no memory any more. removed_stores / removed_loads: views
    whose stores or loads vanished from the kernel, with the number of places. bytes_moved and
    bytes_unfused: estimates of the memory traffic of this kernel, and of its calls one by one.
    modelled and modelled_unfused: seconds that the cost model expects of the same (it knows of
    launches and memory, not of arithmetic). measured: mean seconds of its latest launches; None
    for a loop of a sweep. source: the fused kernel as PyKokkos source. order: what was done to its
    loops, if they do not run as the program nests them. coarsened: names of calls, by how many of
    their iterations run as one. guarded: names of calls that run inside ranges of their own, which
    are smaller than the loop's. split: whether the loop is split where these begin and end.
    registers: what a GPU's compiler said. streamed: names of views that are stored past the caches.
    boxed: names of calls over one index that runs as two. placed: names of calls over edges, with
    the rows (in steps of the outermost axis) where they run.
    boxed: names of calls over one index that runs as two. recomputed: for calls that compute again
    what others would store, their names, those of the others, and for how many iterations.
    vanished: names of the others, where nothing is stored at all.
    """

    calls: tuple[CallReport, ...]
    source: str
    contracted: tuple[str, ...]
    removed_stores: dict[str, int]
    removed_loads: dict[str, int]
    bytes_moved: int
    bytes_unfused: int
    modelled: float
    modelled_unfused: float
    measured: float | None
    order: str = ""
    coarsened: dict[int, tuple[str, ...]] = field(default_factory=dict)
    guarded: tuple[str, ...] = ()
    split: bool = False
    registers: str = ""
    streamed: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()
    placed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    recomputed: tuple[tuple[str, str, int], ...] = ()
    vanished: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *_saved(self), *_took([self.measured])])

    def lines(self) -> list[str]:
        """The text without bytes and times."""
        lines = [f"{_count(len(self.calls), 'call')}: {_names(self.calls)}"]
        if self.boxed:
            lines.append(f"flattened, runs over rows and columns: {', '.join(self.boxed)}")
        for name, rows in self.placed.items():
            lines.append(f"an edge, runs beside row {' and '.join(map(str, rows))}: {name}")
        for factor, names in self.coarsened.items():
            lines.append(f"coarsened, {factor} iterations in one: {', '.join(names)}")
        if self.guarded:
            how = "split at the ends of" if self.split else "guarded by"
            lines.append(f"{how} ranges of their own: {', '.join(self.guarded)}")
        for user, producer, times in self.recomputed:
            often = "once" if times == 1 else f"{times} times"
            kept = "" if producer in self.vanished else ", which runs as well"
            lines.append(f"recomputed where {user} reads it, {often}: {producer}{kept}")
        if self.contracted:
            lines.append(f"contracted, no memory needed: {', '.join(self.contracted)}")
        for what, count in (("stores", self.removed_stores), ("loads", self.removed_loads)):
            if count:
                views = ", ".join(f"{view} ({n})" for view, n in count.items())
                lines.append(f"{what} removed: {views}")
        if self.streamed:
            lines.append(f"stored past the caches: {', '.join(self.streamed)}")
        return [*lines, *filter(None, (self.order, self.registers))]


@dataclass(frozen=True, slots=True)
class SweepReport:
    """Loops that ran in one kernel, each some steps of the outermost index behind the first.

    groups: their places in `Explanation.groups`. lags: how many steps each stays behind. wave: by
    how many steps the first moves on at a time. windows: names of views of which each thread keeps
    a window only. scan: whether one of them is a scan; the wave is then its tile. The bytes and
    times are as in GroupReport.
    """

    groups: tuple[int, ...]
    lags: tuple[int, ...]
    wave: int
    windows: tuple[str, ...]
    bytes_moved: int
    bytes_unfused: int
    modelled: float
    modelled_unfused: float
    measured: float | None
    scan: bool = False


@dataclass(frozen=True, slots=True)
class RejectionReport:
    """Two calls that did not share a loop, and the access that stood in the way.

    same_sweep: their loops ran in one kernel all the same.
    """

    first: CallReport
    second: CallReport
    reason: str
    message: str
    location: SourceLocation | None
    same_sweep: bool = False

    def __str__(self) -> str:
        return f"{self.first} | {self.second}: {self.message}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one flush, or several, did; `str` of it is the report, and a notebook shows HTML.

    unrecorded: calls of this process that an installed PyKokkos ran itself, each with the reason.
    copied_to_device, copied_to_host: bytes that the flushes moved between a GPU and the host.
    asked: where the program waited for these calls, and why.
    waiting: calls that a flush left for the next one, as the result it was for needs none of them.
    covered, earlier: how many flushes this is about, and how many came before, of those kept.
    """

    groups: tuple[GroupReport, ...]
    rejections: tuple[RejectionReport, ...]
    recorded: int
    show_source: bool = field(default=False, repr=False)
    sweeps: tuple[SweepReport, ...] = ()
    unrecorded: tuple[str, ...] = ()
    copied_to_device: int = 0
    copied_to_host: int = 0
    asked: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    covered: int = 1
    earlier: int = 0

    @property
    def launches(self) -> int:
        """How many kernels were launched."""
        return len(self.groups) - sum(len(sweep.groups) - 1 for sweep in self.sweeps)

    def __str__(self) -> str:
        lines = [self._headline(), *self._head()]
        for title, facts, source, _ in self._folded_kernels():
            lines.append(f"\n{title}")
            lines += (f"    {line}" for line in (*facts, *source))
        for title, calls in self._apart():
            lines += [f"\n{title}", *(f"  {call}" for call in calls)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The report as notebooks show it, where the sources are there to unfold."""
        from pyfuser.plan import explain_html  # needed in notebooks: not at every start

        short = replace(self, show_source=False)
        return explain_html.page(
            [
                explain_html.line(self._headline()),
                *map(explain_html.line, self._head()),
                *(
                    explain_html.kernel(title, facts, [loop.source for loop in loops])
                    for title, facts, _, loops in short._folded_kernels()
                ),
                *(explain_html.listing(title, map(str, calls)) for title, calls in self._apart()),
            ]
        )

    def _head(self) -> Iterator[str]:
        """What stands below the headline."""
        yield from self.asked
        if self.earlier and self.recorded:
            every = self.covered + self.earlier
            yield f"{_count(self.earlier, 'run')} before: see pyfuser.explain(flushes={every})"

    def _headline(self) -> str:
        if not self.recorded:
            return "pyfuser: nothing has been flushed yet"
        text = f"{_count(self.recorded, 'call')} ran as {_count(self.launches, 'kernel')}"
        copies = (self.copied_to_device, "to the GPU"), (self.copied_to_host, "to the host")
        copied = [f"{size(count)} {where}" for count, where in copies if count]
        return text + (f"; copied {' and '.join(copied)}" if copied else "")

    def _apart(self) -> Iterator[tuple[str, Sequence[object]]]:
        """The calls that do not share a loop, or were not recorded, in lists with titles."""
        for same_sweep, title in ((False, "not fused:"), (True, "in one sweep, not in one loop:")):
            apart = [r for r in self.rejections if r.same_sweep == same_sweep]
            if apart:
                yield title, apart
        if self.waiting:
            waited = _count(len(self.waiting), "call")
            yield f"{waited} waited for the next launch:", self.waiting
        if self.unrecorded:
            yield "not recorded:", self.unrecorded

    def _folded_kernels(self) -> Iterator[tuple[str, list[str], list[str], list[GroupReport]]]:
        """For each run of equal kernels: title, other lines, the source if shown, and its loops."""
        kernels = list(self._kernels())
        for first, last, (facts, source) in _folded([kernel[:2] for kernel in kernels]):
            took = _took([time for _, _, time, _ in kernels[first - 1 : last]])
            title = f"{_numbers('kernel', first, last)}: {facts[0]}"
            yield title, [*facts[1:], *took], source, kernels[first - 1][3]

    def _kernels(self) -> Iterator[tuple[list[str], list[str], float | None, list[GroupReport]]]:
        """For each kernel: lines, its source if that is shown, what it took, and its loops."""
        first = {sweep.groups[0]: sweep for sweep in self.sweeps}
        inside = {place for sweep in self.sweeps for place in sweep.groups}
        for place, group in enumerate(self.groups):
            if place in first:
                sweep = first[place]
                loops = [self.groups[loop] for loop in sweep.groups]
                yield list(self._sweep(sweep)), [], sweep.measured, loops
            elif place not in inside:
                facts = [*group.lines(), *_saved(group)]
                yield facts, self._source(group), group.measured, [group]

    def _sweep(self, sweep: SweepReport) -> Iterator[str]:
        """What a sweep does, loop by loop."""
        loops = [self.groups[place] for place in sweep.groups]
        apart = "side by side"
        if sweep.scan:
            apart = f"over tiles of {_count(sweep.wave, 'iteration')}, as the scan"
        elif any(sweep.lags):
            apart = f"up to {_count(max(sweep.lags), 'step')} apart"
        yield f"a sweep of {len(loops)} loops, {apart}"
        texts = [(*loop.lines(), *self._source(loop)) for loop in loops]
        for first, last, loop in _folded(texts):
            yield f"{_numbers('loop', first, last)}: {loop[0]}"
            yield from (f"    {line}" for line in loop[1:])
        if sweep.windows:
            yield f"a window is enough for: {', '.join(sweep.windows)}"
        yield from _saved(sweep)

    def _source(self, group: GroupReport) -> list[str]:
        return group.source.rstrip().split("\n") if self.show_source else []


def short_path(file: str) -> str:
    """A file's path, relative to the working directory where it lies below that."""
    here = os.path.join(os.getcwd(), "")
    return file.removeprefix(here)


def describe(reason: str, detail: str) -> str:
    """The sentence for a Rejection's reason; `detail` names the accesses of a dependence."""
    if reason in ("flow", "anti", "output"):
        return f"{reason} dependence between different iterations{detail}"
    return _WHY.get(reason, reason) + detail


def _names(calls: tuple[CallReport, ...]) -> str:
    """The calls' names with repeats folded: `a, b, a (x3)`."""
    parts: list[tuple[str, int]] = []
    for call in calls:
        if parts and parts[-1][0] == str(call):
            parts[-1] = (str(call), parts[-1][1] + 1)
        else:
            parts.append((str(call), 1))
    return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _folded(texts: Sequence[Text]) -> Iterator[tuple[int, int, Text]]:
    """Runs of equal texts: the numbers (from 1) of the first and the last, and the text."""
    start = 0
    while start < len(texts):
        end = start + 1
        while end < len(texts) and texts[end] == texts[start]:
            end += 1
        yield start + 1, end, texts[start]
        start = end


def _numbers(noun: str, first: int, last: int) -> str:
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}, each"


def _saved(report: GroupReport | SweepReport) -> list[str]:
    """What a kernel moves and takes, beside its calls one by one."""
    lines = []
    if report.bytes_unfused > report.bytes_moved:
        moved, unfused = size(report.bytes_moved), size(report.bytes_unfused)
        lines.append(f"moves about {moved}, unfused {unfused}")
    if report.modelled_unfused > report.modelled:
        fused, unfused = seconds(report.modelled), seconds(report.modelled_unfused)
        lines.append(f"modelled {fused}, unfused {unfused}")
    return lines


def _took(times: Sequence[float | None]) -> list[str]:
    """What equal kernels took, as far as it was measured."""
    texts = [seconds(time) for time in sorted(time for time in times if time is not None)]
    if not texts:
        return []
    return [f"measured {texts[0]}" + (f" to {texts[-1]}" if texts[0] != texts[-1] else "")]
