"""Recorded operations, as NumPy computes them: the first time that a trace comes."""

from __future__ import annotations

from functools import partial
from math import prod

from pyfuser.frontends.numpy.floating import WARNER
from pyfuser.frontends.numpy.workunits import Recipe
from pyfuser.runtime.first_tier import DirectCall, Step
from pyfuser.trace.call import Argument
from pyfuser.trace.memory import Array, Region

COSTLY = 4
"""How often as long as to move its arguments a function such as `exp` takes NumPy."""


class Recorded(DirectCall):
    """A recorded operation, which NumPy can compute, too.

    errors: what floating-point errors do, None: they warn. caller: see `record.caller_of`.
    """

    __slots__ = ("caller", "errors", "recipe")

    recipe: Recipe
    caller: tuple[int, int]
    errors: dict[str, str] | None

    @property
    def named(self) -> str:
        """What NumPy's warnings call it."""
        operation = self.recipe.operation
        if operation.called or operation.ufunc is None:
            return operation.called or "cast"
        return str(operation.ufunc.__name__)

    @property
    def weight(self) -> int:
        return COSTLY if self.recipe.operation.costly else 1

    def compute(self, step: Step) -> None:
        """By NumPy."""
        recipe = self.recipe
        first, *others = self.arguments
        assert type(first) is Region
        if first.buffer.root is None:
            read = any(type(a) is Region and a.buffer is first.buffer for a in others)
            whole = not (read or recipe.masked) and prod(first.shape) * first.dtype.size
            if whole == first.buffer.nbytes:
                first.buffer.allocate(_unprepared, heir_of(first, others))
            else:
                first.allocate()
        arguments = tuple(a.array() if type(a) is Region else a for a in self.arguments)
        WARNER.run(self, partial(step, recipe.prepared(arguments)), self.errors)


def _unprepared(memory: Array) -> None:
    """Memory that is overwritten."""


# law: not None
def heir_of(result: Region, operands: list[Argument]) -> Array | None:
    """The memory of an operand that nobody reads after this call: NumPy computes in place there.

    It does so with temporaries of its own, which stay in cache so.
    """
    for operand in operands:
        if type(operand) is Region and operand[1:] == result[1:]:
            buffer = operand.buffer
            uses = sum(type(a) is Region and a.buffer is buffer for a in operands)
            if buffer.nbytes == result.buffer.nbytes and buffer.ends_after(uses):
                return buffer.root
    return None
