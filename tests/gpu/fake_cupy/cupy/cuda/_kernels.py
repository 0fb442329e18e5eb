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
HEADER = """
#include "{shim}"
namespace host {{
template <typename... A> static int sizes(void (*)(A...), int* out) {{
    int n = 0;
    ((out[n++] = sizeof(A)), ...);
    return n;
}}
// Threads that never wait for each other need no coroutines.
template <typename... A>
static void plain(void (*function)(A...), void** arguments, const unsigned* b, const unsigned* t) {{
    blocks_shape = {{b[0], b[1], b[2]}};
    threads_shape = {{t[0], t[1], t[2]}};
    for (unsigned z = b[2]; z--;) for (unsigned y = b[1]; y--;) for (unsigned x = b[0]; x--;) {{
        block_place = {{x, y, z}};
        for (unsigned k = 0; k < t[2]; ++k) for (unsigned j = 0; j < t[1]; ++j)
            for (unsigned i = 0; i < t[0]; ++i) {{
                thread_place = {{i, j, k}};
                call(function, arguments, std::index_sequence_for<A...>());
            }}
    }}
}}
}}
"""
LAUNCHER = """
extern "C" int sizes_{entry}(int* out) {{ return host::sizes({entry}, out); }}
extern "C" void launch_{entry}(void** a, const unsigned* b, const unsigned* t, int seed,
                               unsigned bytes) {{
    {run};
}}
"""


class CompilerFailure(Exception):
    """What the compiler says."""


@cache
def _header() -> str:
    """A compiled header, shared by all compilations of this process's temporary directory."""
    folder = Path(tempfile.gettempdir()) / f"fake-cupy-{os.getuid()}-{SHIM.stat().st_mtime_ns}"
    folder.mkdir(mode=0o700, exist_ok=True)
    header = folder / "shim.h"
    compiled = header.with_name(header.name + ".gch")
    if not compiled.exists():
        text = HEADER.format(shim=SHIM)
        part = folder / f"{os.getpid()}.h"
        part.write_text(text)
        made = folder / f"{os.getpid()}.gch"
        kept = [flag for flag in FLAGS if flag != "-shared"]
        subprocess.run(["g++", *kept, "-x", "c++-header", "-o", made, part], check=True)
        header.write_text(text)
        os.replace(made, compiled)
    return str(header)


def compile_source(source: str, options: tuple[str, ...]) -> bytes:
    """A shared library in place of a cubin."""
    unknown = [option for option in options if not OPTIONS.fullmatch(option)]
    if unknown:
        raise CompilerFailure(f"unknown option {unknown[0]!r}")
    waits = any(word in source for word in ("__syncthreads", "__syncwarp", "__shfl_"))
    run = (
        "host::launch({entry}, a, b, t, seed, bytes)" if waits else "host::plain({entry}, a, b, t)"
    )
    launchers = "".join(
        LAUNCHER.format(entry=entry, run=run.format(entry=entry))
        for _, entry in ENTRY.findall(source)
    )
    text = source.replace("}  // namespace", launchers + "}  // namespace")
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        path.write_text(text)
        command = ["g++", *FLAGS, "-include", _header(), "-o", target, path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompilerFailure(done.stderr)
        return target.read_bytes()


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
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(code)
        file.flush()
        try:
            return ctypes.CDLL(file.name)
        except OSError as error:
            raise Failure(f"CUDA_ERROR_INVALID_IMAGE: {error}") from None
