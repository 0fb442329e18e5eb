"""The native engine: kernels as C++ with OpenMP, compiled and kept."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyfuser.engine.ahead import Ahead, Piece
from pyfuser.engine.cache import KernelCache, key_of
from pyfuser.engine.compiler import (
    IN_ONE_LOOP,
    ONE_VECTOR_LOOP,
    Compiler,
    build_identity,
    command_of,
    compile_library,
    find_compiler,
)
from pyfuser.engine.flight import Flights
from pyfuser.engine.launchable import Launchable, RollingParams
from pyfuser.ir.accesses import accesses
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.nest.spec import KernelSpec, SweepSpec, loops_of, names_of
from pyfuser.support.caches import Table, once
from pyfuser.support.errors import CacheError, CompilerError
from pyfuser.support.progress import listening, noted
from pyfuser.support.settings import SETTINGS
from pyfuser.transform.kernel import Kernel

MAX_KERNELS = 4096

KERNELS: Table[KernelSpec | SweepSpec, Launchable] = Table("kernels of the host", MAX_KERNELS)
_FLIGHTS = Flights()


@once
def kernel_cache() -> KernelCache:
    """The cache directory of this process."""
    return KernelCache(SETTINGS.cache_dir)


def prepare(kernels: Sequence[Kernel]) -> list[Launchable]:
    """The kernels, each ready to run alone; see `prepare_launches`."""
    return prepare_launches([((kernel,), ()) for kernel in kernels])


def prepare_launches(
    launches: Sequence[tuple[Sequence[Kernel], RollingParams]],
) -> list[Launchable]:
    """The kernels of each launch, ready to run; what was never compiled is, several at once.

    A launch of several kernels is a sweep, with what `SweepSpec.rolling` says
    beside them. Raises CompilerError or CacheError.
    """
    return _prepare([_spec(kernels, views) for kernels, views in launches])


def begin(launches: Sequence[tuple[Sequence[Kernel], RollingParams]]) -> Ahead:
    """Compile what launches lack while the program goes on. Raises CompilerError or CacheError."""
    pieces: list[Piece] = []
    compiler, absent = _compiler()
    if absent is not None:
        return Ahead()
    for spec in dict.fromkeys(_spec(kernels, views) for kernels, views in launches):
        if spec not in KERNELS:
            source, options = _emit(spec), _options(spec)
            key = _key(source, options)
            if kernel_cache().kept(key) is None:
                with contextlib.suppress(OSError):  # it is told by who needs it
                    command = partial(command_of, compiler, source, options=options)
                    pieces.append(kernel_cache().begun(key, source, command))
    return Ahead(pieces)


def unknown(
    launches: Sequence[tuple[Sequence[Kernel], RollingParams]],
    known: Sequence[KernelSpec | SweepSpec] = (),
) -> int:
    """How many kernels of launches, and of specs that are known, are not loaded."""
    specs = {_spec(kernels, views) for kernels, views in launches}
    return sum(spec not in KERNELS for spec in specs.union(known))


def load(spec: KernelSpec | SweepSpec, source: str, library: str) -> Launchable | None:
    """The compiled code of a spec from a file of the cache; None if it is not there any more."""
    known = KERNELS.used(spec)
    if known is not None:
        return _named(spec, known)
    path = kernel_cache().kept(library.removesuffix(".so"))
    if path is None:
        return None
    try:
        return KERNELS.keep(spec, Launchable(spec, source, path))
    except (OSError, AttributeError):
        return None


def _compiler() -> tuple[Compiler, CompilerError | None]:
    """What compiles kernels; where there is no compiler, the one that filled the cache, and why."""
    try:
        return find_compiler(SETTINGS.compiler), None
    except CompilerError as error:
        filled = kernel_cache().compiler()
        if filled is None:
            raise
        return Compiler((SETTINGS.compiler,), filled), error


def identity() -> str:
    """What compiled kernels depend on beside their source. Raises CompilerError or CacheError."""
    return build_identity(_compiler()[0], SETTINGS.fastmath)


def missing(kernels: Sequence[Kernel]) -> int:
    """How many of these kernels, each by itself, are neither loaded nor on disk."""
    specs = {spec for spec in map(_spec_of, kernels) if spec not in KERNELS}
    return sum(kernel_cache().kept(_key(_emit(spec), _options(spec))) is None for spec in specs)


def _emit(spec: KernelSpec | SweepSpec) -> str:
    from pyfuser.codegen.cpu.unit import emit  # which processes with stored code do not need

    return emit(spec)


def _spec_of(kernel: Kernel, workunit: Workunit | None = None) -> KernelSpec:
    from pyfuser.codegen.kernel import spec_of

    return spec_of(kernel, workunit)


def _spec(kernels: Sequence[Kernel], rolling: RollingParams) -> KernelSpec | SweepSpec:
    if len(kernels) == 1:
        return _spec_of(kernels[0])
    shared = [replace(kernel, tables=()) for kernel in kernels]
    return SweepSpec(tuple(map(_spec_of, shared)), rolling)


def prepare_checked(kernel: Kernel, workunit: Workunit) -> Launchable:
    """A workunit's kernel, ready to run with its subscripts tested; `run` may raise BoundsError.

    Raises CompilerError or CacheError.
    """
    return _prepare([_spec_of(kernel, workunit)])[0]


def _prepare(specs: Sequence[KernelSpec | SweepSpec]) -> list[Launchable]:
    known = {spec: kept for spec in specs if (kept := KERNELS.used(spec)) is not None}
    missing = [spec for spec in dict.fromkeys(specs) if spec not in known]
    if missing:
        with noted(f"compiling {len(missing)} kernel{'s' * (len(missing) > 1)}"):
            made = [_compile(missing[0])] if len(missing) == 1 else _compile_all(missing)
        known |= {s: KERNELS.keep(s, new) for s, new in zip(missing, made, strict=True)}
    return [_named(spec, known[spec]) for spec in specs]


def _named(spec: KernelSpec | SweepSpec, known: Launchable) -> Launchable:
    """The compiled code of a spec, whose messages use this spec's names."""
    if names_of(known.spec) == names_of(spec):
        return known
    try:
        return Launchable(spec, known.source, known.library)
    except OSError:  # another process needed the space
        return _compile(spec)


def _compile_all(specs: Sequence[KernelSpec | SweepSpec]) -> list[Launchable]:
    workers = min(len(specs), SETTINGS.threads)
    cancelled = threading.Event()
    futures: list[Any] = []
    with contextlib.ExitStack() as stack:
        try:
            try:
                from concurrent.futures import ThreadPoolExecutor  # loaded only when it is needed

                pool = stack.enter_context(ThreadPoolExecutor(workers, "pyfuser-compile"))
                futures.extend(pool.submit(_compile, spec, cancelled) for spec in specs)
            except RuntimeError:  # at the exit of the interpreter there are no more threads
                return [_compile(spec) for spec in specs]
            return [future.result() for future in futures]
        except BaseException as error:
            for future in futures:
                future.cancel()
            if not isinstance(error, Exception):  # Ctrl-C, between two submissions or later
                cancelled.set()
            raise


def _stores_twice(spec: KernelSpec | SweepSpec) -> bool:
    """Whether an iteration of some loop stores, or keeps the terms of a sum, in several places."""
    return any(
        len(unit.accumulators) + sum(access.writes for access in accesses(unit.body)) > 1
        for unit in (loop.workunit for loop in loops_of(spec))
    )


def _in_long_loops(spec: KernelSpec | SweepSpec) -> bool:
    """Whether all loops are long, of wide elements: few iterations are left beside the vectors."""
    loops = loops_of(spec)
    return all(loop.long_rows for loop in loops) and all(
        param.sym.dtype.size >= DType.FLOAT64.size
        for loop in loops
        for param, view in zip(loop.workunit.params, loop.views, strict=True)
        if view is not None
    )


def _options(spec: KernelSpec | SweepSpec) -> tuple[str, ...]:
    """What a kernel is compiled with beside the options of all."""
    once = IN_ONE_LOOP if _stores_twice(spec) else ()
    return (*once, *(ONE_VECTOR_LOOP if _in_long_loops(spec) else ()))


def _key(source: str, options: Sequence[str]) -> str:
    return key_of(source, " ".join([identity(), *options]))


def _compile(spec: KernelSpec | SweepSpec, cancelled: threading.Event | None = None) -> Launchable:
    compiler, absent = _compiler()
    source = _emit(spec)
    options = _options(spec)
    key = _key(source, options)

    def build(cancelled: threading.Event | None) -> Path:
        def compile_it(text: Path, target: Path) -> None:
            if absent is not None:
                raise absent
            start = time.perf_counter()
            compile_library(compiler, text, target, cancelled, options)
            log = listening("compile")
            if log is not None:
                log.debug("compiled %s in %.3f s", spec.title, time.perf_counter() - start)
            kernel_cache().filled_by(compiler.identity)

        return kernel_cache().obtain(key, source, compile_it, cancelled)

    def obtain() -> Path:
        if cancelled is not None:
            return build(cancelled)
        return kernel_cache().kept(key) or _FLIGHTS.get(key, build)

    library = obtain()
    try:
        return Launchable(spec, source, library)
    except (OSError, AttributeError):  # intact, but no kernel: made anew, it may be one
        library.unlink(missing_ok=True)
    library = obtain()
    try:
        return Launchable(spec, source, library)
    except (OSError, AttributeError) as error:
        library.unlink(missing_ok=True)
        raise CacheError(
            f"the compiled kernel cannot be loaded: {error}; if {library.parent} is mounted "
            f"noexec, set PYFUSER_CACHE_DIR; else see whether {compiler.command[0]!r} makes "
            "shared libraries for this machine"
        ) from error
