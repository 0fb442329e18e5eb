"""Heat in 2-D: for experts the same program as `heat2d`."""

from experiments.peers.programs.heat2d import cpp, floor, jax, numba, numpy, outputs, setup

__all__ = ["cpp", "floor", "jax", "numba", "numpy", "outputs", "setup"]
