"""What a GPU launches computes what the kernel does: interpreted, without a compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.nodes import Body, Stmt
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import map_body, statements
from pyfuser.nest.build import nest_of, with_loops
from pyfuser.nest.declined import declined
from pyfuser.nest.nodes import Kind, Loop, Nest
from pyfuser.nest.passes.barriers import place_barriers
from pyfuser.nest.printer import show
from pyfuser.nest.threads import Alone, Barrier, One
from pyfuser.nest.verify import verify
from pyfuser.pipeline import launched
from tests.codegen.build import Case
from tests.codegen.test_cpp import GOLDEN
from tests.engine.test_native import EXACT_REDUCTIONS, MAPS
from tests.gpu.cases import CASES, CLOSE
from tests.gpu.team_cases import ONE_THREAD, TEAMS
from tests.nest.interpret import interpret

ALONE = {name: tested for name, (_, tested) in ONE_THREAD.items()}
LAUNCHED = {**GOLDEN, **MAPS, **EXACT_REDUCTIONS, **CASES, **CLOSE, **TEAMS, **ALONE}


def nest_for(given: Case) -> Nest:
    nest = launched(nest_of(spec_of(given.kernel)))
    verify(nest)
    return nest


@pytest.mark.parametrize("name", LAUNCHED)
def test_what_is_launched_computes_the_same(name: str) -> None:
    given = LAUNCHED[name]
    if declined(spec_of(given.kernel)):
        pytest.skip("no GPU runs it")
    nest, space = nest_for(given), given.kernel.space
    assert show(nest)
    expected, sums = given.interpreted()
    found = given.arguments()
    with np.errstate(all="ignore"):
        results = interpret(nest, space.begin, space.end, found, 1)
    for got, wanted in zip((*found, *results), (*expected, *sums), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-11, 1e-11)


BLOCKS = [name for name in TEAMS if nest_for(TEAMS[name]).launch.rule == "team"]


def without(nest: Nest, kind: type, number: int) -> Nest:
    """The nest without its statement of a kind that has a number."""
    gone = [s for s in statements(nest.functions[-1].body) if isinstance(s, kind)][number]

    def drop(stmt: Stmt) -> Stmt | Body:
        return () if stmt is gone else stmt

    (f,) = nest.functions
    return replace(nest, functions=(replace(f, body=map_body(f.body, None, drop)),))


@pytest.mark.parametrize("name", BLOCKS)
def test_a_barrier_that_is_missing_is_placed(name: str) -> None:
    nest = nest_for(TEAMS[name])
    assert place_barriers(nest) == nest
    count = sum(isinstance(s, Barrier) for s in statements(nest.functions[-1].body))
    for number in range(count):
        other = without(nest, Barrier, number)
        assert other != nest == place_barriers(other)


def test_all_of_a_crew_come_to_what_it_does_together() -> None:
    nest = nest_for(TEAMS["by groups"])
    kinds = {s.kind for s in statements(nest.functions[-1].body) if isinstance(s, Loop)}
    assert kinds == {Kind.BLOCKS, Kind.GROUPS, Kind.LANES}
    for kind, other in ((Kind.BLOCKS, Kind.GRID_X), (Kind.GROUPS, Kind.BLOCK)):
        with pytest.raises(IRError, match=r"no (block|lanes|groups) (runs|take)"):
            verify(with_loops(nest, kind, lambda loop, other=other: replace(loop, kind=other)))
    for kind in (One, Alone):
        assert any(isinstance(s, kind) for s in statements(nest.functions[-1].body))
