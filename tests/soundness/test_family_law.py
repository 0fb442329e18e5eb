"""Which calls share code whose numbers change: `_family` and `_serves` of `runtime.eager`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pykokkos as pk
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Param, Sym, Workunit
from pyfuser.runtime.eager import _family, _serves
from pyfuser.runtime.shared_code import SharedCode
from pyfuser.trace.call import Space
from pyfuser.trace.memory import Region
from pyfuser.transform.widen import Proof
from tests.analysis.build import region as region_shape

LINE = Space((0,), (4,))
ONE, OTHER, TABLE = pk.View([4])._region, pk.View([4])._region, pk.View([4, 8])._region
COLUMN = pk.View([4, 8])[:, 2]._region


def family(
    *arguments: Any,
    space: Space = LINE,
    matters: Any = (),
    changing: Any = (),
    measured: Any = (),
) -> Any:
    call: Any = SimpleNamespace(space=space)
    ready: Any = SimpleNamespace(matters=frozenset(matters), measured=frozenset(measured))
    return _family(call, arguments, ready, frozenset(changing))


@pytest.mark.parametrize(
    "other",
    [
        lambda: family(ONE, COLUMN, 3, matters=[2]),
        lambda: family(ONE, ONE, 3, matters=[2]),
        lambda: family(ONE, OTHER, 4, matters=[2]),
        lambda: family(ONE, OTHER, 3, matters=[2], changing=[2]),
        lambda: family(ONE, OTHER, 3, matters=[2], space=Space((0,), (4,), "Serial")),
        lambda: family(ONE, OTHER, 3, matters=[2], space=Space((0, 0), (2, 2))),
    ],
)
def test_calls_of_other_code(other: Any) -> None:
    assert family(ONE, OTHER, 3, matters=[2]) != other()


def test_calls_of_one_code() -> None:
    assert family(ONE, 3, matters=[1]) == family(OTHER, 3, matters=[1])
    assert family(ONE, 3) == family(OTHER, 4)
    changing = {"matters": [1], "changing": [1]}
    assert family(ONE, 3, **changing) == family(ONE, 4, **changing)
    assert family(ONE) == family(ONE, space=Space((1,), (3,)))


def test_extents_that_are_asked_for_are_numbers_of_the_code() -> None:
    longer = pk.View([5])._region
    assert family(ONE) == family(longer)
    assert family(ONE, measured=[0]) == family(OTHER, measured=[0])
    assert family(ONE, measured=[0]) != family(longer, measured=[0])
    assert family(ONE, longer, measured=[0]) == family(OTHER, ONE, measured=[0])


def test_boxes_of_other_sizes_have_other_orders_of_loops() -> None:
    square, flat = Space((0, 0), (8, 8)), Space((0, 0), (2, 32))
    assert family(TABLE, space=square) != family(TABLE, space=flat)


def test_a_view_that_overlaps_itself_has_no_family() -> None:
    same = Region(ONE.buffer, 0, (0,), (4,), DType.FLOAT64)
    assert family(ONE, same) is None


def serves(
    begin: int,
    end: int,
    number: int | tuple[int, int],
    region: Region | float = ONE,
    along: Any = (),
    bounded: bool = True,
    needed: Any = (),
) -> bool:
    i, x, n = Sym("i", 0, DType.INT32), Sym("x", 1, DType.FLOAT64), Sym("n", 2, DType.INT32)
    unit = Workunit("unit", (i,), (Param(n), Param(x, 1)), ())
    slots = [SimpleNamespace(argument=1), SimpleNamespace(argument=0)]  # the order of the call
    overwrites = tuple(1 for _ in along)
    made: Any = (None, region_shape(0, 4))
    kernel: Any = SimpleNamespace(
        workunit=unit, slots=slots, overwrites=overwrites, along=along, shapes=made
    )
    proof = Proof({i: (0, 3), n: (-2, 2)} if bounded else {n: (-2, 2)}, unit)
    call: Any = SimpleNamespace(space=Space((begin,), (end,)))
    family = SharedCode(kernel, None, proof, needed)  # type: ignore[arg-type]
    return _serves(family, call, (region, number))


def test_a_proof_covers_the_indices_and_numbers_of_a_call() -> None:
    assert serves(0, 4, 0) and serves(1, 3, -2) and serves(0, 4, 2) and serves(2, 2, 0)
    for begin, end, number in [(0, 5, 0), (-1, 4, 0), (0, 4, 3), (0, 4, -3), (4, 4, 0)]:
        assert not serves(begin, end, number)
    assert serves(-5, 50, 0, bounded=False)
    assert serves(0, 4, 0, float("nan"))  # of what the proof does not name anything is right


def test_a_proof_covers_numbers_up_to_its_ends() -> None:
    assert serves(0, 4, -2) and serves(0, 4, 2)
    assert not serves(0, 4, -3) and not serves(0, 4, 3)


def test_what_is_overwritten_is_inside_its_view() -> None:
    assert serves(0, 4, 0, ONE, ((0,),))
    small = pk.View([3])._region
    assert not serves(0, 4, 0, small, ((0,),)) and serves(0, 3, 0, small, ((0,),))
    assert serves(0, 4, 0, small)
    assert serves(0, 4, 0, ONE, ((-1,),))  # a loop that was made for 4 elements
    assert not serves(0, 3, 0, small, ((-1,),))


def test_what_is_loaded_early_is_there() -> None:
    assert serves(0, 4, 0, needed=((0, (4,)),))
    assert not serves(0, 4, 0, needed=((0, (5,)),))
    assert not serves(0, 4, 0, needed=((0, (1,)), (0, (5,))))
