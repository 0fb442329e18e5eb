"""New policies: the extension makes the usual ones as Python does, and leaves all others to it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import PyFuserError

RANGES: list[tuple[Any, ...]] = [
    (0, 4), (4, 0), (-3, 1 << 40), (pk.OpenMP, 0, 4), (pk.Serial, 1, 4), (pk.Debug, 0, 4),
    (pk.ExecutionSpace.Default, 0, 4), (pk.ExecutionSpaceInstance(pk.OpenMP), 0, 4),
    (True, 4), (0, np.int32(4)), (0.0, 4), (0, "4"), (0,), (), (0, 4, 2), (None, 0, 4),
    (pk.Cuda, 0, 4), (0, 1 << 80), (pk.OpenMP, 0, 4, 5),
]  # fmt: skip

BOXES: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (([0, 0], [3, 4]), {}), (((0, 0), [3, 4]), {}), (([], []), {}), (([0], [3, 4]), {}),
    (([0, 0], [3, 4]), {"space": pk.Serial}), (([0, 0], [3, 4]), {"space": pk.Debug}),
    (([0, 0], [3, 4]), {"space": pk.ExecutionSpaceInstance(pk.OpenMP)}),
    (([0, 0], [3, 4], [2, 2]), {}), (([0, 0], [3, 4]), {"tiling": [2, 2]}),
    (([0, 0], [3, 4]), {"iter_inner": pk.Iterate.Left}), (([0, 0],), {}),
    (([0, 0],), {"end": [3, 4]}),
    (([0, True], [3, np.int64(4)]), {}), (([0, 0.5], [3, 4]), {}), ((np.zeros(2, int), [3, 4]), {}),
    ((0, 4), {}), (([0, 0], [3, 4]), {"rank": pk.Rank(2, pk.Iterate.Left, pk.Iterate.Right)}),
    (([0, 0], [3, 4]), {"space": None}), (([0, 0], [3, 4]), {"speed": 1}), (([0], [1 << 80]), {}),
]  # fmt: skip


def made(init: Any, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a policy has, or the error."""
    policy = cls.__new__(cls)
    try:
        init(policy, *args, **kwargs)
    except (PyFuserError, TypeError, ValueError) as error:
        return type(error), str(error)
    return [
        (name, type(value), value)
        for name, value in vars(policy).items()
        if (name, value) != ("stream", None)
    ]


@pytest.mark.parametrize("args", RANGES, ids=range(len(RANGES)))
def test_ranges(args: tuple[Any, ...]) -> None:
    init: Any = pk.RangePolicy.__init__
    assert made(init, pk.RangePolicy, args, {}) == made(
        inspect.unwrap(init), pk.RangePolicy, args, {}
    )


@pytest.mark.parametrize(("args", "kwargs"), BOXES, ids=range(len(BOXES)))
def test_boxes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    init: Any = pk.MDRangePolicy.__init__
    expected = made(inspect.unwrap(init), pk.MDRangePolicy, args, kwargs)
    assert made(init, pk.MDRangePolicy, args, kwargs) == expected


def test_the_default_space_is_that_of_now() -> None:
    before = pk.get_default_space()
    try:
        for space in (pk.Serial, pk.OpenMP, pk.Debug):
            pk.set_default_space(space)
            assert pk.RangePolicy(0, 3).space is space
            assert pk.MDRangePolicy([0], [3]).space is space
            assert pk.RangePolicy(pk.ExecutionSpace.Default, 0, 3).space is space
    finally:
        pk.set_default_space(before)


def test_classes_of_the_program_and_what_tools_are_told() -> None:
    class Rows(pk.RangePolicy):
        def __init__(self, n: int) -> None:
            super().__init__(0, n)
            self.n = n

    rows = Rows(3)
    assert (rows.begin, rows.end, rows.n, rows.space) == (0, 3, 3, pk.OpenMP)
    assert [*inspect.signature(pk.MDRangePolicy).parameters][:2] == ["begin", "end"]
    assert pk.RangePolicy.__init__.__name__ == "__init__"
    boxes = [0, 0], [3, 4]
    policy = pk.MDRangePolicy(*boxes)
    boxes[1][0] = 9
    assert policy.end == (3, 4), "a list that changes later is not the policy's"
