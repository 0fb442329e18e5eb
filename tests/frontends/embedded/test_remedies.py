"""Calls and objects that are not what is expected: the message says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.support.errors import ArgumentError, WorkunitError


@pk.workunit
def put(i, y, a):
    y[i] = a


@pk.workunit
def wrong_accumulator(i: int, acc: pk.View1D[pk.double], x: pk.View1D[pk.double]):  # WRONG
    acc[0] += x[i]


class Step:
    dt = 1.0


@pk.workunit
def large_literal(i, y):
    y[i] = y[i] * 18397679294719823053


@pk.workunit
def uncalled(team: pk.TeamMember, v):
    v[team.league_rank] = 1.0


V = pk.View([4])
REMEDIES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pk.parallel_for(4, [put, put], y=V, a=1.0), ArgumentError, r"args_0=\{...\}, args_1"),
    (lambda: pk.parallel_for(4, put, y=V, a=Fraction(1, 3)), ArgumentError, r"; pass float\(a\)"),
    (lambda: pk.parallel_for(4, put, y=V, a=Decimal(1)), ArgumentError, r"; pass float\(a\)"),
    (lambda: pk.parallel_for(4, put, y=V, a=Step()), ArgumentError, r"as in dt=a\.dt"),
    (lambda: pk.parallel_for(4, large_literal, y=V), WorkunitError, r"as in k=np\.uint64\("),
    (lambda: pk.MDRangePolicy(3, 4), ArgumentError, r"as in MDRangePolicy\(\[0, 0\], \[n, m\]\)"),
    (lambda: pk.array([[1, 2], [3]]), ArgumentError, r"pk\.array: setting an array element"),
    (lambda: pk.parallel_for(pk.TeamPolicy(4, 1), uncalled, v=V), WorkunitError, r"k has to be c"),
    (lambda: pk.MDRangePolicy(3), ArgumentError, r"as in MDRangePolicy\(\[0, 0\], \[n, m\]\)"),
    (lambda: bool(V), TypeError, r"use pk\.any\(v\), pk\.all\(v\) or v\.size"),
    (
        lambda: pk.set_default_space("openmp"),
        ArgumentError,
        r"there are .*pk\.OpenMP, .*pk\.Serial",
    ),
    (lambda: pk.View([4], layout="F"), ArgumentError, r"there are .*pk\.LayoutLeft"),
    (lambda: pk.parallel_reduce(4, wrong_accumulator, x=V), WorkunitError, r"\n {20,}\^"),
    (
        lambda: pk.parallel_for(4, pk.workunit(lambda i, y: y[i] + 1), y=V),
        WorkunitError,
        "a lambda cannot be a workunit",
    ),
]


@pytest.mark.parametrize(("call", "error", "remedy"), REMEDIES)
def test_the_message_says_what_to_give(
    call: Callable[[], Any], error: type[Exception], remedy: str
) -> None:
    with pytest.raises(error, match=remedy):
        call()


def test_a_mistake_in_a_list_of_workunits_names_the_programs_line() -> None:
    with pytest.raises(ArgumentError, match=r"test_remedies\.py:\d+: workunit 'put'.*'a'"):
        pk.parallel_for(4, [put, put], args_0={"y": V, "a": 1.0}, args_1={"y": V})


def test_nothing_of_an_object_runs_while_its_message_is_made() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") and name not in ("__class__", "__dict__"):
                raise AttributeError(name)  # it has no memory
            pytest.fail(f"{name} was looked up")

    with pytest.raises(ArgumentError, match="pass what is used of it"):
        pk.parallel_for(4, put, y=np.zeros(4), a=Proxy())


def test_a_view_of_bool() -> None:
    view = pk.View([3], bool)
    view[1] = True
    assert np.asarray(view).dtype == bool and list(view) == [False, True, False]
