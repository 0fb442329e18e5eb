"""Runs a program through the package and compares it with the oracle.

The interpreter tier needs neither compiler nor PyKokkos: workunits are lowered, planned, fused
and optimised as in a flush, and the kernels are interpreted in a shuffled order.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.mistakes import refuse_mistakes
from pyfuser.ir.dtypes import from_numpy
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import ScalarType, ViewType, lower, scalar_dtype
from pyfuser.pipeline import KERNEL_PASSES, run_passes
from pyfuser.plan.plan import Plan
from pyfuser.runtime.roll import rolled
from pyfuser.support.errors import BoundsError, WorkunitWarning
from pyfuser.trace.call import Argument, Space
from pyfuser.trace.call import Call as TraceCall
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Handle, Region, region_of
from pyfuser.trace.shape import CallShape, ScalarShape, TraceShape, shape_of
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel
from tests.fuzz import cxx, oracle, wavefront
from tests.fuzz.choices import FEW_ROUNDS, planned_for
from tests.fuzz.oracle import Array, Rejected, State
from tests.fuzz.planning import features_of, guards, inner_loops, sunk, windows
from tests.fuzz.program import Host, Program, Step
from tests.races import RaceDetector

Passes = Callable[[Kernel], Kernel]
Groups = list[tuple[int, ...]]

_THOROUGH = 16  # one program in so many is compared stage by stage, bit for bit


ALL_PASSES: Passes = partial(run_passes, KERNEL_PASSES)
MISTAKES = {
    "does not fit into": "overflowed",
    "round quotients": "rounded",
    "cannot hold": "wrapped",
    "is compared with unsigned": "compared",
}
"""What warnings of numbers say, and what the oracle has then seen (see `cxx.UNLIKE_PYTHON` and
`cxx.STORES`)."""
MISTAKEN = "mistake"  # among features: the analysis finds a race, or an index outside


class Mismatch(AssertionError):
    """Two runs of one program differ; the message says which and where."""


@dataclass
class Outcome:
    """What became of a program that was judged right; `features` are those of its plans."""

    calls: int
    groups: Groups
    features: frozenset[str] = frozenset()

    @property
    def fused(self) -> int:
        """Calls that share a kernel with another one."""
        return sum(len(group) for group in self.groups if len(group) > 1)


def check_interpreted(program: Program, order: int = 1) -> Outcome:
    """Compare the oracle with the interpretation of fused and optimised kernels.

    Most programs are judged by that alone; what is wrong is looked for where the two differ.

    Raises Rejected for a program that cannot be judged, and Mismatch for a wrong result.
    """
    seen = cxx.UNLIKE_PYTHON | cxx.STORES
    expected = oracle.run(program, order)
    counts = cxx.UNLIKE_PYTHON | cxx.STORES
    unlike = {kind for kind, count in counts.items() if count > seen[kind]}
    workunits = lowered(program, expected[1])
    thorough = program.seed % _THOROUGH == 0
    if thorough:
        _check_stages(program, workunits, expected, order)
    found, groups, planned = run_fused(program, workunits, ALL_PASSES, order + 1)
    try:
        compare(program, expected, found, f"all passes on groups {groups}", exact=False)
    except Mismatch:
        if not thorough:
            _check_stages(program, workunits, expected, order)
        raise
    wrong = planned & {*MISTAKES.values()} - unlike
    if wrong:
        raise Mismatch(f"numbers are said to be {wrong} in a program where none are")
    if MISTAKEN in planned and not _is_mistaken(program, workunits, order):
        raise Mismatch("a mistake is found in a program that makes none")
    found_features = planned | _sums(program, groups)
    return Outcome(len(workunits), groups, found_features)


def _is_mistaken(program: Program, workunits: list[Workunit], order: int) -> bool:
    """Whether iterations race, or leave their arrays."""
    try:
        run_unfused(program, workunits, order)
    except Rejected:
        return True
    return False


def _check_stages(program: Program, workunits: list[Workunit], expected: State, order: int) -> None:
    """Compare every stage with the one before, from unfused calls (which may race) onwards."""
    for workunit in set(workunits):
        verify(workunit)
    unfused = run_unfused(program, workunits, order)
    compare(program, expected, unfused, "unfused interpretation", exact=False)
    for name, passes in (("fuse", fused_only), ("all passes", ALL_PASSES)):
        found, groups, _ = run_fused(program, workunits, passes, order + 1)
        compare(program, unfused, found, f"{name} of groups {groups}", exact=True)


def fused_only(kernel: Kernel) -> Kernel:
    """No optimisation."""
    return kernel


def lowered(program: Program, results: list[Any]) -> list[Workunit]:
    """The ir of each call's workunit, typed by the arguments of the call."""
    memory = oracle.arrays(program)
    functions = iter(zip(program.units, oracle.functions(program), strict=True))
    known: dict[Any, Workunit] = {}  # calls of one workunit on equal types share its ir
    workunits = []
    for step in program.steps:
        if isinstance(step, Host):
            oracle.act(step, memory, results)  # it may give a base another length
            continue
        unit, function = next(functions)
        types: dict[str, ViewType | ScalarType] = {}
        for name, text in step.views:
            array = oracle.part(text, memory)
            dtype = from_numpy(array.dtype)
            assert dtype is not None
            types[name] = ViewType(dtype, array.ndim)
        for name, text in step.scalars:
            types[name] = ScalarType(_scalar_type(oracle.scalar(text, results)))
        key = (unit, tuple(types.items()))
        if key not in known:
            known[key] = lower(function, step.pattern, len(step.begin), types).workunit
        workunits.append(known[key])
    return workunits


def _scalar_type(value: Any) -> Any:
    dtype = scalar_dtype(value)
    assert dtype is not None
    return dtype


def run_unfused(program: Program, workunits: list[Workunit], order: int) -> State:
    """Interpret call by call; raises Rejected if iterations of one call collide."""
    memory = oracle.arrays(program)
    results: list[Any] = []
    units = iter(workunits)
    for step in program.steps:
        if isinstance(step, Host):
            results.append(oracle.act(step, memory, results))
            continue
        given: list[Any] = [oracle.part(text, memory) for _, text in step.views]
        given += [oracle.scalar(text, results) for _, text in step.scalars]
        races = RaceDetector()
        values = interpret(
            next(units), step.pattern, step.begin, step.stop(results), given, order, races
        )
        if races.found:
            raise Rejected(f"race: {races.conflicts[0]}")
        results.append(values[0] if values else None)
    return memory, results


# --------------------------------------------------------------------------- fused


def segments(steps: tuple[Step, ...]) -> Iterator[tuple[int, int]]:
    """Ranges of steps that one flush runs: the host, blocks and policies come between.

    A step of the host is a segment; so is a call in an unfused block.
    """
    start = 0
    for n, step in enumerate(steps):
        last = steps[n - 1] if n > start else None
        if last is not None and (
            isinstance(step, Host)
            or isinstance(last, Host)
            or step.limit
            or "unfused" in (step.mode, last.mode)
            or step.mode != last.mode
        ):
            yield start, n
            start = n
    if start < len(steps):
        yield start, len(steps)


def run_fused(
    program: Program, workunits: list[Workunit], passes: Passes, order: int
) -> tuple[State, Groups, set[str]]:
    """Plan each segment, and interpret its launches after the passes; all groups, and features.

    Every other program sweeps wherever that is legal; some have groups cut.
    """
    memory = _Memory(program)
    results: list[Any] = []
    groups: Groups = []
    found: set[str] = set()
    first = 0  # the position of the segment's first call among all calls
    for start, stop in segments(program.steps):
        steps = program.steps[start:stop]
        if isinstance(steps[0], Host):
            results.append(memory.act(steps[0], results))
            continue
        memory.forget(program.steps[stop:])
        calls = memory.record(steps, workunits[first : first + len(steps)], results)
        ran, features = _run(program, calls, passes, order)
        groups += [tuple(first + n for n in group) for group in ran]
        found |= features
        results += [None if call.result is None else call.result.result() for call in calls]
        first += len(steps)
    return (memory.arrays, results), groups, found


def _run(
    program: Program, calls: list[TraceCall], passes: Passes, order: int
) -> tuple[Groups, set[str]]:
    """Run calls; their groups, and features."""
    calls, count = rolled(calls, FEW_ROUNDS)
    trace = shape_of(calls, structural_scalars)
    before = (calls[:n] for n in range(len(calls)))
    mistaken = set().union(*map(_mistakes, trace.calls, calls, before))
    with wavefront.forced_for(program.seed):
        trace, _, plan = planned_for(program.seed, trace)
    found = {*features_of([plan]), *windows(trace, plan), *sunk(trace, plan), *mistaken}
    found |= {"calls rolled"} if count else set()
    found |= _run_plan(trace, plan, passes, calls, order)
    return [group.calls for group in plan.groups], found


def _mistakes(shape: CallShape, call: TraceCall, before: list[TraceCall]) -> set[str]:
    """Which kinds of mistakes the analysis finds in a call; `before`: those that run first."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorkunitWarning)
        try:
            refuse_mistakes(shape, call, before)
        except BoundsError:
            return {MISTAKEN}
    messages = [str(warning.message) for warning in caught]
    return {  # what iterations may do depends on the data, and is said to
        next((kind for words, kind in MISTAKES.items() if words in message), MISTAKEN)
        for message in messages
        if "iterations may " not in message
    }


def _run_plan(
    trace: TraceShape, plan: Plan, passes: Passes, calls: list[TraceCall], order: int
) -> frozenset[str]:
    """Interpret the launches of a plan; what its kernels show, out of `features.PLANNED`."""
    calls = _with_sources(trace, plan, calls)
    members = [group.calls for group in plan.groups]
    kernels = [passes(fuse(shape)) for shape in group_shapes(trace, members)]
    sweeps = {sweep.groups: sweep for sweep in plan.sweeps}
    for kernel in kernels:
        verify(kernel.workunit)
    found = inner_loops(kernel.workunit for kernel in kernels) | guards(trace, plan)
    for places in plan.launches():
        if places in sweeps:
            loops = [wavefront.Loop(trace, kernels[n], calls, members[n]) for n in places]
            wavefront.run_sweep(sweeps[places], loops, 1 + order % 3, order)
        else:
            (place,) = places
            run_kernel(kernels[place], [calls[n] for n in members[place]], order)
    return found


def _with_sources(trace: TraceShape, plan: Plan, calls: list[TraceCall]) -> list[TraceCall]:
    """The calls, of which some have the arguments of those that they compute again."""
    found = list(calls)
    sources = plan.sources()
    for n in sources.notes:
        old = calls[n]
        places = range(len(trace.calls[n].arguments))
        given = [source for place in places if (source := sources.of(n, place)) is not None]
        arguments = tuple(calls[other].arguments[place] for other, place in given)
        found[n] = TraceCall(
            old.pattern, old.space, old.workunit, arguments, old.result, None, old.code, old.line
        )
    return found


def _sums(program: Program, groups: Groups) -> frozenset[str]:
    """Whether one loop has several reductions."""
    patterns = [call.pattern for call in program.calls]
    most = max(sum(patterns[n] == "reduce" for n in group) for group in groups)
    return frozenset({"several sums in a loop"} if most > 1 else ())


@dataclass
class _Memory:
    """The memory of a program and what a tracer would know of it."""

    program: Program
    arrays: dict[str, Array] = field(init=False)
    buffers: dict[str, Buffer] = field(init=False)  # of temporaries
    handles: dict[str, Handle] = field(init=False)  # of temporaries that will still be used

    def __post_init__(self) -> None:
        self.arrays = oracle.arrays(self.program)
        self.handles = {b.name: Handle() for b in self.program.bases if b.temporary}
        self.buffers = {
            name: Buffer(self.arrays[name].nbytes, handle) for name, handle in self.handles.items()
        }

    def act(self, step: Host, results: list[Any]) -> tuple[Any, ...]:
        memory = dict(self.arrays)
        for name, buffer in self.buffers.items():
            if name in step.text:
                buffer.allocate()
                memory[name] = self._region(name).array()
        seen = oracle.act(step, memory, results)
        self.arrays.update((n, a) for n, a in memory.items() if n not in self.buffers)
        return seen

    def forget(self, later: tuple[Step, ...]) -> None:
        """Let go of temporaries that no later step names."""
        for name in list(self.handles):
            if not any(name in names_of(step) for step in later):
                del self.handles[name]

    def record(
        self, calls: tuple[Any, ...], workunits: list[Workunit], results: list[Any]
    ) -> list[TraceCall]:
        """The calls as a tracer would hold them."""
        recorded: list[TraceCall] = []
        results = list(results)
        for call, workunit in zip(calls, workunits, strict=True):
            arguments: list[Argument] = [self._region(text) for _, text in call.views]
            arguments += [oracle.scalar(text, results) for _, text in call.scalars]
            result = (
                Future(workunit.accumulators[0].sym.dtype, _never)
                if workunit.accumulators
                else None
            )
            code, space = _never.__code__, Space(call.begin, call.stop(results))
            recorded.append(
                TraceCall(call.pattern, space, workunit, tuple(arguments), result, None, code, 1)
            )
            results.append(result)
        return recorded

    def _region(self, text: str) -> Region:
        array = oracle.part(text, self.arrays)
        dtype = from_numpy(array.dtype)
        assert dtype is not None
        (name,) = bases_of(text)
        buffer = self.buffers.get(name)
        if buffer is None:
            return region_of(array, dtype)
        offset = _address(array) - _address(self.arrays[name])
        return Region(buffer, offset, array.strides, array.shape, dtype)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def bases_of(text: str) -> set[str]:
    """The bases that a text of the host names."""
    return set(re.findall(r"(?<![.\w])[A-Z]\b", text))


def names_of(step: Step) -> set[str]:
    """The bases that a step uses."""
    texts = [step.text] if isinstance(step, Host) else [text for _, text in step.views]
    return bases_of(" ".join(texts))


def _never(_: Future) -> None:
    raise AssertionError("a result is asked for before the kernel that computes it has run")


def run_kernel(kernel: Kernel, calls: list[TraceCall], order: int) -> None:
    """Interpret a fused kernel on its calls' arguments and set their results."""
    arguments: list[Any] = []
    for slot, shape in zip(kernel.slots, kernel.shapes, strict=True):
        given = calls[slot.call].arguments
        if slot.argument >= len(given):
            assert isinstance(shape, ScalarShape)
            arguments.append(shape.value)  # a bound of the call's own box
            continue
        argument = given[slot.argument]
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
