"""Execution policies: the index sets of parallel patterns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pyfuser.frontends.embedded.annotations import ScratchMemory
from pyfuser.frontends.embedded.spaces import (
    HOSTS,
    Defaults,
    ExecutionSpace,
    ExecutionSpaceInstance,
    resolve_space,
    stream_of,
)
from pyfuser.support.errors import ArgumentError, ArgumentValueError, whole
from pyfuser.support.extension import BOX, HOT, RANGE, usual_init
from pyfuser.support.units import count


def integer(value: Any, what: str) -> int:
    """`value` as an int: anything integral, a Future of an integer included (which is forced)."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} must be an integer, not {value!r}{whole(value)}") from None


def integers(values: Sequence[Any], what: str) -> tuple[int, ...]:
    """Each of them as an int."""
    made = tuple(values)
    return made if {*map(type, made)} == _INT else tuple([integer(value, what) for value in made])


_INT, _SEQUENCES = {int}, (list, tuple)


class ExecutionPolicy:
    """The base of all policies."""

    space: Any
    stream: Any = None  # of CuPy, for an ExecutionSpaceInstance that has one


class RangePolicy(ExecutionPolicy):
    """`RangePolicy(begin, end)` or `RangePolicy(space, begin, end)`: begin <= index < end."""

    @usual_init(RANGE)
    def __init__(self, *args: Any) -> None:
        if len(args) == 2:
            begin, end = args
            self.space = resolve_space(ExecutionSpace.Default)
        elif len(args) == 3:
            space, begin, end = args
            self.space = resolve_space(space)
            self.stream = stream_of(space)
        else:
            raise ArgumentValueError(
                f"RangePolicy takes ([space,] begin, end), not {count(len(args), 'argument')}"
            )
        self.begin = begin if type(begin) is int else integer(begin, "RangePolicy: begin")
        self.end = end if type(end) is int else integer(end, "RangePolicy: end")


class Iterate(Enum):
    """The order in which a tile's indices run; a hint only."""

    Left = "Kokkos::Iterate::Left"
    Right = "Kokkos::Iterate::Right"
    Default = "Kokkos::Iterate::Default"


class Rank:
    """The number of dimensions of an MDRangePolicy and the order of its loops."""

    def __init__(self, n: int, iter_outer: Iterate, iter_inner: Iterate) -> None:
        self.n = n
        self.iter_outer = iter_outer
        self.iter_inner = iter_inner


if HOT is not None:
    HOT.bind_policies(Defaults, ExecutionSpace, ExecutionSpace.Default, HOSTS, Iterate.Default)


class MDRangePolicy(ExecutionPolicy):
    """A box of indices: begin[d] <= index d < end[d]. Tiling and orders are hints only."""

    @usual_init(BOX)
    def __init__(
        self,
        begin: Sequence[int],
        end: Sequence[int] | None = None,
        tiling: Sequence[int] | None = None,
        space: Any = ExecutionSpace.Default,
        iter_outer: Iterate = Iterate.Default,
        iter_inner: Iterate = Iterate.Default,
        rank: Rank | None = None,
    ) -> None:
        usual = type(begin) in _SEQUENCES and type(end) in _SEQUENCES
        if not usual and not (
            hasattr(begin, "__len__") and (end is None or hasattr(end, "__len__"))
        ):
            raise ArgumentError(
                "MDRangePolicy takes the begins and the ends of all dimensions, as in "
                "MDRangePolicy([0, 0], [n, m])"
            )
        if end is None:
            zeros = [0] * len(begin)
            raise ArgumentError(
                f"MDRangePolicy takes begin, end: MDRangePolicy({zeros}, {list(begin)})"
            )
        if len(begin) != len(end):
            raise ArgumentValueError(f"MDRangePolicy: {len(begin)} begins but {len(end)} ends")
        if rank is not None:
            if rank.n != len(begin):
                raise ArgumentValueError(
                    f"MDRangePolicy: rank {rank.n} but {len(begin)} dimensions"
                )
            iter_outer, iter_inner = rank.iter_outer, rank.iter_inner
        self.space = resolve_space(space)
        if space is not ExecutionSpace.Default:
            self.stream = stream_of(space)
        self.begin = integers(begin, "MDRangePolicy: begin")
        self.end = integers(end, "MDRangePolicy: end")
        self.tiling = tiling
        self.iter_outer = iter_outer
        self.iter_inner = iter_inner
        self.rank = len(begin)


class AUTO:
    """A team size that the engine chooses."""


class TeamMember:
    """One thread of a team; as an object, what a workunit gets in the Debug space."""

    def __init__(self, league_rank: int, team_rank: int) -> None:
        self._league_rank = league_rank
        self._team_rank = team_rank

    def team_size(self) -> int:
        return 1

    def team_scratch(self, level: int) -> ScratchMemory:
        return ScratchMemory(level)

    def team_barrier(self) -> None:
        """One thread has nobody to wait for."""

    def league_rank(self) -> int:
        return self._league_rank

    def team_rank(self) -> int:
        return self._team_rank

    def __index__(self) -> int:
        return self._league_rank


class PerTeam:
    """Of `pk.single`: once a team. Of scratch memory: so many bytes a team."""

    def __init__(self, team_member: TeamMember | int) -> None:
        self.team_member = team_member


class PerThread:
    """Of `pk.single`: once a thread. Of scratch memory: so many bytes a thread."""

    def __init__(self, team_member: TeamMember | int) -> None:
        self.team_member = team_member


def single(policy: PerTeam | PerThread, functor: Any) -> None:
    """Run a function once for a team or thread."""
    functor()


MAX_TEAM = 1024
"""Threads of a team: as many as a block of CUDA has."""


def _is_auto(team_size: Any) -> bool:
    return team_size is AUTO or isinstance(team_size, AUTO) or team_size in ("auto", -1)


class TeamPolicy(ExecutionPolicy):
    """`TeamPolicy([space,] league_size, team_size[, vector_length])`: a league of teams.

    One thread of the machine runs a whole team, whatever its size; `pk.AUTO` is a team of one, as
    Kokkos recommends where threads are CPU cores. The vector length is a hint only.
    """

    def __init__(self, *args: Any) -> None:
        space: Any = ExecutionSpace.Default
        if args and isinstance(args[0], (ExecutionSpace, ExecutionSpaceInstance)):
            space, *args = args  # type: ignore[assignment]
        if len(args) not in (2, 3):
            raise ArgumentValueError(
                "TeamPolicy takes ([space,] league_size, team_size[, vector_length])"
            )
        self.space = resolve_space(space)
        self.stream = stream_of(space)
        self.league_size = integer(args[0], "TeamPolicy: league_size")
        self.team_size = -1 if _is_auto(args[1]) else integer(args[1], "TeamPolicy: team_size")
        self.vector_length = args[2] if len(args) == 3 and isinstance(args[2], int) else -1
        if self.league_size < 0:
            raise ArgumentError(f"TeamPolicy: a league of {self.league_size} teams")
        if self.team_size != -1 and not 1 <= self.team_size <= MAX_TEAM:
            raise ArgumentError(
                f"TeamPolicy: team_size {self.team_size} is not between 1 and {MAX_TEAM} "
                "(use pk.AUTO)"
            )

    def set_scratch_size(self, level: int, per_team_or_thread: PerTeam | PerThread) -> TeamPolicy:
        """The policy itself: teams get as much scratch memory as their workunit declares."""
        if level not in (0, 1) or not isinstance(per_team_or_thread, (PerTeam, PerThread)):
            raise ArgumentError(
                "set_scratch_size takes the level, 0 or 1, and pk.PerTeam(bytes) or "
                "pk.PerThread(bytes)"
            )
        return self


class NestedRange(ExecutionPolicy):
    """Indices within a team; as an object, for nested patterns in the Debug space."""

    def __init__(self, team_member: TeamMember, *extents: int) -> None:
        self.team_member = team_member
        self.space = ExecutionSpace.Debug
        self.extents = tuple(integer(n, type(self).__name__) for n in extents)


class TeamThreadRange(NestedRange):
    """A team's threads share `count` indices."""

    def __init__(self, team_member: TeamMember, count: int) -> None:
        super().__init__(team_member, count)
        self.count = count


class ThreadVectorRange(NestedRange):
    """A thread's vector lanes share `count` indices."""

    def __init__(self, team_member: TeamMember, count: int) -> None:
        super().__init__(team_member, count)
        self.count = count


class TeamThreadMDRange(NestedRange):
    """A team's threads share a box of indices."""
