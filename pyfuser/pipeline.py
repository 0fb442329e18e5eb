"""Everything that the compiler may do to a trace and to a kernel, in order, on one page.

A kernel's passes run here, one loop for all. Rewrites of a trace and the passes over its loops are
called by the planner and by code generation; here are their names, under which each of them can be
left out (see `support.passes`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyfuser.ir.printer import show
from pyfuser.ir.verify import IRError, verify
from pyfuser.support.caches import cached
from pyfuser.support.errors import SettingError
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS, refuse
from pyfuser.transform.fuse import MAX_FORMS, Form, form_of, merged, with_sizes
from pyfuser.transform.group import GroupShape
from pyfuser.transform.guards import join_guards
from pyfuser.transform.inner_loops import fuse_inner_loops
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.overwrites import mark_overwrites
from pyfuser.transform.rows import contract_rows
from pyfuser.transform.scalars import replace_scalars
from pyfuser.transform.selects import select_elements
from pyfuser.transform.unroll import unroll
from pyfuser.transform.unused import remove_unused
from pyfuser.transform.widen import widen


class Rewrite(NamedTuple):
    """A rewrite of a trace, or a step of its planner."""

    name: str
    what: str


class KernelPass(NamedTuple):
    """A pass from kernel to kernel; what it has nothing to do for it returns as it is.

    sized: it looks at sizes. What others make of a kernel serves all kernels of its form.
    """

    name: str
    run: Callable[[Kernel], Kernel]
    sized: bool = False


class LoopPass(NamedTuple):
    """A decision about the loops of a kernel, made while its code is printed."""

    name: str
    what: str


TRACE_REWRITES = (
    Rewrite("delinearize", "i // m and i % m become two indices"),
    Rewrite("recompute", "calls compute again what another launch would store for them"),
    Rewrite("embed-boundary", "boundary updates run at rows of the loops over the interior"),
    Rewrite("enlarge-domain", "calls over boxes that differ a little share a loop, with guards"),
    Rewrite("coarsen", "one iteration runs a row of the program's iterations"),
    Rewrite("refine-partition", "calls move between the groups of the greedy partition"),
    Rewrite("fuse-into-scan", "maps behind a scan run in its last pass"),
    Rewrite("wavefront", "groups that depend on each other run in one launch, a few rows apart"),
    Rewrite("storage-folding", "a wavefront keeps only the rows that are still read"),
    Rewrite("size-generic", "plans of larger sizes serve traces whose sizes change"),
    Rewrite("partial-flush", "calls that a result does not need wait for the next launch"),
    Rewrite("autotune", "plans in doubt are tried in turn, and measured"),
)

KERNEL_PASSES = (
    KernelPass("join-guards", join_guards),
    KernelPass("fuse-inner-loops", fuse_inner_loops),
    KernelPass("forward-stores", replace_scalars),
    KernelPass("contract-rows", contract_rows, sized=True),
    KernelPass("remove-unused", remove_unused),
    KernelPass("mark-overwrites", mark_overwrites, sized=True),
)

#: Of kernels that are printed as C++, CUDA or HIP: for known bounds.
C_PASSES = (
    KernelPass("unroll", unroll, sized=True),
    KernelPass("select-elements", select_elements, sized=True),
    KernelPass("widen", widen, sized=True),
)

LOOP_PASSES = (
    LoopPass("loop-order", "interchange and tiling, so that neighbours in memory come in turn"),
    LoopPass("split-guards", "index-set splitting where guards begin and end to hold"),
    LoopPass("split-conditions", "blocks in which conditions hold everywhere have a loop without"),
    LoopPass("strip-mine", "loops along columns run trip by trip for a strip of iterations"),
    LoopPass("distribute", "loop distribution over blocks: what cannot be vectors gets its loop"),
    LoopPass("unroll-and-jam", "chains of several iterations run side by side"),
    LoopPass("split-chains", "long chains of operations are distributed, to run side by side"),
    LoopPass("split-accumulators", "sums with many accumulators are distributed"),
    LoopPass("hoist-calls", "calls of maths functions under conditions are made for all"),
    LoopPass("prefetch", "memory is asked for ahead"),
    LoopPass("packed", "GPU threads take neighbouring iterations and load them at once"),
)

NAMES = tuple(p.name for p in (*TRACE_REWRITES, *KERNEL_PASSES, *C_PASSES, *LOOP_PASSES))

if not SETTINGS.without <= {*NAMES}:
    unknown = ", ".join(sorted(SETTINGS.without - {*NAMES}))
    refuse(SettingError(f"PYFUSER_WITHOUT={unknown}: no such pass; there are {', '.join(NAMES)}"))


def run_passes(passes: Sequence[KernelPass], kernel: Kernel) -> Kernel:
    """The kernel after all passes, for its sizes alone."""
    for each in passes:
        kernel = _applied(each, kernel)
    return kernel


def for_c(kernel: Kernel) -> Kernel:
    """The kernel as its C++, CUDA or HIP is printed."""
    return run_passes(C_PASSES, kernel)


def kernel_of(group: GroupShape) -> Kernel:
    """The kernel of a group after KERNEL_PASSES (which may be one of an equal group: its Syms).

    While the passes that look at sizes find nothing to do, the kernel is that of a form, and what
    they make of it is kept.
    """
    form: Form | None = form_of(group)
    kernel = with_sizes(_of_form(form, 0), group)
    for number, each in enumerate(KERNEL_PASSES):
        if form is not None and not each.sized:
            kernel = with_sizes(_of_form(form, number + 1), group)
        else:
            before, kernel = kernel, _applied(each, kernel)
            form = form if kernel is before else None
    return kernel


@cached(4 * MAX_FORMS)
def _of_form(form: Form, count: int) -> Kernel:
    """The kernel of a form after so many passes, of which those that look at sizes do nothing."""
    if not count:
        return merged(form)
    kernel, each = _of_form(form, count - 1), KERNEL_PASSES[count - 1]
    return kernel if each.sized else _applied(each, kernel)


def _applied(each: KernelPass, kernel: Kernel) -> Kernel:
    """The kernel after one pass."""
    if left_out(each.name):
        return kernel
    made = each.run(kernel)
    if made.workunit is kernel.workunit or made.workunit == kernel.workunit:
        return made
    if SETTINGS.debug >= SHOW_PASSES:
        print(f"after {each.name}:\n{show(made.workunit)}", file=sys.stderr)
    if SETTINGS.debug:
        try:
            verify(made.workunit)
        except IRError as error:
            raise IRError(f"after {each.name}: {error}") from None
    return replace(made, passes=(*made.passes, each.name))


SHOW_PASSES = 5
"""The level of PYFUSER_DEBUG from which on kernels are shown after each pass that changed them."""
