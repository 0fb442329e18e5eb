"""Calls that had better be in another group than where the greedy put them.

    x += alpha p | r -= alpha ap | rr = r . r | p = r + beta p

The greedy sees `x += alpha p` before the call that shares `p` with it, and puts it with those that
share nothing but the launch. Once all groups are known, calls move, one at a time, to where they
save more (as in C. Fiduccia and R. Mattheyses, "A Linear-Time Heuristic for Improving Network
Partitions", 1982), if that is legal: the groups still have an order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyfuser.plan.cost_model import CostModel
from pyfuser.support.passes import left_out

ROUNDS = 2
"""How often all calls are looked at."""

NEARBY = 4
"""How many groups before its own, and behind it, a call may move to."""


def moved(
    groups: Sequence[tuple[int, ...]],
    compatible: Sequence[int],
    predecessors: Sequence[int],
    model: CostModel,
    fits: Callable[[tuple[int, ...]], bool],
) -> list[tuple[int, ...]]:
    """Groups of no greater cost, which can be run in some order; those given can.

    compatible, predecessors: of each call, as bit sets; see `legality.Legality`. fits: whether a
    kernel of these calls has a size that is reasonable.
    """
    found = list(groups)
    for _ in range(0 if left_out("refine-partition") else ROUNDS):
        before = list(found)
        for call in sorted(call for group in before for call in group):
            home = next(n for n, group in enumerate(found) if call in group)
            found = _best(found, home, call, compatible, predecessors, model, fits)
        if found == before:
            break
    return [group for group in found if group]


# law
def _best(
    groups: list[tuple[int, ...]],
    home: int,
    call: int,
    compatible: Sequence[int],
    predecessors: Sequence[int],
    model: CostModel,
    fits: Callable[[tuple[int, ...]], bool],
) -> list[tuple[int, ...]]:
    """The groups with a call where it saves most."""
    left = tuple(n for n in groups[home] if n != call)
    leaves = model.cost(groups[home]) - (model.cost(left) if left else 0.0)
    best, least = groups, 0.0
    joinable = compatible[call]
    for number in _nearby(len(groups), home):
        group = groups[number]
        if not group or not model.share(call, group):
            continue
        if any(not joinable >> other & 1 for other in group):
            continue
        joined = tuple(sorted((*group, call)))
        if not fits(joined):
            continue
        more = model.cost(joined) - model.cost(group) - leaves
        if more >= least:
            continue
        changed = list(groups)
        changed[home], changed[number] = left, joined
        if _ordered(changed, predecessors):
            best, least = changed, more
    return best


def _nearby(count: int, home: int) -> Iterator[int]:
    for distance in range(1, NEARBY + 1):
        yield from (n for n in (home - distance, home + distance) if 0 <= n < count)


def _ordered(groups: Sequence[tuple[int, ...]], predecessors: Sequence[int]) -> bool:
    """Whether groups can run one after the other, each after all that its calls depend on."""
    members = [sum(1 << call for call in group) for group in groups]
    every = sum(members)
    before = [0] * len(groups)
    for number, group in enumerate(groups):
        for call in group:
            before[number] |= predecessors[call]
        before[number] &= every & ~members[number]
    waiting = [number for number, group in enumerate(groups) if group]
    done = 0
    while waiting:
        left = []
        for number in waiting:
            if before[number] & ~done:
                left.append(number)
            else:
                done |= members[number]
        if len(left) == len(waiting):
            return False
        waiting = left
    return True
