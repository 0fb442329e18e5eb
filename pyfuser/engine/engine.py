"""The engine that runs fused kernels, chosen by PYFUSER_ENGINE."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from pyfuser.engine import native, pykokkos
from pyfuser.engine.marshal import Number
from pyfuser.engine.native import RollingParams
from pyfuser.ir.nodes import Workunit
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.settings import SETTINGS
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import specialise

Wanted = Sequence[tuple[Sequence[Kernel], RollingParams]]


class Launchable(Protocol):
    """A kernel that is ready to run; see `native.Launchable`."""

    source: str

    def run(
        self, space: tuple[Any, ...], arguments: Sequence[Any], ran: list[Any] | None = None
    ) -> tuple[Number, ...]:
        """Run it and wait."""

    def values(self, result: Any) -> tuple[Number, ...]:
        """The numbers that a run has put into `ran`."""


class Engine(Protocol):
    """Makes kernels ready to run."""

    capabilities: Capabilities

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """Why no kernel can have such a call; None if kernels can."""

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """The kernels of each launch (see `native.prepare_launches`), optimised, ready to run."""


class Native:
    """C++ with OpenMP, compiled here: see `native`."""

    capabilities = ALL

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """It runs everything that can be lowered."""
        return None

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """Raises CompilerError or CacheError."""
        return native.prepare_launches(
            [([specialise(kernel) for kernel in kernels], rolling) for kernels, rolling in wanted]
        )


class PyKokkos:
    """PyKokkos source, run by the installed PyKokkos: see `pykokkos`."""

    # The first launch is the compiler's time.
    capabilities = Capabilities(accumulators=1, sweeps=False, timed=False)

    def __init__(self, spare: Native) -> None:
        self._spare = spare

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """Why PyKokkos' language has no such kernel."""
        return pykokkos.refusal(pattern, workunit)

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """What fusion made of calls and PyKokkos' language cannot say runs natively."""
        return [self._prepared(kernel) for (kernel,), _ in wanted]

    def _prepared(self, kernel: Kernel) -> Launchable:
        if pykokkos.refusal(kernel.pattern, kernel.workunit):
            return self._natively(kernel)
        return pykokkos.Launchable(kernel, partial(self._natively, kernel))

    def _natively(self, kernel: Kernel) -> Launchable:
        return self._spare.prepare([((kernel,), ())])[0]


ENGINE: Engine = PyKokkos(Native()) if SETTINGS.engine == "pykokkos" else Native()
