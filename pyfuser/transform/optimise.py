"""The passes that kernels go through, in order."""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.transform.inner_loops import fuse_inner_loops
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.overwrites import mark_overwrites
from pyfuser.transform.rows import contract_rows
from pyfuser.transform.scalars import replace_scalars
from pyfuser.transform.unroll import unroll
from pyfuser.transform.unused import remove_unused
from pyfuser.transform.widen import widen

#: Of fused kernels.
PASSES: tuple[Callable[[Kernel], Kernel], ...] = (
    fuse_inner_loops,
    replace_scalars,
    contract_rows,
    remove_unused,
    mark_overwrites,
)


NATIVE_PASSES: tuple[Callable[[Kernel], Kernel], ...] = (unroll, widen)


def optimise(kernel: Kernel) -> Kernel:
    """The kernel that computes the same with fewer memory accesses."""
    for transform in PASSES:
        kernel = transform(kernel)
    return kernel


def specialise(kernel: Kernel) -> Kernel:
    """The kernel in the form that an engine emits as C++, fused or not: for known bounds."""
    for transform in NATIVE_PASSES:
        kernel = transform(kernel)
    return kernel
