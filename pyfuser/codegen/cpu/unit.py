"""A kernel as a complete C++ translation unit: `emit`.

The entry point is::

    extern "C" int pf_kernel(const int64_t* slot[, int64_t* results])

`slot` holds 8-byte values: the number of threads, begin and end of each axis of the space, then
what `abi` lists. `results`, where there are accumulators, has 16 zeroed bytes for each and receives
their values. It returns 0, NO_MEMORY, DIVIDED if it ran and divided an integer by 0, or 1 + k if
the address of parameter k is not a multiple of its element's alignment. A checked kernel takes a
further array, see `cpu.checked`, and may return OUTSIDE.

The loops stand in a function of their own that takes restrict pointers as parameters: a compiler
forgets `restrict` when it outlines the body of an OpenMP region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType

from pyfuser.codegen.c.maths import inline as maths_inline
from pyfuser.codegen.c.maths import scalar as maths_scalar
from pyfuser.codegen.c.maths import vector as maths_vector
from pyfuser.codegen.cost.gathers import apart
from pyfuser.codegen.cpu import checked as cpu_checked
from pyfuser.codegen.cpu import division as cpu_division
from pyfuser.codegen.cpu import map as cpu_map
from pyfuser.codegen.cpu import (
    nontemporal,
    prefetch,
    prelude_scan,
    prelude_wavefront,
    reciprocal,
    scratch,
)
from pyfuser.codegen.cpu import prelude as cpu_prelude
from pyfuser.codegen.cpu import reduce as cpu_reduce
from pyfuser.codegen.cpu import scan as cpu_scan
from pyfuser.codegen.cpu.context import DIVIDED, NO_MEMORY, OUTSIDE, Context, Slot, abi
from pyfuser.codegen.cpu.division import reported
from pyfuser.codegen.cpu.wavefront import loops as wavefront_loops
from pyfuser.codegen.cpu.wavefront import scan as wavefront_scan
from pyfuser.codegen.kernel import KernelSpec, SweepSpec
from pyfuser.codegen.passes import row_sums
from pyfuser.codegen.passes.distribute import mentioned
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Call, For, While
from pyfuser.ir.visit import all_expressions, statements

__all__ = ["DIVIDED", "NO_MEMORY", "OUTSIDE", "Slot", "abi", "emit"]


def emit(spec: KernelSpec | SweepSpec) -> str:
    """The source of a kernel."""
    if isinstance(spec, SweepSpec):
        loops = [_summing(context) for context in wavefront_loops.contexts(spec)]
        has_scan = any(stage.pattern == "scan" for stage in spec.stages)
        text = wavefront_scan.emit(spec, loops) if has_scan else wavefront_loops.emit(spec, loops)
        text = reported(text)
        return _preamble(spec.title, loops, text) + text
    pattern: ModuleType = cpu_map
    if spec.pattern == "scan":
        pattern = cpu_scan
    elif spec.workunit.accumulators:
        pattern = cpu_reduce
    context = _summing(Context(spec, pattern.LOCALS))
    code = reported(pattern.emit(context))
    return _preamble(spec.title, [context], code) + code


def _summing(context: Context) -> Context:
    """The context, whose printer knows how sums of locals are run."""
    context.statements.sum_lines = partial(row_sums.total_lines, context)
    return context


def _doubled(contexts: Sequence[Context]) -> bool:
    """Whether exp and log may take two vectors at a time, see `maths.inline.prelude`.

    Where they may stand in a loop of few trips, these would be trips of its remainder. Loops over
    4-byte elements take two vectors of doubles anyway, without converting exponents.
    """
    if len(contexts) > 1 or contexts[0].spec.rank > 1:
        return False
    unit = contexts[0].spec.workunit
    elsewhere = apart(unit.body)  # in another loop of a block
    reads, writes = mentioned(tuple(stmt for stmt in unit.body if not elsewhere(stmt)))
    views = {param.sym for param in unit.params if param.rank}
    if any(view.dtype.size < 8 for view in (reads | writes) & views):
        return False
    loops = (stmt for stmt in statements(unit.body) if isinstance(stmt, (For, While)))
    called = (expr for loop in loops for expr in all_expressions(loop.body))
    return not any(isinstance(e, Call) and e.name in maths_inline.NAMES for e in called)


def _preamble(title: str, contexts: Sequence[Context], code: str) -> str:
    """The includes and helpers that the code uses."""
    features = set[str]().union(*(context.expressions.features for context in contexts))
    functions = frozenset[tuple[str, DType]]().union(
        *(context.expressions.functions for context in contexts)
    )
    vector = frozenset(f for f in functions if maths_vector.covered(*f))
    inlined = maths_vector.prelude(vector, _doubled(contexts))
    maths = [maths_scalar.prelude(functions - vector), inlined]
    uses_complex = "pf_complex" in "".join([code, *maths])
    code = "".join([code, *maths, cpu_prelude.COMPLEX if uses_complex else ""])
    title = " ".join(title.split()) or "kernel"
    parts = [f"// {title}\n" + cpu_prelude.HEADER]
    if "straight" in features:
        parts[0] += cpu_prelude.STRAIGHT
    if "printf" in features:
        parts[0] += cpu_prelude.PRINTF
    for text, piece in _PIECES:
        if text in code and piece not in parts:
            parts.append(piece)
    parts += [cpu_prelude.unaligned(d) for d in DType if f"pf_unaligned_{d.value}*" in code]
    return "\n".join(part for part in [*parts, *maths] if part) + "\n"


_PIECES = (
    ("pf_report", cpu_checked.PRELUDE),
    ("pf_divided<", cpu_division.PRELUDE),
    ("pf_rest<", cpu_division.PRELUDE),
    ("pf_rounded", cpu_prelude.ROUNDED),
    ("pf_over(", reciprocal.PRELUDE),
    ("pf_ahead(", prefetch.PRELUDE),
    ("pf_along", cpu_prelude.ALONG),
    ("pf_complex", cpu_prelude.COMPLEX),
    ("pf_bits", cpu_prelude.BITS),
    ("pf_quotient", cpu_prelude.QUOTIENT),
    ("pf_remainder", cpu_prelude.QUOTIENT),
    ("pf_extent", cpu_prelude.EXTENT),
    ("pf_grain", cpu_prelude.GRAIN),
    ("pf_scratch<", scratch.PRELUDE),
    ("#pragma omp", cpu_prelude.OPENMP),
    ("pf_axis", cpu_prelude.AXIS),
    ("pf_sum", cpu_prelude.SUM),
    ("pf_boxes", cpu_prelude.BOXES),
    ("pf_lanes<", cpu_prelude.LANES),
    ("pf_column<", cpu_prelude.COLUMN),
    ("pf_stream", nontemporal.PRELUDE),
    ("pf_chain", prelude_scan.CHAIN),
    ("pf_parts", prelude_wavefront.PARTS),
    ("pf_schedule", prelude_wavefront.SWEEP),
    ("pf_storage", prelude_wavefront.STORAGE),
    ("pf_atomic<", cpu_prelude.ATOMIC),
    ("pf_locked<", cpu_prelude.ATOMIC_WIDE),
    ("pf_fetch<", cpu_prelude.PLAIN_FETCH),
    ("pf_min<", cpu_prelude.MINMAX),
    ("pf_max<", cpu_prelude.MINMAX),
)
