"""A kernel as a complete C++ translation unit: `emit`.

The entry point is::

    extern "C" int pf_kernel(const int64_t* slot[, int64_t* results])

`slot` holds 8-byte values: the number of threads, begin and end of each axis of the space, then
what `abi` lists. `results`, where there are accumulators, has 16 zeroed bytes for each and receives
their values. It returns 0, NO_MEMORY, DIVIDED if it ran and divided an integer by 0, or 1 + k if
the address of parameter k is not a multiple of its element's alignment. A checked kernel takes a
further array, see `cpp_bounds`, and may return OUTSIDE.

The loops stand in a function of their own that takes restrict pointers as parameters: a compiler
forgets `restrict` when it outlines the body of an OpenMP region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType

from pyfuser.codegen import (
    cpp_ahead,
    cpp_bounds,
    cpp_chain,
    cpp_division,
    cpp_map,
    cpp_prelude,
    cpp_prelude_scan,
    cpp_prelude_sweep,
    cpp_reciprocal,
    cpp_reduce,
    cpp_rows,
    cpp_scan,
    cpp_scratch,
    cpp_stream,
    cpp_sweep,
    inline_maths,
    scalar_maths,
    vector_maths,
)
from pyfuser.codegen.cpp_context import DIVIDED, NO_MEMORY, OUTSIDE, Context, Slot, abi
from pyfuser.codegen.cpp_division import reported
from pyfuser.codegen.scatter import apart
from pyfuser.codegen.segments import mentioned
from pyfuser.codegen.spec import KernelSpec, SweepSpec
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Call, For, While
from pyfuser.ir.visit import all_expressions, statements

__all__ = ["DIVIDED", "NO_MEMORY", "OUTSIDE", "Slot", "abi", "emit"]


def emit(spec: KernelSpec | SweepSpec) -> str:
    """The source of a kernel."""
    if isinstance(spec, SweepSpec):
        loops = [_summing(context) for context in cpp_sweep.contexts(spec)]
        has_scan = any(stage.pattern == "scan" for stage in spec.stages)
        text = cpp_chain.emit(spec, loops) if has_scan else cpp_sweep.emit(spec, loops)
        text = reported(text)
        return _preamble(spec.title, loops, text) + text
    pattern: ModuleType = cpp_map
    if spec.pattern == "scan":
        pattern = cpp_scan
    elif spec.workunit.accumulators:
        pattern = cpp_reduce
    context = _summing(Context(spec, pattern.LOCALS))
    code = reported(pattern.emit(context))
    return _preamble(spec.title, [context], code) + code


def _summing(context: Context) -> Context:
    """The context, whose printer knows how sums of locals are run."""
    context.statements.sum_lines = partial(cpp_rows.total_lines, context)
    return context


def _doubled(contexts: Sequence[Context]) -> bool:
    """Whether exp and log may take two vectors at a time, see `inline_maths.prelude`.

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
    return not any(isinstance(e, Call) and e.name in inline_maths.NAMES for e in called)


def _preamble(title: str, contexts: Sequence[Context], code: str) -> str:
    """The includes and helpers that the code uses."""
    features = set[str]().union(*(context.expressions.features for context in contexts))
    functions = frozenset[tuple[str, DType]]().union(
        *(context.expressions.functions for context in contexts)
    )
    vector = frozenset(f for f in functions if vector_maths.covered(*f))
    inlined = vector_maths.prelude(vector, _doubled(contexts))
    maths = [scalar_maths.prelude(functions - vector), inlined]
    uses_complex = "pf_complex" in "".join([code, *maths])
    code = "".join([code, *maths, cpp_prelude.COMPLEX if uses_complex else ""])
    title = " ".join(title.split()) or "kernel"
    parts = [f"// {title}\n" + cpp_prelude.HEADER]
    if "straight" in features:
        parts[0] += cpp_prelude.STRAIGHT
    if "printf" in features:
        parts[0] += cpp_prelude.PRINTF
    for text, piece in _PIECES:
        if text in code and piece not in parts:
            parts.append(piece)
    parts += [cpp_prelude.unaligned(d) for d in DType if f"pf_unaligned_{d.value}*" in code]
    return "\n".join(part for part in [*parts, *maths] if part) + "\n"


_PIECES = (
    ("pf_report", cpp_bounds.PRELUDE),
    ("pf_divided<", cpp_division.PRELUDE),
    ("pf_rest<", cpp_division.PRELUDE),
    ("pf_rounded", cpp_prelude.ROUNDED),
    ("pf_over(", cpp_reciprocal.PRELUDE),
    ("pf_ahead(", cpp_ahead.PRELUDE),
    ("pf_along", cpp_prelude.ALONG),
    ("pf_complex", cpp_prelude.COMPLEX),
    ("pf_bits", cpp_prelude.BITS),
    ("pf_quotient", cpp_prelude.QUOTIENT),
    ("pf_remainder", cpp_prelude.QUOTIENT),
    ("pf_extent", cpp_prelude.EXTENT),
    ("pf_grain", cpp_prelude.GRAIN),
    ("pf_scratch<", cpp_scratch.PRELUDE),
    ("#pragma omp", cpp_prelude.OPENMP),
    ("pf_axis", cpp_prelude.AXIS),
    ("pf_sum", cpp_prelude.SUM),
    ("pf_boxes", cpp_prelude.BOXES),
    ("pf_lanes<", cpp_prelude.LANES),
    ("pf_column<", cpp_prelude.COLUMN),
    ("pf_stream", cpp_stream.PRELUDE),
    ("pf_chain", cpp_prelude_scan.CHAIN),
    ("pf_parts", cpp_prelude_sweep.PARTS),
    ("pf_schedule", cpp_prelude_sweep.SWEEP),
    ("pf_storage", cpp_prelude_sweep.STORAGE),
    ("pf_atomic<", cpp_prelude.ATOMIC),
    ("pf_locked<", cpp_prelude.ATOMIC_WIDE),
    ("pf_fetch<", cpp_prelude.PLAIN_FETCH),
    ("pf_min<", cpp_prelude.MINMAX),
    ("pf_max<", cpp_prelude.MINMAX),
)
