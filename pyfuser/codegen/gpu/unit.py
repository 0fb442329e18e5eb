"""A kernel as a complete CUDA or HIP translation unit: `emit`.

The body of a workunit is printed by the same printers as for other processors, `gpu.statements`
has what only GPUs do, and `gpu.dialects` all that the languages call differently. What each thread
does is decided before (see `pipeline.launched`).

The units include nothing and are namespaces of their own, so several make one.
"""

from __future__ import annotations

from pathlib import Path

from pyfuser.codegen.c.headers import COMMON, assembled, has_complex
from pyfuser.codegen.gpu import maths as gpu_maths
from pyfuser.codegen.gpu.context import Argument, GpuContext, gpu_arguments, native_atomics
from pyfuser.codegen.gpu.dialect import DEVICE, SHARED, Dialect
from pyfuser.codegen.gpu.dialects import CUDA, HIP
from pyfuser.codegen.gpu.statements import GpuStatements
from pyfuser.nest.declined import declined
from pyfuser.nest.launch import LANES, Launch
from pyfuser.nest.spec import KernelSpec
from pyfuser.support.records import dataclass

__all__ = ["CUDA", "HIP", "Argument", "Dialect", "GpuKernel", "emit"]

NAMESPACE = "pf"

_APART = "__attribute__((noinline))"
_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "dialects", _HERE / "runtime", COMMON)


@dataclass(frozen=True, slots=True)
class GpuKernel:
    """A kernel as source text.

    source: a complete translation unit, in the language of the dialect it was emitted for.
    entries: the entry points, to be launched one after the other with the same grid and arguments.
    arguments: their parameters, in order; each pointer is 8 bytes, each scalar an element of its
    dtype. options: what every compiler must be told. launch: how it is launched.
    """

    source: str
    entries: tuple[str, ...]
    arguments: tuple[Argument, ...]
    options: tuple[str, ...]
    launch: Launch


def emit(spec: KernelSpec, dialect: Dialect, fastmath: bool = False) -> GpuKernel:
    """The kernel of a spec; `declined(spec)` must be "".

    fastmath: let the compiler contract a * b + c.
    """
    assert not declined(spec), declined(spec)
    context = GpuContext(spec, dialect)
    functions = context.nest.functions
    code = "\n".join(map(GpuStatements(context).function, functions))
    return GpuKernel(
        source=_unit(spec.title, context, code, dialect),
        entries=tuple(f.name for f in functions),
        arguments=gpu_arguments(spec),
        options=dialect.options + (() if fastmath else dialect.exact),
        launch=context.launch,
    )


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
    words = {
        "PF_ALIGNED": "alignas(2 * sizeof(T))",  # loaded at once, and in reach of 8-byte atomics
        "PF_DEVICE": DEVICE,
        "PF_LANES": str(LANES),
        "PF_SHARED": SHARED,
        "PF_TOTAL_INLINE": "inline" if context.launch.inline else _APART,
    }
    # A dialect's vocabulary, then what builds on it (see `c.headers`). A header whose functions are
    # not all used in every unit defines them without `static`: compilers warn of static functions
    # that nothing calls.
    _, (vocabulary, *rest) = assembled([dialect.name, *sorted(needed)], _FOLDERS, words)
    pieces = [vocabulary, native_atomics(device.atomics, dialect), *rest, maths, code]
    body = "\n".join(piece for piece in pieces if piece)
    return f"{head}\nnamespace {NAMESPACE} {{\n\n{body}\n}}  // namespace {NAMESPACE}\n"
