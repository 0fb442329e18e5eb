"""Lazy NumPy: arrays that record calls into the same trace as PyKokkos's, and fuse with them."""
