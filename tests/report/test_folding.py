"""Repeats in lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyfuser.report.folding import LONGEST, Fold, folds


def test_one_item_again() -> None:
    assert list(folds("aab")) == [Fold(0, 1, 2), Fold(2, 1, 1)]
    assert list(folds("")) == []


def test_several_in_turn() -> None:
    assert list(folds("xabcabcabcab")) == [
        Fold(0, 1, 1),
        Fold(1, 3, 3),
        Fold(10, 1, 1),
        Fold(11, 1, 1),
    ]


def test_a_period_has_no_shorter_one() -> None:
    assert list(folds("abab" * 3)) == [Fold(0, 2, 6)]


def test_no_period_is_longer_than_the_limit() -> None:
    items = list(range(LONGEST + 1)) * 2
    assert all(fold.times == 1 for fold in folds(items))
    assert list(folds(list(range(LONGEST)) * 2)) == [Fold(0, LONGEST, 2)]


@given(st.lists(st.integers(0, 2), max_size=30))
def test_unfolding_gives_the_list_back(items: list[int]) -> None:
    unfolded: list[int] = []
    for start, length, times in folds(items):
        assert start == len(unfolded)
        assert items[start : start + length] * times == items[start : start + length * times]
        unfolded += items[start : start + length * times]
    assert unfolded == items
