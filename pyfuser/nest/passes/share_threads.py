"""Iterations are shared among the threads of a processor, if there are enough of them.

Neighbours share lines of memory, so so many stay with a thread; few long iterations have to be
shared evenly. Of small tables each thread has a copy meanwhile (see `transform.tables`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Update
from pyfuser.ir.visit import statements
from pyfuser.nest.cost.work import body_cost, varies, work_of
from pyfuser.nest.nodes import Nest
from pyfuser.nest.shares import OwnTable, Shares, Varying
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.support.passes import left_out
from pyfuser.transform.tables import KINDS

CACHE_LINE = 64
"""Bytes, and neighbours of the smallest type in them."""


def may_share(spec: KernelSpec | SweepSpec) -> bool:
    """Whether several threads may run a kernel."""
    return not (spec.serial or left_out("share-threads"))


def share_threads(nest: Nest) -> Nest:
    """The nest with the way in which threads share it, unless one thread runs it."""
    spec = nest.spec
    if not may_share(spec):
        return nest
    worth, unit = spec.tuning.worth_a_thread, spec.workunit
    count = max(worth // max(body_cost(unit.body), 1), 1)
    least = Varying(worth, work_of(unit)) if varies(unit) else count
    together = 1 if least == count < CACHE_LINE else CACHE_LINE
    if nest.serial and spec.pattern != "scan":
        least = together = 0
    tables, place = list[OwnTable](), 0
    for param, count in spec.tables:
        view = unit.params[param].sym
        updates = (s for s in statements(unit.body) if isinstance(s, Update) and s.target == view)
        op = KINDS[next(updates).op]
        tables.append(OwnTable(view, count, op, _nothing(op, view.dtype), place))
        place += -(-count * view.dtype.size // CACHE_LINE) * CACHE_LINE
    return replace(nest, shares=Shares(least, together, tuple(tables), place))


def _nothing(op: str, dtype: DType) -> Const:
    """The operand that changes nothing."""
    if dtype.is_float:
        return Const({"min": math.inf, "max": -math.inf}.get(op, -0.0), dtype)
    low, high = dtype.range()
    found = {"min": high, "max": low, "&": high if low == 0 else -1}.get(op, 0)
    return Const(int(found), dtype)
