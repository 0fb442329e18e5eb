"""GPU kernels from source to machine code, kept in the cache of kernels."""

from __future__ import annotations

import time
from pathlib import Path

from pyfuser.codegen.gpu.unit import GpuKernel
from pyfuser.engine.cache import DIGEST_SIZE, key_of
from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.library import Library
from pyfuser.engine.native import kernel_cache
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import KernelError

STANDARD = "-std=c++17"


def machine_code(kernel: GpuKernel, device: Device) -> bytes:
    """What `cupy.cuda.Module.load` takes, for the architecture of a device.

    Raises KernelError if the compiler rejects the source, and CacheError.
    """
    library = device.library
    options = (STANDARD, *kernel.options, *target(library, device.architecture))
    identity = "\0".join((library.dialect.name, library.description, *options))

    def build(text: Path, made: Path) -> None:
        made.write_bytes(compiled(library, kernel.source, options))

    path = kernel_cache().obtain(key_of(kernel.source, identity), kernel.source, build)
    return path.read_bytes()[:-DIGEST_SIZE]


def target(library: Library, architecture: str) -> tuple[str, ...]:
    """The options that name an architecture ("90"); hipRTC compiles for the current device.

    For one that is newer than the compiler knows, code that the driver translates.
    """
    if library.runtime.is_hip:
        return ()
    known = library.nvrtc.getSupportedArchs()
    if not architecture.isdecimal() or int(architecture) in known:
        return (f"-arch=sm_{architecture}",)
    older = [arch for arch in known if arch < int(architecture)]
    return (f"-arch=compute_{max(older, default=min(known))}",)


def compiled(library: Library, source: str, options: tuple[str, ...]) -> bytes:
    """Compile a source with NVRTC or hipRTC. Raises KernelError with what the compiler says."""
    nvrtc = library.nvrtc
    start = time.perf_counter()
    program = nvrtc.createProgram(source, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        binary = any(option.startswith("-arch=sm_") for option in options)
        code: bytes = nvrtc.getCUBIN(program) if binary else nvrtc.getPTX(program)
        return code
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program).strip()
        raise KernelError(
            f"the GPU's compiler rejects a kernel ({error}); please report this with the source "
            f"below.\n{log}\n{source}"
        ) from None
    finally:
        nvrtc.destroyProgram(program)
        COUNTERS.compilations += 1
        COUNTERS.compile_seconds += time.perf_counter() - start
