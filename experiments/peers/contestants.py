"""The peers: what each needs, and how its version of a program is built, run and read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

import pyfuser
from experiments.peers import program
from experiments.peers.cpp import Builder

Run = Callable[[Any], None]
Array = np.ndarray[Any, Any]

CACHE_LINE = 64  # bytes; also the widest vector


@dataclass(frozen=True, slots=True)
class Contestant:
    """A peer. `package` is what must be installed; `factory` the name in a program's file."""

    name: str
    label: str
    factory: str
    package: str | None = None
    fastmath: bool = False  # may change values: never counts as ahead

    def lacks(self, module: ModuleType) -> str | None:
        """Why it cannot run a program; None if it can."""
        if not hasattr(module, self.factory):
            return "not written"
        if self.package is not None and find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install -e '.[peers]'"
        return None


CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("cpp", "C++", "cpp"),
        Contestant("numba", "Numba", "numba", "numba"),
        Contestant("numpy", "NumPy", "numpy"),
        Contestant("jax", "JAX", "jax", "jax"),
        Contestant("numexpr", "numexpr", "numexpr", "numexpr"),
        Contestant("cpp-fast", "C++ -ffast-math", "cpp", fastmath=True),
        Contestant("numba-fast", "Numba fastmath", "numba", "numba", fastmath=True),
    )
}
OURS = {"fused": pyfuser.fusing, "unfused": pyfuser.unfused}
LABELS = {"fused": "fused", "unfused": "unfused"} | {
    contestant.name: contestant.label for contestant in CONTESTANTS.values()
}


class Expert:
    """A program by a peer."""

    def __init__(self, contestant: Contestant, name: str, size: int) -> None:
        self._module = program.load(name)
        start = perf_counter()
        self._run = _build(contestant, self._module)
        self.build_seconds = perf_counter() - start
        self.state = self._module.setup(size)
        _place(self.state, _to_jax if contestant.factory == "jax" else aligned)

    def run(self) -> None:
        """Make one run; wait until its results are in memory."""
        self._run(self.state)
        for value in vars(self.state).values():
            if hasattr(value, "block_until_ready"):
                value.block_until_ready()

    def outputs(self) -> dict[str, Any]:
        """The outputs, as NumPy arrays and numbers, whatever the peer keeps them in."""
        plain = {
            key: np.asarray(value) if hasattr(value, "block_until_ready") else value
            for key, value in vars(self.state).items()
        }
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


def make(contestant: str, name: str, size: int) -> Expert | Ours | Copy:
    """A program set up by a contestant: a peer, "fused", "unfused" or "copy"."""
    if contestant == "copy":
        return Copy()
    if contestant in OURS:
        return Ours(contestant, name, size)
    return Expert(CONTESTANTS[contestant], name, size)


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
    if contestant.factory == "jax":
        os.environ.update(JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu")  # read when it is imported
    return factory()


def _place(state: Any, place: Callable[[Array], Any]) -> None:
    for key, value in vars(state).items():
        if isinstance(value, np.ndarray):
            setattr(state, key, place(value))


def aligned(array: Array) -> Array:
    """A copy that starts on a cache line, as experts (and we) allocate and NumPy does not."""
    raw = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    made: Array = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _to_jax(array: Array) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(array)
