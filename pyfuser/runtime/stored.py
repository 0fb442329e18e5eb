"""Plans, kernels and compiled launches that an earlier process has left on disk (`engine.store`).

Each is kept under what it is made of, as in the session's caches: a plan under the shape of its
trace, a kernel under that of its group, the code of a launch under those of its groups. So what
comes from disk is what would be made here. Whether a trace is worth its plan or its kernels (see
`runtime.budget`) is decided as if nothing had been there.
"""

from __future__ import annotations

from typing import NamedTuple

from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.engine import native
from pyfuser.engine.launchable import Launchable
from pyfuser.engine.store.store import STORE, Entry
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.plan.capabilities import Capabilities
from pyfuser.plan.plan import Plan
from pyfuser.plan.search import Planned
from pyfuser.runtime.launch import LaunchKey
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.shape import CallShape, ClusterShape, TraceShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Kernel

MAX_CALLS = 512
"""Of a trace whose plan is kept."""


class _Kept(NamedTuple):
    """A plan; calls, clusters: of the trace as it was planned, if that is another one."""

    calls: tuple[CallShape, ...] | None
    clusters: tuple[ClusterShape, ...]
    graph: DependenceGraph
    plan: Plan


class Code(NamedTuple):
    """What a launch needs to be loaded: the kernels as printed, their spec, source and library."""

    kernels: tuple[Kernel, ...]
    spec: KernelSpec | SweepSpec
    source: str
    library: str


def plan_for(given: TraceShape, able: Capabilities) -> Planned:
    """The plan of a trace."""
    entry = None
    if len(given.calls) <= MAX_CALLS and _on_host(given.calls):
        entry = STORE.entry("plan", given.calls, given.clusters, able)
    found = entry and entry.read()
    if isinstance(found, _Kept):
        trace = given if found.calls is None else TraceShape(found.calls, found.clusters)
        return Planned(trace, found.graph, found.plan)
    from pyfuser.pipeline import planned  # which processes that find all do not need

    made = planned(given, able)
    if entry is not None:
        trace, graph, plan = made
        same = trace is given or trace == given
        entry.write(_Kept(None if same else trace.calls, trace.clusters, graph, plan))
    return made


def kernel_for(shape: GroupShape) -> Kernel:
    """The kernel of a group."""
    entry = STORE.entry("kernel", shape) if _on_host(shape.calls) else None
    found = entry and entry.read()
    if isinstance(found, Kernel):
        return found
    from pyfuser.pipeline import kernel_of

    made = kernel_of(shape)
    if entry is not None:
        entry.write(made)
    return made


def entry_of(key: LaunchKey) -> Entry | None:
    """Where the code of a launch is."""
    if STORE.off or not all(_on_host(shape.calls) for shape in key[0]):
        return None
    return STORE.entry("code", key, native.identity())


def code_of(entry: Entry | None) -> Code | None:
    """The code of a launch, if it is there."""
    found = entry and entry.read()
    return found if isinstance(found, Code) else None


def loaded(code: Code) -> Launchable | None:
    """The launchable of code; None if its library is not there any more. Raises CacheError."""
    return native.load(code.spec, code.source, code.library)


def keep(entry: Entry | None, kernels: tuple[Kernel, ...], made: object) -> None:
    """Keep the code of a launch."""
    if entry is not None and isinstance(made, Launchable):
        entry.write(Code(kernels, made.spec, made.source, made.library.name))


def _on_host(calls: tuple[CallShape, ...]) -> bool:
    return GPU_SPACES.isdisjoint([call.space.execution for call in calls])
