"""What clocks or sizes would decide: cuts, orders of loops, tiles of scans, groups of sums."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser import pipeline
from pyfuser.analysis.dependences import DependenceGraph
from pyfuser.codegen import kernel as codegen_kernel
from pyfuser.engine import native
from pyfuser.engine.native import MAX_KERNELS, Launchable
from pyfuser.engine.store.store import STORE
from pyfuser.nest.passes import loop_order
from pyfuser.nest.spec import KernelSpec, LoopOrder, SweepSpec
from pyfuser.pipeline import TRACE_REWRITES
from pyfuser.plan import plan_cache
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.plan import Plan, Rejection
from pyfuser.plan.rewrite import Rewrite
from pyfuser.plan.rewrites import delinearize, embed_boundary, recompute
from pyfuser.plan.search import Planned, search
from pyfuser.runtime.autotune import cut_plan
from pyfuser.support.caches import Table
from pyfuser.trace import pool
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.thresholds import DEFAULT, NOW
from tests.rewrites import kept_whatever_it_costs
from tests.vendors import emit_as_on, tune

_CUT = 3  # one program in so many has its groups cut
_SUNK = 3  # one in so many has short axes as loops only where many iterations are left
_AS_PAYS = 5  # one in so many has calls coarsened only where that pays
_AS_GIVEN = 6  # one in so many has calls over one index only as they are
_NEVER_AGAIN = 4  # one in so many has no calls that compute again what others store
_OWN_AGAIN = 5  # one in so many of those even computes again what the same iteration stored
_GREEDY = 4  # one in so many has its groups chosen greedily, and calls moved between them
_COMMON = (0.0, 0.4, NOW.tuning.common)  # of the hulls of boxes, what these have in common
_MOVED = 3  # one in so many has edges of grids at other rows than is best
_OF_FAMILY = 4  # one in so many has the plan of larger sizes
_TILE = 3  # of the scans of compiled programs, which are shorter than a real tile

FEW_ROUNDS = 3  # of calls that move on are one call, where they may be

LARGER = Rejection(0, 1, "planned for larger sizes")  # marks such plans
edges_parts = embed_boundary._parts


#: The kernels of compiled programs, for no other test, by whether the tiles of scans are small.
def tables() -> dict[bool, Table[KernelSpec | SweepSpec, Launchable]]:
    """Compiled kernels, by whether their tiles are small."""
    return {small: Table("kernels of the fuzzer", MAX_KERNELS) for small in (True, False)}


_launchables = tables()


def cut_for(seed: int, plan: Plan) -> Plan:
    """The plan, whose groups (those of sweeps apart) are cut anywhere for some of the seeds."""
    rng = random.Random(seed)
    swept = {place for sweep in plan.sweeps for place in sweep.groups}
    groups = [group.calls for n, group in enumerate(plan.groups) if n not in swept]
    for calls in groups if seed % _CUT == 0 else ():
        if len(calls) > 1:
            plan = cut_plan(plan, calls, rng.randint(1, len(calls) - 1))
    return plan


def _moved(parts: embed_boundary.Parts, seed: int) -> embed_boundary.Parts:
    """The parts at rows beside theirs: what is legal there may sweep as well."""
    rng = random.Random(seed)
    return tuple(sorted((row + rng.randint(-2, 2), places) for row, places in parts))


def planned_for(seed: int, trace: TraceShape, capabilities: Capabilities = ALL) -> Planned:
    """The plan of a trace as the seed would have it, and the trace as planned.

    Calls are coarsened, guarded, and compute again what others store, wherever that is legal, for
    most seeds, and groups are cut for some. Others have plans of larger traces, which must hold for
    theirs (see `plan.plan_cache`).
    """
    with pytest.MonkeyPatch.context() as patch:
        if seed % _AS_PAYS:
            kept_whatever_it_costs(patch, "coarsen", "enlarge-domain")
        tune(patch, common=_COMMON[seed % len(_COMMON)], sunk_rows=1 + 63 * (seed % _SUNK == 0))
        if seed // 12 % _GREEDY == 0:
            tune(patch, exact_calls=0)
        if seed % _MOVED == 0:
            patch.setattr(
                embed_boundary, "_parts", lambda *found: _moved(edges_parts(*found), seed)
            )
        planner = _of_larger if seed % _OF_FAMILY == 2 else plan_cache.plan_anew
        found = search(trace, _rewrites(seed), capabilities, planner)
    return found._replace(plan=cut_for(seed, found.plan))


def _rewrites(seed: int) -> list[Rewrite]:
    """The rewrites that a seed has; calls compute again whatever may be, if any do."""
    found = [each for each in TRACE_REWRITES if each is not recompute.REWRITE]
    if seed % _NEVER_AGAIN:
        own = seed // _NEVER_AGAIN % _OWN_AGAIN == 0
        again = recompute.REWRITE._replace(
            candidates=lambda trace, _: recompute.rewritten(trace, own=own), gain=None
        )
        found.insert(found.index(delinearize.REWRITE) + 1, again)
    return found if seed % _AS_GIVEN else [each for each in found if each.name != "delinearize"]


def _of_larger(trace: TraceShape, capabilities: Capabilities) -> tuple[DependenceGraph, Plan]:
    """The plan of a larger trace, taken over whether or not that plan is its best; else its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_cache, "_next_power", lambda size: size + 7 if size > 1 else size)
        larger = plan_cache._larger(trace)
        split, wide = plan_cache._split(trace), plan_cache._split(larger)
    own = plan_cache.plan_anew(trace, capabilities)
    if split is None or wide is None or not plan_cache._may_be_of_family(trace):
        return own
    if wide.structure != split.structure or wide.sizes == split.sizes:
        return own
    graph, plan = plan_cache.plan_anew(larger, capabilities)
    if not plan_cache._is_plain(plan):
        return own
    return graph, replace(plan, rejections=(*plan.rejections, LARGER))


_allocate = pool.allocate


def _poisoned(size: int, zero: bool) -> np.ndarray[Any, Any]:
    block = _allocate(size, zero)
    return block if zero else np.full_like(block, 0xFF)


@contextlib.contextmanager
def forced_for(seed: int, small_tiles: bool = True) -> Iterator[None]:
    """Inside, compiled programs have their groups cut, and maps run in any order that may be.

    Tables are tallied in copies however short the range is. As few as two sums of a loop are
    computed in groups, a single iteration may be a strip, and blocks of four run without
    conditions. Memory that need not be zero is not. Half of them have kernels as on processors of
    Intel.

    small_tiles: whether scans have several tiles, and so two passes over most iterations.
    """
    rng = random.Random(seed)

    def planned(trace: TraceShape, capabilities: Capabilities) -> Planned:
        return planned_for(seed, trace, capabilities)

    def ordered(kernel: Kernel) -> LoopOrder:
        rank = len(kernel.space.begin)
        if rank == 1 or rng.random() < 0.3 or not loop_order.may_reorder(kernel):
            return loop_order.loop_order(kernel)
        axes = rng.sample(range(rank), rank)
        return LoopOrder(tuple(axes), rng.choice((0, 2, 3, 5)))

    along = rng.choice((3, 7, 64))
    numbers = {
        "along": along,
        "along_on_intel": along,
        "fewest_columns": rng.choice((1, DEFAULT.fewest_columns)),
        "fewest_groups": 2,
        "scan_tile": _TILE if small_tiles else DEFAULT.scan_tile,
        "strips": rng.choice(((32,), DEFAULT.strips)),
        "tried": 4,
    }
    with pytest.MonkeyPatch.context() as patch:
        emit_as_on(patch, intel=rng.random() < 0.5)
        tune(patch, table_share=rng.choice((0, 0, NOW.tuning.table_share)))
        patch.setattr(STORE, "off", True)  # plans of other numbers are there
        patch.setattr(pipeline, "planned", planned)
        patch.setattr(codegen_kernel, "loop_order", ordered)
        tune(patch, condition_gain=1000)
        patch.setattr(pool, "allocate", _poisoned)
        patch.setattr(native, "KERNELS", _launchables[small_tiles])
        tune(patch, rolled_rounds=FEW_ROUNDS, **numbers)
        yield
