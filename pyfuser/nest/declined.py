"""Why a kernel has no code for a GPU."""

from __future__ import annotations

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.passes.grid import to_grid
from pyfuser.nest.passes.teams import needs_sharing, share_teams
from pyfuser.nest.scratch import lengths_of
from pyfuser.nest.spec import KernelSpec, SweepSpec

NO_ROOM = "scratch memory whose size is known only when it runs"


def declined(spec: KernelSpec | SweepSpec) -> str:
    """Why there is no GPU kernel for a spec; "" where there is one."""
    if isinstance(spec, SweepSpec):
        return "a sweep: its loops wait for each other, and blocks of a grid cannot"
    if spec.checked:
        return "subscripts are checked on the host"
    if any(view is not None and not view.packed for view in spec.views):
        return "a view whose elements are not aligned"
    why = refusal(spec.workunit)
    if why or not _unknown_scratch(spec.workunit):
        return why
    launch = share_teams(to_grid(nest_of(spec))).launch
    return "" if launch is not None and launch.rule == "team" else NO_ROOM


def refusal(workunit: Workunit) -> str:
    """Why no kernel can have the code of a workunit, whatever its arguments; "" if one can."""
    why = needs_sharing(workunit) if _unknown_scratch(workunit) else ""
    return f"{NO_ROOM}: {why}" if why else ""


def _unknown_scratch(workunit: Workunit) -> bool:
    """Whether a block of threads has to run a workunit, as no thread could have its memory."""
    return any(
        isinstance(stmt, nodes.Scratch) and lengths_of(stmt) is None
        for stmt in statements(workunit.body)
    )
