"""Loop nests: what the compiler decided about a kernel's loops, as data.

A nest is made of the nodes of the ir (see `ir.nodes`) and of those below. Passes make nests of
nests; printers write them down and decide nothing.

Grammar::

    sweep     = SweepNest(spec, nests, stages)
    nest      = Nest(workunit, counters, order, ..., functions)
    function  = Function(name, low, high, params, body, result)
                                                  of a box of the space, of 64-bit integers, or both
    stmt      = ...                               those of the ir
              | Over(low, high, body)             the body for each iteration of a box
              | Loop(sym, start, stop, step, body, shared, kind)
              | Run(function, low, high)          runs a function over a box
              | Ask(sym, function, arguments)     let sym be the result of a function
              | Give(place, value)                a result of the kernel
              | Scan(function, low, high, tile, ..)  the result of a scan, whose passes over a tile
                                                  a function makes
              | TiledSums(low, high, terms, ..)   the results of sums over a box, whose terms a
                                                  function computes
              | Trimmed(first, count, ..)         runs a function for terms over iterations but
                                                  those at the ends, and another one for these
              | NoVectors()                       the loop around it makes none
              | Note(counters)                    a mistake from here on is one of this iteration
              | Scope(body)                       what is declared in the body is seen nowhere else
              | Alloc(sym, length)                an array, which has no values yet
              | Row(sym, array, start, length)    so many elements of an array, from a place on
              | Clear(sym, length)                an array's elements become 0
              | Prefetch(load, ahead, writes)     memory is asked for so many elements after one
              | OrderedSum(loop, sums, trip, ..)  a loop whose additions to `sums` have an order of
                                                  their own if its trips are many
              | RunningSums(body, sums, terms, ..)  what the body leaves in `terms` is added to
                                                  `sums`, again and again
              | ...                               those of `nest.threads`

Rules that `verify` holds, besides those of the ir:

* The last function is the one that is called from outside, over all of a box of the space; of a
  GPU's, all are, one after the other. Only a function may be run or asked that stands before: there
  is no recursion.
* An Over binds the indices of the workunit. Its iterations are unordered, but in a serial nest,
  where they run in the order of the axes. Nests of scans are serial, and those of accumulators that
  are not only added to.
* A Loop binds a 64-bit counter. `shared` says, as in the ir, that every order of its trips is
  right.
* A Declare without a value makes it 0.
* Scopes are lexical: a Sym may be declared again where its first declaration is not visible, and by
  a For, after which the first is not used.
* The parameters of the workunit are visible in all functions. Nothing else is shared between them,
  but accumulators that are the `sums` of a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import Enum

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Body,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Extra,
    For,
    If,
    Read,
    Stmt,
    Sym,
    Update,
    Workunit,
)
from pyfuser.nest.launch import Launch
from pyfuser.nest.segments import Fresh, Segment
from pyfuser.nest.shares import Shares
from pyfuser.nest.spec import KernelSpec, SweepSpec, ViewSpec
from pyfuser.support.records import dataclass


class Kind(Enum):
    """How the trips of a loop run.

    SEQ: one after the other. VECTOR: side by side, in the lanes of vectors, if they can be: no two
    of their views overlap, of which compilers know nothing else.
    GRID_X to GRID_Z: by the threads of a GPU's grid along one of its dimensions; BLOCKS: by blocks;
    BLOCK: by the threads of a block; GROUPS: by groups of them; LANES: by the lanes of a group.
    Each of them takes trips that are as far apart as there are such.
    """

    SEQ = "seq"
    VECTOR = "vector"
    GRID_X = "grid x"
    GRID_Y = "grid y"
    GRID_Z = "grid z"
    BLOCKS = "blocks"
    BLOCK = "block"
    GROUPS = "groups"
    LANES = "lanes"


@dataclass(frozen=True, slots=True)
class Over(Extra):
    low: tuple[Expr, ...]
    high: tuple[Expr, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class Loop(For):
    kind: Kind = Kind.SEQ


@dataclass(frozen=True, slots=True)
class Run(Extra):
    function: str
    low: tuple[Expr, ...]
    high: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Ask(Extra):
    sym: Sym
    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Give(Extra):
    place: int
    value: Expr


@dataclass(frozen=True, slots=True)
class Scan(Extra):
    """Two passes over tiles, as Kokkos makes them: their totals, then, from these, the last pass.

    function: of a box, of the sum that it continues, and of whether it makes the last pass. tile:
    iterations, 0 if one last pass does it all. single: whether that may do it in any case. at_once:
    whether a tile's last pass may come before the first pass over other tiles.
    """

    function: str
    low: Expr
    high: Expr
    tile: int = 0
    single: bool = True
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class TiledSums(Extra):
    """The sums over a box, added up in an order that depends on the box alone.

    Each tile has running sums, which take the terms of so many iterations (`block`) at a time; its
    lanes are added up at its end, and the tiles' sums in turn. terms: the function that computes
    the terms of some iterations of a row, of each accumulator into one of the `arrays`. most: where
    it is not 0, RUN runs in place of full blocks, over so many iterations at most, a multiple of
    `lanes`. flat: whether
    tiles are those of one axis: parts of rows, and several rows. inline: whether all code that adds
    up a block is compiled where it stands.
    """

    low: tuple[Expr, ...]
    high: tuple[Expr, ...]
    terms: str
    arrays: tuple[Sym, ...]
    block: int
    most: int
    lanes: int
    flat: bool
    inline: bool


RUN = "pf_run"
"""The function that adds the terms of a run of iterations to running sums."""

LANES = 32
"""Terms of 8 bytes that running sums take in one go."""


@dataclass(frozen=True, slots=True)
class Trimmed(Extra):
    """Terms of iterations that are `inside`, all of them or all but 1, 2, 4 ... at either end.

    arrays, others: what the functions take after the first iteration and the number of them.
    widest: the most at an end; beyond that all run as those around.
    """

    first: Expr
    count: Expr
    arrays: tuple[Sym, ...]
    others: tuple[Expr, ...]
    inside: str
    middle: str
    around: str
    widest: int


@dataclass(frozen=True, slots=True)
class NoVectors(Extra):
    """Changes nothing, and is the last statement of a loop's body."""


@dataclass(frozen=True, slots=True)
class Note(Extra):
    counters: tuple[Sym, ...]


@dataclass(frozen=True, slots=True)
class Scope(Extra):
    body: Body


@dataclass(frozen=True, slots=True)
class Alloc(Extra):
    sym: Sym
    length: int


@dataclass(frozen=True, slots=True)
class Row(Extra):
    sym: Sym
    array: Sym
    start: Expr
    length: int


@dataclass(frozen=True, slots=True)
class Clear(Extra):
    sym: Sym
    length: int


@dataclass(frozen=True, slots=True)
class Prefetch(Extra):
    """Changes nothing; its element may lie outside of the view."""

    load: Expr
    ahead: int
    writes: bool


@dataclass(frozen=True, slots=True)
class OrderedSum(Extra):
    """The fixed tree of additions: the one thing that may not be re-ordered.

    body: the loop as it was written, which adds in order: for less than so many trips (`fewest`).
    trip: what a trip of a longer one does, with `terms` in place of the sums. bounds: locals for
    those of the loop. rows: the running sums. block: terms that are computed before they are added;
    0 if each is added at once, to one of several running sums. straight: whether
    g++ has to be kept from rearranging branches.
    """

    body: Body
    sums: tuple[Sym, ...]
    trip: Body
    terms: tuple[Sym, ...]
    bounds: tuple[Sym, Sym]
    rows: tuple[Sym, ...]
    block: int
    fewest: int
    straight: bool = False

    @property
    def loop(self) -> For:
        """The loop."""
        (loop,) = self.body
        assert isinstance(loop, For)
        return loop

    @property
    def meaning(self) -> Stmt:
        """The same in other statements, but for the order of additions."""
        first, last = map(Read, self.bounds)
        loop, zero = self.loop, [Const(0.0 if s.dtype.is_float else 0, s.dtype) for s in self.sums]
        trip = (*_locals(self.terms, zero), *self.trip, *added(self.rows, self.terms))
        of_trips = For(loop.sym, first, last, number(1), trip, shared=True)
        long = (*_locals(self.rows, zero), of_trips, *added(self.sums, self.rows))
        ends = (Declare(first.sym, wide(loop.start)), Declare(last.sym, wide(loop.stop)))
        many = Compare(">=", Binary("-", last, first), number(self.fewest))
        return Scope((*ends, If(many, long, self.body)))


@dataclass(frozen=True, slots=True)
class RunningSums(Extra):
    """Sums that stay in registers while terms are added to them, in lanes.

    body: computes so many (`lanes`) terms of each accumulator, from the iteration `sym` of `count`
    on. Each lane of a sum gets its terms in order; the lanes are added up later.
    """

    body: Body
    sums: tuple[Sym, ...]
    terms: tuple[Sym, ...]
    sym: Sym
    count: Expr
    lanes: int

    @property
    def allocs(self) -> Body:
        """The arrays of the terms."""
        return tuple(Alloc(array, self.lanes) for array in self.terms)


@dataclass(frozen=True, slots=True)
class Function:
    """Code that is compiled once and run over several boxes, or asked several times.

    result: of a function that is asked; the compiler makes it a part of who asks. arrays: which
    parameters are arrays. sums: the accumulators that it adds to. inline, once: whether it is
    compiled where it is run, and not apart for arguments that are known. straight: the headers that
    keep g++ from rearranging its branches. segments, passes: what the iterations of its box run in
    turn, and what was done to that.
    """

    name: str
    low: tuple[Sym, ...] = ()
    high: tuple[Sym, ...] = ()
    params: tuple[Sym, ...] = ()
    body: Body = ()
    result: Expr | None = None
    arrays: tuple[Sym, ...] = ()
    sums: tuple[Sym, ...] = ()
    inline: bool = False
    once: bool = False
    straight: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    passes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nest:
    """A kernel with its loops.

    serial: whether iterations run in order. counters: of the loops over the axes, 64 bits wide
    whatever an index is (which may be its own counter). fresh: makes Syms that no nest of the same
    kernel has. names: how Syms are called. passes: those that changed something. launch: how a GPU
    runs the functions, one after the other. shares: how a processor's threads share iterations,
    None if one thread runs all. rounded: whether products are rounded before they are added to,
    which g++ has to be told. doubled: whether exp and log take two vectors at a time.
    """

    spec: KernelSpec
    serial: bool
    counters: tuple[Sym, ...]
    fresh: Fresh = field(compare=False, repr=False)
    names: Mapping[Sym, str] = field(compare=False, repr=False)
    functions: tuple[Function, ...] = ()
    passes: tuple[str, ...] = ()
    launch: Launch | None = None
    shares: Shares | None = None
    rounded: bool = False
    doubled: bool = False

    @property
    def workunit(self) -> Workunit:
        """The kernel whose loops these are."""
        return self.spec.workunit

    @property
    def rank(self) -> int:
        """The number of dimensions of the iteration space."""
        return self.spec.rank

    @property
    def views(self) -> dict[Sym, ViewSpec]:
        """How each view is addressed."""
        return self.spec.views_by_name

    @property
    def overlapping(self) -> frozenset[Sym]:
        """The views that may overlap others."""
        return frozenset(sym for sym, view in self.views.items() if not view.restrict)

    def name(self, sym: Sym) -> str:
        """What a Sym is called, which names of Syms that stand for it begin with."""
        return self.names.get(sym) or sym.name

    def of(self, body: Body) -> Nest:
        """The same for another body, before any pass."""
        spec = replace(self.spec, workunit=replace(self.workunit, body=body))
        return replace(self, spec=spec, functions=(), passes=())


@dataclass(frozen=True, slots=True)
class SweepNest:
    """Loops that share a launch, each close behind the one before (see `plan.wavefront`).

    nests: of the loops that differ. stages: which of them come, in order. scan: the stage that is a
    scan, if one is: each of its tiles then goes through the stages before, its first pass, its last
    pass and the stages after. Else all move on step by step, at distances that the launch is told;
    a thread has a share of the steps, and keeps the terms of sums' tiles that lie across two.
    shared: whether there are several threads, if one is not enough.
    """

    spec: SweepSpec
    nests: tuple[Nest, ...]
    stages: tuple[int, ...]
    shared: bool = False

    @property
    def scan(self) -> int | None:
        """The place of the scan."""
        patterns = [self.nests[n].spec.pattern for n in self.stages]
        return patterns.index("scan") if "scan" in patterns else None


def number(value: int) -> Const:
    """A constant beside counters."""
    return Const(value, DType.INT64)


def _locals(syms: Sequence[Sym], values: Sequence[Expr]) -> Body:
    return tuple(Declare(sym, value) for sym, value in zip(syms, values, strict=True))


def added(syms: Sequence[Sym], terms: Sequence[Sym]) -> Body:
    """Terms are added to sums."""
    return tuple(Update("+", s, (), Read(term)) for s, term in zip(syms, terms, strict=True))


def wide(e: Expr) -> Expr:
    """An integer in 64 bits."""
    return e if e.dtype is DType.INT64 else Cast(e, DType.INT64)
