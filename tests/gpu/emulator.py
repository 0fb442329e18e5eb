"""CUDA kernels compiled for the host, by way of `cuda_on_host.h`."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from pyfuser.codegen.gpu.unit import CUDA, GpuKernel, emit
from pyfuser.codegen.kernel import spec_of
from tests.codegen.build import Case
from tests.gpu.launch import Arguments, renamed, shared_bytes, unpacked

SHIM = Path(__file__).with_name("cuda_on_host.h")
FLAGS = ("-O1", "-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-w")


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
        text = "".join(self._source(kernel) for kernel in self.kernels.values())
        text = change(text.replace("pf_warp = 32", f"pf_warp = {warp}"))
        text = f'#define HOST_WARP {warp}\n#include "{SHIM}"\n{text}'
        self.library = ctypes.CDLL(str(_compiled(text, _shared(folder))))

    @staticmethod
    def _source(kernel: GpuKernel) -> str:
        launchers = "".join(
            f'extern "C" void launch_{entry}(void** arguments, const unsigned* blocks, '
            f"const unsigned* threads, int seed, unsigned shared) {{\n"
            f"    host::launch({entry}, arguments, blocks, threads, seed, shared);\n}}\n"
            for entry in kernel.entries
        )
        return kernel.source.replace("}  // namespace", f"{launchers}}}  // namespace")

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


def _shared(folder: Path) -> Path:
    """The folder above those of the workers that run tests, if it is below one of them."""
    return next((p.parent for p in folder.parents if p.name.startswith("popen-")), folder)


def _compiled(text: str, folder: Path) -> Path:
    """The library of a source, which one worker compiles for all."""
    stem = sha256(text.encode()).hexdigest()[:16]
    source, target = folder / f"{stem}.cpp", folder / f"{stem}.so"
    with FileLock(folder / f"{stem}.lock"):
        if not target.exists():
            source.write_text(text)
            subprocess.run(["g++", *FLAGS, "-o", target, source], check=True)
    return target
