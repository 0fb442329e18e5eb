"""The peers: what each needs, and how its version of a program is built, run and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

import pyfuser
from experiments.peers import libraries, program
from experiments.peers.cpp import Builder
from experiments.peers.libraries import aligned
from pyfuser.compare.serve import use_space

Run = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A peer. `package` is what must be installed; `factory` the name in a program's file.

    `library` has its arrays (None: NumPy's are); `spaces` says where it runs.
    """

    name: str
    label: str
    factory: str
    package: str | None = None
    fastmath: bool = False  # may change values: never counts as ahead
    library: str | None = None
    spaces: tuple[str | None, ...] = (None,)

    def written(self, module: ModuleType) -> bool:
        """Whether a program has its version. NumPy's is CuPy's, too, if it takes the functions."""
        factory = getattr(module, self.factory, None)
        return factory is not None and (
            self.library != "cupy" or bool(signature(factory).parameters)
        )

    def lacks(self, module: ModuleType) -> str | None:
        """Why it cannot run a program; None if it can."""
        if not self.written(module):
            return NOT_WRITTEN
        if self.package is not None and find_spec(self.package) is None:
            hint = ": pip install -e '.[peers]'" if None in self.spaces else ""
            return f"{self.package} {NOT_INSTALLED}{hint}"
        return None


NOT_WRITTEN, NOT_INSTALLED = "not written", "is not installed"
GPUS = ("Cuda", "HIP")
MODULES = {"cupy": "cupy", "torch": "torch", "numba-cuda": "numba.cuda"}  # given to factories
CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("cpp", "C++", "cpp"),
        Contestant("numba", "Numba", "numba", "numba"),
        Contestant("numpy", "NumPy", "numpy"),
        Contestant("jax", "JAX", "jax", "jax", library="jax", spaces=(None, *GPUS)),
        Contestant("numexpr", "numexpr", "numexpr", "numexpr"),
        Contestant("cpp-fast", "C++ -ffast-math", "cpp", fastmath=True),
        Contestant("numba-fast", "Numba fastmath", "numba", "numba", fastmath=True),
        Contestant("cupy", "CuPy", "numpy", "cupy", library="cupy", spaces=GPUS),
        # cupy.fuse makes one kernel, which NVRTC compiles with contraction: as CuPy's own are
        Contestant("cupy-fuse", "cupy.fuse", "cupy_fuse", "cupy", library="cupy", spaces=GPUS),
        Contestant("torch", "torch.compile", "torch", "torch", library="torch", spaces=GPUS),
        Contestant(
            "numba-cuda", "Numba CUDA", "numba_cuda", "numba", False, "numba-cuda", ("Cuda",)
        ),
    )
}
OURS = {"fused": pyfuser.fusing, "unfused": pyfuser.unfused}
LABELS = {"fused": "fused", "unfused": "unfused"} | {
    contestant.name: contestant.label for contestant in CONTESTANTS.values()
}


def of(space: str | None) -> list[str]:
    """The names of the peers that run in an execution space (None: on the host)."""
    return [name for name, contestant in CONTESTANTS.items() if space in contestant.spaces]


class Expert:
    """A program by a peer."""

    def __init__(self, contestant: Contestant, name: str, size: int, space: str | None) -> None:
        self._module = program.load(name)
        self._library = (
            libraries.HOST
            if contestant.library is None
            else libraries.find(contestant.library, space)
        )
        start = perf_counter()
        self._run = _build(contestant, self._module)
        self.build_seconds = perf_counter() - start
        self.state = self._module.setup(size)
        for key, value in vars(self.state).items():
            if isinstance(value, np.ndarray):
                setattr(self.state, key, self._library.place(value))
        self._finish()

    def _finish(self) -> None:
        self._library.finish(list(vars(self.state).values()))

    def run(self) -> None:
        """Make one run; wait until its results are in memory."""
        self._run(self.state)
        self._finish()

    def outputs(self) -> dict[str, Any]:
        """The outputs, as NumPy arrays and numbers, whatever the peer keeps them in."""
        plain = {key: self._library.fetch(value) for key, value in vars(self.state).items()}
        return dict(self._module.outputs(program.State(**plain)))


class Ours:
    """The PyKokkos program, fused or not."""

    build_seconds = 0.0  # its first run compiles

    def __init__(self, mode: str, name: str, size: int) -> None:
        self._module = program.kernel(name)
        self._mode = OURS[mode]
        with self._mode():
            self._state = self._module.setup(size)
            pyfuser.sync()

    def run(self) -> None:
        """Make one run."""
        with self._mode():
            self._module.run(self._state)
            pyfuser.sync()

    def outputs(self) -> dict[str, Any]:
        """The outputs by name."""
        with self._mode():
            return dict(self._module.outputs(self._state))


class Copy:
    """A parallel copy between two arrays: the yardstick of the floor."""

    ELEMENTS = 16_000_000
    BYTES = 16 * ELEMENTS  # read and written
    build_seconds = 0.0

    def __init__(self) -> None:
        self._copy = Builder()("../copy")
        self._source, self._target = (aligned(np.ones(self.ELEMENTS)) for _ in range(2))

    def run(self) -> None:
        """Copy once."""
        self._copy(self.ELEMENTS, self._source, self._target)

    def outputs(self) -> dict[str, Any]:
        """What was copied."""
        return {"target": self._target}


class DeviceCopy:
    """The same between two arrays on the GPU, each some times its cache."""

    ELEMENTS = 40_000_000
    BYTES = 16 * ELEMENTS
    build_seconds = 0.0

    def __init__(self) -> None:
        cupy = import_module("cupy")
        self._finish = cupy.cuda.Device().synchronize
        self._source, self._target = (cupy.zeros(self.ELEMENTS) for _ in range(2))
        self._source.fill(1.0)
        self._finish()

    def run(self) -> None:
        """Copy once."""
        self._target[...] = self._source
        self._finish()

    def outputs(self) -> dict[str, Any]:
        """What was copied."""
        return {"target": self._target.get()}


Program = Expert | Ours | Copy | DeviceCopy


def make(contestant: str, name: str, size: int, space: str | None = None) -> Program:
    """A program set up by a contestant: a peer, "fused", "unfused" or "copy"."""
    if contestant == "copy":
        return Copy() if space is None else DeviceCopy()
    if contestant in OURS:
        use_space(space)
        return Ours(contestant, name, size)
    return Expert(CONTESTANTS[contestant], name, size, space)


def _build(contestant: Contestant, module: ModuleType) -> Run:
    """Let the program's file make its run function, with the peer's compiler handed in."""
    factory: Callable[..., Run] = getattr(module, contestant.factory)
    if contestant.factory == "cpp":
        return factory(Builder(contestant.fastmath))
    if contestant.factory == "numba":
        import numba

        # error_model: a division by zero gives inf and no exception, so that loops vectorise
        return factory(
            partial(numba.njit, parallel=True, error_model="numpy", fastmath=contestant.fastmath)
        )
    if contestant.library in MODULES:
        return factory(import_module(MODULES[contestant.library]))
    return factory()
