"""Few sums of a light body: terms go to running sums in registers, not through memory.

    acc += x[i] * y[i]

A block of terms is an array, which is written and read once, and so are the running sums for each
block. Here a loop takes as many iterations as running sums have lanes: g++ makes a few vectors of
it, so the array of their terms is gone, and the running sums stay in registers over a whole run
(scalar promotion). It takes more of what is loaded as bytes: g++ fills whole vectors with those, or
makes none. Each lane gets the terms that it got before, in order. Short rows fill few
blocks whole: sums over rows of 12 to 40 took up to 1.6 times as long, so they stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of
from pyfuser.ir.nodes import Binary, Body, Sym
from pyfuser.ir.visit import all_expressions, contains, substitute_syms
from pyfuser.nest.build import iteration, iterations, local
from pyfuser.nest.cost.vectorisable import is_covered, local_arrays, vectorises
from pyfuser.nest.nodes import RUN, Function, Kind, RunningSums, number
from pyfuser.nest.passes.blocks import Blocks
from pyfuser.nest.passes.prefetch import prefetches
from pyfuser.nest.passes.split_accumulators import Groups, in_registers, lanes_of
from pyfuser.nest.terms import Terms
from pyfuser.support.passes import left_out


def promoted(blocks: Blocks, terms: Mapping[Sym, Sym]) -> Groups | None:
    """How a run of iterations adds to sums in registers; None if they do not fit, or do not gain.

    terms: an array for the terms of each accumulator.
    """
    nest, tuning = blocks.nest, blocks.nest.spec.tuning
    body, sums = nest.workunit.body, list(terms)
    if left_out("promote-sums") or nest.serial or nest.spec.checked or nest.overlapping:
        return None
    if not blocks.single or blocks.parts is not None or not nest.spec.long_rows:
        return None
    if any(s.dtype.size not in (4, 8) or s.dtype.is_complex for s in sums):
        return None
    if len(sums) > in_registers(nest.spec.target) or not _is_light(body, tuning.light_sums):
        return None
    lanes = lanes_of(nest, sums)
    at, count, done, step = map(local, ("at", "count", "done", "step"))
    locals_ = {sym: nest.fresh(f"{nest.name(sym)}_term", sym.dtype) for sym in sums}
    own = substitute_syms(Terms(nest, terms).body(body), locals_)
    last = nest.rank - 1
    first = Binary("+", at, done)
    trip = (*iteration(nest, last, Binary("+", first, step)), *own)
    loop = iterations(nest, step, number(0), number(lanes), trip, Kind.VECTOR)
    asked = prefetches(nest, blocks.ahead, last, first, number(lanes))
    running = RunningSums(
        (*asked, loop), tuple(sums), tuple(terms.values()), done.sym, count, lanes
    )
    params = (at.sym, count.sym, *nest.counters[:last])
    function = Function(
        RUN, params=params, body=(running,), sums=tuple(sums), straight=blocks.straight
    )
    return Groups(max(tuning.tile // lanes, 1) * lanes, function, lanes, lanes)


def _is_light(body: Body, most: int) -> bool:
    """Whether g++ surely makes vectors of iterations, and few instructions."""
    arrays, found = local_arrays(body), list(all_expressions(body))
    return (
        effects_of(body).may_interleave
        and all(vectorises(stmt, arrays) for stmt in body)
        and not contains(body, nodes.AtomicFetch)
        and not any(map(is_covered, found))
        and len(found) <= most
    )
