"""What else stands above a workunit: decorators that have no effect in kernels, and options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser import WorkunitWarning
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import ArgumentError

N = 4


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        function(*arguments, **named)

    return inner


def times(n: int) -> Any:
    return lambda function: twice(function) if n == 2 else function


def registered(function: Any) -> Any:
    return function


def below() -> Any:
    @pk.workunit
    @twice
    def increase(i, y):
        y[i] += 1.0

    return increase


def above() -> Any:
    @twice
    @pk.workunit
    def increase(i, y):
        y[i] += 1.0

    return increase


def between() -> Any:
    @pyfuser.fuse
    @times(2)
    @pk.workunit
    def increase(i, y):
        y[i] += 1.0

    return increase


def without_the_syntax() -> Any:
    @pk.workunit
    def increase(i, y):
        y[i] += 1.0

    return twice(increase)


def method() -> Any:
    class Grid:
        @twice
        @pk.workunit
        def increase(self, i, y):
            y[i] += 1.0

    return Grid().increase


def launch(made: Callable[[], Any]) -> Any:
    y = pk.View([N], pk.double)
    pk.parallel_for(N, made(), y=y)
    pk.parallel_for(pk.RangePolicy(pk.Debug, 0, 0), made(), y=y)
    return y


@pytest.mark.parametrize(
    "made, name",
    [
        (below, "@twice"),
        (above, "@twice"),
        (between, r"@times\(2\)"),
        (without_the_syntax, "the 'inner' around it"),
        (method, "@twice"),
    ],
)
@pytest.mark.parametrize("block", [pyfuser.fusing, pyfuser.unfused])
@pytest.mark.filterwarnings("ignore:the range")
def test_decorators_that_have_no_effect_are_told(made: Any, name: str, block: Any) -> None:
    said = f"'increase': {name} has no effect in kernels"
    with pytest.warns(WorkunitWarning, match=said) as caught, block():
        np.testing.assert_array_equal(launch(made), np.ones(N))
    assert caught[0].filename == __file__


def plain() -> Any:
    @registered
    @pyfuser.fuse
    @times(1)
    @pk.workunit
    @pyfuser.fuse()
    @registered
    def increase(i, y):
        y[i] += 1.0

    return increase


def marked_later() -> Any:
    @pk.workunit
    def increase(i, y):
        y[i] += 1.0

    return pyfuser.fuse(pyfuser.fuse(increase))


@pytest.mark.parametrize("made", [plain, marked_later])
@pytest.mark.filterwarnings("ignore:the range")
def test_nothing_is_said_of_decorators_that_return_the_workunit(made: Any) -> None:
    np.testing.assert_array_equal(launch(made), np.ones(N))


def test_a_decorator_has_its_effect_in_the_debug_space() -> None:
    y = pk.View([N], pk.double)
    pk.parallel_for(pk.RangePolicy(pk.Debug, 0, N), above(), y=y)
    np.testing.assert_array_equal(y, np.full(N, 2.0))


def test_an_option_of_a_parameter_that_is_not_there_is_told() -> None:
    atomic = pk.ViewTypeInfo(trait=pk.Atomic)
    with pytest.warns(WorkunitWarning, match="no parameter 'hist'.* did you mean 'histo'"):

        @pk.workunit(hist=atomic)
        def tally(i, histo, b):
            histo[b[i]] += 1


def test_options_of_parameters_and_of_names_from_outside_are_not_told() -> None:
    outside = pk.View([N], pk.double)
    atomic = pk.ViewTypeInfo(trait=pk.Atomic)

    @pk.workunit(y=atomic, outside=atomic)
    def add(i, y):
        y[i] += outside[i]

    class Grid:
        def __init__(self) -> None:
            self.cells = outside

        @pk.workunit(cells=atomic)
        def increase(self, i):
            self.cells[i] += 1.0


def test_a_workunit_is_no_text() -> None:
    with pytest.raises(ArgumentError, match=r"not 'scale': write @pk\.workunit"):
        pk.workunit("scale")
