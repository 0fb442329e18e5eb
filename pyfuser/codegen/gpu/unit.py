"""A kernel as a complete CUDA or HIP translation unit: `emit`.

The body of a workunit is printed by the same printers as for other processors; `gpu.map`,
`gpu.reduce` and `gpu.scan` put it into loops over what a thread does, `gpu.team_block` over what a
block does for a team, and `gpu.dialects` has all that the languages call differently.

The units include nothing and are namespaces of their own, so several make one.
"""

from __future__ import annotations

from types import ModuleType

from pyfuser.codegen.c.headers import has_complex
from pyfuser.codegen.gpu import map as gpu_map
from pyfuser.codegen.gpu import maths as gpu_maths
from pyfuser.codegen.gpu import reduce as gpu_reduce
from pyfuser.codegen.gpu import scan as gpu_scan
from pyfuser.codegen.gpu import team_block
from pyfuser.codegen.gpu.axis import axes_of
from pyfuser.codegen.gpu.context import (
    Argument,
    GpuContext,
    gpu_arguments,
    native_atomics,
)
from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.codegen.gpu.dialects import CUDA, HIP
from pyfuser.codegen.gpu.grid import GpuKernel, Grid
from pyfuser.codegen.gpu.headers import headers
from pyfuser.codegen.gpu.team_analysis import (
    SHARED_BYTES,
    Sharing,
    needs_sharing,
    scratch_lengths,
    sharing,
    team_threads,
)
from pyfuser.ir import nodes
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import statements
from pyfuser.nest.spec import KernelSpec, SweepSpec

__all__ = ["CUDA", "HIP", "Argument", "Dialect", "GpuKernel", "Grid", "declined", "emit", "refusal"]

ENTRY = "pf_kernel"
NAMESPACE = "pf"
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
    return why or (_unknown_scratch(spec.workunit) and _sharing(spec) is None and NO_ROOM) or ""


def refusal(workunit: Workunit) -> str:
    """Why no kernel can have the code of a workunit, whatever its arguments; "" if one can."""
    why = needs_sharing(workunit) if _unknown_scratch(workunit) else ""
    return f"{NO_ROOM}: {why}" if why else ""


def _unknown_scratch(workunit: Workunit) -> bool:
    """Whether a block of threads has to run a workunit, as no thread could have its memory."""
    return any(
        isinstance(stmt, nodes.Scratch) and scratch_lengths(stmt) is None
        for stmt in statements(workunit.body)
    )


def emit(spec: KernelSpec, dialect: Dialect, fastmath: bool = False) -> GpuKernel:
    """The kernel of a spec; `declined(spec)` must be "".

    fastmath: let the compiler contract a * b + c.
    """
    assert not declined(spec), declined(spec)
    context = GpuContext(spec, dialect, ())
    workunit = spec.workunit
    pattern: ModuleType = gpu_map
    rule, parallel = "map", True
    if spec.pattern == "scan":
        pattern, rule, parallel = gpu_scan, "scan", gpu_scan.is_parallel(workunit)
    elif workunit.accumulators:
        pattern, rule, parallel = gpu_reduce, "reduce", gpu_reduce.is_parallel(workunit)
    if spec.serial or not parallel:
        rule = "one"
    shared = _sharing(spec)
    if shared is not None:
        rule, code = "team", team_block.emit(context, ENTRY, shared)
    else:
        code = pattern.emit(context, ENTRY)
    return GpuKernel(
        source=_unit(spec.title, context, code, dialect),
        entries=(gpu_scan.TOTALS, ENTRY) if rule == "scan" else (ENTRY,),
        arguments=gpu_arguments(spec),
        rule=rule,
        order=tuple(axes_of(spec)),
        results=len(workunit.accumulators),
        spaces=shared.spaces if shared is not None else (),
        room=SHARED_BYTES - shared.fixed if shared is not None else 0,
        options=dialect.options + (() if fastmath else dialect.exact),
        team=team_threads(workunit),
        tuning=spec.tuning,
    )


def _sharing(spec: KernelSpec) -> Sharing | None:
    """How a block runs an iteration; None if a thread does."""
    return sharing(spec) if gpu_reduce.is_parallel(spec.workunit) else None


def _unit(title: str, context: GpuContext, code: str, dialect: Dialect) -> str:
    """The code with all it needs before it."""
    device = context.device
    maths = gpu_maths.prelude(frozenset(device.functions), dialect)
    title = " ".join(title.split()) or "kernel"
    head = f"// {title}\n{dialect.globals}"
    if "printf" in device.headers:
        head += dialect.printf
    needed = (device.headers - {"printf"}) | gpu_maths.headers(frozenset(device.functions))
    if has_complex(context.workunit):
        needed.add("complex")
    many = len(context.workunit.accumulators) > gpu_reduce.MANY
    vocabulary, *rest = headers(needed, dialect, many)
    pieces = [vocabulary, native_atomics(device.atomics, dialect), *rest, maths, code]
    body = "\n".join(piece for piece in pieces if piece)
    return f"{head}\nnamespace {NAMESPACE} {{\n\n{body}\n}}  // namespace {NAMESPACE}\n"
