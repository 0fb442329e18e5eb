"""Pairs that only a path keeps apart; each case was found by a mutant that survived."""

from __future__ import annotations

import pytest

from pyfuser.analysis.dependences import dependences
from pyfuser.plan.legality import reasons
from pyfuser.plan.partition import MAX_VIEWS
from tests.analysis.build import S, View, call, trace, workunit
from tests.plan.test_partition import INNER, MAP, NEXT, V, groups


def why(first, second, *calls):
    shape = trace(*calls)
    rejection = reasons(shape, dependences(shape)).may_share_loop(first, second)
    return rejection and rejection.reason


@pytest.mark.parametrize(("first", "second"), [(MAP, NEXT), (NEXT, MAP)])
def test_a_path_with_a_bad_link_separates_its_ends(first, second):
    """0 -> 1 -> 2 through memory; one of the links is shifted, 0 and 2 share nothing."""
    start = call(MAP, INNER, V[0], V[1])
    bad = [start, call(first, INNER, V[1], V[2]), call(second, INNER, V[2], V[3])]
    assert why(0, 2, *bad) == "cycle"
    good = [start, call(MAP, INNER, V[1], V[2]), call(MAP, INNER, V[2], V[3])]
    assert why(0, 2, *good) is None


@pytest.mark.parametrize("linked", [True, False])
def test_the_exact_search_closes_no_cycle(linked):
    """0 and 2 share an input; 1, which is too large to join them, comes between if linked."""
    many = [View(f"v{k}") for k in range(MAX_VIEWS - 2)]
    i, x, y = S("i"), View("x"), View("y")
    total = x[i]
    for view in many:
        total = total + view[i]
    wide = workunit("wide", [i], [x, *many, y], [y[i] << total])
    i, x, y, z = S("i"), View("x"), View("y"), View("z")
    two = workunit("two", [i], [x, y, z], [z[i] << x[i] + y[i]])
    found = groups(
        call(MAP, INNER, V[0], V[1]),
        call(wide, INNER, V[1], *V[10 : 10 + len(many)], V[2]),
        call(two, INNER, V[0], V[2] if linked else V[4], V[3]),
    )
    assert found == ([(0,), (1,), (2,)] if linked else [(0, 2), (1,)])
