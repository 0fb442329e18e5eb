"""Mistakes that the analysis of a call proves before its first launch.

An index outside a view is an error, as it can never be meant: the access is made in some iteration,
for sure. Iterations that write one element, and integers that overflow, get a warning, as they may
mean to. What the analysis cannot prove is not mentioned here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from pyfuser.analysis import polyhedra
from pyfuser.analysis.accesses import Access, Mode
from pyfuser.analysis.divided import has_steps, sure_divisions
from pyfuser.analysis.evaluate import Fact
from pyfuser.analysis.harmless import Harmless
from pyfuser.analysis.intervals import fits
from pyfuser.analysis.may_race import is_fixed, likely_races
from pyfuser.analysis.outside import Walk, refuse_outside, walked
from pyfuser.analysis.overflows import overflows
from pyfuser.analysis.overlap import variables_of
from pyfuser.analysis.races import certain_races
from pyfuser.analysis.relation import Relation
from pyfuser.analysis.repeats import repeats
from pyfuser.analysis.totals import Total, lost_totals
from pyfuser.analysis.zeros import zero_element
from pyfuser.ir import nodes
from pyfuser.ir.definitions import loaded
from pyfuser.ir.divisions import Division, divisions, divisor_of
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import SourceLocation, Store, Workunit
from pyfuser.ir.visit import as_written, assigned, statements
from pyfuser.support.errors import (
    DivisionError,
    StepError,
    WorkunitWarning,
    quoted,
    warn,
)
from pyfuser.trace.call import Call
from pyfuser.trace.shape import CallShape, RegionShape

_SERIAL = "Serial"  # iterations run one after the other


def refuse_mistakes(
    shape: CallShape, call: Call, before: Sequence[Call] = (), warns: bool = True
) -> None:
    """Look at a call whose shape is new; `before`: calls that run before it and have not run.

    Raises BoundsError for an index outside a view, DivisionError for an integer that is divided by
    0, and StepError for a loop that never ends; warns of iterations that write
    one element, and of integers that overflow, if it `warns`.
    """
    facts = _facts(shape, call)
    walk = walked(shape, facts)
    refuse_outside(shape, walk, call, before)
    if call.space.size:
        _refuse_division(shape, facts, call, before)
        if warns:
            _warn_of_overflows(shape, facts)
            _warn_of_empty_loops(shape.workunit, facts)
            for total in lost_totals(shape, facts, call, before):
                _warn_of_total(shape.workunit, total)
    if warns and shape.space.execution != _SERIAL:
        told: set[SourceLocation] = set()
        for doubt in (*_doubts(shape), *_repeats(shape, walk, call, before)):
            if doubt.location not in told:
                told.add(doubt.location)
                warn(doubt.message, doubt.location.file, doubt.location.line, WorkunitWarning)


# --------------------------------------------------------------------------- divisions


def _facts(shape: CallShape, call: Call) -> tuple[Fact, ...]:
    """What is known of a call's arguments: shapes of views, values of integers."""
    return tuple(
        known.shape if isinstance(known, RegionShape) else value if type(value) is int else None
        for known, value in zip(shape.arguments, call.arguments, strict=True)
    )


def _warn_of_overflows(shape: CallShape, facts: tuple[Fact, ...]) -> None:
    unit = shape.workunit
    for operation, value, iteration, place in overflows(
        unit, shape.space.begin, shape.space.end, facts
    ):
        dtype = operation.dtype
        indices = zip(unit.indices, iteration, strict=False)
        names = " and ".join(f"{index.name} = {value}" for index, value in indices)
        where = f" where {names}" if names else ""
        message = (
            f"workunit {unit.name!r}: an integer is {value}{where}, which does not fit into "
            f"{dtype.value}, so another number is computed"
        )
        if isinstance(operation, nodes.Compare):
            message = (
                f"workunit {unit.name!r}: {value} is compared with unsigned integers{where}, and "
                f"becomes {value % (1 << 8 * operation.left.dtype.size)} for that, as in C++: give "
                "the other number a signed type, as a local `wide: pk.int64 = x[i]` has"
            )
        elif isinstance(operation, nodes.Cast) and operation.operand.dtype.is_float:
            message = (
                f"workunit {unit.name!r}: a power is {value}{where}, which {dtype.value} "
                "cannot hold, so another number is stored; give that a wider type"
            )
        elif isinstance(operation, nodes.Cast):
            message = (
                f"workunit {unit.name!r}: an element of type {dtype.value} cannot hold {value}, "
                f"which it gets{where}, so another number is stored"
            )
        elif operation.op in "/%" and fits((value, value), dtype):
            message = (
                f"workunit {unit.name!r}: an integer is {value} in Python{where}, and not "
                "here: kernels round quotients towards 0, as C++ does, and Python rounds down"
            )
            if operation.op == "%":
                message += "; a remainder that is never negative is (x % n + n) % n"
        elif not dtype.is_signed:
            message += "; a number below 0 needs a signed type, such as pk.int64"
        elif dtype.size < DType.INT64.size:
            message += "; make an operand 64 bits wide, as a local `wide: pk.int64 = i` is"
        place = place or unit.location
        if place is not None:
            warn(message, place.file, place.line, WorkunitWarning)


def _warn_of_total(unit: Workunit, total: Total) -> None:
    name, dtype = total.accumulator.name, total.accumulator.dtype.value
    message = (
        f"workunit {unit.name!r}: the sum {name!r} is {total.value}, which does not fit into "
        f"{dtype}, so another number comes back: annotate it pk.Acc[pk.int64]"
    )
    if total.location is not None:
        warn(message, total.location.file, total.location.line, WorkunitWarning)


def _warn_of_empty_loops(unit: Workunit, facts: tuple[Fact, ...]) -> None:
    """Warn of loops that count upwards from an argument to a smaller number, outside branches."""
    known = dict(zip([param.sym for param in unit.params], facts, strict=True))
    for loop in unit.body:
        if not (isinstance(loop, nodes.For) and isinstance(loop.stop, nodes.Const)):
            continue
        start, stop = loop.start, loop.stop.value
        while isinstance(start, nodes.Cast):
            start = start.operand
        first = known.get(start.sym) if isinstance(start, nodes.Read) else None
        forwards = isinstance(loop.step, nodes.Const) and loop.step.value == 1
        if forwards and isinstance(first, int) and isinstance(stop, int) and first > stop:
            message = (
                f"workunit {unit.name!r}: the loop over {loop.sym.name!r} never runs, as "
                f"range({first}, {stop}) is empty: to count down give it a step, as in "
                "range(n, 0, -1)"
            )
            if unit.location is not None:
                warn(message, unit.location.file, unit.location.line, WorkunitWarning)


def _refuse_division(
    shape: CallShape, facts: tuple[Fact, ...], call: Call, before: Sequence[Call]
) -> None:
    """Raise DivisionError if some iteration, for sure, divides an integer by 0, and StepError if it
    enters a loop whose step is 0.
    """
    unit = shape.workunit
    if not (any(divisions(unit.body)) or has_steps(unit.body)):
        return
    sure, steps = sure_divisions(unit, shape.space.begin, shape.space.end, facts)
    for loop, relation in steps:
        first = _first_zero(relation)
        if first is not None:
            where = _where(unit, relation, first)
            raise StepError(
                f"{unit.location}: the step of the loop over {loop.sym.name!r} is 0{where}, so it "
                f"never ends; workunit {unit.name!r}{quoted(unit.location)}"
                f"\n  called as {call.name!r} at {call.location}"
            )
    for division, relation, load in sure:
        if load is not None:
            element = zero_element(call, division, load, relation, before)
            if element is not None:
                text = f"{load.view.name}[{', '.join(map(str, element))}]"
                raise _divided(unit, division, f"{text}, which is 0", call)
            continue
        first = _first_zero(relation)
        if first is None:
            continue
        divisor = divisor_of(division)
        what = f"{divisor.sym.name!r}, which" if isinstance(divisor, nodes.Read) else "what"
        if isinstance(divisor, nodes.Load):
            what = f"an element of {divisor.view.name!r} that the iteration has set, which"
        raise _divided(unit, division, f"{what} is 0{_where(unit, relation, first)}", call)


def _where(unit: Workunit, relation: Relation, first: int) -> str:
    """The iteration in which a value is 0, if that depends on it."""
    depends = unit.indices and relation.indices[0] and relation.indices[0].terms
    return f" where {unit.indices[0].name} = {first}" if depends else ""


def _divided(unit: Workunit, division: Division, what: str, call: Call) -> DivisionError:
    place = f"{division.location}: " if division.location else ""
    return DivisionError(
        f"{place}an integer is divided by {what}; workunit {unit.name!r}"
        f"{quoted(division.location)}\n  called as {call.name!r} at {call.location}"
    )


def _first_zero(relation: Relation) -> int | None:
    """The least first index of the iterations where a division's divisor is 0; None: there is none,
    or isl gives up.
    """
    (divisor,) = relation.indices
    if divisor is None:
        return None
    low, high = divisor.span(relation.ranges)
    if low > 0 or high < 0:
        return None
    if not divisor.terms and relation.box:
        return relation.ranges[0][0]
    names = [f"p{n}" for n in range(len(relation.ranges))]
    variables, constraints = variables_of(relation, names)
    found = polyhedra.extremes(variables, [*constraints, f"{divisor.text(names)} = 0"])
    return found and found[0]


# --------------------------------------------------------------------------- races


class _Doubt(NamedTuple):
    message: str
    location: SourceLocation


def _doubts(call: CallShape) -> Iterator[_Doubt]:
    """For each place that writes, what another iteration does there."""
    if call.space.size < 2:
        return
    call = _in_last_pass(call)
    harmless = Harmless(call.workunit)
    unit = call.workunit
    crowded = [*_crowded(call, harmless), *_likely(unit, harmless), *_mixed(unit)]
    yield from crowded
    told = {doubt.location for doubt in crowded}
    for first, second in certain_races(call):
        location = first.location
        if location is None or location in told:
            continue
        if first.mode is not Mode.WRITE:
            if second.location is not None:
                told.add(location)
                yield _Doubt(_read_between(call.workunit, first), second.location)
            continue
        if harmless.pair(first, second):
            continue
        told.add(location)
        yield _Doubt(_message(call.workunit, first, second, harmless), location)


def _repeats(
    shape: CallShape, walk: Walk | None, call: Call, before: Sequence[Call]
) -> Iterator[_Doubt]:
    """Elements that several iterations change, as the subscripts in memory say."""
    unit = _in_last_pass(shape).workunit
    harmless = Harmless(unit)
    for repeat in repeats(walk, call, before) if walk is not None else ():
        change = repeat.change
        if change.location is None or harmless.meeting(change):
            continue
        why = f"as {repeat.first} and {repeat.second} are both {repeat.subscript}, "
        if isinstance(change, Store):
            message = (
                f"workunit {unit.name!r}: iterations write one element of {change.view.name!r}, "
                f"{why}so chance decides whose value stays"
            )
        else:
            message = _lost(unit, change.target.name, why)
        yield _Doubt(message, change.location)


def _in_last_pass(call: CallShape) -> CallShape:
    """The same call, where a scan's body is that of the pass that writes."""
    unit = call.workunit
    last = {nodes.Read(a.last_pass) for a in unit.accumulators if a.last_pass is not None}
    if not last:
        return call
    body: list[nodes.Stmt] = []
    for stmt in unit.body:
        body += stmt.then if isinstance(stmt, nodes.If) and stmt.condition in last else (stmt,)
    return call._replace(workunit=replace(unit, body=tuple(body)))


def _read_between(unit: Workunit, changed: Access) -> str:
    view = unit.params[changed.param].sym.name
    return (
        f"workunit {unit.name!r}: iterations read elements of {view!r} while others change them "
        "atomically, so chance decides how many changes are in: use what the change gives, as in "
        "k = pk.atomic_fetch_add(...)"
    )


def _crowded(call: CallShape, harmless: Harmless) -> Iterator[_Doubt]:
    """Changes of elements of a view that has fewer of them than there are iterations."""
    unit = call.workunit
    places = {param.sym: place for place, param in enumerate(unit.params) if param.rank}
    for stmt in unit.body:
        if not isinstance(stmt, nodes.Update) or stmt.atomic or stmt.location is None:
            continue
        if harmless.marks(stmt):
            continue
        region = call.arguments[places[stmt.target]] if stmt.target in places else None
        if not isinstance(region, RegionShape) or prod(region.shape) >= call.space.size:
            continue
        yield _Doubt(_lost(unit, stmt.target.name), stmt.location)


def _likely(unit: Workunit, harmless: Harmless) -> Iterator[_Doubt]:
    for stmt, loses in likely_races(unit, harmless.alone):
        if stmt.location is None:
            continue
        name = stmt.view.name if isinstance(stmt, Store) else stmt.target.name
        who = f"workunit {unit.name!r}: iterations may"
        if loses:
            message = (
                f"{who} change one element of {name!r} at the same time, so that changes get "
                "lost: use pk.atomic_add, pk.atomic_fetch_max and the like, or a parallel_reduce"
            )
        else:
            message = (
                f"{who} write one element of {name!r}, so chance decides whose value stays: "
                "pk.atomic_fetch_min and pk.atomic_fetch_max keep the least or the greatest"
            )
        yield _Doubt(f"{message}; PYFUSER_CHECK=races finds out whether they do", stmt.location)


def _mixed(unit: Workunit) -> Iterator[_Doubt]:
    """Plain changes of elements that the workunit also changes atomically, as iterations share
    them: those whose subscripts are elements, and single ones.
    """
    known = {param.sym for param in unit.params} - assigned(unit.body)
    atomic = {
        (stmt.target, stmt.indices)
        for stmt in statements(unit.body)
        if isinstance(stmt, nodes.Update) and stmt.atomic and stmt.target in known
    }
    for stmt in statements(unit.body):
        if isinstance(stmt, Store):
            place = stmt.view, stmt.indices
        elif isinstance(stmt, nodes.Update) and not stmt.atomic:
            place = stmt.target, stmt.indices
        else:
            continue
        if place not in atomic or stmt.location is None:
            continue
        from_data = any(loaded(as_written(index), unit) for index in stmt.indices)
        if from_data or all(is_fixed(index, known) for index in stmt.indices):
            message = (
                f"workunit {unit.name!r}: iterations write elements of {place[0].name!r} that "
                "others change atomically, so that changes get lost: make all changes atomic, and "
                "decide by what they give, as in k = pk.atomic_fetch_add(...)"
            )
            yield _Doubt(message, stmt.location)


def _lost(unit: Workunit, view: str, why: str = "") -> str:
    return (
        f"workunit {unit.name!r}: iterations change one element of {view!r} at the same time, "
        f"{why}so that changes get lost: use pk.atomic_add and the like, or a parallel_reduce"
    )


def _message(unit: Workunit, first: Access, second: Access, harmless: Harmless) -> str:
    view = unit.params[first.param].sym.name
    other = unit.params[second.param].sym.name
    who = f"workunit {unit.name!r}: iterations"
    if harmless.updates(first) and second.location == first.location:
        return _lost(unit, view)
    apart = "" if second.location == first.location else f" (line {_line(second)})"
    if second.mode is Mode.READ:
        alias = "" if other == view else f" as {other!r}"
        return (
            f"{who} write elements of {view!r} that others read{alias}{apart}, so chance decides "
            "whether they read the old value or the new one: write to a second view"
        )
    return (
        f"{who} write one element of {view!r}{apart}, so chance decides whose value stays: "
        "write to an element of each iteration's own, or use a parallel_reduce"
    )


def _line(access: Access) -> int:
    return access.location.line if access.location else 0
