"""The rules of nests as a program: what `nest.nodes` promises, checked."""

from __future__ import annotations

from pyfuser.ir import verify as ir_verify
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    AtomicFetch,
    Break,
    Const,
    Declare,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Sym,
    Update,
    While,
)
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import expressions, statements, sym_of
from pyfuser.nest import nodes, threads
from pyfuser.nest.nodes import RUN, Function, Kind, Nest, SweepNest
from pyfuser.nest.printer import show


def verify(nest: Nest) -> None:
    """Check every rule of `nest.nodes`.

    Raises IRError with the rule, the node and the whole nest.
    """
    try:
        _Verifier(nest).run()
    except IRError as error:
        raise IRError(f"{error}\n{show(nest)}") from None


_AROUND = {Kind.BLOCK: Kind.BLOCK, Kind.GROUPS: Kind.BLOCK, Kind.LANES: Kind.LANES}
"""The crew whose trips such a loop's are."""
_IN_STEP = {Kind.BLOCKS: Kind.BLOCK, Kind.GROUPS: Kind.LANES}
"""The crew that runs a trip of such a loop in step; of all others, one thread does."""

_TOGETHER = (threads.Share, threads.One, threads.Alone, threads.Barrier)


def verify_sweep(sweep: SweepNest) -> None:
    """Check every loop, and that they can share a launch."""
    for nest in sweep.nests:
        verify(nest)
    stages = [sweep.nests[n] for n in sweep.stages]
    scans = [nest for nest in stages if nest.spec.pattern == "scan"]
    sums = [nest for nest in stages if nest not in scans and nest.workunit.accumulators]
    if scans and (len(scans) > 1 or sums or sweep.spec.rolling):
        raise IRError("only maps go with a scan, of which views are kept whole")
    if not all(isinstance(nest.functions[-1].body[0], nodes.TiledSums) for nest in sums):
        raise IRError("sums of a sweep are tiled")
    for loop, param in (at for view in sweep.spec.rolling for at in view):
        if not stages[loop].workunit.params[param].rank:
            raise IRError("only a view rolls")


class _Verifier(ir_verify.Verifier):
    def __init__(self, nest: Nest) -> None:
        super().__init__(nest.workunit)
        self.nest = nest
        self.functions: dict[str, Function] = {}
        self.crew: Kind | None = None  # who runs code in step

    def run(self) -> None:
        w = self.nest.workunit
        self.sums = tuple(a.sym for a in w.accumulators)
        for param in w.params:
            self.declare(param.sym, param.rank)
        self.constant = set(self.ranks)
        if not self.nest.functions:
            self.fail("a nest has a function")
        for f in self.nest.functions:
            self.function(f)
        self.shares()

    def shares(self) -> None:
        """Threads have copies of views that they only update."""
        shares = self.nest.shares
        updates = (s for f in self.nest.functions for s in statements(f.body))
        own = {table.view for table in (shares.tables if shares is not None else ())}
        if shares is not None and self.nest.spec.serial:
            self.fail("threads share what runs in order")
        if own - {param.sym for param in self.nest.workunit.params if param.rank}:
            self.fail("only a view has copies")
        for s in updates:
            if sym_of(s) in own and not (isinstance(s, Update) and s.atomic):
                self.fail("a view that threads have copies of is only updated", s)
            if any(isinstance(e, (AtomicFetch, Load)) and e.view in own for e in expressions(s)):
                self.fail("a view that threads have copies of is not read", s)

    def function(self, f: Function) -> None:
        if f.name in self.functions:
            self.fail(f"{f.name} is there twice")
        if len(f.low) != len(f.high):
            self.fail(f"{f.name} runs over no box")
        given = (*f.low, *f.high, *f.params)
        scans = bool(f.low) and f.result is not None
        for sym in given[:-2] if scans else given:
            if sym not in f.arrays:
                self.counter(sym, sym.dtype)
        if (scans and (f.params[0],) != self.sums) or not {*f.sums} <= {*self.sums}:
            self.fail(f"{f.name} adds to other sums than the kernel's")
        self.scopes.append(set())
        for sym in (*given, *f.sums):
            self.declare(sym, int(sym in f.arrays))
        self.constant |= {*given} - {*self.sums}
        self.scopes.append(set())
        for stmt in f.body:
            self.statement(stmt)
        if f.result is not None:
            self.expr(f.result)
        self.scopes.pop()
        self.scopes.pop()
        self.functions[f.name] = f

    def declare(self, sym: Sym, rank: int) -> None:
        """Declare a Sym, which no visible declaration may have."""
        if any(sym in scope for scope in self.scopes):
            self.fail(f"{sym.name}#{sym.uid} is declared twice")
        self.ranks[sym] = rank
        self.scopes[-1].add(sym)

    def counter(self, what: object, dtype: DType) -> None:
        if dtype is not DType.INT64:
            self.fail(f"{what} has 64 bits, not {dtype.value}")

    def box(self, low: tuple[Expr, ...], high: tuple[Expr, ...], node: Stmt, rank: int) -> None:
        if len(low) != rank or len(high) != rank:
            self.fail(f"no box of {rank} axes", node)
        for end in (*low, *high):
            self.expr(end, DType.INT64)

    def over(self, s: nodes.Over) -> None:
        self.box(s.low, s.high, s, self.nest.rank)
        loops, self.loops = self.loops, 0
        self.body(s.body, *self.nest.workunit.indices)
        self.loops = loops

    def plain_loop(self, s: For) -> None:
        for scope in self.scopes:
            scope.discard(s.sym)  # what is called so outside is known no more
        super().loop(s)

    def loop(self, s: nodes.Loop) -> None:  # type: ignore[override]
        for end in (s.start, s.stop, s.step):
            self.expr(end, DType.INT64)
        self.counter(s.sym, s.sym.dtype)
        if s.kind is not Kind.SEQ and not s.shared:
            self.fail("trips that depend on one another are no lanes of vectors", s)
        if s.kind in _AROUND and _AROUND[s.kind] is not self.crew:
            self.fail(f"no {s.kind.value} take trips here", s)
        crew, self.crew = self.crew, _IN_STEP.get(s.kind)
        super().loop(s)
        self.crew = crew

    def run_function(self, s: nodes.Run) -> None:
        f = self.functions.get(s.function)
        if f is None or not f.low:
            self.fail(f"no function {s.function} of a box stands before", s)
            return
        self.box(s.low, s.high, s, len(f.low))

    def ask(self, s: nodes.Ask) -> None:
        f = self.functions.get(s.function)
        if f is None or f.result is None:
            self.fail(f"no function {s.function} with a result stands before", s)
            return
        if len(f.params) != len(s.arguments) or s.sym.dtype is not f.result.dtype:
            self.fail("other arguments, or another result, than the function's", s)
        for argument, param in zip(s.arguments, f.params, strict=True):
            self.expr(argument, param.dtype)
        self.declare(s.sym, 0)

    def give(self, s: nodes.Give) -> None:
        if s.place not in range(len(self.sums)):
            self.fail("no result of the kernel", s)
        self.expr(s.value, self.sums[s.place].dtype)

    def scan(self, s: nodes.Scan) -> None:
        f = self.functions.get(s.function)
        if f is None or not f.low or f.result is None or not self.nest.serial:
            self.fail(f"no function {s.function} that sums in order stands before", s)
        self.box((s.low,), (s.high,), s, 1)

    def tiled_sums(self, s: nodes.TiledSums) -> None:
        self.box(s.low, s.high, s, self.nest.rank)
        self.of_terms(s.terms, s.arrays, s)
        if [a.dtype for a in s.arrays] != [sym.dtype for sym in self.sums]:
            self.fail("other terms than the kernel's sums have", s)
        run = self.functions.get(RUN)
        if s.most and (
            run is None or run.sums != self.sums or s.most % s.lanes or s.block % s.lanes
        ):
            self.fail(f"no {RUN} that adds to all sums stands before, for runs of whole lanes", s)

    def of_terms(self, name: str, arrays: tuple[Sym, ...], node: Stmt) -> None:
        """A function for terms takes the first iteration, their number, arrays and counters."""
        f = self.functions.get(name)
        if f is None or f.params[2:] != (*arrays, *self.nest.counters[:-1]) or f.arrays != arrays:
            self.fail(f"no function {name} of such terms stands before", node)

    def trimmed(self, s: nodes.Trimmed) -> None:
        for name in (s.middle, s.around):
            self.of_terms(name, s.arrays, s)
        f = self.functions.get(s.inside)
        if f is None or f.result is None or len(f.params) != 2 + len(s.others):
            self.fail(f"no function {s.inside} that tells of them stands before", s)
        for e in (s.first, s.count, *s.others):
            self.expr(e, DType.INT64)

    def running(self, s: nodes.RunningSums) -> None:
        self.expr(s.count, DType.INT64)
        for sym in s.sums:
            self.variable(sym, s)
        if [a.dtype for a in s.terms] != [sym.dtype for sym in s.sums]:
            self.fail("other terms than the sums have", s)
        self.body((*s.allocs, *s.body), s.sym)

    def alloc(self, s: nodes.Alloc) -> None:
        if s.length < 1:
            self.fail("an array has elements", s)
        self.declare(s.sym, 1)

    def row(self, s: nodes.Row) -> None:
        self.element(s.array, (s.start,), s)
        if s.sym.dtype is not s.array.dtype:
            self.fail("a row has the elements of its array", s)
        self.declare(s.sym, 1)

    def clear(self, s: nodes.Clear) -> None:
        if self.rank(s.sym, s) != 1:
            self.fail("only an array is cleared", s)

    def ordered_sum(self, s: nodes.OrderedSum) -> None:
        if len(s.body) != 1 or type(s.body[0]) is not For:
            self.fail("a sum has one loop", s)
        self.statement(s.meaning)

    def prefetch(self, s: nodes.Prefetch) -> None:
        if not isinstance(s.load, Load):
            self.fail("only memory is asked for", s)
        self.expr(s.load)

    def walk(self, s: threads.Walk) -> None:
        if not len(s.counters) == len(s.low) == len(s.high):
            self.fail("each axis has two bounds", s)
        for end in (*s.low, *s.high):
            self.expr(end, DType.INT64)
        self.body(s.body, *s.counters)

    def join(self, s: threads.Join) -> None:
        if s.sums != self.sums or len(s.joins) != len(self.sums):
            self.fail("every accumulator is joined by an operation", s)
        self.statement(s.meaning)

    def in_step(self, s: threads.Share | threads.One | threads.Alone | threads.Barrier) -> None:
        """What a crew does together stands where all of it comes."""
        if s.crew is not self.crew:
            self.fail(f"no {s.crew.value} runs this in step", s)
        if isinstance(s, threads.Share):
            self.integer(s.stop)
            self.statement(s.meaning)
        elif isinstance(s, threads.One):
            self.declaration(Declare(s.sym, s.value))
        elif isinstance(s, threads.Alone):
            self.body(s.body)

    def no_vectors(self, s: nodes.NoVectors) -> None:
        if not self.loops:
            self.fail("only a loop can make no vectors", s)

    def note(self, s: nodes.Note) -> None:
        for sym in s.counters:
            self.rank(sym, s)


_Verifier.statements = {
    **ir_verify.Verifier.statements,
    nodes.Over: _Verifier.over,
    For: _Verifier.plain_loop,
    nodes.Loop: _Verifier.loop,
    nodes.Run: _Verifier.run_function,
    nodes.Ask: _Verifier.ask,
    nodes.Give: _Verifier.give,
    nodes.Scan: _Verifier.scan,
    nodes.Note: _Verifier.note,
    nodes.NoVectors: lambda v, s: v.no_vectors(s),
    nodes.Scope: lambda v, s: v.body(s.body),
    nodes.Alloc: _Verifier.alloc,
    nodes.Row: _Verifier.row,
    nodes.Clear: _Verifier.clear,
    nodes.Prefetch: _Verifier.prefetch,
    nodes.OrderedSum: _Verifier.ordered_sum,
    nodes.RunningSums: _Verifier.running,
    threads.Pass: lambda v, s: v.statement(s.meaning),
    threads.Walk: _Verifier.walk,
    threads.Join: _Verifier.join,
    **dict.fromkeys(_TOGETHER, _Verifier.in_step),
    threads.Shared: lambda v, s: v.statement(s.memory),
    threads.Repeat: lambda v, s: v.while_loop(While(Const(True, DType.BOOL), s.body)),
    threads.Leave: lambda v, s: v.branch(If(s.condition, (Break(),))),
    nodes.TiledSums: _Verifier.tiled_sums,
    nodes.Trimmed: _Verifier.trimmed,
}
