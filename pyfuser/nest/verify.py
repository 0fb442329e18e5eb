"""The rules of nests as a program: what `nest.nodes` promises, checked."""

from __future__ import annotations

from pyfuser.ir import verify as ir_verify
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr, For, Load, Stmt, Sym
from pyfuser.ir.verify import IRError
from pyfuser.nest.nodes import (
    LANES,
    RUN,
    Alloc,
    Ask,
    Clear,
    Function,
    Give,
    Kind,
    Loop,
    Nest,
    Note,
    OrderedSum,
    Over,
    Prefetch,
    Row,
    Run,
    RunningSums,
    Scan,
    Scope,
    TiledSums,
    Trimmed,
)
from pyfuser.nest.printer import show


def verify(nest: Nest) -> None:
    """Check every rule of `nest.nodes`.

    Raises IRError with the rule, the node and the whole nest.
    """
    try:
        _Verifier(nest).run()
    except IRError as error:
        raise IRError(f"{error}\n{show(nest)}") from None


class _Verifier(ir_verify.Verifier):
    def __init__(self, nest: Nest) -> None:
        super().__init__(nest.workunit)
        self.nest = nest
        self.functions: dict[str, Function] = {}

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

    def function(self, f: Function) -> None:
        if f.name in self.functions:
            self.fail(f"{f.name} is there twice")
        if len(f.low) != len(f.high) or len(f.low) not in (0, self.nest.rank):
            self.fail(f"{f.name} runs over no box of the space")
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

    def box(self, low: tuple[Expr, ...], high: tuple[Expr, ...], node: Stmt) -> None:
        if len(low) != self.nest.rank or len(high) != self.nest.rank:
            self.fail("no box of the space", node)
        for end in (*low, *high):
            self.expr(end, DType.INT64)

    def over(self, s: Over) -> None:
        self.box(s.low, s.high, s)
        loops, self.loops = self.loops, 0
        self.body(s.body, *self.nest.workunit.indices)
        self.loops = loops

    def plain_loop(self, s: For) -> None:
        for scope in self.scopes:
            scope.discard(s.sym)  # what is called so outside is known no more
        super().loop(s)

    def loop(self, s: Loop) -> None:  # type: ignore[override]
        for end in (s.start, s.stop, s.step):
            self.expr(end, DType.INT64)
        self.counter(s.sym, s.sym.dtype)
        if s.kind is not Kind.SEQ and not s.shared:
            self.fail("trips that depend on one another are no lanes of vectors", s)
        super().loop(s)

    def run_function(self, s: Run) -> None:
        f = self.functions.get(s.function)
        if f is None or not f.low:
            self.fail(f"no function {s.function} of a box stands before", s)
        self.box(s.low, s.high, s)

    def ask(self, s: Ask) -> None:
        f = self.functions.get(s.function)
        if f is None or f.result is None:
            self.fail(f"no function {s.function} with a result stands before", s)
            return
        if len(f.params) != len(s.arguments) or s.sym.dtype is not f.result.dtype:
            self.fail("other arguments, or another result, than the function's", s)
        for argument, param in zip(s.arguments, f.params, strict=True):
            self.expr(argument, param.dtype)
        self.declare(s.sym, 0)

    def give(self, s: Give) -> None:
        if s.place not in range(len(self.sums)):
            self.fail("no result of the kernel", s)
        self.expr(s.value, self.sums[s.place].dtype)

    def scan(self, s: Scan) -> None:
        f = self.functions.get(s.function)
        if f is None or not f.low or f.result is None or not self.nest.serial:
            self.fail(f"no function {s.function} that sums in order stands before", s)
        self.box((s.low,), (s.high,), s)

    def tiled_sums(self, s: TiledSums) -> None:
        self.box(s.low, s.high, s)
        self.of_terms(s.terms, s.arrays, s)
        if [a.dtype for a in s.arrays] != [sym.dtype for sym in self.sums]:
            self.fail("other terms than the kernel's sums have", s)
        run = self.functions.get(RUN)
        if s.most and (run is None or run.sums != self.sums or s.most % LANES or s.block % LANES):
            self.fail(f"no {RUN} that adds to all sums stands before, for runs of whole lanes", s)

    def of_terms(self, name: str, arrays: tuple[Sym, ...], node: Stmt) -> None:
        """A function for terms takes the first iteration, their number, arrays and counters."""
        f = self.functions.get(name)
        if f is None or f.params[2:] != (*arrays, *self.nest.counters[:-1]) or f.arrays != arrays:
            self.fail(f"no function {name} of such terms stands before", node)

    def trimmed(self, s: Trimmed) -> None:
        for name in (s.middle, s.around):
            self.of_terms(name, s.arrays, s)
        f = self.functions.get(s.inside)
        if f is None or f.result is None or len(f.params) != 2 + len(s.others):
            self.fail(f"no function {s.inside} that tells of them stands before", s)
        for e in (s.first, s.count, *s.others):
            self.expr(e, DType.INT64)

    def running(self, s: RunningSums) -> None:
        self.expr(s.count, DType.INT64)
        for sym in s.sums:
            self.variable(sym, s)
        if [a.dtype for a in s.terms] != [sym.dtype for sym in s.sums]:
            self.fail("other terms than the sums have", s)
        self.body((*s.allocs, *s.body), s.sym)

    def alloc(self, s: Alloc) -> None:
        if s.length < 1:
            self.fail("an array has elements", s)
        self.declare(s.sym, 1)

    def row(self, s: Row) -> None:
        self.element(s.array, (s.start,), s)
        if s.sym.dtype is not s.array.dtype:
            self.fail("a row has the elements of its array", s)
        self.declare(s.sym, 1)

    def clear(self, s: Clear) -> None:
        if self.rank(s.sym, s) != 1:
            self.fail("only an array is cleared", s)

    def ordered_sum(self, s: OrderedSum) -> None:
        if len(s.body) != 1 or type(s.body[0]) is not For:
            self.fail("a sum has one loop", s)
        self.statement(s.meaning)

    def prefetch(self, s: Prefetch) -> None:
        if not isinstance(s.load, Load):
            self.fail("only memory is asked for", s)
        self.expr(s.load)

    def note(self, s: Note) -> None:
        for sym in s.counters:
            self.rank(sym, s)


_Verifier.statements = {
    **ir_verify.Verifier.statements,
    Over: _Verifier.over,
    For: _Verifier.plain_loop,
    Loop: _Verifier.loop,
    Run: _Verifier.run_function,
    Ask: _Verifier.ask,
    Give: _Verifier.give,
    Scan: _Verifier.scan,
    Note: _Verifier.note,
    Scope: lambda v, s: v.body(s.body),
    Alloc: _Verifier.alloc,
    Row: _Verifier.row,
    Clear: _Verifier.clear,
    Prefetch: _Verifier.prefetch,
    OrderedSum: _Verifier.ordered_sum,
    RunningSums: _Verifier.running,
    TiledSums: _Verifier.tiled_sums,
    Trimmed: _Verifier.trimmed,
}
