"""`pyfuser compare`: one program fused and unfused, timed in turns, with its results compared."""
