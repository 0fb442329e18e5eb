"""An oracle for teams: the workunit's own Python function, run by one Python thread a member."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np


class Acc:
    """An accumulator."""

    def __init__(self) -> None:
        self.val: Any = 0.0

    def __iadd__(self, other: Any) -> Acc:
        self.val += other.val if isinstance(other, Acc) else other
        return self

    def __mul__(self, other: Any) -> Any:
        return self.val * other

    def __float__(self) -> float:
        return float(self.val)


class Team:
    """What the members of one team share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=20)
        self.parts: list[Any] = [0.0] * size
        self.scratch: list[np.ndarray] = []
        self.lock = threading.Lock()


class Member:
    """The real thing: a thread of a team."""

    def __init__(self, team: Team, league_rank: int, rank: int) -> None:
        self.team, self._league_rank, self.rank, self.made = team, league_rank, rank, 0

    def league_rank(self) -> int:
        return self._league_rank

    def team_rank(self) -> int:
        return self.rank

    def team_size(self) -> int:
        return self.team.size

    def team_barrier(self) -> None:
        self.team.barrier.wait()

    def team_scratch(self, level: int) -> Member:
        return self


def _scratch(member: Member, *shape: int) -> np.ndarray:
    """The memory that this declaration has in every member."""
    with member.team.lock:
        if member.made == len(member.team.scratch):
            member.team.scratch.append(np.zeros(shape))
        member.made += 1
        return member.team.scratch[member.made - 1]


def _shared(member: Member, *extents: int) -> Any:
    begin, end = (0, extents[0]) if len(extents) == 1 else extents
    chunk = math.ceil(max(end - begin, 0) / member.team.size)
    first = min(begin + member.rank * chunk, end)
    return member, [(i,) for i in range(first, min(first + chunk, end))], True


def _vector(member: Member, *extents: int) -> Any:
    begin, end = (0, extents[0]) if len(extents) == 1 else extents
    return member, [(i,) for i in range(begin, end)], False


def _box(member: Member, *extents: int) -> Any:
    _, rows, _ = _shared(member, extents[0])
    return member, [(*row, *rest) for row in rows for rest in np.ndindex(extents[1:])], True


def _for(where: Any, function: Callable[..., None]) -> None:
    for index in where[1]:
        function(*index)


def _reduce(where: Any, function: Callable[..., None], initial: Any = 0) -> Any:
    member, indices, shared = where
    acc = Acc()
    for index in indices:
        function(*index, acc)
    if not shared:
        return acc.val
    team = member.team
    team.parts[member.rank] = acc.val
    team.barrier.wait()
    total = sum(team.parts)
    team.barrier.wait()
    return total


def _scan(where: Any, function: Callable[..., None]) -> Any:
    """A scan of one thread's (the tests scan vectors, or in teams of one)."""
    acc = Acc()
    for index in where[1]:
        function(*index, acc, True)
    return acc.val


def _single(policy: tuple[Member, bool], function: Callable[[], None]) -> None:
    member, once = policy
    if not once or member.rank == 0:
        function()


_atomics = threading.Lock()


def _atomic_add(view: np.ndarray, index: list[int], value: float) -> None:
    with _atomics:
        view[tuple(index)] += value


ORACLE = SimpleNamespace(
    atomic_add=_atomic_add,
    TeamThreadRange=_shared,
    ThreadVectorRange=_vector,
    TeamThreadMDRange=_box,
    parallel_for=_for,
    parallel_reduce=_reduce,
    parallel_scan=_scan,
    single=_single,
    PerTeam=lambda member: (member, True),
    PerThread=lambda member: (member, False),
    **{f"ScratchView{rank}D": _scratch for rank in range(1, 9)},
)


def run(workunit: Any, league: int, size: int, reduce: bool, **kwargs: Any) -> float:
    """Run a workunit on NumPy arrays as a league of teams; what it accumulates."""
    plain = workunit.__pyfuser__.function
    function = FunctionType(plain.__code__, {**plain.__globals__, "pk": ORACLE}, "oracle")
    total = Acc()
    for rank in range(league):
        team = Team(size)
        parts = [Acc() for _ in range(size)]
        failures: list[BaseException] = []

        def member(
            number: int, team: Team = team, rank: int = rank, parts: list[Acc] = parts
        ) -> None:
            extra = (parts[number],) if reduce else ()
            try:
                function(Member(team, rank, number), *extra, **kwargs)
            except BaseException as error:
                failures.append(error)  # noqa: B023
                team.barrier.abort()

        threads = [threading.Thread(target=member, args=(n,)) for n in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        for part in parts:
            total += part
    return float(total)
