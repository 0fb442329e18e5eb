"""From the report of a checked kernel to an exception in the user's terms."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.cpp_bounds import REPORT_HEAD
from pyfuser.codegen.spec import KernelSpec
from pyfuser.errors import BoundsError, quoted


def bounds_error(spec: KernelSpec, report: Sequence[int]) -> BoundsError:
    """What a kernel reported (see `cpp_bounds`) as an exception."""
    assert spec.sites is not None
    number, axis, index, extent = report[:REPORT_HEAD]
    point = tuple(report[REPORT_HEAD : REPORT_HEAD + spec.rank])
    site = spec.sites[number - 1]
    names = spec.names[: spec.rank]
    iteration = ", ".join(f"{n} = {p}" for n, p in zip(names, point, strict=True))
    place = f"{site.location}: " if site.location else ""
    message = (
        f"{place}index {index} is outside axis {axis} of {site.view!r}, which has extent {extent}; "
        f"workunit {spec.title!r}, iteration {iteration}{quoted(site.location)}"
    )
    if index < 0:
        message += "\n  (a negative index does not count from the end in a kernel)"
    return BoundsError(message, site.view, axis, index, extent, point, site.location)
