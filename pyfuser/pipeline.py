"""Everything that the compiler may do to a trace and to a kernel, in order, on one page.

Rewrites of a trace run in one search, a kernel's passes in one loop. The steps of the planner and
the passes over loops are called where their turn is; here are their names, under which each can be
left out, as all others can (see `support.passes`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from pyfuser.ir.printer import show
from pyfuser.ir.verify import IRError, verify
from pyfuser.nest.build import sweep_of
from pyfuser.nest.nodes import Nest, SweepNest
from pyfuser.nest.passes.barriers import place_barriers
from pyfuser.nest.passes.blocks import lower_blocks
from pyfuser.nest.passes.grid import to_grid
from pyfuser.nest.passes.maths import double_vectors, round_products
from pyfuser.nest.passes.safe_rows import safe_rows
from pyfuser.nest.passes.scalar_loops import scalar_loops
from pyfuser.nest.passes.scan_tiles import scan_tiles
from pyfuser.nest.passes.share_threads import may_share, share_threads
from pyfuser.nest.passes.split_conditions import split_conditions
from pyfuser.nest.passes.split_guards import split_guards
from pyfuser.nest.passes.split_rows import split_rows
from pyfuser.nest.passes.teams import share_teams
from pyfuser.nest.passes.tile_sums import tile_sums
from pyfuser.nest.printer import show as show_nest
from pyfuser.nest.printer import show_sweep
from pyfuser.nest.spec import SweepSpec
from pyfuser.nest.verify import verify as verify_nest
from pyfuser.nest.verify import verify_sweep
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.plan.rewrites import (
    coarsen,
    delinearize,
    embed_boundary,
    enlarge_domain,
    recompute,
    sink_axes,
    sink_outer_axis,
)
from pyfuser.plan.search import Planned, search
from pyfuser.support.caches import cached
from pyfuser.support.errors import SettingError
from pyfuser.support.passes import left_out
from pyfuser.support.settings import SETTINGS, refuse
from pyfuser.trace.shape import ScalarShape, TraceShape
from pyfuser.transform.branches import convert_branches
from pyfuser.transform.count_loops import count_loops
from pyfuser.transform.early_loads import load_early, needed
from pyfuser.transform.elements import choose_elements, split_arrays
from pyfuser.transform.flat_loops import split_flat_loops
from pyfuser.transform.fold_constants import fold_constants
from pyfuser.transform.fuse import MAX_FORMS, Form, form_of, merged, with_sizes
from pyfuser.transform.group import GroupShape
from pyfuser.transform.inner_loops import fuse_inner_loops
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.narrow import narrow
from pyfuser.transform.overwrites import mark_overwrites
from pyfuser.transform.remainders import has_remainders, reduce_remainders
from pyfuser.transform.rows import contract_rows
from pyfuser.transform.scalars import forward_elements, replace_scalars
from pyfuser.transform.selects import select_elements
from pyfuser.transform.tables import private_tables, tallied_views
from pyfuser.transform.unroll import unroll
from pyfuser.transform.unused import remove_unused
from pyfuser.transform.widen import Proof, proof_of, widen

T = TypeVar("T")


class KernelPass(NamedTuple):
    """A pass from kernel to kernel; what it has nothing to do for it returns as it is.

    sized: it looks at sizes. What others make of a kernel serves all kernels of its form.
    """

    name: str
    run: Callable[[Kernel], Kernel]
    sized: bool = False


class NestPass(NamedTuple):
    """A pass from loop nest to loop nest; what it has nothing to do for it returns as it is.

    told: whether reports say that it was done.
    """

    name: str
    run: Callable[[Nest], Nest]
    told: bool = True


class Step(NamedTuple):
    """A step that is called where its turn is: by the planner, or while code is printed."""

    name: str
    what: str


#: What the search tries to make of calls, in this order (see `plan.rewrite`).
TRACE_REWRITES = (
    delinearize.REWRITE,
    sink_axes.REWRITE,
    sink_outer_axis.REWRITE,
    coarsen.REWRITE,
    enlarge_domain.REWRITE,
    embed_boundary.REWRITE,
    recompute.REWRITE,
)

PLAN_STEPS = (
    Step("roll", "calls on parts of arrays that move on become one call over all of them"),
    Step("whole-rounds", "kernels of a long loop end after whole rounds, and are the same"),
    Step("refine-partition", "calls move between the groups of the greedy partition"),
    Step("wavefront", "groups that depend on each other run in one launch, a few rows apart"),
    Step("ring", "a wavefront over a periodic range closes around its ends"),
    Step("storage-folding", "a wavefront keeps only the rows that are still read"),
    Step("fuse-into-scan", "maps behind a scan run in its last pass"),
    Step("unite-views", "parts of arrays that begin where these do are one parameter with them"),
    Step("size-generic", "plans of larger sizes serve traces whose sizes change"),
    Step("budget", "traces whose plan or kernels would cost more than they take run unfused"),
    Step(
        "bands", "long traces that are not planned run for one part of an axis, then for the next"
    ),
    Step("compile-ahead", "what is tried is compiled while the program goes on"),
    Step("autotune", "plans in doubt are tried in turn, and measured"),
    Step("no-gain", "NumPy computes what kernels would make no faster"),
    Step("short-rows", "NumPy's reductions of few elements each are operations on whole arrays"),
    Step("lookup", "NumPy's `searchsorted`, `digitize` and `interp` are recorded"),
    Step("strided", "NumPy's columns are recorded sooner, four trips of a loop in one trace"),
    Step("tallies", "NumPy's `histogram` with bins of one width is recorded"),
    Step("keep-rows", "NumPy's calls on arrays that are rolled have as many axes as the rolls"),
    Step("guarded-selections", "NumPy's `x[m] = f(x[m])` is computed in place, nothing gathered"),
    Step("following", "sums that always follow a trace run with it"),
    Step("postpone", "work arrays that the next step overwrites unread are not stored"),
    Step("turns", "tiny calls of a steady loop run at once where recording them was slower"),
    Step("lone-calls", "tiny calls that are all of a flush, again and again, run at once"),
    Step("team-turns", "one thread runs what all of them take longer for, as others want them"),
    Step("store", "plans and kernels of earlier processes are taken from disk"),
)

KERNEL_PASSES = (
    KernelPass("fuse-inner-loops", fuse_inner_loops),
    KernelPass("forward-stores", replace_scalars),
    KernelPass("contract-rows", contract_rows, sized=True),
    KernelPass("remove-unused", remove_unused),
    KernelPass("mark-overwrites", mark_overwrites, sized=True),
)

#: Of kernels that are printed as C++, CUDA or HIP: for known bounds.
C_PASSES = (
    KernelPass("count-loops", count_loops),
    KernelPass("split-flat-loops", split_flat_loops),
    KernelPass("convert-branches", convert_branches),
    KernelPass("choose-elements", choose_elements, sized=True),
    KernelPass("unroll", unroll, sized=True),
    KernelPass("fold-constants", fold_constants),
    KernelPass("forward-elements", forward_elements),
    KernelPass("split-arrays", split_arrays),
    KernelPass("select-elements", select_elements, sized=True),
    KernelPass("load-early", load_early, sized=True),
    KernelPass("narrow", narrow, sized=True),
    KernelPass("reduce-remainders", reduce_remainders, sized=True),
    KernelPass("widen", widen, sized=True),
    KernelPass("private-tables", private_tables, sized=True),
)

BAKING = 11
"""So many of these, the first ones, may put scalars' values into the code, or look at none."""

#: Of the loops of maps on a CPU, over the boxes that threads get.
NEST_PASSES = (
    NestPass("split-conditions", split_conditions),
    NestPass("split-guards", split_guards),
    NestPass("split-rows", split_rows),
    NestPass("safe-rows", safe_rows),
)

#: What makes boxes into the loops of a processor, after NEST_PASSES; none can be left out.
CPU_PASSES = (
    NestPass("scan-tiles", scan_tiles, told=False),
    NestPass("tile-sums", tile_sums, told=False),
    NestPass("lower-blocks", lower_blocks, told=False),
    NestPass("scalar-loops", scalar_loops, told=False),
    NestPass("round-products", round_products, told=False),
)

#: Of the loops of one kernel, which share their maths and their launch with no others.
LONE_PASSES = (
    NestPass("double-vectors", double_vectors, told=False),
    NestPass("share-threads", share_threads, told=False),
)

#: What makes loops into those of a GPU's threads; none can be left out.
GPU_PASSES = (
    NestPass("grid", to_grid),
    NestPass("teams", share_teams),
    NestPass("barriers", place_barriers),
)

LOOP_PASSES = (
    Step("loop-order", "interchange and tiling, so that neighbours in memory come in turn"),
    Step("strip-mine", "loops along columns run trip by trip for a strip of iterations"),
    Step("copy-rows", "what a strip reads again along rows is copied, side by side"),
    Step("distribute", "loop distribution over blocks: what cannot be vectors gets its loop"),
    Step("split-widths", "loop distribution where bytes stand beside doubles"),
    Step("unroll-and-jam", "chains of several iterations run side by side"),
    Step("split-chains", "long chains of operations are distributed, to run side by side"),
    Step("split-accumulators", "sums with many accumulators are distributed"),
    Step("promote-sums", "terms go to running sums in registers, not through memory"),
    Step("constant-strides", "the length of short rows is a constant of the code"),
    Step("hoist-calls", "calls of maths functions under conditions are made for all"),
    Step("prefetch", "memory is asked for ahead"),
    Step("share-threads", "threads share the iterations, where there are enough"),
)

NAMES = (
    *(rewrite.name for rewrite in TRACE_REWRITES),
    *(step.name for step in PLAN_STEPS),
    *(each.name for each in (*KERNEL_PASSES, *C_PASSES, *NEST_PASSES)),
    *(step.name for step in LOOP_PASSES),
)

if not SETTINGS.without <= {*NAMES}:
    unknown = ", ".join(sorted(SETTINGS.without - {*NAMES}))
    refuse(SettingError(f"PYFUSER_WITHOUT={unknown}: no such pass; there are {', '.join(NAMES)}"))


def planned(trace: TraceShape, capabilities: Capabilities = ALL) -> Planned:
    """The plan of a trace after TRACE_REWRITES, and the trace as planned."""
    return search(trace, TRACE_REWRITES, capabilities)


def run_passes(passes: Sequence[KernelPass], kernel: Kernel) -> Kernel:
    """The kernel after all passes, for its sizes alone."""
    for each in passes:
        kernel = _applied(each, kernel)
    return kernel


def for_c(kernel: Kernel) -> Kernel:
    """The kernel as its C++, CUDA or HIP is printed."""
    return run_passes(C_PASSES, kernel)


# law
def for_changing(kernel: Kernel, changing: frozenset[int]) -> tuple[Kernel, Proof | None]:
    """As `for_c`, where scalars at some places change from call to call.

    Their values become no part of the code: short loops that they bound stay loops. With it comes
    the proof that the code is right for other numbers, too, as far as there is one; extents that
    the code asks for are numbers that stay.
    """
    shapes = tuple(
        ScalarShape(shape.dtype, None)
        if isinstance(shape, ScalarShape) and slot.argument in changing
        else shape
        for slot, shape in zip(kernel.slots, kernel.shapes, strict=True)
    )
    made = run_passes(C_PASSES[:BAKING], replace(kernel, shapes=shapes))
    made = replace(made, shapes=kernel.shapes)
    unit, ranges = made.workunit, made.ranges()
    final = run_passes(C_PASSES[BAKING:], made)
    counted = final.tables or any(view.dtype.is_integer for view in tallied_views(unit))
    fixed = "load-early" in final.passes and needed(final) is None
    if fixed or has_remainders(unit) or counted:
        return final, None
    proof = proof_of(unit, ranges)
    return final, proof if proof.widened is final.workunit else None


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
    _check(each.name, made.workunit, show, verify)
    return replace(made, passes=(*made.passes, each.name))


def _check(name: str, made: T, show: Callable[[T], str], verify: Callable[[T], None]) -> None:
    """When debugging: show what a pass has made, and see that it keeps the rules."""
    if SETTINGS.debug >= SHOW_PASSES:
        print(f"after {name}:\n{show(made)}", file=sys.stderr)
    if SETTINGS.debug:
        try:
            verify(made)
        except IRError as error:
            raise IRError(f"after {name}: {error}") from None


def run_nest_passes(nest: Nest, passes: Sequence[NestPass] = NEST_PASSES) -> Nest:
    """The nest after all passes."""
    for each in passes:
        if left_out(each.name):
            continue
        made = each.run(nest)
        if made is not nest:
            _check(each.name, made, show_nest, verify_nest)
            nest = replace(made, passes=(*made.passes, each.name)) if each.told else made
    return nest


def lowered(nest: Nest) -> Nest:
    """The nest after all passes, with loops in place of boxes."""
    return run_nest_passes(nest, (*NEST_PASSES, *CPU_PASSES, *LONE_PASSES))


def launched(nest: Nest) -> Nest:
    """The nest as a GPU launches it."""
    return run_nest_passes(nest, GPU_PASSES)


def lowered_sweep(spec: SweepSpec, nests: Sequence[Nest] | None = None) -> SweepNest:
    """The nest of a sweep after all passes; nests: see `nest.build.sweep_of`."""
    sweep = sweep_of(spec, nests)
    passes = (*NEST_PASSES, *CPU_PASSES, *LONE_PASSES[: len(sweep.nests) == 1])
    nests = tuple(run_nest_passes(nest, passes) for nest in sweep.nests)
    made = replace(sweep, nests=nests, shared=may_share(spec))
    _check("lower-sweep", made, show_sweep, verify_sweep)
    return made


SHOW_PASSES = 5
"""The level of PYFUSER_DEBUG from which on kernels are shown after each pass that changed them."""
