"""The passes that every kernel goes through, in order."""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.transform.kernel import Kernel
from pyfuser.transform.scalars import replace_scalars
from pyfuser.transform.unused import remove_unused

PASSES: tuple[Callable[[Kernel], Kernel], ...] = (replace_scalars, remove_unused)


def optimise(kernel: Kernel) -> Kernel:
    """The kernel that computes the same with fewer memory accesses."""
    for transform in PASSES:
        kernel = transform(kernel)
    return kernel
