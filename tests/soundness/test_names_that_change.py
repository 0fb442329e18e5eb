"""Names from outside a workunit that come to mean something else: each call sees what they mean."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends.embedded import dispatch
from pyfuser.lower import free
from pyfuser.support.extension import HOT

N = 8
FACTOR = 3.0
config = ModuleType("config")
config.inner = ModuleType("inner")  # type: ignore[attr-defined]


class Constants:
    FACTOR = 3.0


class Derived(Constants):
    pass


@pk.function
def scaled(v: float) -> float:
    return FACTOR * v


def of_factor(v: float) -> float:
    return v * FACTOR


def twice(v: float) -> float:
    return 2.0 * v


def thrice(v: float) -> float:
    return 3.0 * v


@pk.function
def of_helper(v: float) -> float:
    return helper(v)


helper = twice


@pk.workunit
def built_in(i, y, x):
    y[i] = max(x[i], 2.0) + abs(x[i])


@pk.workunit
def of_module(i, y, x):
    y[i] = config.factor * x[i]


@pk.workunit
def of_inner_module(i, y, x):
    y[i] = config.inner.factor * x[i]


@pk.workunit
def of_class(i, y, x):
    y[i] = Derived.FACTOR * x[i]


@pk.workunit
def of_function(i, y, x):
    y[i] = scaled(x[i])


@pk.workunit
def of_function_of_function(i, y, x):
    y[i] = of_helper(x[i])


def least(a: float, b: float) -> float:
    return min(b, a)


def set_global(name: str, value: Any) -> None:
    globals()[name] = value


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(v: float) -> float:
        return 7.0 * v

    return wrapper


Change = tuple[Callable[[], Any], Callable[[float], float] | None]

CHANGES: list[tuple[Any, Callable[[float], float], list[Change]]] = [
    (
        built_in,
        lambda x: max(x, 2.0) + abs(x),
        [
            (lambda: set_global("max", least), lambda x: min(x, 2.0) + abs(x)),
            (lambda: set_global("abs", twice), lambda x: min(x, 2.0) + 2.0 * x),
            (lambda: globals().pop("max"), lambda x: builtins.max(x, 2.0) + 2.0 * x),
        ],
    ),
    (
        of_module,
        lambda x: 3.0 * x,
        [
            (lambda: setattr(config, "factor", 5.0), lambda x: 5.0 * x),
            (lambda: set_global("config", other_module(7.0)), lambda x: 7.0 * x),
            (lambda: vars(config).pop("factor"), None),
        ],
    ),
    (
        of_inner_module,
        lambda x: 3.0 * x,
        [
            (lambda: setattr(config.inner, "factor", 5.0), lambda x: 5.0 * x),
            (lambda: setattr(config, "inner", other_module(7.0)), lambda x: 7.0 * x),
            (
                lambda: set_global("config", other_module(1.0, inner=other_module(9.0))),
                lambda x: 9.0 * x,
            ),
        ],
    ),
    (
        of_class,
        lambda x: 3.0 * x,
        [
            (lambda: setattr(Constants, "FACTOR", 4.0), lambda x: 4.0 * x),
            (lambda: setattr(Derived, "FACTOR", 6.0), lambda x: 6.0 * x),
            (lambda: delattr(Derived, "FACTOR"), lambda x: 4.0 * x),
            (
                lambda: set_global("Derived", type("Derived", (), {"FACTOR": 8.0})),
                lambda x: 8.0 * x,
            ),
        ],
    ),
    (
        of_function,
        lambda x: 3.0 * x,
        [
            (lambda: set_global("FACTOR", 5.0), lambda x: 5.0 * x),
            (lambda: set_global("scaled", twice), lambda x: 2.0 * x),
        ],
    ),
    (
        of_function_of_function,
        lambda x: 2.0 * x,
        [
            (lambda: set_global("helper", thrice), lambda x: 3.0 * x),
            (lambda: set_global("helper", wrapped(twice)), lambda x: 2.0 * x),
            (lambda: set_global("of_helper", wrapped(scaled)), lambda x: 3.0 * x),
            (lambda: set_global("FACTOR", 5.0), lambda x: 5.0 * x),
            (lambda: setattr(of_helper, "__wrapped__", of_factor), lambda x: 5.0 * x),
            (lambda: set_global("FACTOR", 6.0), lambda x: 6.0 * x),
        ],
    ),
]


def other_module(factor: float, **members: Any) -> ModuleType:
    made = ModuleType("other")
    vars(made).update(members, factor=factor)
    return made


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    """Names mean what they did at first."""
    config.factor = config.inner.factor = 3.0  # type: ignore[attr-defined]
    before, inside = dict(globals()), dict(vars(config))
    yield
    for name in ("max", "abs"):
        globals().pop(name, None)
    globals().update(before)
    vars(config).update(inside)
    Constants.FACTOR = 3.0
    vars(Derived).get("FACTOR") and delattr(Derived, "FACTOR")


def run(workunit: Any, calls: int, fused: bool) -> np.ndarray:
    x, y = pk.View([N], pk.double), pk.View([N], pk.double)
    x[:] = np.arange(N) - 3.0
    with pyfuser.fusing() if fused else pyfuser.unfused():
        for _ in range(calls):
            pk.parallel_for(N, workunit, y=y, x=x)
    return np.array(y)


@pytest.mark.parametrize("fused", (False, True))
@pytest.mark.parametrize(("workunit", "first", "changes"), CHANGES)
def test_each_call_sees_what_names_mean(
    workunit: Any, first: Callable[[float], float], changes: list[Change], fused: bool
) -> None:
    for change, meant in [(lambda: None, first), *changes]:
        change()
        if meant is None:
            with pytest.raises(pyfuser.WorkunitError):
                run(workunit, 3, fused)
        else:
            wanted = [meant(float(i) - 3.0) for i in range(N)]
            np.testing.assert_array_equal(run(workunit, 3, fused), wanted)


@pytest.mark.skipif(HOT is None, reason="the extension is not built")
@pytest.mark.parametrize("workunit", [row[0] for row in CHANGES])
def test_calls_do_not_look_names_up_in_python(
    workunit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(workunit, 3, True)
    run(workunit, 3, False)
    monkeypatch.setattr(dispatch, "binding_of", None)
    run(workunit, 3, True)
    run(workunit, 3, False)


def test_a_member_of_an_odd_class_is_looked_up_in_python() -> None:
    class Meta(type):
        FACTOR = property(lambda cls: 1.0)

    class Odd(metaclass=Meta):
        pass

    def function() -> None:
        """Of these globals."""

    set_global("Odd", Odd)
    assert free.unchanged(function, [("Odd.FACTOR", 1.0)], {})
    assert free.places(function, [("Odd.FACTOR", 1.0)], {}) is None
    assert free.places(function, [("Odd", Odd)], {}) == ((globals(), "Odd", Odd),)
