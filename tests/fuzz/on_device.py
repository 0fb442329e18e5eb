"""The tier of GPUs: a compiled program on CUDA, or on the stand-in for CuPy where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import pyfuser
from pyfuser.codegen.gpu.unit import GpuKernel
from pyfuser.engine.gpu import launchable
from pyfuser.engine.gpu.device import Device
from pyfuser.nest.spec import KernelSpec
from pyfuser.plan import legality
from pyfuser.support.caches import Table
from tests.fuzz import oracle, steady
from tests.fuzz.compiled import Place, new_view, run_forced, takes_array
from tests.fuzz.harness import Outcome, bases_of, compare, lowered, run_unfused
from tests.fuzz.inexact import check_inexact
from tests.fuzz.oracle import Array, Rejected
from tests.fuzz.program import Base, Host, Program
from tests.gpu.conftest import on_gpu, real_cupy
from tests.vendors import tune

_INEXACT = 2  # one program in so many is compared with itself unfused, bit for bit
_LARGE = 3  # ten in so many times ten have blocks as they are, of which small programs have one
_STREAMS = 4  # ten in so many times ten run on several streams
_SMALL = {"gpu_threads": 4, "gpu_row": 2, "gpu_items": 2, "gpu_terms": 1, "gpu_blocks": 3}
_launchables: Table[KernelSpec, launchable.Launchable] = Table("kernels of the fuzzer", 2048)


def check_on_device(program: Program) -> Outcome:
    """Compare `pk.parallel_*` on a GPU with the oracle, or fused with unfused.

    Needs CuPy, or a C++ compiler. Raises Rejected and Mismatch as `harness.check_interpreted` does.
    """
    if any(takes_array(program, base) for base in program.bases):
        raise Rejected("a part of a NumPy array, which GPUs refuse")
    small = program.seed // 10 % _LARGE and real_cupy() is None  # a real one has warps of 32
    with on_gpu() as cupy, small_blocks() if small else contextlib.nullcontext():
        try:
            place = _OnDevice(cupy, program)
            if program.seed % _INEXACT == 0:
                return check_inexact(program, place)
            return _check_exact(steady.chosen(program)[0], place)
        finally:
            cupy.cuda.Stream.null.use()
            pyfuser.discard()  # what failed must not run once more, without a GPU


def _check_exact(program: Program, place: Place) -> Outcome:
    expected = oracle.run(program)
    workunits = lowered(program, expected[1])
    run_unfused(program, workunits, 0)  # raises Rejected for races
    pairs = zip(program.calls, workunits, strict=True)
    if any(call.pattern == "scan" and legality._writes_early(w) for call, w in pairs):
        raise Rejected("a scan that writes in both passes, where the oracle has one")
    found, outcome = run_forced(program, small_tiles=False, place=place)
    compare(program, expected, found, "on a GPU", exact=False)
    return outcome


class _OnDevice(Place):
    """A base is a View that may stay on the GPU, one of a NumPy array, or CuPy's array.

    Where all are Views, some programs give each round another stream: who reads, or launches on
    another stream, need not wait for anything.
    """

    def __init__(self, cupy: Any, program: Program) -> None:
        self._cupy = cupy
        program, self._round = steady.chosen(program)
        hosts = [step.text for step in program.steps if isinstance(step, Host)]
        self._touched = {name for text in hosts for name in bases_of(text)}
        self._streams: list[Any] = []
        if program.seed // 10 % _STREAMS == 0:
            streams = [cupy.cuda.Stream(non_blocking=flag) for flag in (True, False)]
            self._streams = [cupy.cuda.Stream.null, *streams]

    def storage(self, pk: Any, program: Program, base: Base, values: Any) -> Any:
        kind = (program.seed + ord(base.name)) % 3
        if base.temporary or kind == 0 or (kind == 1 and base.name in self._touched):
            return new_view(pk, base, values)
        if kind == 1 and not self._streams:
            return self._cupy.asarray(values)
        return pk.array(values)

    def before(self, number: int) -> None:
        if self._streams and number % self._round == 0:
            self._streams[number // self._round % len(self._streams)].use()

    def values(self, array: Any) -> Array:
        return array.get() if isinstance(array, self._cupy.ndarray) else super().values(array)


@contextlib.contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of one small warp, few iterations a thread, and few blocks, as programs are small."""
    code = launchable.machine_code

    def narrow(kernel: GpuKernel, device: Device) -> bytes:
        source = kernel.source.replace("pf_warp = 32", f"pf_warp = {_SMALL['gpu_threads']}")
        return code(replace(kernel, source=source), device)

    with pytest.MonkeyPatch.context() as patch:
        tune(patch, **_SMALL)
        patch.setattr(launchable, "KERNELS", _launchables)
        patch.setattr(launchable, "machine_code", narrow)
        yield
