"""From the report of a kernel to an exception in the user's terms."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.ir.divisions import divisions
from pyfuser.nest.abi import REPORT_HEAD
from pyfuser.nest.spec import KernelSpec
from pyfuser.support.errors import BoundsError, CheckError, DivisionError, quoted
from pyfuser.trace.call import Call

MAX_PLACES = 8  # that a message lists


def mistake(spec: KernelSpec, report: Sequence[int]) -> CheckError:
    """What a kernel reported (see `cpu.checked`) as an exception."""
    assert spec.sites is not None
    number, axis, index, extent = report[:REPORT_HEAD]
    point = tuple(report[REPORT_HEAD : REPORT_HEAD + spec.rank])
    site = spec.sites[number - 1]
    names = spec.names[: spec.rank]
    iteration = ", ".join(f"{n} = {p}" for n, p in zip(names, point, strict=True))
    place = f"{site.location}: " if site.location else ""
    where = f"workunit {spec.title!r}, iteration {iteration}{quoted(site.location)}"
    if site.view is None:
        return DivisionError(f"{place}an integer is divided by 0; {where}")
    message = (
        f"{place}index {index} is outside axis {axis} of {site.view!r}, which has extent {extent}; "
        f"{where}"
    )
    if index < 0:
        message += "\n  (a negative index does not count from the end in a kernel)"
    return BoundsError(message, site.view, axis, index, extent, point, site.location)


def place_division(error: DivisionError, calls: Sequence[Call]) -> None:
    """Put the divisions of calls, one of which failed, into the error of their kernel."""
    found = [(call, d.location) for call in calls for d in divisions(call.workunit.body)]
    places = list(dict.fromkeys(place for _, place in found if place is not None))
    own = [call.location for call, place in found if place is None]  # of `frontends.scalar_work`
    if own:
        error.args = (f"{own[0]}: a number was divided by 0{quoted(own[0])}",)
    elif len(places) == 1:
        error.args = (
            f"{places[0]}: an integer was divided by 0{quoted(places[0])}\n"
            "  (PYFUSER_CHECK=bounds tells in which iteration)",
        )
    elif places:
        lines = "".join(f"\n  {place}:{quoted(place)}" for place in places[:MAX_PLACES])
        lines += "\n  ..." * (len(places) > MAX_PLACES)
        error.args = (
            "an integer was divided by 0 in one of these places (PYFUSER_CHECK=bounds tells in "
            f"which, and in which iteration):{lines}",
        )
