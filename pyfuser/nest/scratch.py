"""Scratch memory and local arrays: how many elements they have, and where these are."""

from __future__ import annotations

import math

from pyfuser.ir import nodes
from pyfuser.ir.affine import number
from pyfuser.ir.nodes import Stmt

STACK = 1 << 13
"""Bytes of scratch memory that an iteration has on its thread's stack: to ask the system for memory
takes longer than small matrices take. Threads of OpenMP have stacks of 2 MiB or more."""


def lengths_of(memory: Stmt) -> tuple[int, ...] | None:
    """The extents of an array or of scratch memory, if all are constants."""
    if isinstance(memory, nodes.DeclareArray):
        return (len(memory.values),)
    assert isinstance(memory, nodes.Scratch)
    lengths = tuple(max(n, 0) for n in map(number, memory.shape) if n is not None)
    return lengths if len(lengths) == len(memory.shape) else None


def stack_cells(memory: nodes.Scratch) -> int | None:
    """How many elements scratch memory has, if it is on the stack."""
    lengths = lengths_of(memory)
    if lengths is None or math.prod(lengths) * memory.sym.dtype.size > STACK:
        return None
    return max(1, math.prod(lengths))
