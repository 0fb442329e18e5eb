"""The native engine: kernels as C++ with OpenMP, called through ctypes (which releases the GIL)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from pyfuser.codegen.cpp import emit
from pyfuser.codegen.spec import KernelSpec, spec_of
from pyfuser.engine.cache import KernelCache, key_of
from pyfuser.engine.compiler import build_identity, compile_library, find_compiler
from pyfuser.engine.marshal import Number, make_run
from pyfuser.ir.nodes import Workunit
from pyfuser.settings import SETTINGS
from pyfuser.trace.call import Argument, Space
from pyfuser.transform.kernel import Kernel


class Launchable:
    """A compiled kernel. It holds no data, so one serves every call with its spec.

    run(space, arguments): launch it and wait. `arguments` are aligned with the workunit's
    parameters: a Region (allocated if it is not yet) or a number. Returns one number for each
    accumulator. Raises OverflowError or TypeError for a number that does not fit its parameter,
    ArgumentError for a misaligned array, MemoryError.
    """

    __slots__ = ("library", "run", "source", "spec")

    def __init__(self, spec: KernelSpec, source: str, library: Path) -> None:
        self.spec = spec
        self.source = source
        self.library = library
        function = ctypes.CDLL(str(library)).pf_kernel
        self.run: Callable[[Space, Sequence[Argument]], tuple[Number, ...]] = make_run(
            spec, function, team.threads
        )


class _Team:
    """How many threads a launch may use."""

    def __init__(self) -> None:
        self.count = SETTINGS.threads

    def threads(self) -> int:
        return self.count

    def forked(self) -> None:
        """A forked child has none of the OpenMP threads its parent's library believes in."""
        self.count = 1


team = _Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=team.forked)

_launchables: dict[KernelSpec, Launchable] = {}


@cache
def kernel_cache() -> KernelCache:
    """The cache directory of this process."""
    return KernelCache(SETTINGS.cache_dir)


def prepare(kernels: Sequence[Kernel]) -> list[Launchable]:
    """The kernels, ready to run; what was never compiled is, several at once.

    Raises CompilerError or CacheError.
    """
    return _prepare([spec_of(kernel) for kernel in kernels])


def prepare_checked(kernel: Kernel, workunit: Workunit) -> Launchable:
    """A workunit's kernel, ready to run with its subscripts tested; `run` may raise BoundsError.

    Raises CompilerError or CacheError.
    """
    return _prepare([spec_of(kernel, workunit)])[0]


def _prepare(specs: Sequence[KernelSpec]) -> list[Launchable]:
    missing = [spec for spec in dict.fromkeys(specs) if spec not in _launchables]
    if len(missing) == 1:
        _launchables[missing[0]] = _compile(missing[0])
    elif missing:
        _launchables.update(zip(missing, _compile_all(missing), strict=True))
    return [_launchables[spec] for spec in specs]


def _compile_all(specs: Sequence[KernelSpec]) -> list[Launchable]:
    from concurrent.futures import ThreadPoolExecutor  # loaded only when it is needed

    workers = min(len(specs), SETTINGS.threads)
    with ThreadPoolExecutor(workers, thread_name_prefix="pyfuser-compile") as pool:
        return list(pool.map(_compile, specs))


def _compile(spec: KernelSpec) -> Launchable:
    compiler = find_compiler(SETTINGS.compiler)
    source = emit(spec)
    key = key_of(source, build_identity(compiler, SETTINGS.fastmath))
    library = kernel_cache().obtain(
        key, source, lambda text, target: compile_library(compiler, text, target)
    )
    return Launchable(spec, source, library)
