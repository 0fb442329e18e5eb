"""Which maps load and store 16 bytes at a time, and for which arguments: `plan`, `chooser`.

Such a map has a second entry point (`gpu.packed_map`), in which a thread takes a group of `lanes`
neighbouring iterations: it loads what all of them read, computes one after the other, and stores
what all of them wrote.

The law. In a group loads move before, and stores behind, the code of other iterations of the same
thread. Iterations of a parallel map are independent, so no order of them shows, as long as
1. nothing in the body makes it show (`ir.effects`: atomics, output, waiting);
2. a view that is written overlaps no other one, and all its accesses in an iteration are of one
   element, which is no other iteration's: each of its subscripts is an index of the space plus a
   constant, every index is there, and the rest does not vary. So x[i] beside x[i + 1] is refused;
3. what is stored as a vector is stored by every iteration: a vector's store has no holes;
4. what is loaded as a vector is loaded by every iteration on every way through the body: nothing is
   read that the program does not read.
No group is computed so that has an iteration outside of the space.

Other loads stay where they are: they are of views that are only read. But what a warp loads by
elements is spread by now, so every load along the axis has to be of a vector, or of the neighbour
of one, as in stencils: all but two elements of x[i - 1] and x[i + 1] are in the vector of x[i].

The proof of alignment. An element's number in memory (its address over its size) is, for the
iteration i along the axis, address / size + offset + i + rows of strides. If all strides are
multiples of the lanes, and address / size + offset is the same modulo the lanes for all vectors,
then all of them are aligned in the same iterations, wherever the space begins: these start groups.
Whether it is so only the arguments say: `chooser` tests them, for each launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyfuser.codegen.gpu.axis import axes_of
from pyfuser.codegen.gpu.context import Argument, gpu_arguments
from pyfuser.ir import nodes
from pyfuser.ir.accesses import ElementAccess, accesses, own_accesses
from pyfuser.ir.affine import linear
from pyfuser.ir.dtypes import DType
from pyfuser.ir.effects import effects
from pyfuser.ir.nodes import Body, Expr, Sym
from pyfuser.ir.visit import child_expressions, expressions, reads, statements
from pyfuser.nest.cost.vectorisable import unconditional
from pyfuser.nest.spec import UNIT, KernelSpec, ViewSpec
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

WIDEST = 4
"""The size of the largest elements that are loaded as vectors, in bytes; 0: none are.

A warp that loads 4 bytes a thread asks for 128 at a time. With 8 it is 256 already, and what is won
by 512 has to be measured (`experiments/gpu_timings.py` does).
"""

BYTES = 16
"""The largest vector: there are no wider loads on most processors."""

_SIMPLE = (nodes.Declare, nodes.Assign, nodes.Store, nodes.Update, nodes.If)
_INDEX = (nodes.Read, nodes.Const, nodes.Unary, nodes.Binary, nodes.Cast, nodes.Extent)
Place = tuple[Sym, tuple[Expr, ...]]
"""A view and its subscripts."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Neighbouring elements that a thread loads or stores at once.

    param: the position of the view in workunit.params. offset: of its last subscript, from the
    index. loaded, stored: before and behind the iterations of a group.
    """

    place: Place
    param: int
    offset: int
    loaded: bool
    stored: bool

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return self.place[0].dtype


@dataclass(frozen=True, slots=True)
class Plan:
    """How a map is vectorised; the first vector is a stored one. axis: of the space.

    beside: for loads that are not aligned the vector that the same row is loaded into, and how many
    elements farther they are.
    """

    axis: int
    lanes: int
    vectors: tuple[Vector, ...]
    beside: tuple[tuple[Place, Vector, int], ...]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The second entry point of a map, and when it may be launched: see `chooser`.

    lanes: iterations of a thread along the last axis of `GpuKernel.order`. pointers: the position
    in `GpuKernel.arguments`, the size of the elements, and the offset. strides: the positions of
    those that must be multiples of the lanes.
    """

    entry: str
    lanes: int
    pointers: tuple[tuple[int, int, int], ...]
    strides: tuple[int, ...]

    @property
    def needed(self) -> tuple[int, ...]:
        """The positions of the arguments that `chooser`'s function takes, ascending."""
        return tuple(sorted((*(position for position, _, _ in self.pointers), *self.strides)))


def chooser(vectors: Vectors) -> Callable[..., bool]:
    """The function that says for the arguments at `vectors.needed` whether all is aligned."""
    first, *others = (
        f"((v{position} >> {size.bit_length() - 1}) + {offset})"
        for position, size, offset in vectors.pointers
    )
    bits = [f"({first} ^ {other})" for other in others]
    bits += [f"v{position}" for position in vectors.strides]
    names = ", ".join(f"v{position}" for position in vectors.needed)
    text = f"lambda {names}: not ({' | '.join(bits) or '0'}) & {vectors.lanes - 1}"
    function: Callable[..., bool] = eval(text)
    return function


def of_plan(spec: KernelSpec, found: Plan, entry: str) -> Vectors:
    """What a launch has to know of a plan."""
    arguments = gpu_arguments(spec)
    firsts = {vector.param: vector for vector in reversed(found.vectors)}  # others suit, too
    views = [view for view in map(spec.views.__getitem__, firsts) if view is not None]
    classes = {stride for view in views for stride in view.strides if stride != UNIT}
    return Vectors(
        entry=entry,
        lanes=found.lanes,
        pointers=tuple(
            (arguments.index(Argument("pointer", v.dtype, v.param)), v.dtype.size, v.offset)
            for v in firsts.values()
        ),
        strides=tuple(
            position
            for position, argument in enumerate(arguments)
            if argument.kind == "stride" and _stride_class(spec, argument) in classes
        ),
    )


def _stride_class(spec: KernelSpec, argument: Argument) -> int:
    view = spec.views[argument.param]
    assert view is not None
    return view.strides[argument.axis]


# --------------------------------------------------------------------------- the plan


def plan(spec: KernelSpec, widest: int) -> Plan | str:
    """How to vectorise a map with elements of at most `widest` bytes, or why not."""
    workunit = spec.workunit
    if spec.pattern != "for" or spec.serial or workunit.accumulators:
        return "not a map of many threads"
    if left_out("packed"):
        return "packed is left out"
    if effects(workunit).observable:
        return "the order of its iterations would show"
    if not all(isinstance(stmt, _SIMPLE) for stmt in statements(workunit.body)):
        return "loops or arrays in an iteration"
    axis = axes_of(spec)[-1]
    if workunit.indices[axis].dtype is not DType.INT64:
        return "an index that may wrap"
    found = _Accesses(spec, workunit.indices[axis])
    return found.why or found.plan(axis, widest)


class _Accesses:
    """The accesses of a body by view, or why they are not as they must be."""

    def __init__(self, spec: KernelSpec, x: Sym) -> None:
        self.workunit = spec.workunit
        self.x = x
        self.views: Mapping[Sym, tuple[int, ViewSpec]] = {
            param.sym: (n, view)
            for n, (param, view) in enumerate(zip(spec.workunit.params, spec.views, strict=True))
            if view is not None
        }
        self.names = dict(zip(self.views, _names_of_views(spec), strict=True))
        self.places = {access[:2] for access in accesses(spec.workunit.body)}
        self.always = frozenset(_always(spec.workunit.body))
        self.read: dict[Place, int] = {}  # by place, those along the axis: the offset
        self.written: dict[Place, int] = {}
        self.why = next(filter(None, map(self._refused, accesses(spec.workunit.body))), "")

    def _refused(self, access: ElementAccess) -> str:
        """Note an access; why there can be no vectors beside it, or ""."""
        sym, indices = place = access[:2]
        _, view = self.views[sym]
        if not all(map(self._known, indices)):
            return f"{self.names[sym]}: subscripts that depend on data"
        offset = None
        for index, stride in zip(indices, view.strides, strict=True):
            if not _mentions(index, self.x):
                continue
            shifted = _shifted(index)
            if stride != UNIT or shifted is None:
                return f"{self.names[sym]}: neighbours in the space are not neighbours in memory"
            _, offset = shifted
        if view.written:
            return self._note_written(place, view, offset)
        if offset is not None:
            self.read[place] = offset
        return ""

    def _note_written(self, place: Place, view: ViewSpec, offset: int | None) -> str:
        sym, indices = place
        if not view.restrict:
            return f"{self.names[sym]}: may overlap another view"
        if any(other == sym and at != indices for other, at in self.places):
            return f"{self.names[sym]}: an iteration reaches several elements of it"
        if offset is None or not self._own(indices):
            return f"{self.names[sym]}: several iterations may reach one element of it"
        own = (access for stmt in self.workunit.body for access in own_accesses(stmt))
        if not any(access.writes and access[:2] == place for access in own):
            return f"{self.names[sym]}: not every iteration stores to it"
        self.written[place] = offset
        return ""

    def _known(self, index: Expr) -> bool:
        """Whether a subscript is made of indices, scalar arguments and constants alone."""
        syms = {*self.workunit.indices, *(p.sym for p in self.workunit.params if not p.rank)}
        return all(
            isinstance(e, _INDEX) and (not isinstance(e, nodes.Read) or e.sym in syms)
            for e in expressions(index)
        )

    def _own(self, indices: tuple[Expr, ...]) -> bool:
        """Whether no other iteration has an element of these subscripts."""
        space = self.workunit.indices
        found: list[Sym] = []
        for index in indices:
            shifted = _shifted(index)
            if shifted is not None and shifted[0] in space:
                found.append(shifted[0])
            elif any(_mentions(index, sym) for sym in space):
                return False
        return len(found) == len(space) and set(found) == set(space)

    def plan(self, axis: int, widest: int) -> Plan | str:
        """The vectors: all stores, and the loads that are aligned where these are."""
        if not self.written:
            return "nothing is written"
        sizes = [sym.dtype.size for sym, _ in (*self.written, *self.read)]
        lanes = BYTES // max(sizes)
        if max(sizes) > widest or lanes < 2:
            return f"elements of {max(sizes)} bytes"
        phases = {offset % lanes for offset in self.written.values()}
        if len(phases) > 1:
            return "stores at different offsets"
        phase = phases.pop()
        stored = [
            Vector(place, self.views[place[0]][0], offset, self._reads_first(place), True)
            for place, offset in self.written.items()
        ]
        loaded = [
            Vector(place, self.views[place[0]][0], offset, True, False)
            for place, offset in self.read.items()
            if offset % lanes == phase and place in self.always
        ]
        beside = []
        for place, offset in self.read.items():
            apart = {v: offset - v.offset for v in loaded if self._row(v.place) == self._row(place)}
            nearest = min(apart, key=lambda v: abs(apart[v]), default=None)
            if nearest is None or abs(apart[nearest]) >= lanes:
                return f"{self.names[place[0]]}: a load that is not aligned where the stores are"
            if place != nearest.place:
                beside.append((place, nearest, apart[nearest]))
        return Plan(axis, lanes, (*stored, *loaded), tuple(beside))

    def _row(self, place: Place) -> tuple[Sym, tuple[Expr, ...]]:
        """The view and its subscripts but the one along the axis."""
        sym, indices = place
        unit = self.views[sym][1].unit_axis
        return sym, tuple(index for n, index in enumerate(indices) if n != unit)

    def _reads_first(self, place: Place) -> bool:
        """Whether an element may be read, or left as it was, before it is overwritten."""
        for stmt in self.workunit.body:
            mine = list(accesses((stmt,), place[0]))
            if mine and isinstance(stmt, nodes.If):
                return True
            if any(access.reads and access.indices == place[1] for access in mine):
                return True
            if any(access.writes and access.indices == place[1] for access in mine):
                return False
        return True


def _names_of_views(spec: KernelSpec) -> list[str]:
    names = zip(spec.names_of_params(), spec.views, strict=True)
    return [name for name, view in names if view is not None]


def _always(body: Body) -> Iterator[Place]:
    """What every iteration loads."""
    for stmt in body:
        for child in child_expressions(stmt):
            for e in unconditional(child):
                if isinstance(e, nodes.Load):
                    yield e.view, e.indices


def _mentions(e: Expr, sym: Sym) -> bool:
    return sym in reads(e)


def _shifted(e: Expr) -> tuple[Sym, int] | None:
    """A variable and a constant whose sum in 64 bits an expression is."""
    form = linear(e)
    match [*form.terms.items()]:
        case [(nodes.Read(sym=sym), 1)] if e.dtype is DType.INT64 or not form.constant:
            return sym, form.constant
    return None
