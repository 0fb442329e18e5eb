"""Sweeps for tests: planned wherever they are legal, and interpreted step by step.

The order is that of the interpreter of sweeps. Rolling views
are as large as ever here, but of each thread's copy all is poisoned that its window does not hold.
Beside a scan, `run_scan` takes tiles in any order, and walks over each of them twice.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.reference.interpret import interpret
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes.scan_tiles import at_once
from pyfuser.plan import wavefront
from pyfuser.plan.cost_model import CostModel
from pyfuser.plan.plan import SCAN_TILE, Rolling, Sweep
from pyfuser.plan.rewrites import embed_boundary
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region
from pyfuser.trace.shape import RegionShape, ScalarShape, TraceShape
from pyfuser.transform.kernel import Kernel
from tests.nest.interpret import tiles_in_turn
from tests.nest.sweeps import Piece, cuts_of, schedule
from tests.rewrites import kept_whatever_it_costs
from tests.vendors import tune

Array = np.ndarray[Any, Any]
_TILES = (1, 2, 3, 5)


@contextlib.contextmanager
def forced(wave: int, shares: int = 0) -> Iterator[None]:
    """Inside, neighbouring groups sweep wherever they may, `wave` steps at a time.

    shares: with 0, loops may lag however far they need to; with 2, no further than makes sense, so
    that what is periodic is a ring.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wavefront, "wave_of", lambda *_: wave)
        patch.setattr(wavefront, "tile_of", lambda *_: SCAN_TILE)
        tune(patch, sweep_shares=shares)
        patch.setattr(embed_boundary, "_may_sweep", lambda _: True)
        kept_whatever_it_costs(patch, "embed-boundary")
        patch.setattr(CostModel, "sweep_cost", lambda *_: -1.0)
        yield


def forced_for(seed: int) -> contextlib.AbstractContextManager[None]:
    """`forced` for every other seed, with different waves."""
    if seed % 2 == 0:
        return contextlib.nullcontext()
    return forced((1, 1, 2, 3, 5)[seed // 2 % 5], (0, 2)[seed // 20 % 2])


# --------------------------------------------------------------------------- running it


class Loop:
    """One loop of a sweep: its arguments, and the sums so far."""

    def __init__(
        self, trace: TraceShape, kernel: Kernel, calls: Sequence[Call], group: Sequence[int]
    ) -> None:
        """`calls` are all of the trace, of which the kernel does those of the group."""
        self.kernel = kernel
        self.results = [calls[group[place]].result for place in kernel.results]
        self.arguments: list[Any] = []
        self.clusters: list[int | None] = []
        self.sums: list[Any] = [a.sym.dtype.numpy.type(0) for a in kernel.workunit.accumulators]
        for slot in kernel.slots:
            given = calls[group[slot.call]].arguments
            shape = trace.calls[group[slot.call]].arguments[slot.argument]
            if slot.argument >= len(given):
                assert isinstance(shape, ScalarShape)
                self.arguments.append(shape.value)  # a bound of the call's own box
                self.clusters.append(None)
                continue
            argument = given[slot.argument]
            self.clusters.append(shape.cluster if isinstance(shape, RegionShape) else None)
            if isinstance(argument, Region):
                argument = argument.array()
            self.arguments.append(argument.result() if isinstance(argument, Future) else argument)

    def run(self, piece: Piece, given: dict[int, Array], rng: random.Random) -> None:
        """Run a piece, in any order; `given` are arrays that stand for those of some clusters."""
        space, workunit = self.kernel.space, self.kernel.workunit
        inner = (range(b, e) for b, e in zip(space.begin[1:], space.end[1:], strict=True))
        points = list(itertools.product(range(piece.first, piece.last), *inner))
        rng.shuffle(points)
        arguments = [
            argument if cluster is None else given.get(cluster, argument)
            for argument, cluster in zip(self.arguments, self.clusters, strict=True)
        ]
        pattern = self.kernel.pattern
        values = interpret(workunit, pattern, space.begin, space.end, arguments, points)
        for n, (value, accumulator) in enumerate(zip(values, workunit.accumulators, strict=True)):
            with np.errstate(all="ignore"):
                self.sums[n] += accumulator.sym.dtype.numpy.type(value)

    def walk(self, piece: Piece, start: Sequence[Any], last_pass: bool) -> tuple[Any, ...]:
        """Walk over some iterations of a scan in order, and return what it then holds."""
        space, workunit = self.kernel.space, self.kernel.workunit
        points = [(n,) for n in range(piece.first, piece.last)]
        values = interpret(
            workunit,
            "scan",
            space.begin,
            space.end,
            self.arguments,
            points,
            start=[value.item() for value in start],
            last_pass=last_pass,
        )
        with np.errstate(all="ignore"):
            return tuple(
                accumulator.sym.dtype.numpy.type(value)
                for value, accumulator in zip(values, workunit.accumulators, strict=True)
            )

    def finish(self) -> None:
        """Give the calls their results."""
        for result, value in zip(self.results, self.sums, strict=True):
            assert result is not None
            result.set(value.item())


def run_sweep(sweep: Sweep, loops: Sequence[Loop], parts: int, seed: int) -> None:
    """Interpret a sweep by at most so many threads, and set its calls' results."""
    if any(loop.kernel.pattern == "scan" for loop in loops):
        run_scan(loops, _TILES[seed % len(_TILES)], seed)
        return
    spaces = [loop.kernel.space for loop in loops]
    cuts = cuts_of(sweep, spaces, parts)
    rng = random.Random(seed)
    kept = {cluster for loop in loops for cluster in loop.clusters}
    views = [_View(v, loops, cuts) for v in sweep.rolling if v.cluster in kept]
    for piece in schedule(sweep, spaces, cuts, seed):
        for view in views:
            view.roll(piece)
        given = {view.rolling.cluster: view.copies[piece.part] for view in views}
        loops[piece.stage].run(piece, given, rng)
        for view in views:
            view.save(piece)
    for loop in loops:
        loop.finish()


def run_scan(loops: Sequence[Loop], tile: int, seed: int) -> None:
    """Interpret a scan and the maps beside it, tile by tile, and set its call's result.

    A tile's last walk comes at some time after the first walks over all tiles before it.
    """
    rng = random.Random(seed)
    place = next(n for n, loop in enumerate(loops) if loop.kernel.pattern == "scan")
    scan, space = loops[place], loops[place].kernel.space
    tiles = [
        Piece(0, first, min(first + tile, space.end[0]), 0, 0, 0)
        for first in range(space.begin[0], space.end[0], tile)
    ]
    totals: dict[int, tuple[Any, ...]] = {}
    order = tiles_in_turn(len(tiles), at_once(nest_of(spec_of(scan.kernel))), rng)
    for chosen, last_pass in order:
        if not last_pass:
            for loop in loops[:place]:
                loop.run(tiles[chosen], {}, rng)
            totals[chosen] = scan.walk(tiles[chosen], scan.sums, last_pass=False)
            continue
        start = scan.sums
        with np.errstate(over="ignore"):  # unsigned sums wrap
            for before in range(chosen):
                start = [a + b for a, b in zip(start, totals[before], strict=True)]
        total = scan.walk(tiles[chosen], start, last_pass=True)
        for loop in loops[place + 1 :]:
            loop.run(tiles[chosen], {}, rng)
        if chosen == len(tiles) - 1:
            final = total
    scan.sums = list(final)
    for loop in loops:
        loop.finish()


class _View:
    """A rolling view: a copy for each thread and (negative) for each cut, poisoned at first."""

    def __init__(self, rolling: Rolling, loops: Sequence[Loop], cuts: list[int]) -> None:
        self.rolling = rolling
        self.cuts = cuts
        array = next(
            argument
            for loop in loops
            for cluster, argument in zip(loop.clusters, loop.arguments, strict=True)
            if cluster == rolling.cluster
        )
        self.axis = array.strides.index(rolling.step)
        parts = len(cuts) - 1
        self.copies: dict[int, Array] = {}
        for part in range(1 - parts, parts):
            self.copies[part] = array.copy()
            _poison(self.copies[part])

    def _steps(self, owner: int) -> Array:
        return np.moveaxis(self.copies[owner], self.axis, 0)

    def roll(self, piece: Piece) -> None:
        """Forget what a thread's window does not hold any more, or not yet."""
        first, last = piece.before + self.rolling.oldest, piece.front + self.rolling.made
        if piece.part < 0:
            last = piece.front + self.rolling.until
        steps = self._steps(piece.part)
        _poison(steps[: max(first, 0)])
        _poison(steps[max(last, 0) :])

    def save(self, piece: Piece) -> None:
        """Copy what a thread's window holds around the cuts of its share, as it is by now.

        Which steps that are, `rolling` says: the loop that writes the view first may have no such
        store any more, because a loop that follows further behind overwrites all of it.
        """
        part, rolling, inner = piece.part, self.rolling, range(1, len(self.cuts) - 1)
        if part < 0:
            return
        begin, end = max(piece.before + rolling.oldest, 0), piece.front + rolling.made
        if part in inner:
            begin = max(begin, self.cuts[part] + rolling.begun)
        if part + 1 in inner:
            end = min(end, self.cuts[part + 1] + rolling.made)
        for near in {part, part + 1}.intersection(inner):
            first = max(begin, self.cuts[near] + rolling.oldest)
            last = min(end, self.cuts[near] + rolling.until)
            if first < last:
                self._steps(-near)[first:last] = self._steps(part)[first:last]


def _poison(array: Array) -> None:
    """Fill with what a right program hardly makes."""
    array[...] = 77 if array.dtype.kind in "iub" else np.nan
