"""What of a kernel only a PyKokkos workunit for teams can say: scratch memory, nested sums."""

from __future__ import annotations

from pyfuser.ir.nodes import Assign, Body, Const, Declare, For, Read, Scratch, Sym, Update, Workunit
from pyfuser.ir.visit import assigned, declared, leaves_loop, reads, statements


def needs_team(workunit: Workunit) -> bool:
    """Whether the source has to be that of a workunit for a TeamPolicy."""
    sums = {a.sym for a in workunit.accumulators}
    for stmt in statements(workunit.body):
        if isinstance(stmt, Scratch):
            return True
        if isinstance(stmt, Update) and not stmt.indices and stmt.target not in sums:
            return True
    return False


def nested_sum(body: Body, place: int) -> tuple[Sym, For] | None:
    """`let total = 0` and the loop after it, where they are a nested parallel_reduce."""
    declaration, loop = body[place], body[place + 1] if place + 1 < len(body) else None
    if not isinstance(declaration, Declare) or not isinstance(loop, For):
        return None
    total, zero = declaration.sym, declaration.value
    if not isinstance(zero, Const) or zero.value != 0 or zero.dtype.name == "BOOL":
        return None
    if not (_is(loop.start, 0) and _is(loop.step, 1)) or any(map(leaves_loop, loop.body)):
        return None
    if not isinstance(loop.stop, (Const, Read)) or loop.sym in assigned(loop.body):
        return None
    outer = {
        s.sym if isinstance(s, Assign) else s.target
        for s in statements(loop.body)
        if isinstance(s, Assign) or (isinstance(s, Update) and (not s.indices or s.op != "+"))
    }
    if total in reads(*statements(loop.body)) or outer - set(declared(loop.body)) != {total}:
        return None
    return total, loop


def _is(e: object, value: int) -> bool:
    return isinstance(e, Const) and e.value == value
