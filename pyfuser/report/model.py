"""What `pyfuser.explain()` returns: facts, without a word of how they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pyfuser.ir.nodes import SourceLocation
from pyfuser.support.places import short_path
from pyfuser.support.records import dataclass

BALANCE = 1.0
"""Additions for a byte of traffic up to which a kernel waits for memory rather than for arithmetic.

The cost model knows launches and memory only. On two cores with AVX-512 kernels up to that took 0.8
to 3.7 times the modelled time, others up to 15 times."""

TRUSTED = 2.0
"""By how much a modelled time may differ from the measured one and still be shown."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """One recorded call: its label or workunit's name, the line that made it, its workunit's.

    position: its place among the calls of its flush.
    """

    name: str
    file: str
    line: int
    workunit: SourceLocation | None = None
    position: int = field(default=0, compare=False)

    @property
    def location(self) -> str:
        """The file and line as people read them."""
        return f"{short_path(self.file)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.name} ({self.location})"


@dataclass(frozen=True, slots=True)
class Kept:
    """An array that stayed in memory although its loop needs none.

    size: its bytes. reader: the call of another kernel that reads it; None if the program itself
    still can, as a name holds it.
    """

    name: str
    size: int
    reader: CallReport | None = None


@dataclass(frozen=True, slots=True)
class Vectors:
    """Whether a loop's iterations run in the lanes of vectors, as code generation decided.

    answer: "yes", "no", "in part", or "unknown" where the compiler decides. why: what stands in the
    way, if anything does. location: and where.
    """

    answer: str = "unknown"
    why: str = ""
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kernel moves and takes, beside its calls one by one.

    bytes_moved and bytes_unfused: estimates of the memory traffic. modelled and modelled_unfused:
    seconds that the cost model expects (it knows of launches and memory, not of arithmetic).
    operations: what all iterations compute, in additions; None if they have loops whose lengths are
    known at a launch only. measured: mean seconds of the latest
    launches without the first, which pays for fresh memory; that one's if there is no other; None
    if none was timed, as in a loop of a sweep. launches: how many were.
    """

    bytes_moved: int = 0
    bytes_unfused: int = 0
    modelled: float = 0.0
    modelled_unfused: float = 0.0
    operations: float | None = 0.0
    measured: float | None = None
    launches: int = 0

    @property
    def warm(self) -> float | None:
        """What a launch takes, the first one aside."""
        return self.measured if self.launches > 1 else None

    @property
    def waits_for_memory(self) -> bool:
        """Whether memory, not arithmetic, takes the kernel's time, as far as it is known."""
        return self.operations is not None and self.operations <= BALANCE * self.bytes_moved

    @property
    def fits(self) -> bool:
        """Whether the modelled time is to be trusted: nothing that is known contradicts it."""
        if self.warm is not None and self.modelled:
            return 1 / TRUSTED <= self.warm / self.modelled <= TRUSTED
        return self.waits_for_memory


@dataclass(frozen=True, slots=True)
class GroupReport:
    """Calls that share one loop: a kernel of its own, or one loop of a sweep.

    contracted: names of views that cost no memory any more; bytes_avoided: what they would take.
    kept: views that need some only as they are read elsewhere. removed_stores / removed_loads:
    views whose stores or loads vanished from the kernel, with the number of places. source: the
    fused kernel as PyKokkos source. generated: the code that was compiled; empty in a sweep.

    rewritten: what rewrites made of its calls (see `plan.rewrite`), a line each. order: what was
    done to its loops, if they do not run as the program nests them. registers: what a GPU's
    compiler said.
    """

    calls: tuple[CallReport, ...]
    source: str = ""
    generated: str = ""
    contracted: tuple[str, ...] = ()
    bytes_avoided: int = 0
    kept: tuple[Kept, ...] = ()
    removed_stores: dict[str, int] = field(default_factory=dict)
    removed_loads: dict[str, int] = field(default_factory=dict)
    cost: Cost = Cost()
    vectors: Vectors | None = None
    order: str = ""
    registers: str = ""
    rewritten: tuple[str, ...] = ()

    @property
    def measured(self) -> float | None:
        """See `Cost`."""
        return self.cost.measured


@dataclass(frozen=True, slots=True)
class SweepReport:
    """Loops that ran in one kernel, each some steps of the outermost index behind the first.

    groups: their places in `Explanation.groups`. lags: how many steps each stays behind. wave: by
    how many steps the first moves on at a time. windows: names of views of which each thread keeps
    a window only. scan: whether one of them is a scan; the wave is then its tile. ring: whether the
    outermost index is periodic.
    """

    groups: tuple[int, ...]
    lags: tuple[int, ...]
    wave: int
    windows: tuple[str, ...] = ()
    cost: Cost = Cost()
    scan: bool = False
    generated: str = ""
    ring: bool = False


@dataclass(frozen=True, slots=True)
class RejectionReport:
    """Two calls that did not share a loop, and the access that stood in the way.

    reason: the slug of `plan.Rejection`. message: the same as a sentence. remedy: what the program
    could do about it; empty if nothing. location: of the access. same_sweep: their loops ran in one
    kernel all the same. sweep: why not, if that was tried.
    """

    first: CallReport
    second: CallReport
    reason: str
    message: str
    location: SourceLocation | None = None
    same_sweep: bool = False
    remedy: str = ""
    sweep: str = ""

    def __str__(self) -> str:
        return f"{self.first} | {self.second}: {self.message}"


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the program waited for its calls, why, and how often. file is empty if nowhere."""

    file: str
    line: int
    why: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One launch: its loops (several in a sweep), in order."""

    loops: tuple[GroupReport, ...]
    sweep: SweepReport | None = None

    @property
    def cost(self) -> Cost:
        return self.sweep.cost if self.sweep else self.loops[0].cost

    @property
    def calls(self) -> tuple[CallReport, ...]:
        return tuple(call for loop in self.loops for call in loop.calls)

    @property
    def generated(self) -> str:
        """The code that was compiled."""
        return self.sweep.generated if self.sweep else self.loops[0].generated


@dataclass(frozen=True, slots=True)
class Report:
    """What one flush, or several, did.

    unrecorded: calls of this process that an installed PyKokkos ran itself, each with the reason.
    apart: calls of this process that ran unfused, as to plan or to record them took longer.
    copied_to_device, copied_to_host: bytes that the flushes moved between a GPU and the host.
    asked: where the program waited for these calls, and why. covered, earlier: how many flushes
    this is about, and how many came before, of those kept. ends: behind which of `groups` each
    flush ends. checked: whether PYFUSER_CHECK kept calls from being recorded. bytes_at_once: what
    arrays that a flush makes take at once, at the most, and bytes_at_once_unfused without fusion.
    waiting: how many calls of a flush run again for whoever reads what it has left out. banded: how
    many calls ran band by band, unfused.
    """

    groups: tuple[GroupReport, ...] = ()
    rejections: tuple[RejectionReport, ...] = ()
    recorded: int = 0
    show_source: bool = False
    sweeps: tuple[SweepReport, ...] = ()
    unrecorded: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    copied_to_device: int = 0
    copied_to_host: int = 0
    asked: tuple[Asked, ...] = ()
    covered: int = 1
    earlier: int = 0
    ends: tuple[int, ...] = ()
    checked: bool = False
    bytes_at_once: int = 0
    bytes_at_once_unfused: int = 0
    waiting: int = 0
    banded: int = 0

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """The launches, in order."""
        first = {sweep.groups[0]: sweep for sweep in self.sweeps}
        inside = {place for sweep in self.sweeps for place in sweep.groups}
        found = []
        for place, group in enumerate(self.groups):
            if place in first:
                loops = tuple(self.groups[loop] for loop in first[place].groups)
                found.append(KernelReport(loops, first[place]))
            elif place not in inside:
                found.append(KernelReport((group,)))
        return tuple(found)

    @property
    def launches(self) -> int:
        """How many kernels were launched."""
        return len(self.groups) - sum(len(sweep.groups) - 1 for sweep in self.sweeps)

    @property
    def bytes_moved(self) -> int:
        """An estimate of the memory traffic of all kernels."""
        return sum(kernel.cost.bytes_moved for kernel in self.kernels)

    @property
    def bytes_unfused(self) -> int:
        """The same of all calls one by one."""
        return sum(kernel.cost.bytes_unfused for kernel in self.kernels)

    @property
    def bytes_avoided(self) -> int:
        """What the arrays would take that need no memory."""
        return sum(group.bytes_avoided for group in self.groups)

    @property
    def seconds(self) -> float | None:
        """What all kernels take, if each was timed after its first launch."""
        return total(kernel.cost.warm for kernel in self.kernels)


def total(times: Iterable[float | None]) -> float | None:
    """The sum; None if one is missing, or all are."""
    found = list(times)
    known = [time for time in found if time is not None]
    return sum(known) if found and len(known) == len(found) else None
