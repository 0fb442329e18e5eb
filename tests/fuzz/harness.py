"""Runs a program through the package and compares it with the oracle.

The interpreter tier needs neither compiler nor PyKokkos: workunits are lowered, planned, fused
and optimised as in a flush, and the kernels are interpreted in a shuffled order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyfuser
from pyfuser import driver
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.dependences import dependences
from pyfuser.ir.dtypes import from_numpy
from pyfuser.ir.interpret import interpret
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.races import RaceDetector
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import ScalarType, ViewType, lower, scalar_dtype
from pyfuser.plan.partition import partition
from pyfuser.trace.call import Argument, Space
from pyfuser.trace.call import Call as TraceCall
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Handle, Region, region_of
from pyfuser.trace.shape import shape_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.optimise import optimise
from tests.fuzz import oracle
from tests.fuzz.oracle import Rejected
from tests.fuzz.program import Base, Call, Program

Array = np.ndarray[Any, Any]
State = tuple[dict[str, Array], list[Any]]


class Mismatch(AssertionError):
    """Two runs of one program differ; the message says which and where."""


@dataclass
class Outcome:
    """What became of a program that was judged right."""

    calls: int
    groups: list[tuple[int, ...]]

    @property
    def fused(self) -> int:
        """Calls that share a kernel with another one."""
        return sum(len(group) for group in self.groups if len(group) > 1)


def check_interpreted(program: Program, order: int = 1) -> Outcome:
    """Compare oracle, unfused and fused interpretation.

    Raises Rejected for a program that cannot be judged, and Mismatch for a wrong result.
    """
    expected = oracle.run(program, order)
    workunits = lowered(program, expected[1])
    for workunit in workunits:
        verify(workunit)
    unfused = run_unfused(program, workunits, order)
    compare(program, expected, unfused, "unfused interpretation", exact=False)
    groups = planned(program, workunits)
    for stage, passes in (("fuse", fused_only), ("optimise", optimise)):
        found = run_fused(program, workunits, groups, passes, order + 1)
        compare(program, unfused, found, f"{stage} of groups {groups}", exact=True)
    return Outcome(len(workunits), groups)


def planned(program: Program, workunits: list[Workunit]) -> list[tuple[int, ...]]:
    """The groups that share a kernel."""
    trace = shape_of(record(program, workunits)[0], structural_scalars)
    return [group.calls for group in partition(trace, dependences(trace)).groups]


def run_fused(
    program: Program,
    workunits: list[Workunit],
    groups: list[tuple[int, ...]],
    passes: Callable[[Kernel], Kernel],
    order: int,
) -> State:
    """Interpret one kernel a group, after the passes."""
    calls, bases = record(program, workunits)
    trace = shape_of(calls, structural_scalars)
    for group, shape in zip(groups, group_shapes(trace, groups), strict=True):
        kernel = passes(fuse(shape))
        verify(kernel.workunit)
        run_kernel(kernel, [calls[position] for position in group], order)
    results = [None if call.result is None else call.result.result() for call in calls]
    return {name: region.array() for name, region in bases.items()}, results


def fused_only(kernel: Kernel) -> Kernel:
    """No optimisation."""
    return kernel


def lowered(program: Program, results: list[Any]) -> list[Workunit]:
    """The program's workunits as ir, typed by the arguments of their calls."""
    memory = oracle.arrays(program)
    workunits = []
    for call, function in zip(program.calls, oracle.functions(program), strict=True):
        types: dict[str, ViewType | ScalarType] = {}
        for name, text in call.views:
            array = eval(text, {}, memory)
            dtype = from_numpy(array.dtype)
            assert dtype is not None
            types[name] = ViewType(dtype, array.ndim)
        for name, text in call.scalars:
            types[name] = ScalarType(_scalar_type(oracle.scalar(text, results)))
        workunits.append(lower(function, call.pattern, len(call.begin), types).workunit)
    return workunits


def _scalar_type(value: Any) -> Any:
    dtype = scalar_dtype(value)
    assert dtype is not None
    return dtype


def run_unfused(program: Program, workunits: list[Workunit], order: int) -> State:
    """Interpret call by call; raises Rejected if iterations of one call collide."""
    memory = oracle.arrays(program)
    results: list[Any] = []
    for call, workunit in zip(program.calls, workunits, strict=True):
        given: list[Any] = [eval(text, {}, memory) for _, text in call.views]
        given += [oracle.scalar(text, results) for _, text in call.scalars]
        races = RaceDetector()
        values = interpret(workunit, call.pattern, call.begin, call.end, given, order, races)
        if races.found:
            raise Rejected(f"race: {races.conflicts[0]}")
        results.append(values[0] if values else None)
    return memory, results


def record(
    program: Program, workunits: list[Workunit]
) -> tuple[list[TraceCall], dict[str, Region]]:
    """The program's calls as a tracer would hold them, on new memory; its non-temporary bases."""
    memory = oracle.arrays(program)
    buffers = {
        base.name: Buffer(memory[base.name].nbytes, Handle())  # nobody else holds the handle
        for base in program.bases
        if base.temporary
    }
    calls: list[TraceCall] = []
    for call, workunit in zip(program.calls, workunits, strict=True):
        arguments: list[Argument] = [_region(text, memory, buffers) for _, text in call.views]
        arguments += [oracle.scalar(text, [c.result for c in calls]) for _, text in call.scalars]
        result = (
            Future(workunit.accumulators[0].sym.dtype, _never) if workunit.accumulators else None
        )
        code, space = record.__code__, Space(call.begin, call.end)
        calls.append(
            TraceCall(call.pattern, space, workunit, tuple(arguments), result, None, code, 1)
        )
    kept = {b.name: _region(b.name, memory, buffers) for b in program.bases if not b.temporary}
    return calls, kept


def _region(text: str, memory: dict[str, Array], buffers: dict[str, Buffer]) -> Region:
    array = eval(text, {}, memory)
    dtype = from_numpy(array.dtype)
    assert dtype is not None
    buffer = buffers.get(text[0])
    if buffer is None:
        return region_of(array, dtype)
    offset = array.__array_interface__["data"][0] - memory[text[0]].__array_interface__["data"][0]
    return Region(buffer, offset, array.strides, array.shape, dtype)


def _never() -> None:
    raise AssertionError("a result is asked for before the kernel that computes it has run")


def run_kernel(kernel: Kernel, calls: list[TraceCall], order: int) -> None:
    """Interpret a fused kernel on its calls' arguments and set their results."""
    arguments: list[Any] = []
    for slot in kernel.slots:
        argument = calls[slot.call].arguments[slot.argument]
        if isinstance(argument, Region):
            arguments.append(argument.array())
        else:
            arguments.append(argument.result() if isinstance(argument, Future) else argument)
    space = kernel.space
    values = interpret(kernel.workunit, kernel.pattern, space.begin, space.end, arguments, order)
    for position, value in zip(kernel.results, values, strict=True):
        result = calls[position].result
        assert result is not None
        result.set(value)


def compare(program: Program, expected: State, found: State, what: str, exact: bool) -> None:
    """Raise Mismatch where a non-temporary array or a result differs.

    exact: bit for bit; else by value (0.0 equals -0.0: C leaves the sign that fmin picks open).
    """
    for base in program.bases:
        if base.temporary:
            continue
        left, right = expected[0][base.name], found[0][base.name]
        same = left.tobytes() == right.tobytes() if exact else bool(np.array_equal(left, right))
        if not same:
            where = np.argwhere(left != right)[:1].tolist()
            raise Mismatch(f"{what}: {base.name} differs at {where}\n{left}\n{right}")
    if expected[1] != found[1]:
        raise Mismatch(f"{what}: results {found[1]}, expected {expected[1]}")


def check_compiled(program: Program) -> Outcome:
    """Compare the oracle with `pk.parallel_*` inside `pyfuser.fusing()`: needs a C++ compiler."""
    expected = oracle.run(program)
    run_unfused(program, lowered(program, expected[1]), 0)  # raises Rejected for races
    driver.FLUSHES.clear()
    found = run_compiled(program)
    compare(program, expected, found, "compiled", exact=False)
    groups = [g.calls for flush in driver.FLUSHES for g in flush.program.plan.groups]
    return Outcome(len(program.calls), groups)


def run_compiled(program: Program) -> State:
    """The program as a user would run it."""
    import pykokkos as pk  # the embedded one, once pyfuser is imported

    initial = oracle.arrays(program)
    memory = {b.name: _storage(pk, program, b, initial[b.name]) for b in program.bases}
    results: list[Any] = []
    with pyfuser.fusing():
        for call, function in zip(program.calls, oracle.functions(program, pk), strict=True):
            bound = {name: eval(text, {}, memory) for name, text in call.views}
            bound.update((name, oracle.scalar(text, results)) for name, text in call.scalars)
            pattern = getattr(pk, f"parallel_{call.pattern}")
            results.append(pattern(_policy(pk, call), function, **bound))
            del bound
        for base in program.bases:
            if base.temporary:
                del memory[base.name]
    arrays = {name: np.asarray(array) for name, array in memory.items()}
    values = [r if r is None else r + 0 for r in results]
    return arrays, values


def _policy(pk: Any, call: Call) -> Any:
    if len(call.begin) == 1:
        return pk.RangePolicy(call.begin[0], call.end[0])
    return pk.MDRangePolicy(list(call.begin), list(call.end))


def _storage(pk: Any, program: Program, base: Base, values: Array) -> Any:
    """A View for temporaries (and in every other program for all), else a NumPy array."""
    texts = [text for call in program.calls for _, text in call.views]
    transposed = any(text == f"{base.name}.T" for text in texts)  # Views cannot be transposed
    if transposed or not (base.temporary or program.seed % 2):
        return values
    names = {"float64": "double", "float32": "float"}
    view = pk.View(list(base.shape), getattr(pk, names.get(base.dtype, base.dtype)))
    if not base.temporary:
        view[:] = values
    return view


TIERS: dict[str, Callable[[Program], Outcome]] = {
    "interpret": check_interpreted,
    "compiled": check_compiled,
}
