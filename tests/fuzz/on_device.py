"""The tier of GPUs: a compiled program on CUDA, or on the stand-in for CuPy where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import pyfuser
from pyfuser.codegen import gpu_launch, gpu_map, gpu_reduce, gpu_scan, gpu_vector_map
from pyfuser.codegen.gpu import GpuKernel
from pyfuser.codegen.spec import KernelSpec
from pyfuser.engine.gpu import launchable
from pyfuser.engine.gpu.device import Device
from pyfuser.plan import legality
from tests.fuzz import oracle
from tests.fuzz.compiled import new_view, run_forced, takes_array
from tests.fuzz.harness import Outcome, compare, lowered, run_unfused
from tests.fuzz.inexact import check_inexact
from tests.fuzz.oracle import Rejected
from tests.fuzz.program import Base, Program
from tests.gpu.conftest import on_gpu, real_cupy

_INEXACT = 2  # one program in so many is compared with itself unfused, bit for bit
_LARGE = 3  # ten in so many times ten have blocks as they are, of which small programs have one
_SMALL = {"THREADS": 4, "_WIDEST_ROW": 2, "ITEMS": 2, "TERMS": 1, "MAX_BLOCKS": 3}
_launchables: dict[KernelSpec, launchable.Launchable] = {}  # with small blocks


def check_on_device(program: Program) -> Outcome:
    """Compare `pk.parallel_*` on a GPU with the oracle, or fused with unfused.

    Needs CuPy, or a C++ compiler. Raises Rejected and Mismatch as `harness.check_interpreted` does.
    """
    if any(takes_array(program, base) for base in program.bases):
        raise Rejected("a part of a NumPy array, which GPUs refuse")
    small = program.seed // 10 % _LARGE and real_cupy() is None  # a real one has warps of 32
    with on_gpu(), small_blocks() if small else contextlib.nullcontext():
        try:
            if program.seed % _INEXACT == 0:
                return check_inexact(program, _storage)
            return _check_exact(program)
        finally:
            pyfuser.discard()  # what failed must not run once more, without a GPU


def _check_exact(program: Program) -> Outcome:
    expected = oracle.run(program)
    workunits = lowered(program, expected[1])
    run_unfused(program, workunits, 0)  # raises Rejected for races
    pairs = zip(program.calls, workunits, strict=True)
    if any(call.pattern == "scan" and legality._writes_early(w) for call, w in pairs):
        raise Rejected("a scan that writes in both passes, where the oracle has one")
    found, outcome = run_forced(program, small_tiles=False, storage=_storage)
    compare(program, expected, found, "on a GPU", exact=False)
    return outcome


def _storage(pk: Any, program: Program, base: Base, values: Any) -> Any:
    """A View that may stay on the GPU; or one of an array, which is copied for each flush."""
    if base.temporary or (program.seed + ord(base.name)) % 3:
        return new_view(pk, base, values)
    return pk.array(values)


@contextlib.contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of one small warp, few iterations a thread, and few blocks, as programs are small."""
    code = launchable.machine_code

    def narrow(kernel: GpuKernel, device: Device) -> bytes:
        source = kernel.source.replace("pf_warp = 32", f"pf_warp = {_SMALL['THREADS']}")
        return code(replace(kernel, source=source), device)

    with pytest.MonkeyPatch.context() as patch:
        for module in (gpu_launch, gpu_map, gpu_reduce, gpu_scan, gpu_vector_map):
            for name in _SMALL.keys() & vars(module).keys():
                patch.setattr(module, name, _SMALL[name])
        patch.setattr(launchable, "_launchables", _launchables)
        patch.setattr(launchable, "machine_code", narrow)
        yield
