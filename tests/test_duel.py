"""Two programs that take turns, by made-up times."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pyfuser.runtime.duel import CLOSE, FEWEST, HOPELESS, MARGIN, ROUNDS, Duel

ALL = (0, 1)
NOISE = [0.2, -0.1, 0.15, 0.0, 0.1, -0.05, 0.2, 0.05, -0.1, 0.1]


def program(*launches: tuple[int, ...]) -> Any:
    return SimpleNamespace(launches=[SimpleNamespace(calls=calls) for calls in launches])


def played(
    first: Sequence[float], second: Sequence[float], doubting: bool = False
) -> tuple[int, bool]:
    """How many runs each side had, and whether the first lost. The second is in two launches."""
    whole, parts = program(ALL), program((0,), (1,))
    duel: Duel[Any] = Duel((whole, parts), [ALL], doubting)
    sides = {id(whole): iter(first), id(parts): iter(second)}
    ran, following = [], parts
    while following is not None:
        ran.append(following)
        seconds = next(sides[id(following)])
        count = len(following.launches)
        following = duel.add(following, [seconds / count] * count)
    assert ran == [parts, whole] * (len(ran) // 2)
    return len(ran) // 2, bool(duel.lost())


def noisy(seconds: float) -> list[float]:
    return [seconds * (1.0 + noise) for noise in NOISE]


@pytest.mark.parametrize(
    ("second", "lost"),
    [
        (MARGIN - CLOSE - 0.01, True),
        (MARGIN + 0.01, False),  # a draw goes to the first
        (1.0, False),
        (HOPELESS + 0.1, False),
        (1.0 / (HOPELESS + 0.1), True),
    ],
)
def test_what_is_clear_is_over_soon(second: float, lost: bool) -> None:
    assert played([1.0] * 10, [second] * 10) == (FEWEST, lost)


@pytest.mark.parametrize(("second", "lost"), [(MARGIN - 0.01, True), (MARGIN, True)])
def test_what_is_close_takes_as_long_again(second: float, lost: bool) -> None:
    assert played([1.0] * 10, [second] * 10) == (2 * ROUNDS, lost)


@pytest.mark.parametrize(
    ("second", "runs", "lost"), [(0.8, ROUNDS, True), (1.0, 2 * ROUNDS, False)]
)
def test_runs_that_disagree_are_not_clear(second: float, runs: int, lost: bool) -> None:
    assert played(noisy(1.0), noisy(second)[::-1]) == (runs, lost)


def test_the_first_run_of_a_side_does_not_count() -> None:
    assert not played([1.0] * 10, [0.1, *[2.0] * 9])[1]


def test_the_best_run_counts() -> None:
    assert played([2.0] * 10, [9.0, 9.0, 2.5, 1.0, 9.0, 9.0])[1]


def test_who_doubts_wants_the_second_to_win_over_all_rounds() -> None:
    assert played([1.0] * 10, [0.8] * 10, doubting=True) == (2 * ROUNDS, True)
    assert played([1.0] * 10, [1.0] * 10, doubting=True) == (FEWEST, False)
    late = [*[1.0] * (2 * ROUNDS - 1), 0.7]
    assert played(late, [0.8] * 10, doubting=True) == (2 * ROUNDS, False)


def test_each_subject_is_judged_by_itself_and_all_have_to_be_clear() -> None:
    whole, parts = program((0, 1), (2, 3)), program((0,), (1,), (2,), (3,))
    duel: Duel[Any] = Duel((whole, parts), [(0, 1), (2, 3)])
    for n in range(ROUNDS):
        assert duel.add(parts, [0.5, 0.3, 0.5, 0.6]) is whole
        last = duel.add(whole, [1.0, 0.8 if n % 2 else 1.5])
        assert last is (None if n == ROUNDS - 1 else parts)
    assert duel.lost() == [(0, 1)]
    assert duel.taken(0, (0, 1)) == 1.0 and duel.taken(1, (0, 1)) == 0.8
    assert duel.ratio((2, 3)) == pytest.approx(1.1 / 0.8)
