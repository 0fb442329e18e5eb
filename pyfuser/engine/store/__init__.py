"""Lowered code, plans and kernels on disk, for processes to come."""
