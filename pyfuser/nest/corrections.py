"""Selections that leave an index as it is, or correct it.

    r = p >= n ? p - n : p       ->      r = p < n ? p : p - n

Inside, an index is one that needs no correction: the comparison that leaves it as it is holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Compare, Expr, Select
from pyfuser.ir.visit import as_written, map_body, map_expression

_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}  # of integers: no number is none


# law
def kept_first(body: Body, is_given: Callable[[Expr], bool]) -> tuple[Body, set[Expr]]:
    """The body with what such selections keep as their first side, and the comparisons for that.

    is_given: of what no iteration changes. In the comparisons stands what others keep.
    """
    kept: set[Expr] = set()

    def known(e: Expr) -> Expr:
        return e.then if isinstance(e, Select) and e.condition in kept else e

    def turned(e: Expr) -> Expr:
        if not isinstance(e, Select) or not isinstance(e.condition, Compare):
            return e
        test = e.condition
        if test.left.dtype not in (DType.INT32, DType.INT64) or test.op not in _NEGATED:
            return e
        ends = {*_leaves(test.left), *_leaves(test.right)}
        compared = {end for end in ends if not is_given(end)}
        stays = [not compared.isdisjoint(_leaves(side)) for side in (e.then, e.orelse)]
        if stays[0] == stays[1]:
            return e
        if stays[1]:
            test = replace(test, op=_NEGATED[test.op])
            e = Select(test, e.orelse, e.then)
        kept.add(map_expression(test, known))
        return e

    return map_body(body, turned), kept


def _leaves(e: Expr) -> Iterator[Expr]:
    """What selections in selections may give."""
    if isinstance(e, Select):
        yield from _leaves(e.then)
        yield from _leaves(e.orelse)
    else:
        yield as_written(e)
