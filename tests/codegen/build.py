"""Kernels from plain workunit functions or from ir, for tests of emitted code."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pykokkos as pk

from pyfuser.engine.native import prepare as compile_kernels
from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.trace.call import Space
from pyfuser.trace.memory import region_of
from pyfuser.trace.shape import RegionShape, ScalarShape
from pyfuser.transform.kernel import Kernel, Slot
from pyfuser.transform.widen import widen

Arguments = Callable[[], list[Any]]


@dataclass
class Case:
    """A kernel and a function that makes its arguments, always the same ones."""

    kernel: Kernel
    arguments: Arguments

    def interpreted(self) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments after the reference interpreter ran the kernel on them, and its results."""
        arguments, space = self.arguments(), self.kernel.space
        results = interpret(
            self.kernel.workunit, self.kernel.pattern, space.begin, space.end, arguments
        )
        return arguments, results

    def run(self, launchable: Any) -> tuple[list[Any], tuple[Any, ...]]:
        """The same by compiled code."""
        arguments = self.arguments()
        return arguments, launchable.run(self.kernel.space, bound(arguments))


def from_text(source: str) -> Callable[..., Any]:
    """The function that a text defines, whose source can be found."""
    name = f"<{source}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"pk": pk}
    exec(compile(source, name, "exec"), scope)
    *_, function = scope.values()
    assert callable(function)
    return function


def as_interpreted(given: Case, rtol: float = 1e-13) -> None:
    """The compiled kernel does, bit for bit, what the interpreter does; its sums nearly so."""
    (launchable,) = compile_kernels([given.kernel])
    found, results = given.run(launchable)
    expected, wanted = given.interpreted()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(results, wanted, rtol=rtol)


def bound(arguments: Sequence[Any]) -> list[Any]:
    """What `Launchable.run` takes for arrays and numbers."""
    return [region_of(a, dtype_of(a)) if isinstance(a, np.ndarray) else a for a in arguments]


def dtype_of(value: Any) -> DType:
    """As the language types an argument."""
    if isinstance(value, bool):
        return DType.BOOL
    if isinstance(value, int):
        return DType.INT32
    found = from_numpy(np.asarray(value).dtype)
    assert found is not None
    return found


def case(
    function: Callable[..., Any] | Workunit,
    extents: Sequence[int],
    arguments: Arguments,
    pattern: str = "for",
    begin: Sequence[int] | None = None,
    execution: str = "OpenMP",
    team_size: int = 0,
    widened: bool = True,
) -> Case:
    """A kernel over the box from `begin` (zeros) to `extents`, with subscripts widened or not.

    team_size: of a league of `extents[0]` teams, if it is for teams.
    """
    values = arguments()
    rank = len(extents)
    if isinstance(function, Workunit):
        workunit = function
    else:
        code = function.__code__
        names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
        types = {
            name: ViewType(dtype_of(v), v.ndim)
            if isinstance(v, np.ndarray)
            else ScalarType(dtype_of(v))
            for name, v in zip(names, values, strict=True)
        }
        workunit = lower(function, pattern, rank, types, team_size=team_size).workunit
    verify(workunit)
    kernel = Kernel(
        pattern=pattern,
        space=Space(tuple(begin or (0,) * rank), tuple(extents), execution),
        workunit=workunit,
        slots=tuple(Slot(0, n) for n in range(len(values))),
        shapes=tuple(
            RegionShape(n, 0, v.strides, v.shape, dtype_of(v))
            if isinstance(v, np.ndarray)
            else ScalarShape(dtype_of(v), None)
            for n, v in enumerate(values)
        ),
        results=tuple(range(len(workunit.accumulators))),
        overlaps=frozenset(
            frozenset((p.sym, q.sym))
            for (p, v), (q, w) in combinations(zip(workunit.params, values, strict=True), 2)
            if isinstance(v, np.ndarray) and isinstance(w, np.ndarray) and np.may_share_memory(v, w)
        ),
    )
    return Case(widen(kernel) if widened else kernel, arguments)
