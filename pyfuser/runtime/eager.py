"""One call, launched now and alone: what an untraced call costs is this file.

The kernel is compiled for the call's shape, as a trace's is. Computing a shape takes longer than
launching a tiny kernel, so a cheaper key stands in for it while no arguments overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from pyfuser.analysis.affine import Affine, Interval, variable
from pyfuser.analysis.conditions import conditions, hold, numbers_of
from pyfuser.analysis.inside import subscripts_of, surely_inside
from pyfuser.analysis.layout import is_injective
from pyfuser.analysis.mistakes import refuse_mistakes
from pyfuser.analysis.structural import structural_scalars
from pyfuser.engine import native
from pyfuser.engine.bounds import place_division
from pyfuser.engine.engine import Launchable, prepare_one
from pyfuser.ir.divisions import scalar_divisors
from pyfuser.ir.effects import measured_views
from pyfuser.ir.nodes import Workunit
from pyfuser.runtime.looked import between_looks, look_at, was_looked_at
from pyfuser.runtime.shared_code import SharedCode
from pyfuser.support import signals
from pyfuser.support.caches import Table
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import ArgumentError, DivisionError
from pyfuser.trace.call import GPU_SPACES, Argument, Call, Space, buffers_of
from pyfuser.trace.future import Future
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import USE, changed_on_host, give_to_host
from pyfuser.trace.memory import Buffer, Region
from pyfuser.trace.shape import ArgumentShape, ClusterShape, RegionShape, shape_of
from pyfuser.transform.early_loads import needed
from pyfuser.transform.fuse import fuse
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Axes, Kernel
from pyfuser.transform.overwrites import box_of, holds_box, mark_overwrites
from pyfuser.tuning.thresholds import NOW

MAX_KERNELS = 1024

WIDEST = (1 << 30, 1 << 24, 1 << 20, 1 << 15)
"""Greatest numbers of a call that an entry is tried to serve. In wide ranges more subscripts may
wrap, and where one may the next range is tried."""

MANY = 4
"""Values of a scalar after which it counts as one that changes."""


class _Ready:
    """What has been compiled for one workunit, by key or by shape.

    codes: what was compiled, with the workunit after all passes, by what decides the code: calls
    that differ in numbers share it. values: those of scalars that matter, MANY and one at most.
    families: what serves calls of other numbers, by all else that decides the code. subscripts:
    what tells that a call has no mistake; None if nothing quick does.
    """

    __slots__ = (
        "codes", "divisors", "families", "known", "matters", "measured", "subscripts", "values",
        "workunit",
    )  # fmt: skip

    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit  # keeps its id() from being reused
        self.matters = structural_scalars(workunit)
        self.measured = measured_views(workunit)
        self.divisors, _ = scalar_divisors(workunit)
        self.known: dict[Any, tuple[Kernel, Launchable]] = {}
        self.codes: dict[Any, tuple[Workunit, Launchable]] = {}
        self.families: dict[Any, SharedCode] = {}
        self.values: dict[int, set[Any]] = {place: set() for place in self.matters}
        self.subscripts = subscripts_of(workunit)

    def changing(self, arguments: Sequence[Argument]) -> frozenset[int]:
        """The places of scalars that change, these arguments included."""
        for place, values in self.values.items():
            if len(values) <= MANY:
                values.add(arguments[place])
        return frozenset([place for place, values in self.values.items() if len(values) > MANY])


class Placed(NamedTuple):
    """The key of a call whose views overlap."""

    space: Space
    arguments: tuple[ArgumentShape, ...]
    clusters: tuple[ClusterShape, ...]


#: By id() of the workunit.
READY: Table[int, _Ready] = Table("calls that run alone", MAX_KERNELS, tuned=True)
CHECKED: Table[int, _Ready] = Table(
    "calls that run alone, with bounds checks", MAX_KERNELS, tuned=True
)


def run(call: Call, checked: bool = False, ran: Ran | None = None) -> None:
    """Launch one call now, unfused; its `result` is set afterwards.

    checked: test subscripts and divisors; raises BoundsError at the first that is outside. Raises
    DivisionError for an integer that is divided by 0 (if it is not checked, in the end). ran: see
    `make_run`.
    """
    kernel, launchable, arguments = _code_for(call, checked)
    if len(kernel.slots) != len(arguments):
        arguments = [arguments[slot.argument] for slot in kernel.slots]
    fresh: list[Buffer] = []
    for place, axes in zip(kernel.overwrites, kernel.along, strict=True):
        _allocate(arguments[place], axes, launchable, call, fresh)
    try:
        values = launchable.run(call.space, arguments, ran)
    except DivisionError as error:
        if not checked:
            place_division(error, (call,))
            error.ran = True
            if call.result is not None:
                call.result.fail(DivisionError(str(error)))
        raise
    except (ArgumentError, MemoryError, OverflowError):  # it has not run: what it overwrites, ...
        for buffer in fresh:  # ... is not zeroed
            buffer.root = buffer.image = None
        raise
    COUNTERS.launches += 1
    if call.result is not None:
        call.result.give(values[0])
    if USE.devices:
        buffers = buffers_of((call,))
        if not launchable.on_device:
            changed_on_host(*buffers)
        give_to_host(buffers)


def _code_for(call: Call, checked: bool) -> tuple[Kernel, Launchable, list[Argument]]:
    """What runs a call, prepared if need be, and its arguments with Futures known."""
    workunits = CHECKED if checked else READY
    ready = workunits.get(id(call.workunit)) or workunits.keep(
        id(call.workunit), _Ready(call.workunit)
    )
    key, arguments = _key(call, ready)
    found = ready.known.get(key) or _prepare(call, arguments, ready, key, checked)
    return *found, arguments


def code_for(call: Call) -> tuple[Kernel, Launchable]:
    """What `run` would launch for a call, none of whose arguments is a Future that has to run."""
    return _code_for(call, False)[:2]


def has_code(workunit: Workunit) -> bool:
    """Whether calls of a workunit have run."""
    ready = READY.get(id(workunit))
    return ready is not None and bool(ready.known)


def known(call: Call) -> tuple[Kernel, Launchable] | None:
    """What `run` has for a call, if it has run one of its shape."""
    ready = READY.get(id(call.workunit))
    return None if ready is None else ready.known.get(_key(call, ready)[0])


Served: TypeAlias = tuple[Kernel, Launchable, list[Affine]]


def served(call: Call) -> Served | None:
    """What `run` has for a call, and conditions on its numbers under which it is right.

    These are functions of `conditions.numbers_of` that are at least 0; all else is as in this call.
    """
    ready = READY.get(id(call.workunit))
    if ready is None:
        return None
    key, arguments = _key(call, ready)
    numbers = numbers_of(call.space, arguments, sorted(ready.matters))
    if type(key) is not Placed:
        changing = ready.changing(arguments)
        family = ready.families.get(_family(call, arguments, ready, changing))
        rows = family and _conditions(family, call, arguments, ready, changing, numbers)
        if family is not None and rows:
            return family.kernel, family.launchable, rows
    found = ready.known.get(key)
    return None if found is None else (*found, _only(numbers))


def _only(numbers: Sequence[int]) -> list[Affine]:
    """What holds for these numbers alone."""
    known = [variable(n).shifted(-number) for n, number in enumerate(numbers)]
    return [row.times(sign) for row in known for sign in (1, -1)]


# law: not None
def _conditions(
    family: SharedCode,
    call: Call,
    arguments: Sequence[Any],
    ready: _Ready,
    changing: frozenset[int],
    numbers: Sequence[int],
) -> list[Affine] | None:
    """Conditions under which calls have no mistake and a family's code is right for them.

    What it overwrites is inside, as all subscripts are. None: there are none that this call meets.
    """
    if ready.subscripts is None or not family.fits(arguments):
        return None
    rank, places = len(call.space.begin), sorted(ready.matters)
    facts = _facts(arguments)
    for widest in WIDEST:
        box = _box(family, places, changing, numbers, widest)
        box = box and between_looks(ready.workunit, call.space, facts, places, box)
        rows = box and conditions(ready.subscripts, rank, facts, places, box)
        if rows:
            rows += _sized(call.space)
            if hold(rows, numbers):
                return rows
    return None


# law: not None
def _box(
    family: SharedCode,
    places: Sequence[int],
    changing: frozenset[int],
    numbers: Sequence[int],
    widest: int,
) -> list[Interval] | None:
    """A range of each number of a call; the proof of a family's code covers all of them."""
    kernel, unit = family.kernel, family.kernel.workunit
    proof = dict(family.proof.ranges)
    box = []
    for sym in unit.indices:
        low, high = proof.pop(sym, (0, widest))
        box += [(max(low, 0), min(high, widest))] * 2
    params = {slot.argument: p.sym for p, slot in zip(unit.params, kernel.slots, strict=True)}
    for place, number in zip(places, numbers[len(box) :], strict=True):
        low, high = proof.pop(params[place], (-widest, widest))
        if place not in changing:
            low, high = max(low, number), min(high, number)
        box.append((max(low, -widest), min(high, widest)))
    return None if proof else box


# law
def _sized(space: Space) -> list[Affine]:
    """Conditions under which a space is no less than empty and has the `_sizes` of this one."""
    sizes = _sizes(space) or [None] * len(space.begin)
    rows = []
    for axis, bits in enumerate(sizes):
        extent = variable(2 * axis + 1).plus(variable(2 * axis), -1)
        least = 0 if not bits else 1 << bits - 1
        rows.append(extent.shifted(-least))
        if bits is not None:
            rows.append(extent.times(-1).shifted((1 << bits) - 1))
    return rows


def _allocate(
    region: Argument, axes: Axes, launchable: Launchable, call: Call, fresh: list[Buffer]
) -> None:
    """Make memory that the call overwrites, if there is none yet, and add it to `fresh`."""
    assert isinstance(region, Region)
    if not region.buffer.allocated:
        launchable.allocate(region, box_of(axes, call.space, region.shape))
        fresh.append(region.buffer)


def _prepare(
    call: Call, arguments: list[Argument], ready: _Ready, key: Any, checked: bool
) -> tuple[Kernel, Launchable]:
    if len(ready.known) >= NOW.running.shapes_of_workunit:
        ready.known.clear()
    if checked:  # as it was written: what `specialise` proves presumes that indices are inside
        kernel = fuse(GroupShape(shape_of((call,), structural_scalars).calls))
        found: tuple[Kernel, Launchable] = kernel, native.prepare_checked(kernel, call.workunit)
    else:
        changing = ready.changing(arguments)
        looked_at = was_looked_at(ready.workunit, call.space, _facts(arguments))
        inside = looked_at and _is_inside(call, arguments, ready)
        family = _family(call, arguments, ready, changing) if type(key) is not Placed else None
        known = ready.families.get(family) if inside and family is not None else None
        if known is not None and _serves(known, call, arguments):
            found = known[:2]
        else:
            with signals.handled_later():
                found = _prepare_new(call, ready, changing, family, inside, not looked_at)
                if not inside:
                    look_at(ready.workunit, call.space, _facts(arguments))
    ready.known[key] = found
    return found


def _prepare_new(
    call: Call, ready: _Ready, changing: frozenset[int], family: Any, inside: bool, warns: bool
) -> tuple[Kernel, Launchable]:
    from pyfuser.pipeline import for_c, for_changing

    shape = shape_of((call,), structural_scalars)
    if not inside:
        refuse_mistakes(shape.calls[0], call, warns=warns)
    kernel = mark_overwrites(fuse(GroupShape(shape.calls)), changing)
    if call.space.execution in GPU_SPACES:
        return kernel, prepare_one(for_c(kernel))
    final, proof = for_changing(kernel, changing)
    launchable = _code(final, ready)
    if proof is not None and family is not None and len(ready.families) < MAX_KERNELS:
        least = [(slot.argument, extents) for slot, extents in needed(final) or ()]
        ready.families[family] = SharedCode(kernel, launchable, proof, tuple(least))
    return kernel, launchable


def _is_inside(call: Call, arguments: Sequence[Any], ready: _Ready) -> bool:
    if ready.subscripts is None:
        return False
    return surely_inside(ready.subscripts, call.space, _facts(arguments), ready.matters)


def _facts(arguments: Sequence[Any]) -> list[Any]:
    """What decides whether subscripts are inside: the shapes of views, and numbers."""
    return [a.shape if type(a) is Region else a for a in arguments]


# law: not None
def _family(
    call: Call, arguments: Sequence[Argument], ready: _Ready, changing: frozenset[int]
) -> Any:
    """What decides the code of a call whose views do not overlap, but for the numbers that change.

    None: it has a view that overlaps itself. Equal views are one Region.
    """
    space = call.space
    key: list[Any] = [changing, space.execution, len(space.begin), _sizes(space)]
    first: dict[int, int] = {}
    for n, argument in enumerate(arguments):
        if type(argument) is Region:
            _, _, strides, shape, dtype = argument
            if not is_injective(strides, shape, dtype.size):
                return None
            key += strides, first.setdefault(id(argument), n)
            if n in ready.measured:
                key.append(shape)
        elif n in ready.matters and n not in changing:
            key.append(argument)
    return tuple(key)


# law: True
def _serves(family: SharedCode, call: Call, arguments: Sequence[Any]) -> bool:
    """Whether a family's code is right for a call: its proof covers the numbers of the call, and
    what the code overwrites is inside the views.
    """
    kernel, space = family.kernel, call.space
    unit = kernel.workunit
    ranges = {
        sym: (low, max(low, high - 1))
        for sym, low, high in zip(unit.indices, space.begin, space.end, strict=True)
    }
    for param, slot in zip(unit.params, kernel.slots, strict=True):
        if param.sym in family.proof.ranges:
            ranges[param.sym] = (int(arguments[slot.argument]),) * 2
    ranges = {sym: known for sym, known in ranges.items() if sym in family.proof.ranges}
    return (
        family.proof.covers(ranges)
        and family.fits(arguments)
        and all(
            holds_box(arguments[kernel.slots[place].argument].shape, space, axes)
            for place, axes in zip(kernel.overwrites, kernel.along, strict=True)
        )
    )


def _sizes(space: Space) -> tuple[int, ...]:
    """What the order of loops may depend on."""
    return tuple([n.bit_length() for n in space.shape]) if len(space.begin) > 1 else ()


# law
def _code(final: Kernel, ready: _Ready) -> Launchable:
    """The code of a kernel after all passes.

    It depends on the workunit, how views are laid out and which overlap, who runs it, and how large
    tables are of which threads have copies; the order of its loops depends on sizes, too, but for
    speed: that of sizes that are alike is as good.
    """
    space = final.space
    layouts = [(s.strides, s.dtype) for s in final.shapes if isinstance(s, RegionShape)]
    key = (
        id(final.workunit), _sizes(space), space.execution, final.overlaps, tuple(layouts),
        final.tables,
    )  # fmt: skip
    known = ready.codes.get(key)
    if known is None:
        if len(ready.codes) >= MAX_KERNELS:
            ready.codes.clear()
        known = ready.codes[key] = final.workunit, prepare_one(final)
    return known[1]


def _key(call: Call, ready: _Ready) -> tuple[Any, list[Argument]]:
    """A key that is equal only for calls of equal shape, and the arguments with Futures known."""
    key: list[Any] = [call.space]
    arguments = list(call.arguments)
    spans = []
    first: dict[int, int] = {}  # id() of a region -> its place: Views pass one region again
    for n, argument in enumerate(arguments):
        if type(argument) is Region:
            place = first.setdefault(id(argument), n)
            if place != n:
                key.append(place)
                continue
            buffer, _, strides, shape, _ = argument
            key.append(strides)
            key.append(shape)
            if buffer.external:
                low, high = argument.bounds()
                spans.append((buffer.address + low, buffer.address + high))
            else:  # its whole memory, under a number that is no address
                spans.append((-id(buffer), -id(buffer) + 1))
            continue
        if isinstance(argument, Future):
            argument = arguments[n] = argument.result()
        if n in ready.matters:
            key.append(argument)
        elif n in ready.divisors and not argument:
            key.append(~n)  # to be looked at
    if len(spans) > 1:
        spans.sort()
        end = spans[0][1]
        for low, high in spans[1:]:
            if low < end:
                return _overlapping(call), arguments
            end = high
    return tuple(key), arguments


# law
def _overlapping(call: Call) -> Placed:
    """What decides the code of a call whose views overlap: all but where its memory begins."""
    trace = shape_of((call,), structural_scalars)
    first: dict[int, int] = {}
    shapes = [
        shape._replace(offset=shape.offset - first.setdefault(shape.cluster, shape.offset))
        if isinstance(shape, RegionShape)
        else shape
        for shape in trace.calls[0].arguments
    ]
    return Placed(call.space, tuple(shapes), trace.clusters)
