"""The stand-in's compiler and loader. Nothing here has a name of CuPy's."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from cupy.cuda._machine import MACHINE, Failure

SHIM = Path(__file__).parents[3] / "cuda_on_host.h"
FLAGS = ("-O1", "-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-w")
OPTIONS = re.compile(r"-std=c\+\+17|--fmad=(false|true)|-arch=(sm|compute)_\d+|--device-as-.*")
ENTRY = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+)\) (\w+)\(')
WAITS = re.compile(r"pf_(lanes_)?barrier\(\);|(?<!int )pf_(lane_)?word_\w+\(")
"""Where threads wait for each other, outside of what defines these words."""
LAUNCHER = """
extern "C" int sizes_{entry}(int* out) {{ return host::entry<{entry}>::sizes(out); }}
extern "C" void launch_{entry}(void** a, const unsigned* b, const unsigned* t, int seed,
                               unsigned bytes) {{
    host::{run}(host::entry<{entry}>::call, a, b, t, seed, bytes, {warp});
}}
"""


class CompilerFailure(Exception):
    """What the compiler says."""


@cache
def load_threads() -> None:
    """Load what all kernels call; compiled once for a temporary directory."""
    source = SHIM.with_suffix(".cpp")
    stamp = max(path.stat().st_mtime_ns for path in (source, SHIM))
    folder = Path(tempfile.gettempdir()) / f"fake-cupy-{os.getuid()}-{stamp}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / "threads.so"
    if not library.exists():
        made = folder / f"{os.getpid()}.so"
        # Fortified, longjmp would take a change of stacks for a mistake.
        subprocess.run(["g++", *FLAGS, "-U_FORTIFY_SOURCE", "-o", made, source], check=True)
        os.replace(made, library)
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def with_launchers(source: str, run: str = "run", warp: int = 32) -> str:
    """A source of CUDA as C++, with a function that launches each of its kernels."""
    launchers = "".join(
        LAUNCHER.format(entry=entry, run=run, warp=warp) for _, entry in ENTRY.findall(source)
    )
    return source.replace("}  // namespace", launchers + "}  // namespace")


def compiled(text: str, folder: Path) -> Path:
    """The library of a source `with_launchers`."""
    path, target = folder / "kernel.cpp", folder / "kernel.so"
    path.write_text(text)
    # Not g++, which would link C++'s library.
    command = ["gcc", *FLAGS, "-include", SHIM, "-o", target, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilerFailure(done.stderr)
    return target


def compile_source(source: str, options: tuple[str, ...]) -> bytes:
    """A shared library in place of a cubin."""
    unknown = [option for option in options if not OPTIONS.fullmatch(option)]
    if unknown:
        raise CompilerFailure(f"unknown option {unknown[0]!r}")
    with tempfile.TemporaryDirectory() as folder:
        run = "run" if WAITS.search(source) else "run_plain"
        return compiled(with_launchers(source, run), Path(folder)).read_bytes()


class Entry:
    """A kernel that is loaded: how many threads a block may have, and its parameters' sizes."""

    def __init__(self, library: Any, name: str) -> None:
        try:
            self._launch = getattr(library, f"launch_{name}")
            find = getattr(library, f"sizes_{name}")
        except AttributeError:
            raise Failure(f"CUDA_ERROR_NOT_FOUND: {name}") from None
        found = (ctypes.c_int * 256)()
        self.sizes = found[: find(found)]
        self.name = name

    def bound(
        self, pointers: int, blocks: tuple[int, ...], threads: tuple[int, ...], shared: int
    ) -> Any:
        """The launch, with the arguments as they are now."""
        if not 0 <= shared <= 48 << 10:
            raise Failure("CUDA_ERROR_INVALID_VALUE: too much shared memory")
        if min(*blocks, *threads) < 1 or max(*threads) > 1024 or max(blocks[1:]) > 65535:
            raise Failure("CUDA_ERROR_INVALID_VALUE: impossible grid")
        places = (ctypes.c_void_p * max(len(self.sizes), 1)).from_address(pointers)
        values = [ctypes.string_at(places[n], size) for n, size in enumerate(self.sizes)]

        def run() -> None:
            copies = [ctypes.create_string_buffer(value, len(value)) for value in values]
            array = (ctypes.c_void_p * max(len(copies), 1))(*map(ctypes.addressof, copies))
            shapes = ((ctypes.c_uint * 3)(*shape) for shape in (blocks, threads))
            self._launch(array, *shapes, MACHINE.seed, shared)

        return run


ENTRIES: dict[int, Entry] = {}


def load(code: bytes) -> Any:
    """The library of a 'cubin'."""
    load_threads()
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(code)
        file.flush()
        try:
            return ctypes.CDLL(file.name)
        except OSError as error:
            raise Failure(f"CUDA_ERROR_INVALID_IMAGE: {error}") from None
