"""CUDA kernels compiled for the host, by way of `cuda_on_host.h`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from pyfuser.codegen.gpu.unit import CUDA, GpuKernel, emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case
from tests.gpu.conftest import fake_modules
from tests.gpu.launch import Arguments, renamed, shared_bytes, unpacked


class Emulated:
    """The kernels of some cases, in one library.

    warp: threads of a warp. change: what is done to the source before it is compiled.
    """

    def __init__(
        self,
        cases: dict[str, Case],
        folder: Path,
        warp: int = 32,
        change: Callable[[str], str] = str,
    ) -> None:
        self.cases = cases
        self.kernels: dict[str, GpuKernel] = {
            name: renamed(emit(spec_of(tested.kernel), CUDA), n)
            for n, (name, tested) in enumerate(cases.items())
        }
        host = fake_modules()["cupy.cuda._kernels"]
        sources = (host.with_launchers(k.source, warp=warp) for k in self.kernels.values())
        text = change("".join(sources).replace("pf_warp = 32", f"pf_warp = {warp}"))
        host.load_threads()
        self.library = ctypes.CDLL(str(_compiled(text, shared(folder))))

    def run(self, name: str, seed: int = 0) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments after a launch on them, and its results."""
        tested, kernel = self.cases[name], self.kernels[name]
        values, space = tested.arguments(), tested.kernel.space
        accumulators = tested.kernel.workunit.accumulators
        results = np.zeros(kernel.launch.result_bytes, "uint8")
        workspace = np.zeros(kernel.launch.workspace_bytes(space.begin, space.end), "uint8")
        workspace[64:] = 0xA5  # only its head is promised to be zero
        outputs = {"results": results.ctypes.data, "workspace": workspace.ctypes.data}
        bounds: tuple[Sequence[int], Sequence[int]] = (space.begin, space.end)
        arguments = Arguments(kernel, bounds, values, outputs, lambda array: array.ctypes.data)
        grid = kernel.launch.grid(*bounds)
        if grid is not None:
            blocks, threads = ((ctypes.c_uint * 3)(*shape) for shape in (grid.blocks, grid.threads))
            for entry in kernel.entries:
                launch = getattr(self.library, f"launch_{entry}")
                launch(
                    arguments.pointers, blocks, threads, seed, shared_bytes(kernel, tested, values)
                )
        assert not workspace[:64].any()
        return values, unpacked(results, [a.sym.dtype for a in accumulators])


def shared(folder: Path) -> Path:
    """The folder above those of the workers that run tests, if it is below one of them."""
    return next((p.parent for p in folder.parents if p.name.startswith("popen-")), folder)


def _compiled(text: str, folder: Path) -> Path:
    """The library of a source, which one worker compiles for all."""
    place = folder / sha256(text.encode()).hexdigest()[:16]
    place.mkdir(exist_ok=True)
    made = place / "kernel.so"
    with FileLock(place / "lock"):
        return made if made.exists() else fake_modules()["cupy.cuda._kernels"].compiled(text, place)
