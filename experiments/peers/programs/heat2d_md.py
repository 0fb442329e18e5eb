"""Heat in 2-D: for experts the same program as `heat2d`."""

from experiments.peers.programs.heat2d import (
    cpp,
    cupy_fuse,
    floor,
    jax,
    numba,
    numpy,
    outputs,
    setup,
    torch,
)

__all__ = ["cpp", "cupy_fuse", "floor", "jax", "numba", "numpy", "outputs", "setup", "torch"]
