"""Decorators of the Numba peers."""

from numba import njit

jit = njit(parallel=True, cache=True, error_model="numpy")
# sums may be reordered, which vectorises them
rjit = njit(parallel=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz"})
inl = njit(inline="always", error_model="numpy")
