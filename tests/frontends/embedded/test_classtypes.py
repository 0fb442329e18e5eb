"""Classtypes: objects that a workunit makes, copies, changes and passes."""

from __future__ import annotations

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import WorkunitError


@pk.classtype
class Pair:
    def __init__(self, a: float, b: int):
        self.a: float = a
        self.b: int = b

    def sum(self) -> float:
        if self.b > 0:
            return self.a + self.b
        return self.a

    def swapped(self) -> Pair:
        return Pair(self.b, int(self.a))

    def add(self, x: float) -> None:
        self.a += x


@pk.classtype
class Box:
    def __init__(self, pair: Pair):
        self.pair: Pair = pair
        self.weight: pk.int64 = 2

    def value(self) -> float:
        return self.weight * self.pair.sum()


class Plain:
    def __init__(self, a: float):
        self.a: float = a


@pk.function
def change(pair: Pair, a: float) -> None:
    pair.a = a


@pk.function
def made(a: float, b: int) -> Pair:
    return Pair(a, b)


@pk.workunit
def sums(i: int, acc: pk.Acc[pk.double], v: pk.View1D[pk.double]):
    pair: Pair = Pair(v[i], i)
    acc += pair.sum()


@pk.workunit
def mutation(i: int, v: pk.View1D[pk.double]):
    pair: Pair = made(v[i], 1)
    copied: Pair = pair
    change(pair, 10.0)
    pair.add(0.5)
    v[i] = 100 * pair.a + copied.a


@pk.workunit
def assignment(i: int, v: pk.View1D[pk.double]):
    pair: Pair = Pair(1.0, 2)
    pair = pair.swapped()
    pair = pair  # noqa: PLW0127
    v[i] = 10 * pair.a + pair.b


@pk.workunit
def nested(i: int, v: pk.View1D[pk.double]):
    pair: Pair = Pair(v[i], 1)
    box: Box = Box(pair)
    pair.a = 1000.0
    box.pair.b = 2
    v[i] = box.value() + box.pair.swapped().a


@pk.workunit
def not_a_classtype(i: int, v: pk.View1D[pk.double]):
    plain: Plain = Plain(v[i])
    v[i] = plain.a


@pk.workunit
def wrong_class(i: int, v: pk.View1D[pk.double]):
    box: Box = Pair(v[i], 1)
    v[i] = box.weight


@pk.workunit
def number_for_object(i: int, v: pk.View1D[pk.double]):
    change(v[i], 1.0)


@pk.workunit
def object_for_number(i: int, v: pk.View1D[pk.double]):
    v[i] = Pair(1.0, 2)


@pk.workunit
def no_member(i: int, v: pk.View1D[pk.double]):
    pair: Pair = Pair(1.0, 2)
    v[i] = pair.aa


@pk.workunit
def no_method(i: int, v: pk.View1D[pk.double]):
    pair: Pair = Pair(1.0, 2)
    v[i] = pair.product()


@pytest.fixture
def v():
    return np.array([0.5, 1.5, 2.5])


def test_methods_and_early_returns(v):
    assert pk.parallel_reduce(3, sums, v=v) == 0.5 + (1.5 + 1) + (2.5 + 2)


def test_objects_are_copied_by_assignment_and_passed_by_reference(v):
    pk.parallel_for(3, mutation, v=v)
    assert v.tolist() == [1050.5, 1051.5, 1052.5]


def test_an_object_is_assigned_as_a_whole(v):
    pk.parallel_for(3, assignment, v=v)
    assert v.tolist() == [21, 21, 21]


def test_an_object_holds_a_copy_of_another(v):
    pk.parallel_for(3, nested, v=v)
    assert v.tolist() == [2 * (a + 2) + 2 for a in (0.5, 1.5, 2.5)]


@pytest.mark.parametrize(
    ("workunit", "message"),
    [
        (not_a_classtype, "'Plain' is no type for a local variable"),
        (wrong_class, "a local object starts as one"),
        (number_for_object, "'pair' is annotated as an object but gets a number"),
        (object_for_number, "cannot hold an object"),
        (no_member, "'pair.aa' is no member: did you mean 'a'"),
        (no_method, "Pair has no method 'product'"),
    ],
)
def test_what_is_refused(workunit, message, v):
    with pytest.raises(WorkunitError, match=message) as raised:
        pk.parallel_for(3, workunit, v=v)
    assert str(raised.value).endswith("^")
    assert v.tolist() == [0.5, 1.5, 2.5]
