from typing import Any

from pykokkos import View

def dgemm(
    alpha: float, view_a: Any, view_b: Any, beta: float = ..., view_c: Any = ...
) -> View[float]: ...
