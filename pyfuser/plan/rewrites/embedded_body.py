"""A workunit with an outermost index of its own, for loops that have one more than it.

    over j:                     over (row, j):
        u[0, j] = u[1, j]    ->     u[0, j] = u[1, j]

Nothing reads the index: it says where, along the outermost axis of other loops, the workunit runs
(see `plan.rewrites.embed_boundary`). A workunit that has one iteration along its first axis gives
that up instead. One whose statements belong to several rows becomes one over all rows from the
first to the last:

    over j:                     over row:
        u[0, j] = u[1, j]           if row == row0:
        u[n, j] = u[k, j]    ->         for j in range(j_begin, j_end):
                                            u[0, j] = u[1, j]
                                    if row == row1:
                                        for j in range(j_begin, j_end):
                                            u[n, j] = u[k, j]

The rows and the bounds are scalar parameters, so that the code is one for all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import (
    Body,
    Compare,
    Const,
    Declare,
    For,
    If,
    Param,
    Read,
    Sym,
    Workunit,
)
from pyfuser.ir.visit import all_expressions, assigned, declared, substitute_syms


def placed(workunit: Workunit) -> Workunit:
    """The workunit with one more index, before all others."""
    return replace(workunit, indices=(_row(workunit), *workunit.indices))


# law
def moved(workunit: Workunit, value: int) -> Workunit:
    """The workunit with another first index; its own has one value, which it keeps."""
    old, *others = workunit.indices
    body = workunit.body
    if old in assigned(body) or Read(old) in all_expressions(body):
        body = (Declare(old, Const(value, old.dtype)), *body)
    return replace(workunit, indices=(_row(workunit), *others), body=body)


# law
def spread(workunit: Workunit, parts: Sequence[Body]) -> Workunit:
    """The workunit over rows, each part in a row of its own, one iteration after the other.

    parts: of its body, with what they need of the rest. New parameters, after its own: the row of
    each part, then begin and end of each of its axes.
    """
    row = _row(workunit)
    uids = count(row.uid + 1)
    rows = [Sym(f"row{n}", next(uids), row.dtype) for n in range(len(parts))]
    bounds = [
        (Sym(f"{i.name}_begin", next(uids), i.dtype), Sym(f"{i.name}_end", next(uids), i.dtype))
        for i in workunit.indices
    ]
    body: list[If] = []
    for number, part in zip(rows, parts, strict=True):
        changing = assigned(part)
        for index, (begin, end) in reversed(list(zip(workunit.indices, bounds, strict=True))):
            variable = index
            if index in changing:  # a loop's variable keeps its value
                variable = Sym(index.name, next(uids), index.dtype)
                part = (Declare(index, Read(variable)), *part)
            part = (For(variable, Read(begin), Read(end), Const(1, index.dtype), part),)
        own = {sym: Sym(sym.name, next(uids), sym.dtype) for sym in dict.fromkeys(declared(part))}
        part = substitute_syms(part, own)
        body.append(If(Compare("==", Read(row), Read(number)), part))
    new = (*rows, *(sym for pair in bounds for sym in pair))
    params = (*workunit.params, *map(Param, new))
    return replace(workunit, indices=(row,), params=params, body=tuple(body))


def _row(workunit: Workunit) -> Sym:
    """A Sym that the workunit lacks: the same one each time, so that equal calls stay equal."""
    uid = 1 + max(sym.uid for sym in all_syms(workunit))
    return Sym("row", uid, workunit.indices[0].dtype)
