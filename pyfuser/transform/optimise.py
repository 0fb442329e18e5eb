"""The passes that kernels go through, in order; and what of their work is kept.

Kernels of one form differ in sizes only (see `fuse`). Of the passes one alone looks at sizes,
and only where a view whose contents die is used by rows: what the others make of a form is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pyfuser.transform.fuse import MAX_FORMS, Form, form_of, merged, with_sizes
from pyfuser.transform.group import GroupShape
from pyfuser.transform.guards import join_guards
from pyfuser.transform.inner_loops import fuse_inner_loops
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.overwrites import mark_overwrites, mark_streamed
from pyfuser.transform.rows import contract_rows
from pyfuser.transform.scalars import replace_scalars
from pyfuser.transform.selects import select_elements
from pyfuser.transform.unroll import unroll
from pyfuser.transform.unused import remove_unused
from pyfuser.transform.widen import widen

#: Of fused kernels.
PASSES: tuple[Callable[[Kernel], Kernel], ...] = (
    join_guards,
    fuse_inner_loops,
    replace_scalars,
    contract_rows,
    remove_unused,
    mark_overwrites,
)


NATIVE_PASSES: tuple[Callable[[Kernel], Kernel], ...] = (unroll, select_elements, widen)


def optimise(kernel: Kernel) -> Kernel:
    """The kernel that computes the same with fewer memory accesses."""
    for transform in PASSES:
        kernel = transform(kernel)
    return kernel


def optimised(group: GroupShape) -> Kernel:
    """What `optimise` makes of a group's fused kernel (but for the numbers of its Syms)."""
    form = form_of(group)
    before = with_sizes(_without_reuse(form), group)
    kernel = contract_rows(before)
    unchanged = kernel is before
    kernel = mark_overwrites(
        with_sizes(_without_unused(form), group) if unchanged else remove_unused(kernel)
    )
    return mark_streamed(kernel, group.leaving)


@lru_cache(maxsize=MAX_FORMS)
def _without_reuse(form: Form) -> Kernel:
    """The kernel of a form after the passes before `contract_rows`."""
    return replace_scalars(fuse_inner_loops(join_guards(merged(form))))


@lru_cache(maxsize=MAX_FORMS)
def _without_unused(form: Form) -> Kernel:
    """The kernel of a form after all passes but `contract_rows`, which finds nothing to do."""
    return remove_unused(_without_reuse(form))


def specialise(kernel: Kernel) -> Kernel:
    """The kernel in the form that an engine emits as C++, fused or not: for known bounds."""
    for transform in NATIVE_PASSES:
        kernel = transform(kernel)
    return kernel
