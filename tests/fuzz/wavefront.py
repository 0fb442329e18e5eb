"""Sweeps for tests: planned wherever they are legal, and interpreted step by step.

`schedule` says again, independently of the C++ that runs it, in which order a sweep's iterations
come; the threads' shares are interleaved at random, so that an illegal sweep shows.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from pyfuser.plan import sweeps
from pyfuser.plan.plan import Sweep
from pyfuser.plan.profit import CostModel
from pyfuser.trace.call import Space

Point = tuple[int, ...]


class Piece(NamedTuple):
    """Steps first <= outermost index < last of one loop of a sweep."""

    stage: int
    first: int
    last: int


@contextlib.contextmanager
def forced(wave: int) -> Iterator[None]:
    """Inside, neighbouring groups sweep wherever they may, `wave` steps at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "wave_of", lambda *_: wave)
        patch.setattr(sweeps, "SHARES", 0)
        patch.setattr(CostModel, "sweep_cost", lambda *_: -1.0)
        yield


def schedule(sweep: Sweep, spaces: Sequence[Space], parts: int, seed: int) -> list[Piece]:
    """The pieces that `parts` threads run, in one order that they may come in.

    spaces[k] is that of the sweep's loop k.
    """
    low, high = min(s.begin[0] for s in spaces), max(s.end[0] for s in spaces)
    furthest = max(s.lag for s in sweep.stages) + max(s.ahead for s in sweep.stages)
    parts = max(1, min(parts, (high - low) // (2 * furthest + 1)))
    cuts = [low + (high - low) * part // parts for part in range(parts + 1)]
    rng = random.Random(seed)
    shares = [_share(sweep, spaces, cuts, part) for part in range(parts)]
    between = [_between(sweep, spaces, cut) for cut in cuts[1:-1]]
    return [*_interleaved(shares, rng), *_interleaved(between, rng)]


def _share(sweep: Sweep, spaces: Sequence[Space], cuts: list[int], part: int) -> list[Piece]:
    """What one thread runs before the barrier."""
    pieces = []
    start, stop = cuts[part], cuts[part + 1]
    done = [
        space.begin[0] if part == 0 else max(space.begin[0], start + stage.ahead)
        for stage, space in zip(sweep.stages, spaces, strict=True)
    ]
    front = start
    while front < stop + max(stage.lag for stage in sweep.stages):
        front += sweep.wave
        for k, (stage, space) in enumerate(zip(sweep.stages, spaces, strict=True)):
            limit = space.end[0] if stop == cuts[-1] else min(space.end[0], stop - stage.lag)
            until = min(limit, front - stage.lag)
            if done[k] < until:
                pieces.append(Piece(k, done[k], until))
                done[k] = until
    return pieces


def _between(sweep: Sweep, spaces: Sequence[Space], cut: int) -> list[Piece]:
    """What remains around the beginning of a share."""
    pieces = []
    for k, (stage, space) in enumerate(zip(sweep.stages, spaces, strict=True)):
        first, last = max(space.begin[0], cut - stage.lag), min(space.end[0], cut + stage.ahead)
        if first < last:
            pieces.append(Piece(k, first, last))
    return pieces


def _interleaved(lists: Sequence[list[Piece]], rng: random.Random) -> list[Piece]:
    """The lists merged at random, each in its order."""
    waiting = [list(reversed(pieces)) for pieces in lists if pieces]
    merged = []
    while waiting:
        chosen = rng.choice(waiting)
        merged.append(chosen.pop())
        waiting = [pieces for pieces in waiting if pieces]
    return merged


def points(piece: Piece, space: Space, rng: random.Random) -> list[Point]:
    """The iterations of a piece, shuffled."""
    inner = (range(b, e) for b, e in zip(space.begin[1:], space.end[1:], strict=True))
    found = list(itertools.product(range(piece.first, piece.last), *inner))
    rng.shuffle(found)
    return found


def run(
    sweep: Sweep,
    spaces: Sequence[Space],
    run_points: Callable[[int, list[Point]], None],
    parts: int,
    seed: int,
) -> None:
    """Call `run_points(stage, iterations)` for the pieces of a sweep."""
    rng = random.Random(seed)
    for piece in schedule(sweep, spaces, parts, seed):
        run_points(piece.stage, points(piece, spaces[piece.stage], rng))
