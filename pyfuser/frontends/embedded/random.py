"""Random numbers in workunits: the pools that programs make, and `pk.rand`."""

from __future__ import annotations

from typing import Any


class RandomPool:
    """Random number generators with one seed.

    Each iteration has a generator of its own, whose state follows from the seed and the iteration:
    numbers depend neither on threads nor on fusion. Every call of a workunit starts again, as in
    PyKokkos. `num_states`, how many generators Kokkos would make, changes nothing.
    """

    def __init__(self, seed: int, num_states: int) -> None:
        self.seed = seed
        self.num_states = num_states


class Random_XorShift64_Pool(RandomPool):
    """Generators with 64 bits of state: xorshift64* (Marsaglia 2003, Vigna 2016)."""


class Random_XorShift1024_Pool(RandomPool):
    """The same generators as Random_XorShift64_Pool, which is what PyKokkos draws from."""


def rand(dtype: Any) -> Any:
    """A random number of a data type: only in kernels, as in PyKokkos."""
    raise NotImplementedError(
        "pk.rand can only be called in a kernel; the Debug space, where Python runs workunits, has "
        "no random numbers"
    )
