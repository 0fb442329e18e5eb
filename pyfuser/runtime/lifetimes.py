"""Until when a trace needs memory that nothing outside of it can reach, and who has it then.

A loop that makes a View in each step keeps two or three of them; a trace of ten steps would keep
ten. So memory goes from launch to launch, as it does from call to call where nothing is recorded.
Where Python launches, it goes through the pool (`trace.pool`); the extension hands it on by itself
(`hot/inherit.c`), as nothing of Python may run between its launches.

What is kept of the law: whoever gets memory gets it when all calls that touch what was there have
run and are forgotten, so that not even an error or a signal handler has them run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from pyfuser.runtime.launch import Launch, Source
from pyfuser.trace import pool
from pyfuser.trace.call import Call
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.shape import RegionShape, TraceShape

if TYPE_CHECKING:
    from pyfuser.plan.plan import Plan


def with_ends(given: TraceShape, plan: Plan, launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """The launches, each with the memory that nobody needs after it (`Launch.ends`).

    given: the trace as it was recorded.
    """
    first: dict[int, Source] = {}
    for launch in launches:
        for source in launch.sources:
            cluster = cluster_of(given, source)
            if cluster is not None:
                first.setdefault(cluster, source)
    ends: list[list[Source]] = [[] for _ in launches]
    for cluster, last in last_needed(given, plan, launches).items():
        ends[last].append(first[cluster])
    return tuple(
        replace(launch, ends=tuple(sources)) if sources else launch
        for launch, sources in zip(launches, ends, strict=True)
    )


# law
def last_needed(given: TraceShape, plan: Plan, launches: Sequence[Launch]) -> dict[int, int]:
    """By cluster that nothing outside of a trace can reach, the last launch that needs it.

    That is the last one with it among its arguments, and none before its calls may be forgotten
    (`runtime.launch.forgettable`): until then they may run again. A cluster of a call that no
    launch runs is needed to the end, and not among them.
    """
    never = len(launches)
    at = {n: place for place, launch in enumerate(launches) for n in launch.calls}
    kept = [at.get(n, never) for n in range(len(given.calls))]
    for note in plan.notes:
        kept[note.call] = max([kept[note.call], *(at.get(n, never) for n in note.until)])
    found: dict[int, int] = {}
    for place, launch in enumerate(launches):
        for source in launch.sources:
            cluster = cluster_of(given, source)
            if cluster is not None and given.clusters[cluster].temporary:
                found[cluster] = place
    for n, call in enumerate(given.calls):
        for region in _regions(call.arguments):
            if region.cluster in found:
                found[region.cluster] = max(found[region.cluster], kept[n])
    return {cluster: last for cluster, last in found.items() if last < never}


# law
def heirs(
    given: TraceShape, launches: Sequence[Launch], stored: Sequence[Sequence[Source]]
) -> dict[int, Source]:
    """By cluster that is fresh, whose memory it gets: that of one that ended in a launch before.

    Both have as many bytes, as far as calls touch them. stored: the arguments of each launch that
    are in memory.
    """
    sizes = sizes_of(given)
    free: dict[int, list[Source]] = {}
    found: dict[int, Source] = {}
    seen: set[int] = set()
    for launch, sources in zip(launches, stored, strict=True):
        for source in sources:
            cluster = cluster_of(given, source)
            if cluster is None or cluster in seen:
                continue
            seen.add(cluster)
            left = free.get(sizes[cluster])
            if left and given.clusters[cluster].fresh:
                found[cluster] = left.pop()
        for source in launch.ends:
            cluster = cluster_of(given, source)
            if cluster in seen:
                free.setdefault(sizes[cluster], []).append(source)
    return found


def stored(launch: Launch) -> dict[int, Source]:
    """The arguments of a launch that are in memory of their own, by place among all."""
    sources: list[Source | None] = list(launch.sources)
    for place, _ in launch.bounds:
        sources.insert(place, None)
    values: Any = getattr(launch.launchable, "filling", ())
    places = [value.argument for value in values if value.kind == "pointer" and value.argument >= 0]
    return {place: source for place in places if (source := sources[place]) is not None}


def cluster_of(given: TraceShape, source: Source) -> int | None:
    """The cluster of an argument; None for a number."""
    argument = given.calls[source[0]].arguments[source[1]]
    return argument.cluster if isinstance(argument, RegionShape) else None


def sizes_of(given: TraceShape) -> dict[int, int]:
    """The bytes of each cluster, as far as calls touch it: those of its largest region."""
    sizes: dict[int, int] = {}
    for call in given.calls:
        for region in _regions(call.arguments):
            size = prod(region.shape) * region.dtype.size
            sizes[region.cluster] = max(size, sizes.get(region.cluster, 0))
    return sizes


def at_once(given: TraceShape, launches: Sequence[Launch]) -> tuple[int, int]:
    """The bytes of memory that a trace makes and has at once, and those that it would have unfused.

    Unfused, each array would be there from the first call that touches it on, and go after the
    last one if nothing outside can reach it.
    """
    places = [list(stored(launch).values()) for launch in launches]
    sizes = {c: size for c, size in sizes_of(given).items() if given.clusters[c].fresh}
    in_memory = {cluster_of(given, source) for sources in places for source in sources}
    blocks = in_memory - heirs(given, launches, places).keys()
    lives: dict[int, tuple[int, int]] = {}
    for place, call in enumerate(given.calls):
        for region in _regions(call.arguments):
            cluster = region.cluster
            last = place if given.clusters[cluster].temporary else len(given.calls)
            lives[cluster] = lives.get(cluster, (place, last))[0], last
    alive = (
        sum(size for c, size in sizes.items() if lives[c][0] <= place <= lives[c][1])
        for place in {lives[c][0] for c in sizes}
    )
    return sum(size for c, size in sizes.items() if c in blocks), max(alive, default=0)


def _regions(arguments: Iterable[object]) -> Iterator[RegionShape]:
    return (argument for argument in arguments if isinstance(argument, RegionShape))


# law
def let_go(launch: Launch, calls: Sequence[Call]) -> None:
    """Give the memory that ended with a launch, which has run, to whoever needs some next."""
    for call, place in launch.ends:
        region = calls[call].arguments[place]
        assert type(region) is Region
        release(region.buffer)


def release(buffer: Buffer) -> None:
    """Give up memory on the host alone that nothing outside of calls can reach."""
    if buffer.root is None or buffer.image is not None or buffer.lent or buffer.reachable:
        return
    pool.release(buffer.root)
    buffer.root = None
