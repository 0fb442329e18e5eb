"""Calls that do not share a loop: the access that stood in the way, and what could be done."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.dependences import Dependence, Kind
from pyfuser.ir.nodes import SourceLocation
from pyfuser.plan.cost_model import touched_bytes
from pyfuser.plan.plan import Rejection
from pyfuser.report.model import CallReport, RejectionReport
from pyfuser.report.names import given_name
from pyfuser.report.words import DEPENDENCES, REMEDIES, WHY, dependence
from pyfuser.runtime.program import Flush
from pyfuser.support.places import short_path
from pyfuser.trace.call import Space
from pyfuser.trace.shape import RegionShape, TraceShape

_SWEEPABLE = frozenset({"flow", "anti", "output", "unknown-access", "space", "pattern"})
"""What keeps calls out of one loop but not, of itself, out of one sweep."""


def rejection_report(
    flush: Flush, calls: Sequence[CallReport], rejection: Rejection
) -> RejectionReport:
    """What keeps two calls of a flush apart, in the program's names."""
    reason, found = rejection.reason, rejection.dependence
    first, second = calls[rejection.first], calls[rejection.second]
    message, remedy = WHY.get(reason, reason), REMEDIES.get(reason, "")
    location = None
    if found is not None and reason in DEPENDENCES:
        location = found.second_location or found.first_location
        values = _accesses(flush, rejection, found, (first, second))
        message, remedy = dependence(reason, values), remedy.format(**values)
        if reason == "anti" and not (
            _writes_most(flush.program.trace, rejection.second, found)
            and not {Kind.FLOW, Kind.OUTPUT} & _apart(flush, rejection)
        ):
            remedy = ""
    elif reason == "space":
        message, remedy = _spaces(flush, rejection)
    same_sweep, sweep = _sweep(flush, rejection)
    return RejectionReport(
        first, second, reason, message, location, same_sweep, "" if same_sweep else remedy, sweep
    )


def _sweep(flush: Flush, rejection: Rejection) -> tuple[bool, str]:
    """Whether two calls share a sweep, and why not if that was tried."""
    plan = flush.program.plan
    home = {n: place for place, group in enumerate(plan.groups) for n in group.calls}
    before, after = sorted((home[rejection.first], home[rejection.second]))
    if any({before, after} <= {*sweep.groups} for sweep in plan.sweeps):
        return True, ""
    if rejection.reason not in _SWEEPABLE:
        return False, ""
    why = (note.why_apart(rejection.first, rejection.second) for note in plan.notes)
    return False, "; ".join(filter(None, why))


def _accesses(
    flush: Flush, rejection: Rejection, found: Dependence, calls: tuple[CallReport, CallReport]
) -> dict[str, str]:
    """What the sentence about two accesses names."""
    one, other = (
        given_name(flush, call, view) if view else "an array"
        for call, view in (
            (rejection.first, found.first_view),
            (rejection.second, found.second_view),
        )
    )
    first, second = (call.name for call in calls)
    if first == second:
        first, second = "the first", "the second"
    return {
        "first": first,
        "second": second,
        "view": other if one == other else f"{other} ({one} to {first})",
        "written": other,
        "does": "writes" if found.kind is not Kind.ANTI else "reads",
        "then": "reads" if found.kind is Kind.FLOW else "writes",
        "here": _place(found.first_location, calls[1].file),
        "there": _place(found.second_location, calls[1].file),
    }


def _writes_most(trace: TraceShape, position: int, found: Dependence) -> bool:
    """Whether a call makes an array anew, so that it may as well be another one."""
    call = trace.calls[position]
    for access in accesses(call):
        region = call.arguments[access.param]
        name = call.workunit.params[access.param].sym.name
        if access.mode is Mode.WRITE and name == found.second_view:
            assert isinstance(region, RegionShape)
            size = prod(region.shape) * region.dtype.size
            if 2 * touched_bytes(region, access.relation) >= size:
                return True
    return False


def _place(location: SourceLocation | None, file: str) -> str:
    """A place in parentheses; without its file if that is the one that is spoken of."""
    if location is None:
        return ""
    if location.file == file:
        return f" (line {location.line})"
    return f" ({short_path(location.file)}:{location.line})"


def _spaces(flush: Flush, rejection: Rejection) -> tuple[str, str]:
    """The ranges of two calls, or the execution spaces if these differ; and what could be done."""
    one, other = (flush.program.trace.calls[n].space for n in (rejection.first, rejection.second))
    if one.execution != other.execution:
        text = f"one runs in {one.execution}, the other in {other.execution}"
        return text, "run both in one execution space"
    text = f"{WHY['space']}: {_box(one)} and {_box(other)}"
    sizes = sorted(prod(space.shape) for space in (one, other))
    alike = len(one.begin) == len(other.begin) and 2 * sizes[0] >= sizes[1]
    alike = alike and not _apart(flush, rejection)
    return text, "give both the same range, with an `if` in the smaller one" if alike else ""


def _apart(flush: Flush, rejection: Rejection) -> set[Kind]:
    """The dependences between different iterations of the loops that two calls are in."""
    loops = [
        next(group.calls for group in flush.program.plan.groups if n in group.calls)
        for n in (rejection.first, rejection.second)
    ]
    return {
        d.kind
        for d in flush.program.graph.dependences
        if not d.same_iteration and d.source in loops[0] and d.sink in loops[1]
    }


def _box(space: Space) -> str:
    """An iteration space as intervals."""
    pairs = zip(space.begin, space.end, strict=True)
    return " x ".join(f"[{begin:,}, {end:,})" for begin, end in pairs)
