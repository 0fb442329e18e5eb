"""Join neighbouring branches of one condition, so that what passes between them stays local.

    if i >= b and i < e: t[i] = f(i)          if i >= b and i < e:
    if i >= b and i < e: y[i] = g(t[i])   ->      t[i] = f(i)
                                                  y[i] = g(t[i])

Calls over one box that is smaller than their kernel's come with equal guards.
"""

from __future__ import annotations

from dataclasses import replace

from pyfuser.ir.guarded import bounds_of
from pyfuser.ir.nodes import Body, If
from pyfuser.ir.visit import assigned
from pyfuser.transform.kernel import Kernel


# law
def join_guards(kernel: Kernel) -> Kernel:
    """The kernel with neighbours of equal guards joined; guards are those of `ir.guarded`."""
    workunit = kernel.workunit
    changing = assigned(workunit.body)
    indices = frozenset(workunit.indices) - changing
    scalars = {param.sym for param in workunit.params if not param.rank} - changing
    body: Body = ()
    for stmt in workunit.body:
        last = body[-1] if body else None
        if (
            isinstance(stmt, If)
            and isinstance(last, If)
            and stmt.condition == last.condition
            and not (stmt.orelse or last.orelse)
            and bounds_of(stmt.condition, indices, scalars)
        ):
            body = (*body[:-1], replace(last, then=(*last.then, *stmt.then)))
        else:
            body = (*body, stmt)
    if len(body) == len(workunit.body):
        return kernel
    return replace(kernel, workunit=replace(workunit, body=body))
