"""A workunit with an outermost index of its own, for loops that have one more than it.

    over j:                     over (row, j):
        u[0, j] = u[1, j]    ->     u[0, j] = u[1, j]

Nothing reads the index: it says where, along the outermost axis of other loops, the workunit runs
(see `plan.edges`). A workunit that has one iteration along its first axis gives that up instead.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import Const, Declare, Read, Sym, Workunit
from pyfuser.ir.visit import all_expressions, assigned


def placed(workunit: Workunit) -> Workunit:
    """The workunit with one more index, before all others."""
    return replace(workunit, indices=(_row(workunit), *workunit.indices))


def moved(workunit: Workunit, value: int) -> Workunit:
    """The workunit with another first index; its own has one value, which it keeps."""
    old, *others = workunit.indices
    body = workunit.body
    if old in assigned(body) or Read(old) in all_expressions(body):
        body = (Declare(old, Const(value, old.dtype)), *body)
    return replace(workunit, indices=(_row(workunit), *others), body=body)


def _row(workunit: Workunit) -> Sym:
    """A Sym that the workunit lacks: the same one each time, so that equal calls stay equal."""
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    return Sym("row", uid, workunit.indices[0].dtype)
