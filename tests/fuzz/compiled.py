"""The compiled tier: a program as a user would write it, inside `pyfuser.fusing()`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

import pyfuser
from pyfuser.codegen.cpu.unit import emit
from pyfuser.ir.guarded import unguarded
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes.columns import columns_of
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.plan import legality
from pyfuser.runtime.session import SESSION
from pyfuser.support.counters import COUNTERS
from tests.fuzz import choices, oracle, steady, wavefront
from tests.fuzz.harness import (
    Outcome,
    bases_of,
    compare,
    lowered,
    names_of,
    run_unfused,
)
from tests.fuzz.oracle import Array, State
from tests.fuzz.planning import features_of, guards, inner_loops, sunk, windows
from tests.fuzz.program import Base, Call, Host, Program
from tests.fuzz.reads import WATCHED

_NAMES = {"float64": "double", "float32": "float", "complex64": "complex64"}
_THREADED = 10  # one program in so many is traced by two threads at once


class Place:
    """Where a program's bases are, and what happens between its steps: on the host, nothing."""

    def storage(self, pk: Any, program: Program, base: Base, values: Any) -> Any:
        """A View for temporaries, `reads.WATCHED` and all of every other program; or an array."""
        views = base.temporary or base.name in WATCHED or program.seed % 2
        return values if takes_array(program, base) or not views else new_view(pk, base, values)

    def before(self, number: int) -> None:
        """Called before each step, with its number."""

    def values(self, array: Any) -> Array:
        """What a base holds after the program."""
        return np.asarray(array)


def check_compiled(program: Program) -> Outcome:
    """Compare the oracle with `pk.parallel_*`: needs a C++ compiler.

    Raises Rejected and Mismatch as `harness.check_interpreted` does.
    """
    program, _ = steady.chosen(program)
    expected = oracle.run(program)
    workunits = lowered(program, expected[1])
    run_unfused(program, workunits, 0)  # raises Rejected for races
    # What a scan writes in both passes, the oracle writes once, as one tile would.
    scans = [w for c, w in zip(program.calls, workunits, strict=True) if c.pattern == "scan"]
    once = not any(map(legality._writes_early, scans))
    found, outcome = run_forced(program, once)
    compare(program, expected, found, "compiled", exact=False)
    if program.seed % _THREADED == 0:
        for found in in_threads(program):
            compare(program, expected, found, "compiled, in two threads", exact=False)
    return outcome


def run_forced(
    program: Program, small_tiles: bool, place: Place | None = None
) -> tuple[State, Outcome]:
    """What the program computes, fused by choices that its seed makes, and what was fused.

    small_tiles: whether scans have several tiles.
    """
    SESSION.flushes.clear()
    SESSION.programs.clear()  # of equal traces, some with sweeps
    before = replace(COUNTERS)
    with (
        wavefront.forced_for(program.seed),
        choices.forced_for(program.seed, small_tiles),
        steady.forced_for(program.seed),
    ):
        found = run_compiled(program, place=place)
    counted = steady.counted(before, SESSION.flushes)
    counted |= {"calls rolled"} if COUNTERS.rolled > before.rolled else set()
    plans = [flush.program.plan for flush in SESSION.flushes]
    groups = [group.calls for plan in plans for group in plan.groups]
    launches = [launch for flush in SESSION.flushes for launch in flush.program.launches]
    with choices.forced_for(program.seed, small_tiles):
        printed = _printed(launch.launchable.spec for launch in launches)
    for flush in SESSION.flushes:
        printed |= guards(flush.program.trace, flush.program.plan)
        printed |= windows(flush.program.trace, flush.program.plan)
        printed |= sunk(flush.program.trace, flush.program.plan)
    if any("load-early" in kernel.passes for launch in launches for kernel in launch.kernels):
        printed |= {"element loaded early"}
    return found, Outcome(len(program.calls), groups, features_of(plans) | printed | counted)


def _printed(specs: Iterable[KernelSpec | SweepSpec]) -> frozenset[str]:
    """What was done to the loops of kernels, out of `features.PLANNED`."""
    found = set[str]()
    for spec in specs:
        text = emit(spec)
        found |= {name for sign, name in _SIGNS.items() if sign in text}
        for loop in spec.stages if isinstance(spec, SweepSpec) else (spec,):
            found |= _printed_of(loop, text)
    return frozenset(found)


#: Of the text of a kernel.
_SIGNS = {
    "void pf_run(": "sums in groups",
    "taking * ": "loops along columns under conditions",
    "pf_ahead(&": "memory asked for ahead",
    "pf_inside(": "blocks without conditions",
    "pf_tables.own": "tallies in copies",
}


def _printed_of(loop: KernelSpec, text: str) -> set[str]:
    """What was done to a loop; `text` is its kernel's."""
    found = set(inner_loops([loop.workunit]))
    if not loop.order.as_given:
        found.add("loops blocked" if loop.order.block else "loops interchanged")
    if len(loop.workunit.accumulators) > 1:
        found.add("several sums in a loop")
    if columns_of(nest_of(loop)) is not None:
        found.add("loops along columns")
        if loop.workunit.accumulators:
            found.add("sums beside loops along columns")
    split = loop.pattern == "for" and unguarded(loop.workunit) and "pf_inside(" not in text
    if split and "pf_middle(" in text:
        found.add("split loop")
    return found


def in_threads(program: Program) -> list[State]:
    """What two threads compute that run the program at once, each on memory of its own."""
    found: list[State] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(run_compiled(program))
        except BaseException as error:  # raised again by the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def run_compiled(program: Program, fused: bool = True, place: Place | None = None) -> State:
    """The program as a user would run it."""
    import pykokkos as pk  # the embedded one, once pyfuser is imported

    initial = oracle.arrays(program)
    place = place or Place()
    memory = {b.name: place.storage(pk, program, b, initial[b.name]) for b in program.bases}
    temporary = {base.name for base in program.bases if base.temporary}
    results: list[Any] = []
    functions = iter(oracle.functions(program, pk))
    with pyfuser.fusing() if fused else nullcontext(), ExitStack() as blocks:
        mode = ""
        for n, step in enumerate(program.steps):
            place.before(n)
            wanted = "" if isinstance(step, Host) else step.mode
            if wanted != mode:
                blocks.close()
                if wanted:
                    blocks.enter_context(getattr(pyfuser, wanted)())
                mode = wanted
            if isinstance(step, Host):
                results.append(_act(step, memory, results))
            else:
                results.append(_call(pk, step, program.seed + n, next(functions), memory, results))
            later = {name for other in program.steps[n + 1 :] for name in names_of(other)}
            for name in temporary - later:
                memory.pop(name, None)
    arrays = {name: place.values(array) for name, array in memory.items()}
    values = [r if r is None or isinstance(r, tuple) else r + 0 for r in results]
    return arrays, values


def _act(step: Host, memory: dict[str, Any], results: list[Any]) -> tuple[Any, ...]:
    if any(isinstance(memory[name], np.ndarray) for name in bases_of(step.text)):
        pyfuser.sync()  # an array does not know that it is read
    return oracle.act(step, memory, results, _resized)


def _resized(array: Any, extent: int) -> Any:
    if isinstance(array, np.ndarray):
        return oracle.resized(array, extent)
    array.resize(0, extent)
    return array


def _call(
    pk: Any,
    call: Call,
    variant: int,
    function: Callable[..., Any],
    memory: dict[str, Any],
    results: list[Any],
) -> Any:
    bound = {name: oracle.part(text, memory) for name, text in call.views}
    bound.update((name, oracle.scalar(text, results)) for name, text in call.scalars)
    pattern = getattr(pk, f"parallel_{call.pattern}")
    return pattern(_policy(pk, call, variant, results), function, **bound)


def _policy(pk: Any, call: Call, variant: int, results: list[Any]) -> Any:
    if len(call.begin) == 1:
        begin, end = call.begin[0], call.stop(results)[0]
        return end if begin == 0 and variant % 3 == 0 else pk.RangePolicy(begin, end)
    order = list(pk.Iterate)[variant % 3]
    tiles = None if variant % 2 else [2, 2]
    return pk.MDRangePolicy(
        list(call.begin), list(call.stop(results)), tiles, iter_outer=order, iter_inner=order
    )


def takes_array(program: Program, base: Base) -> bool:
    """Whether calls take parts of a base that Views do not have."""
    texts = [text for call in program.calls for _, text in call.views if base.name in text]
    return any(re.search(r"\(|\.T", text) for text in texts)


def new_view(pk: Any, base: Base, values: Any) -> Any:
    """A View of a base's shape and type that holds its values."""
    name = _NAMES.get(base.dtype, base.dtype)
    view = pk.View(list(base.shape), getattr(pk, name))
    if not base.temporary:
        view[...] = values
    return view
