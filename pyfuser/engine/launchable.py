"""Compiled kernels of the native engine, called through ctypes, which releases the GIL."""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyfuser.engine.faults import watch
from pyfuser.engine.marshal import Value, fail, make_run, slot_values
from pyfuser.engine.on_host import OnHost
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.thresholds import DEFAULT


class Launchable(OnHost):
    """A compiled kernel. It holds no data, so one serves every call with its spec.

    run(space, arguments, ran=None): launch it and wait. `arguments` are aligned with the workunit's
    parameters: a Region (allocated if it is not yet) or a number. Returns one number for each
    accumulator. Raises OverflowError or TypeError for a number that does not fit its parameter,
    ArgumentError for a misaligned array, MemoryError. For `ran`, `values` and a sweep's `space` see
    `make_run`.
    """

    __slots__ = ("_filling", "entry", "library", "run", "slots", "source", "spec", "values")

    def __init__(self, spec: KernelSpec | SweepSpec, source: str, library: Path) -> None:
        self.spec = spec
        self.source = source
        self.library = library
        self.entry = _entry_point(library)
        self.run, self.values, self.slots = make_run(spec, self.entry, team.threads)
        self._filling: tuple[Value, ...] | None = None

    @property
    def filling(self) -> tuple[Value, ...]:
        """What fills all slots, in order."""
        if self._filling is None:
            self._filling = tuple(slot_values(self.spec))
        return self._filling

    def fail(self, status: int) -> None:
        """Raise what a kernel's status stands for, where it was called by others."""
        fail(self.spec, status)


def _entry_point(library: Path) -> Any:
    """The kernel in a shared library. Raises OSError or AttributeError if there is none."""
    watch()
    with _short_waits():
        loaded = ctypes.CDLL(str(library))
    try:
        return loaded.pf_kernel
    except AttributeError:
        with contextlib.suppress(OSError):  # else the next file of this name would not be loaded
            _ctypes.dlclose(loaded._handle)
        raise


@contextlib.contextmanager
def _short_waits() -> Iterator[None]:
    """The first kernel loads libgomp, which reads then how long its threads wait."""
    if any(name in os.environ for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(DEFAULT.spins)
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


class _Team:
    """How many threads a launch may use."""

    __slots__ = ("count",)

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

#: See `SweepSpec.rolling`.
RollingParams = tuple[tuple[tuple[int, int], ...], ...]
