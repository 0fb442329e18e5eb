"""The interpreter of sweeps: what loops in one launch do, in an order that they may come in.

`schedule` says again, independently of the C++ that runs it, in which order a sweep's iterations
come; the threads' shares are interleaved at random, so that an illegal sweep shows. Rolling views
are as large as ever here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from pyfuser.ir.reference.interpret import Array, Value
from pyfuser.nest.nodes import Nest, SweepNest, TiledSums
from pyfuser.plan.plan import Sweep
from pyfuser.trace.call import Space
from tests.nest.interpret import Orders, functions_of
from tests.nest.tiled import tiled_sums


def interpret_sweep(
    nest: SweepNest,
    sweep: Sweep,
    spaces: Sequence[Space],
    arguments: Sequence[Sequence[Array | Value]],
    parts: int = 1,
    seed: int = 0,
) -> tuple[Value, ...]:
    """Run a sweep by at most so many threads, and return the accumulators of all stages.

    spaces, arguments: those of each stage.
    """
    orders = Orders(random.Random(seed))
    stages = [
        _Stage(nest.nests[n], space, given, orders)
        for n, space, given in zip(nest.stages, spaces, arguments, strict=True)
    ]
    if nest.scan is None:
        for piece in schedule(sweep, spaces, cuts_of(sweep, spaces, parts), seed):
            stages[piece.stage].run(piece.first, piece.last)
    else:
        orders.around = _around(stages[: nest.scan], stages[nest.scan + 1 :])
        stages[nest.scan].run(spaces[nest.scan].begin[0], spaces[nest.scan].end[0])
    return tuple(result for stage in stages for result in stage.results())


class _Stage:
    """One loop: its functions, and the terms of its sums so far."""

    def __init__(
        self, nest: Nest, space: Space, arguments: Sequence[Array | Value], orders: Orders
    ) -> None:
        self._nest, self._space, self._shuffle = nest, space, orders.shuffle
        self._functions, self._results = functions_of(nest, arguments, orders)
        self._loop = self._functions[nest.functions[-1].name]
        node = nest.functions[-1].body[0]
        self._tiled = node if isinstance(node, TiledSums) else None
        self._terms: dict[tuple[int, ...], list[Any]] = {}

    def run(self, first: int, last: int) -> None:
        """Over some steps of the outermost axis."""
        low, high = (first, *self._space.begin[1:]), (last, *self._space.end[1:])
        if self._tiled is None:
            self._loop(*low, *high)
            return
        for *row, at in product(*map(range, low, high)):
            terms: list[list[Any]] = [[None] for _ in self._tiled.arrays]
            self._functions[self._tiled.terms](at, 1, *terms, *row)
            point = (*row, at)
            assert point not in self._terms, "an iteration runs once"
            self._terms[point] = [term for (term,) in terms]

    def results(self) -> list[Value]:
        """After everything has run."""
        if self._tiled is None:
            return self._results
        box, node = (self._space.begin, self._space.end), replace(self._tiled, most=0)
        return tiled_sums(self._kept, None, box, node, self._nest.spec.tuning, self._shuffle)

    def _kept(self, first: int, count: int, *given: Any) -> None:
        """Give the terms of some iterations, which were computed."""
        assert self._tiled is not None
        many = len(self._tiled.arrays)
        for place in range(count):
            point = (*given[many:], first + place)
            values = self._terms[point]
            for array, value in zip(given[:many], values, strict=True):
                array[place] = value


def _around(
    before: Sequence[_Stage], after: Sequence[_Stage]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What a scan's passes become: stages before run ahead of a tile's first pass, or its only one.

    Those after it follow the last one.
    """

    def around(one_pass: Callable[..., Any]) -> Callable[..., Any]:
        begun = set[int]()

        def run(first: int, last: int, start: Any, last_pass: bool) -> Any:
            for stage in before if first not in begun else ():
                stage.run(first, last)
            begun.add(first)
            total = one_pass(first, last, start, last_pass)
            for stage in after if last_pass else ():
                stage.run(first, last)
            return total

        return run

    return around


# --------------------------------------------------------------------------- the order


class Piece(NamedTuple):
    """Steps first <= outermost index < last of one loop of a sweep.

    A thread runs it (number `part`) while its front moves from `before` to `front`; or it lies
    around the beginning of the share of `part`, which is then negative, and both are that cut.
    """

    stage: int
    first: int
    last: int
    part: int
    before: int
    front: int


def cuts_of(sweep: Sweep, spaces: Sequence[Space], parts: int) -> list[int]:
    """Where the shares of at most `parts` threads begin, and the end of the last."""
    low, high = min(s.begin[0] for s in spaces), max(s.end[0] for s in spaces)
    furthest = max(s.lag for s in sweep.stages) + max(s.ahead for s in sweep.stages)
    parts = max(1, min(parts, (high - low) // (2 * furthest + 1)))
    return [low + (high - low) * part // parts for part in range(parts + 1)]


def schedule(sweep: Sweep, spaces: Sequence[Space], cuts: list[int], seed: int) -> list[Piece]:
    """The pieces that the threads run, in one order that they may come in.

    spaces[k] is that of the sweep's loop k.
    """
    rng = random.Random(seed)
    shares = [_share(sweep, spaces, cuts, part) for part in range(len(cuts) - 1)]
    between = [_between(sweep, spaces, cuts, part) for part in range(1, len(cuts) - 1)]
    if sweep.ring:
        between.append(_around_the_end(sweep, cuts))
    return [*_interleaved(shares, rng), *_interleaved(between, rng)]


def _share(sweep: Sweep, spaces: Sequence[Space], cuts: list[int], part: int) -> list[Piece]:
    """What one thread runs before the barrier."""
    pieces = []
    start, stop = cuts[part], cuts[part + 1]
    done = [
        space.begin[0] if part == 0 and not sweep.ring else max(space.begin[0], start + stage.ahead)
        for stage, space in zip(sweep.stages, spaces, strict=True)
    ]
    front = start
    while front < stop + max(stage.lag for stage in sweep.stages):
        before, front = front, front + sweep.wave
        for k, (stage, space) in enumerate(zip(sweep.stages, spaces, strict=True)):
            last = stop == cuts[-1] and not sweep.ring
            limit = space.end[0] if last else min(space.end[0], stop - stage.lag)
            until = min(limit, front - stage.lag)
            if done[k] < until:
                pieces.append(Piece(k, done[k], until, part, before, front))
                done[k] = until
    return pieces


def _between(sweep: Sweep, spaces: Sequence[Space], cuts: list[int], part: int) -> list[Piece]:
    """What remains around the beginning of a share."""
    pieces, cut = [], cuts[part]
    for k, (stage, space) in enumerate(zip(sweep.stages, spaces, strict=True)):
        first, last = max(space.begin[0], cut - stage.lag), min(space.end[0], cut + stage.ahead)
        if first < last:
            pieces.append(Piece(k, first, last, -part, cut, cut))
    return pieces


def _around_the_end(sweep: Sweep, cuts: list[int]) -> list[Piece]:
    """What remains where the end of a ring meets its beginning."""
    low, high = cuts[0], cuts[-1]
    return [
        Piece(k, first, last, 1 - len(cuts), high, high)
        for k, stage in enumerate(sweep.stages)
        for first, last in ((high - stage.lag, high), (low, low + stage.ahead))
        if first < last
    ]


def _interleaved(lists: Sequence[list[Piece]], rng: random.Random) -> list[Piece]:
    """The lists merged at random, each in its order."""
    waiting = [list(reversed(pieces)) for pieces in lists if pieces]
    merged = []
    while waiting:
        chosen = rng.choice(waiting)
        merged.append(chosen.pop())
        waiting = [pieces for pieces in waiting if pieces]
    return merged
