"""The engine that runs fused kernels, chosen by PYFUSER_ENGINE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pyfuser.engine import native
from pyfuser.engine.ahead import Ahead
from pyfuser.engine.launchable import RollingParams
from pyfuser.engine.marshal import Number
from pyfuser.ir.nodes import Workunit
from pyfuser.plan.capabilities import ALL, Capabilities
from pyfuser.support.lazy import lazily
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES
from pyfuser.trace.future import Future
from pyfuser.trace.gate import Ran
from pyfuser.trace.memory import Box, Region
from pyfuser.transform.kernel import Kernel

if TYPE_CHECKING:
    from pyfuser.engine import pykokkos
else:
    pykokkos = lazily("pyfuser.engine.pykokkos")

ON_DEVICE = Capabilities(sweeps=False, timed=False, without=frozenset({"coarsen", "sink-axes"}))
"""Blocks of a grid cannot wait for each other, and neighbouring threads have to touch neighbouring
memory.
"""

Wanted = Sequence[tuple[Sequence[Kernel], RollingParams]]


class Registers(Protocol):
    """Registers, and bytes of memory that stand in for some, of a thread of a GPU's kernel."""

    @property
    def registers(self) -> int: ...
    @property
    def spilled(self) -> int: ...


class Launchable(Protocol):
    """A kernel that is ready to run; see `launchable.Launchable`."""

    source: str
    on_device: bool

    def number(self, future: Future) -> Any:
        """A Future as an argument of `run`."""

    def registers(self, space: tuple[Any, ...]) -> Sequence[Registers]:
        """What the compiler says of the kernel; nothing on the host."""

    def allocate(self, region: Region, box: Box) -> None:
        """Make memory, of which a run overwrites a box, where it runs."""

    def run(
        self, space: tuple[Any, ...], arguments: Sequence[Any], ran: Ran | None = None
    ) -> tuple[Number, ...]:
        """Run it and wait."""

    def values(self, result: Any) -> tuple[Number, ...]:
        """The numbers that a run has put into `ran`."""


def prepare_one(kernel: Kernel) -> Launchable:
    """A kernel after `for_c`, ready to run alone on what its space names, whatever the engine."""
    if kernel.space.execution in GPU_SPACES:
        return _prepared_for_gpu(kernel)
    return native.prepare([kernel])[0]


def capabilities(executions: Iterable[str]) -> Capabilities:
    """What plans of calls that these execution spaces run may ask for."""
    return ENGINE.capabilities if GPU_SPACES.isdisjoint(executions) else ON_DEVICE


def _prepared_for_gpu(kernel: Kernel) -> Launchable:
    """See `gpu.launchable.prepare`."""
    from pyfuser.engine.gpu.launchable import prepare  # programs without a GPU do not load it

    return prepare(kernel)


def graphs_for(launchables: Sequence[Launchable]) -> Any:
    """What launches kernels together, if all of them are on a device; else None."""
    if not launchables or not all(launchable.on_device for launchable in launchables):
        return None
    from pyfuser.engine.gpu.graphs import Graphs  # programs without a GPU do not load it

    return Graphs()


class Engine(Protocol):
    """Makes kernels ready to run."""

    capabilities: Capabilities

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """Why no kernel can have such a call; None if kernels can."""

    def final(self, kernel: Kernel) -> Kernel:
        """The kernel after the passes that it needs before it is printed."""

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """The final kernels of each launch (see `native.prepare_launches`), ready to run."""

    def begin(self, wanted: Wanted) -> Ahead:
        """Compile what `prepare` would, if that takes long, while the program goes on."""


class Native:
    """C++ with OpenMP, compiled here: see `native`."""

    capabilities = ALL

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """It runs everything that can be lowered."""
        return None

    def final(self, kernel: Kernel) -> Kernel:
        """What is printed as C++, CUDA or HIP."""
        from pyfuser.pipeline import for_c  # which processes with stored code do not need

        return for_c(kernel)

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """Raises CompilerError or CacheError."""
        found: list[Launchable | None] = [
            _prepared_for_gpu(kernels[0]) if kernels[0].space.execution in GPU_SPACES else None
            for kernels, _ in wanted
        ]
        others = [launch for launch, made in zip(wanted, found, strict=True) if made is None]
        rest = iter(native.prepare_launches(others) if others else ())
        return [made or next(rest) for made in found]

    def begin(self, wanted: Wanted) -> Ahead:
        """Raises CompilerError or CacheError."""
        return native.begin(
            [(k, views) for k, views in wanted if k[0].space.execution not in GPU_SPACES]
        )


class PyKokkos:
    """PyKokkos source, run by the installed PyKokkos: see `pykokkos`."""

    # The first launch is the compiler's time, and no kernel runs over an MDRangePolicy.
    capabilities = Capabilities(
        accumulators=1,
        sweeps=False,
        timed=False,
        without=frozenset({"delinearize", "recompute"}),
    )

    def __init__(self, spare: Native) -> None:
        self._spare = spare

    def refusal(self, pattern: str, workunit: Workunit) -> str | None:
        """Why PyKokkos itself runs such a call; over an MDRangePolicy it cannot."""
        if len(workunit.indices) > 1:
            return None
        return pykokkos.refusal(pattern, workunit)

    def final(self, kernel: Kernel) -> Kernel:
        """The kernel: its language has no bounds that are known."""
        return kernel

    def prepare(self, wanted: Wanted) -> Sequence[Launchable]:
        """What fusion made of calls and PyKokkos' language cannot say runs natively."""
        return [self._prepared(kernel) for (kernel,), _ in wanted]

    def begin(self, wanted: Wanted) -> Ahead:
        """PyKokkos compiles a kernel when it is first launched."""
        return Ahead([])

    def _prepared(self, kernel: Kernel) -> Launchable:
        if pykokkos.refusal(kernel.pattern, kernel.workunit):
            return self._natively(kernel)
        return pykokkos.Launchable(kernel, partial(self._natively, kernel))

    def _natively(self, kernel: Kernel) -> Launchable:
        return self._spare.prepare([((self._spare.final(kernel),), ())])[0]


ENGINE: Engine = PyKokkos(Native()) if SETTINGS.engine == "pykokkos" else Native()
