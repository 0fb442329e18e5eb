"""The PyKokkos API on PyFuser's own engine; `pykokkos.py` is its namespace."""
