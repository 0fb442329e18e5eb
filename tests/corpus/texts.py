"""The plans, the ir and the sources for every target of programs, without a compiler.

Kernels are planned and emitted, but do nothing. So those of a program come in a fraction of a
second.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What texts depend on besides the code; before pyfuser reads it.
os.environ.update(PYFUSER_CALIBRATION="0", PYFUSER_ARBITRATE="0", PYFUSER_THREADS="2")

import pytest

import pyfuser
from pyfuser import pipeline
from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.gpu import unit as gpu_unit
from pyfuser.codegen.kernel import spec_of
from pyfuser.codegen.pykokkos import unit as pykokkos_unit
from pyfuser.compare import serve
from pyfuser.engine import launchable, marshal, native
from pyfuser.engine.engine import ON_DEVICE
from pyfuser.engine.store.store import STORE
from pyfuser.ir.printer import show
from pyfuser.nest.declined import declined
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.pipeline import C_PASSES, kernel_of, planned, run_passes
from pyfuser.plan.plan import Plan
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import CheckError
from pyfuser.trace import pool
from pyfuser.trace.reason import SYNC
from pyfuser.trace.shape import TraceShape
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel
from tests.fuzz import statements
from tests.fuzz.compiled import run_compiled
from tests.sessions import fresh
from tests.strategies import random_program
from tests.vendors import emit_as_on

ROOT = Path(__file__).parents[2]
KERNELS, UNSEEN = ROOT / "kernels", ROOT / "experiments" / "unseen"
SIZES = ("small", "default", "large")
SEEDS = range(300)
statements.STEPS = statements.CHOSEN = 0.0  # later kinds of statements would change all programs
KINDS = ("plan", "ir", "cpp", "cuda", "hip", "pykokkos")

Texts = dict[str, list[str]]  # by kind


@dataclass
class Heard:
    """What was planned (the traces as planned) and compiled, in order."""

    plans: list[tuple[TraceShape, Plan]] = field(default_factory=list)
    specs: list[KernelSpec | SweepSpec] = field(default_factory=list)
    kernels: dict[Path, Any] = field(default_factory=dict)  # by what stands for their libraries

    def compile(self, spec: KernelSpec | SweepSpec, _: Any = None) -> native.Launchable:
        library = Path(str(len(self.specs)))
        self.specs.append(spec)
        self.kernels[library] = _ones(spec)
        return native.Launchable(spec, "", library)


def names() -> list[str]:
    """All programs: those of kernels/ at each size, and random ones."""
    programs = sorted(path.stem for path in KERNELS.glob("*.py"))
    sized = [f"{program}-{size}" for program in programs for size in SIZES]
    return sized + [f"seed-{seed}" for seed in SEEDS]


def unseen() -> list[str]:
    """Programs that the corpus keeps nothing of; `--digests` has them, for experiments/ablation."""
    return sorted(f"{path.stem}-default" for path in UNSEEN.glob("*.py"))


def texts_of(name: str) -> Texts:
    """All texts of a program."""
    program, _, which = name.rpartition("-")
    with listening() as heard:
        if program == "seed":
            with contextlib.suppress(CheckError, ZeroDivisionError):  # random programs err
                run_compiled(random_program(int(which)))
        else:
            folder = KERNELS if (KERNELS / f"{program}.py").exists() else UNSEEN
            _run(folder / f"{program}.py", which)
    found: Texts = {kind: [] for kind in KINDS}
    for trace, plan in heard.plans:
        found["plan"].append(_plan_text(plan))
        for kernel in _kernels(trace, plan):
            found["ir"].append(show(kernel.workunit))
            if not pykokkos_unit.without_source(kernel.workunit):
                found["pykokkos"].append(pykokkos_unit.emit(kernel))
    found["cpp"] += [emit(spec) for spec in heard.specs]
    for trace in dict.fromkeys(trace for trace, _ in heard.plans):
        _add_device_texts(found, trace)
    return {kind: list(dict.fromkeys(texts)) for kind, texts in found.items()}


def _run(path: Path, size: str) -> None:
    module = serve.load(path)
    modes = [pyfuser.fusing] + [pyfuser.unfused] * (size == SIZES[0])  # their code is of no size
    for mode in modes:
        state = module.setup(module.SIZES[size])
        with mode():
            module.run(state)
            pyfuser.sync()


def _plan_text(plan: Plan) -> str:
    lines = [f"group {group.calls}" for group in plan.groups]
    lines += [f"rejected {r.first} {r.second} {r.reason}" for r in plan.rejections]
    return "\n".join([*lines, *map(str, plan.sweeps), ""])


def _kernels(trace: TraceShape, plan: Plan) -> list[Kernel]:
    shapes = group_shapes(trace, [group.calls for group in plan.groups])
    return [kernel_of(shape) for shape in dict.fromkeys(shapes)]


def _add_device_texts(found: Texts, trace: TraceShape) -> None:
    """The kernels of a trace for GPUs, planned as if it ran on one."""
    calls = [call._replace(space=call.space._replace(execution="Cuda")) for call in trace.calls]
    trace, _, plan = planned(TraceShape(tuple(calls), trace.clusters), ON_DEVICE)
    found["plan"].append("on a GPU\n" + _plan_text(plan))
    for kernel in _kernels(trace, plan):
        spec = spec_of(run_passes(C_PASSES, kernel))
        if not declined(spec):
            for kind, dialect in (("cuda", gpu_unit.CUDA), ("hip", gpu_unit.HIP)):
                found[kind].append(gpu_unit.emit(spec, dialect).source)


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Plans and specs made in the block, as if nothing had ever been planned or compiled."""
    heard = Heard()
    with fresh(), pytest.MonkeyPatch.context() as patch:
        emit_as_on(patch, vector_bytes=64, intel=False)
        patch.setattr(native, "_compile", heard.compile)
        patch.setattr(launchable, "_entry_point", heard.kernels.__getitem__)
        patch.setattr(STORE, "off", True)
        patch.setattr(pipeline, "planned", _noting(heard, pipeline.planned))
        yield heard
        TRACER.flush(SYNC)
    pool.clear()  # some programs have gigabytes


def _noting(heard: Heard, plan: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        trace, graph, found = plan(*arguments)
        heard.plans.append((trace, found))
        return trace, graph, found

    return noted


def _ones(spec: KernelSpec | SweepSpec) -> Any:
    """A kernel that does nothing, but that each of its sums is 1."""
    loops = spec.stages if isinstance(spec, SweepSpec) else (spec,)
    count = sum(len(loop.workunit.accumulators) for loop in loops)
    sums = struct.pack("=" + marshal._result_codes(loops), *[1] * count)

    def entry(_: int, results: int) -> int:
        ctypes.memmove(results if count else 0, sums, len(sums))
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(entry)
