"""The compilers of GPU kernels that need no GPU: NVRTC by ctypes, and clang for AMD's GPUs."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyfuser.codegen.gpu.unit import CUDA, HIP

MISSING_NVRTC = "no NVRTC: pip install nvidia-cuda-nvrtc-cu12"
MISSING_CLANG = "no clang of version 15 or later with AMD's GPUs: apt-get install clang-16"
CLANGS = ("clang", *(f"clang-{version}" for version in range(22, 14, -1)))
CLANG_FLAGS = (
    *("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-std=c++17", "-S"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-o", "/dev/null", "-"),
)
OLDEST_CLANG = 15


class Rejected(AssertionError):
    """A compiler has something to say about a source."""


def _candidates() -> Iterator[str]:
    """Where NVRTC may be: NVIDIA's wheels, toolkits, the linker's path."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from map(str, sorted(Path(folder).glob("*/lib/libnvrtc.so.*")))
    yield from map(str, sorted(Path("/usr/local").glob("cuda*/lib64/libnvrtc.so"), reverse=True))
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found


@cache
def nvrtc() -> Any:
    """The library, or None."""
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _text(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.raw


def compile_cuda(source: str, arch: str, code: bool = True) -> bytes:
    """The machine code (cubin) of a source for "sm_90" and the like, PTX for "compute_90".

    Raises Rejected for an error or a warning. Without `code`, only what is wrong is found.
    """
    library, program = nvrtc(), ctypes.c_void_p()
    text = ctypes.c_char_p(source.encode())
    status = library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    assert status == 0, status
    options = [f"-arch={arch}", "-std=c++17", *CUDA.exact, *["-fdevice-syntax-only"][code:]]
    try:
        given = [option.encode() for option in options]
        array = (ctypes.c_char_p * len(given))(*given)
        status = library.nvrtcCompileProgram(program, len(given), array)
        log = _text(library, program, "ProgramLog").rstrip(b"\0").strip()
        if status or log:
            raise Rejected(f"NVRTC {status}: {log.decode()}")
        return _text(library, program, "CUBIN" if arch.startswith("sm") else "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _run(command: Sequence[str], source: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


@cache
def clang() -> str | None:
    """A clang that compiles for AMD's GPUs, or None."""
    for path in filter(None, map(shutil.which, CLANGS)):
        version = _run([path, "-dumpversion"]).stdout.split(".")[0]
        targets = _run([path, "-print-targets"]).stdout
        if version.isdecimal() and int(version) >= OLDEST_CLANG and "amdgcn" in targets:
            return path
    return None


def compile_hip(source: str, arch: str, code: bool = True) -> None:
    """Compile a source to assembly, for "gfx90a" and the like.

    Raises Rejected for an error or a warning. Without `code`, only what is wrong is found.
    """
    made = ("-O1",) if code else ("-O0", "-emit-llvm")
    options = (*HIP.options, *HIP.exact, *made)
    command = [str(clang()), f"--offload-arch={arch}", *options, *CLANG_FLAGS]
    done = _run(command, source)
    if done.returncode or done.stderr:
        raise Rejected(done.stderr)
