"""The report of what was fused, what was not and why, in the user's names and lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyfuser.ir.nodes import SourceLocation

_WHY = {
    "space": "they run over different iteration or execution spaces",
    "pattern": "their patterns (for, reduce, scan) cannot share a loop",
    "scalar": "the second takes the first one's result as an argument",
    "opaque": "one has an effect whose order must be kept (printf)",
    "unknown-access": "an access cannot be analysed",
    "profit": "sharing a loop would not pay",
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
    """One launched kernel.

    contracted: names of views that cost no memory any more. removed_stores / removed_loads: views
    whose stores or loads vanished from the kernel, with the number of places. bytes_moved and
    bytes_unfused: estimates of the memory traffic of this kernel, and of its calls one by one.
    source: the fused kernel as PyKokkos source.
    """

    calls: tuple[CallReport, ...]
    source: str
    contracted: tuple[str, ...]
    removed_stores: dict[str, int]
    removed_loads: dict[str, int]
    bytes_moved: int
    bytes_unfused: int

    def __str__(self) -> str:
        lines = [f"{_count(len(self.calls), 'call')}: {_names(self.calls)}"]
        if self.contracted:
            lines.append(f"contracted, no memory needed: {', '.join(self.contracted)}")
        for what, count in (("stores", self.removed_stores), ("loads", self.removed_loads)):
            if count:
                views = ", ".join(f"{view} ({n})" for view, n in count.items())
                lines.append(f"{what} removed: {views}")
        if self.bytes_unfused > self.bytes_moved:
            lines.append(
                f"moves about {_bytes(self.bytes_moved)}, unfused {_bytes(self.bytes_unfused)}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RejectionReport:
    """Two calls that did not share a kernel, and the access that stood in the way."""

    first: CallReport
    second: CallReport
    reason: str
    message: str
    location: SourceLocation | None

    def __str__(self) -> str:
        return f"{self.first} | {self.second}: {self.message}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one flush, or several, did; `str` of it is the report."""

    groups: tuple[GroupReport, ...]
    rejections: tuple[RejectionReport, ...]
    recorded: int
    show_source: bool = field(default=False, repr=False)

    @property
    def launches(self) -> int:
        """How many kernels were launched."""
        return len(self.groups)

    def __str__(self) -> str:
        if not self.recorded:
            return "pyfuser: nothing has been flushed yet"
        lines = [f"{self.recorded} calls ran as {_count(self.launches, 'kernel')}"]
        for numbers, group in _folded(self.groups):
            lines.append(f"\n{numbers}: " + str(group).replace("\n", "\n    "))
            if self.show_source:
                lines.append("    " + group.source.rstrip().replace("\n", "\n    "))
        if self.rejections:
            lines.append("\nnot fused:")
            lines += [f"  {rejection}" for rejection in self.rejections]
        return "\n".join(lines)


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


def _folded(groups: tuple[GroupReport, ...]) -> Iterator[tuple[str, GroupReport]]:
    """Kernels with their numbers; equal ones in a row once."""
    start = 0
    while start < len(groups):
        end = start + 1
        while end < len(groups) and groups[end] == groups[start]:
            end += 1
        yield (
            f"kernel {end}" if end == start + 1 else f"kernels {start + 1} to {end}, each",
            groups[start],
        )
        start = end


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
