"""`pykokkos.linalg`: BLAS of level 3 on Views."""

from __future__ import annotations

import sys
from typing import Any

from pyfuser.frontends.embedded import array_workunits as workunits
from pyfuser.frontends.embedded.data_types import double
from pyfuser.frontends.embedded.elementwise import launch
from pyfuser.frontends.embedded.views import View


def dgemm(alpha: float, view_a: Any, view_b: Any, beta: float = 0.0, view_c: Any = None) -> View:
    """The matrix product alpha * a @ b + beta * c in double precision, a new View.

    Raises ValueError where the inner extents of a and b differ.
    """
    inner, other = view_a.shape[1], view_b.shape[0]
    if inner != other:
        raise ValueError(
            f"Second dimensions shape of a is {inner} which does not match first dimension "
            f"shape of b, {other}."
        )
    out = View([view_a.shape[0], view_b.shape[1]], double)
    launch("dgemm", out.shape, workunits.dgemm, alpha=alpha, a=view_a, b=view_b, out=out)
    if view_c is not None:
        launch("dgemm", out.shape, workunits.dgemm_add, beta=beta, c=view_c, out=out)
    return out


l3_blas = sys.modules[__name__]  # the module that programs import it from
