"""Programs whose sizes change all the time: when planning a trace pays, and what runs until then.

Planning takes as long as thousands of small kernels. Where ranges or offsets are new at every step,
each plan would be used once. So once the same workunits were planned for several shapes, a new
shape first runs call by call, as without fusion. It is planned when that has taken as long as
planning will: whatever comes next, at most twice the time of the better choice is spent (the
ski-rental rule; A. Karlin et al., "Competitive snoopy caching", 1988).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from pyfuser.engine import native
from pyfuser.engine.native import Launchable
from pyfuser.launches import Launch, launch_of
from pyfuser.plan.plan import Group, Plan, Rejection
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape, group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import specialise
from pyfuser.transform.overwrites import mark_overwrites

AT_ONCE = 4  # shapes of the same workunits that are planned without waiting
MAX_FAMILIES = 512
MAX_CALLS = 2048


class Family:
    """The traces of the same workunits: how many were planned, and the least time that took."""

    __slots__ = ("plans", "seconds")

    def __init__(self) -> None:
        self.plans = 0
        self.seconds = float("inf")

    @property
    def changes(self) -> bool:
        """Whether its shapes are so many that the next may not come back."""
        return self.plans >= AT_ONCE

    def planned(self, seconds: float) -> None:
        self.plans += 1
        self.seconds = min(self.seconds, seconds)

    def pays(self, launches: Sequence[Launch]) -> bool:
        """Whether launches have taken as long as a plan takes."""
        return sum(launch.timing.runs * launch.timing.mean for launch in launches) >= self.seconds


FAMILIES: OrderedDict[tuple[int, ...], Family] = OrderedDict()
ALONE: OrderedDict[GroupShape, tuple[Kernel, Launchable]] = OrderedDict()


def family_of(trace: TraceShape) -> Family:
    """The family of a trace. One that was forgotten begins anew."""
    key = tuple([id(call.workunit) for call in trace.calls])
    family = FAMILIES.setdefault(key, Family())
    while len(FAMILIES) > MAX_FAMILIES:
        FAMILIES.popitem(last=False)
    return family


def one_by_one(trace: TraceShape) -> tuple[Plan, tuple[Kernel, ...], tuple[Launch, ...]]:
    """Every call of a trace as a kernel of its own, in order and as it was written.

    Raises what `native.prepare` does.
    """
    calls = range(len(trace.calls))
    shapes = [GroupShape(shape.calls) for shape in group_shapes(trace, [(n,) for n in calls])]
    new = {shape: mark_overwrites(fuse(shape)) for shape in shapes if shape not in ALONE}
    launchables = native.prepare([specialise(kernel) for kernel in new.values()])
    made = dict(zip(new, zip(new.values(), launchables, strict=True), strict=True))
    found = [made.get(shape) or ALONE[shape] for shape in shapes]
    ALONE.update(made)
    while len(ALONE) > MAX_CALLS:
        ALONE.popitem(last=False)
    rejections = tuple(Rejection(n, n + 1, "sizes") for n in calls[:-1])
    plan = Plan(tuple(Group((n,)) for n in calls), rejections)
    launches = [
        launch_of([(n,)], [kernel], launchable, kernel.space)
        for n, (kernel, launchable) in enumerate(found)
    ]
    return plan, tuple(kernel for kernel, _ in found), tuple(launches)
