"""Kernels on GPUs, through CuPy: the CUDA and HIP execution spaces."""
