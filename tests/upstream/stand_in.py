"""A package that looks to the hooks like PyKokkos, with memory that aborts as Kokkos' does.

It runs a kernel as Python, and "compiles" it first: workunits whose name starts with `wrong` fail
there as they fail in PyKokkos, by a long text and SystemExit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_INIT = """
import atexit
import enum
import math
import types

import numpy as np

from pykokkos.core import Runtime
from pykokkos.core.kokkos import Allocation, Kokkos

MemorySpace = enum.Enum("MemorySpace", "HostSpace CudaSpace")
Layout = enum.Enum("Layout", "LayoutRight LayoutLeft")
Trait = enum.Enum("Trait", "TraitDefault Unmanaged")
ExecutionSpace = enum.Enum("ExecutionSpace", "OpenMP Serial Debug Default")
int32, double = np.dtype("int32"), np.dtype("float64")


class ViewType:
    data: np.ndarray

    def fill(self, value):
        (self.xp_array if self.trait is Trait.Unmanaged else self.data).fill(value)

    def __getitem__(self, key):
        return self.data[key] if isinstance(key, int) else Subview(self, key)

    def __setitem__(self, key, value):
        self.data[key] = value

    def __iter__(self):
        return (n for n in self.data)

    def __len__(self):
        return self.shape[0]


class View(ViewType):
    def __init__(self, shape, dtype=double, array=None):
        self._init_view(shape, dtype, array)

    def _init_view(self, shape, dtype=double, array=None):
        self.shape, self.size, self.ndim = tuple(shape), math.prod(shape), len(shape)
        self.dtype = dtype
        self.space, self.layout = MemorySpace.HostSpace, Layout.LayoutRight
        self.trait = Trait.TraitDefault if array is None else Trait.Unmanaged
        if array is None:
            self.array = Allocation(shape, dtype)
        else:
            self.array = self.orig_array = self.xp_array = array
        self.data = np.asarray(self.array)

    def resize(self, dimension, size):
        before, shape = self.data, list(self.shape)
        shape[dimension] = size
        self.shape = tuple(shape)
        self.array = Allocation(shape, self.dtype)
        self.data = np.asarray(self.array)
        part = tuple(slice(0, min(pair)) for pair in zip(before.shape, self.data.shape))
        self.data[part] = before[part]

    def set_precision(self, dtype):
        self._init_view(self.shape, dtype)


class Subview(ViewType):
    def __init__(self, parent_view, data_slice):
        self.parent_view = parent_view
        self.array = self.data = parent_view.data[data_slice]
        self.shape, self.ndim, self.size = self.data.shape, self.data.ndim, self.data.size
        self.space, self.layout = parent_view.space, parent_view.layout
        self.trait = parent_view.trait


def array(array):
    return View(array.shape, array.dtype, array)


class RangePolicy:
    def __init__(self, *args):
        self.space = args[0] if len(args) == 3 else ExecutionSpace.OpenMP
        self.begin, self.end = args[-2:]


class MDRangePolicy:
    def __init__(self, begin, end, space=ExecutionSpace.Default):
        self.space, self.begin, self.end = space, begin, end


class TeamPolicy:
    def __init__(self, *args):
        self.space, self.league_size, self.team_size = ExecutionSpace.OpenMP, *args[-2:]


def get_default_space():
    return ExecutionSpace.OpenMP


def workunit(func=None, **kwargs):
    return workunit if func is None else func


def function(func):
    return func


def classtype(func):
    return func


def _run(operation, args, kwargs):
    policy, workunit = args[:2]  # the third would be an initial value
    if isinstance(policy, int):
        policy = RangePolicy(0, policy)
    views = {k: array(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    return runtime_singleton.runtime.run_workunit(None, policy, workunit, operation, **views)


def parallel_for(*args, **kwargs):
    return _run("for", args, kwargs)


def parallel_reduce(*args, **kwargs):
    return _run("reduce", args, kwargs)


def parallel_scan(*args, **kwargs):
    return _run("scan", args, kwargs)


def call_as_its_own_functions_do(*args, **kwargs):
    return parallel_for(*args, **kwargs)


def execute(space, workload):
    pass


def flush():
    pass


def fence():
    pass


def finalize():
    if not Kokkos.ended:
        print("Kokkos ends")
        Kokkos.ended = True


runtime_singleton = types.SimpleNamespace(runtime=Runtime())
atexit.register(finalize)
"""

_CORE = """
from .cpp_setup import compile


class Runtime:
    fusion_strategy = None

    def run_workunit(self, name, policy, workunit, operation, initial_value=0, **kwargs):
        compile(workunit)
        views = {k: getattr(v, "data", v) for k, v in kwargs.items()}
        for i in range(policy.begin, policy.end):
            workunit(i, **views)
"""

_KOKKOS = """
import math
import os

import numpy as np


class Kokkos:
    ended = False


class Allocation:
    def __init__(self, shape, dtype):
        self._bytes = bytearray(math.prod(shape) * dtype.itemsize)
        address = np.frombuffer(self._bytes, np.uint8).ctypes.data
        self.__array_interface__ = {
            "shape": tuple(shape), "typestr": dtype.str, "data": (address, False), "version": 3
        }

    def __del__(self, kokkos=Kokkos, write=os.write, abort=os.abort):
        if kokkos.ended:
            write(2, b"an allocation is being deallocated after Kokkos::finalize was called")
            abort()
"""

_COMPILER = """
import os
import sys

DONE = set()


def compile(workunit):
    name = workunit.__name__
    folder = f"pk_cpp/{name}"
    if name in DONE or os.path.isdir(folder):
        if name.startswith("wrong"):
            raise ImportError(f"{folder}/kernel.so: cannot open shared object file")
        return
    DONE.add(name)
    if name == "wrong_for_the_translator":
        print("\\n\\033[31m\\033[01mError on line 7 \\033[0m: 'y' is not a View1D")
        print("    x[i] = y[i]", end="")
        print(" " * 11 + "^^^^")
        sys.exit("PyKokkos: Translation failed")
    if name.startswith("wrong"):
        os.makedirs(folder)
        open(f"{folder}/bindings.cpp", "w").close()
        print("In file included from ./bindings.cpp:9:")
        for n in range(100):
            print(f"/kokkos/Parallel.hpp:{n}:1:   required from here")
        print("../functor.hpp:5:30: error: no operator% for double")
        print(f"C++ compilation in {folder} failed")
        sys.exit(1)
"""


def install(site: Path, *changes: tuple[str, str]) -> Path:
    """Write the package below a folder, with texts of it replaced; returns the package."""
    package = site / "pykokkos"
    texts = {
        "__init__.py": _INIT,
        "core/__init__.py": _CORE,
        "core/kokkos.py": _KOKKOS,
        "core/cpp_setup.py": _COMPILER,
    }
    (package / "core").mkdir(parents=True)
    for old, new in changes:
        assert sum(text.count(old) for text in texts.values()) == 1, old
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    for name, text in texts.items():
        (package / name).write_text(text)
    return package


def run(package: Path, script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program with the package installed, in the folder that has the package's folder."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYFUSER")}
    kept = {name: os.environ[name] for name in ("PYFUSER_CACHE_DIR",) if name in os.environ}
    paths = {"PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}"}
    program = package.parents[1] / "program.py"
    program.write_text(script)
    return subprocess.run(
        [sys.executable, str(program)],
        env={**inherited, **kept, **paths, **settings},
        cwd=program.parent,
        capture_output=True,
        text=True,
        check=False,
    )
