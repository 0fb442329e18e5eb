"""Builds the report of `pyfuser.explain()` from what the driver ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyfuser.analysis.dependences import Dependence, Kind
from pyfuser.codegen import pykokkos
from pyfuser.driver import FLUSHES, Flush
from pyfuser.ir.nodes import Load, Store, Update, Workunit
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.plan.explain import (
    CallReport,
    Explanation,
    GroupReport,
    RejectionReport,
    describe,
)
from pyfuser.plan.plan import Rejection
from pyfuser.plan.profit import bytes_moved
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel


def explain(flushes: int = 1, source: bool = False) -> Explanation:
    """The report of the latest flushes.

    flushes: how many of the latest flushes to cover (the newest 64 are kept). source: whether the
    text shows each kernel's PyKokkos source; `groups[k].source` always has it.
    """
    covered = FLUSHES[-flushes:] if flushes > 0 else []
    groups: list[GroupReport] = []
    rejections: list[RejectionReport] = []
    for flush in covered:
        calls = [CallReport(name, location) for name, location in flush.calls]
        groups += _groups(flush, calls)
        rejections += [_rejection(flush, calls, r) for r in flush.program.plan.rejections]
    recorded = sum(len(flush.calls) for flush in covered)
    return Explanation(tuple(groups), tuple(rejections), recorded, source)


def _groups(flush: Flush, calls: list[CallReport]) -> Iterable[GroupReport]:
    program = flush.program
    trace, groups = program.trace, program.plan.groups
    shapes = group_shapes(trace, [group.calls for group in groups])
    for group, shape, kernel in zip(groups, shapes, program.kernels, strict=True):
        before = fuse(shape)
        yield GroupReport(
            calls=tuple(calls[position] for position in group.calls),
            source=pykokkos.emit(kernel.workunit),
            contracted=_contracted(before, kernel),
            removed_stores=_fewer(_stores(before.workunit), _stores(kernel.workunit)),
            removed_loads=_fewer(_loads(before.workunit), _loads(kernel.workunit)),
            bytes_moved=int(bytes_moved(trace, group.calls)),
            bytes_unfused=int(sum(bytes_moved(trace, (n,)) for n in group.calls)),
        )


def _contracted(before: Kernel, after: Kernel) -> tuple[str, ...]:
    return tuple(
        param.sym.name
        for param, slot in zip(before.workunit.params, before.slots, strict=True)
        if param.rank and slot not in after.slots
    )


def _stores(workunit: Workunit) -> Counter[str]:
    names: Counter[str] = Counter()
    for stmt in statements(workunit.body):
        if isinstance(stmt, Store):
            names[stmt.view.name] += 1
        elif isinstance(stmt, Update) and stmt.indices:
            names[stmt.target.name] += 1
    return names


def _loads(workunit: Workunit) -> Counter[str]:
    names = Counter(e.view.name for e in all_expressions(workunit.body) if isinstance(e, Load))
    for stmt in statements(workunit.body):
        if isinstance(stmt, Update) and stmt.indices and not stmt.atomic:
            names[stmt.target.name] += 1
    return names


def _fewer(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    return dict(before - after)


def _rejection(flush: Flush, calls: list[CallReport], rejection: Rejection) -> RejectionReport:
    dependence = rejection.dependence
    first, second = calls[rejection.first], calls[rejection.second]
    location = None
    detail = ""
    if dependence is not None:
        location = dependence.second_location or dependence.first_location
        detail = _accesses(dependence)
    return RejectionReport(
        first, second, rejection.reason, describe(rejection.reason, detail), location
    )


_VERBS = {
    Kind.FLOW: ("writes", "reads"),
    Kind.ANTI: ("reads", "writes"),
    Kind.OUTPUT: ("writes", "writes"),
}


def _accesses(dependence: Dependence) -> str:
    first, second = _VERBS[dependence.kind]
    where = [
        f"{verb} {view} at {location}" if location else f"{verb} {view}"
        for verb, view, location in (
            (first, dependence.first_view, dependence.first_location),
            (second, dependence.second_view, dependence.second_location),
        )
    ]
    return f": the first {where[0]}, the second {where[1]}"
