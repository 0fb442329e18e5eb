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
from pathlib import Path
from types import ModuleType

from pyfuser.codegen.c.headers import COMMON, assembled, has_complex
from pyfuser.codegen.c.maths import scalar as maths_scalar
from pyfuser.codegen.c.maths import vector as maths_vector
from pyfuser.codegen.cpu import map as cpu_map
from pyfuser.codegen.cpu import reduce as cpu_reduce
from pyfuser.codegen.cpu import scan as cpu_scan
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.cpu.wavefront import loops as wavefront_loops
from pyfuser.codegen.cpu.wavefront import scan as wavefront_scan
from pyfuser.ir.dtypes import DType
from pyfuser.nest.abi import REPORT_HEAD
from pyfuser.nest.build import nest_of
from pyfuser.nest.scratch import STACK
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.pipeline import lowered, lowered_sweep
from pyfuser.tuning.target import Target
from pyfuser.tuning.thresholds import Tuning


def emit(spec: KernelSpec | SweepSpec) -> str:
    """The source of a kernel."""
    if isinstance(spec, SweepSpec):
        loops = wavefront_loops.contexts(spec)
        sweep = lowered_sweep(spec, [nest_of(c.spec, c.names) for c in loops])
        for context, nest in zip(loops, sweep.nests, strict=True):
            context.take(nest)
        entry = wavefront_loops.emit if sweep.scan is None else wavefront_scan.emit
        text = entry(sweep, loops)
        return _preamble(spec.title, loops) + text
    pattern: ModuleType = cpu_map
    if spec.pattern == "scan":
        pattern = cpu_scan
    elif spec.workunit.accumulators:
        pattern = cpu_reduce
    context = Context(spec, pattern.LOCALS)
    context.take(lowered(nest_of(spec, context.names)))
    code: str = pattern.emit(context)
    return _preamble(spec.title, [context]) + code


def _preamble(title: str, contexts: Sequence[Context]) -> str:
    """The includes and helpers that the code uses."""
    printers = [context.expressions for context in contexts]
    functions = frozenset[tuple[str, DType]]().union(*(p.functions for p in printers))
    target = contexts[0].spec.target
    vector = functions & target.vector_maths
    scalar = functions - vector
    doubled = any(context.nest.doubled for context in contexts)
    maths = [maths_scalar.prelude(scalar), maths_vector.prelude(vector, target, doubled)]
    needed = set[str]().union(*(p.headers for p in printers))
    needed |= maths_scalar.headers(scalar) | maths_vector.headers(vector)
    if any(has_complex(context.workunit) for context in contexts):
        needed.add("complex")
    names = sorted(needed, key=lambda name: (name not in _FIRST, name))
    words = words_of(target, contexts[0].spec.tuning)
    system, texts = assembled(names, FOLDERS, words)
    includes = "".join(f"#include <{name}>\n" for name in sorted({*system, "stdint.h"}))
    unaligned = set[DType]().union(*(p.unaligned for p in printers))
    texts += [_unaligned(dtype) for dtype in DType if dtype in unaligned]
    title = " ".join(title.split()) or "kernel"
    return "\n".join(part for part in [f"// {title}\n{includes}", *texts, *maths] if part) + "\n"


_FIRST = ("choices", "straight")
"""Headers about all that follows them."""

RUNTIME = Path(__file__).parent / "runtime"
FOLDERS = (RUNTIME, COMMON)


def words_of(target: Target, tuning: Tuning) -> dict[str, str]:
    """What the headers call PF_NAME, see `c.headers`."""
    return {
        "PF_ALIGNED": "",
        "PF_DEVICE": "",
        "PF_REPORT_HEAD": str(REPORT_HEAD),
        "PF_SCAN_TILE": str(tuning.scan_tile),
        "PF_SMALLEST_TILE": str(tuning.smallest_tile),
        "PF_STACK": str(STACK),
        "PF_TILE": str(tuning.tile),
        "PF_TILES": str(tuning.tiles),
        "PF_VECTOR_BYTES": str(target.vector_bytes),
    }


def _unaligned(dtype: DType) -> str:
    """The type of elements that may lie at any address."""
    return f"typedef {dtype.cpp} __attribute__((aligned(1))) pf_unaligned_{dtype.value};\n"
