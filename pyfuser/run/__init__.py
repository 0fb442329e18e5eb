"""`pyfuser run`: programs that know nothing of PyFuser, traced and yet right for NumPy arrays."""
