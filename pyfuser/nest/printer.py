"""Text of nests, for people and golden files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyfuser.ir import printer
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import Expr, Sym
from pyfuser.ir.printer import Line
from pyfuser.ir.visit import declared
from pyfuser.nest import nodes, threads
from pyfuser.nest.nodes import Function, Nest, SweepNest
from pyfuser.nest.shares import Trips, Varying, Work

_INDENT = "    "


def show(nest: Nest) -> str:
    """A nest as readable, stable text: its functions, one statement a line (see `ir.printer`)."""
    printer = _Printer(nest)
    parts = [*printer.functions(), [(0, line) for line in printer.facts()]]
    return "\n".join("".join(f"{_INDENT * depth}{line}\n" for depth, line in p) for p in parts if p)


def show_sweep(sweep: SweepNest) -> str:
    """A sweep: its stages, and the nests of its loops."""
    how = "in steps" if sweep.scan is None else f"by the tiles of {sweep.scan}"
    rolling = f", {len(sweep.spec.rolling)} views rolling" if sweep.spec.rolling else ""
    shared = ", shared by threads" * sweep.shared
    head = f"sweep of loops {', '.join(map(str, sweep.stages))} {how}{rolling}{shared}\n"
    loops = (f"\nloop {n}:\n{show(nest)}" for n, nest in enumerate(sweep.nests))
    return head + "".join(loops)


class _Printer(printer.Printer):
    def __init__(self, nest: Nest) -> None:
        self.workunit, self.nest = nest.workunit, nest
        self.names: dict[Sym, str] = {}
        self.seen: Counter[str] = Counter()
        self.take((*all_syms(nest.workunit), *nest.counters))

    def take(self, syms: Iterable[Sym]) -> None:
        for sym in syms:
            if sym not in self.names:
                name = self.nest.name(sym) or "v"
                self.names[sym] = f"{name}.{self.seen[name]}" if self.seen[name] else name
                self.seen[name] += 1

    def functions(self) -> Iterator[list[Line]]:
        for f in self.nest.functions:
            self.take((*f.low, *f.high, *f.params, *declared(f.body)))
            yield [(0, self._head(f)), *self._body(f.body, 1), *self._result(f)]

    def facts(self) -> Iterator[str]:
        """What holds for all loops."""
        if self.nest.rounded:
            yield "products are rounded"
        if self.nest.doubled:
            yield "exp and log of two vectors at a time"
        shares = self.nest.shares
        if shares is not None and shares.least:
            many, near = self._iterations(shares.least), shares.together
            yield f"threads share {many} iterations or more each" + f", {near} neighbours" * (
                near > 1
            )
        for table in shares.tables if shares is not None and shares.least else ():
            yield f"each has a copy of {self._sym(table.view)}[{table.count}], joined by {table.op}"

    def _iterations(self, least: int | Varying) -> str:
        return str(least) if isinstance(least, int) else f"{least.worth} / {self._work(least.work)}"

    def _work(self, work: Work) -> str:
        terms = (str(t) if isinstance(t, int) else self._trips(t) for t in work)
        return f"({' + '.join(terms)})"

    def _trips(self, t: Trips) -> str:
        return f"({self._outer(t.start)} .. {self._outer(t.stop)}) * {self._work(t.work)}"

    def _head(self, f: Function) -> str:
        box = [f"{self._sym(a)} .. {self._sym(b)}" for a, b in zip(f.low, f.high, strict=False)]
        adds = f" adds to {', '.join(map(self._sym, f.sums))}" if f.sums else ""
        return f"function {f.name}({', '.join([*box, *map(self._typed, f.params)])}){adds}:"

    def _result(self, f: Function) -> Iterator[Line]:
        if f.result is not None:
            yield 1, f"return {self.expr(f.result, outer=True)}"

    def _box(self, low: Iterable[Expr], high: Iterable[Expr]) -> str:
        ends = zip(low, high, strict=False)  # may be shown for its faults
        return ", ".join(
            f"{self.expr(a, outer=True)} .. {self.expr(b, outer=True)}" for a, b in ends
        )

    def _list(self, syms: Iterable[Sym]) -> str:
        return ", ".join(map(self._sym, syms))

    def _outer(self, e: Expr) -> str:
        return self.expr(e, outer=True)

    def _head_of(self, s: Any, depth: int) -> Iterator[Line]:
        """A statement that holds others."""
        yield depth, f"{_HEADS[type(s)](self, s)}:"
        yield from self._body(s.body, depth + 1)

    def _line(self, s: Any, depth: int) -> Iterator[Line]:
        yield depth, _LINES[type(s)](self, s)

    def _loop(self, s: nodes.Loop, depth: int) -> Iterator[Line]:
        (_, head), *body = self._for(s, depth)
        kind = "" if s.kind is nodes.Kind.SEQ else f" {s.kind.value}"
        yield depth, f"{head[:-1]}{kind}:"
        yield from body

    def _share(self, s: threads.Share, depth: int) -> Iterator[Line]:
        yield depth, f"share up to {self._sym(s.sym)} = {self._outer(s.stop)}:"
        yield from self._body(s.body, depth + 1)
        for total, part in zip(s.sums, s.parts, strict=True):
            yield depth, f"{self._sym(total)} += {self._sym(part)} of each"


_HEADS: dict[type, Callable[[_Printer, Any], str]] = {
    nodes.Over: lambda p, s: (
        f"over {p._list(p.nest.workunit.indices)} in {p._box(s.low, s.high)}"
        + " in order" * p.nest.serial
    ),
    nodes.Scope: lambda p, s: "scope",
    nodes.OrderedSum: lambda p, s: (
        f"ordered sum of {p._list(s.sums)} "
        + (f"in blocks of {s.block}" if s.block else "in lanes")
    ),
    nodes.RunningSums: lambda p, s: (
        f"running sums {p._list(s.sums)} of {p._list(s.terms)} "
        f"every {s.lanes} of {p._outer(s.count)}"
    ),
    threads.Walk: lambda p, s: (
        f"for {p._list(s.counters)} in {p._box(s.low, s.high)} {s.kind.value}"
    ),
    threads.Pass: lambda p, s: f"{'last' if s.last else 'first'} pass by {s.items}",
    threads.Alone: lambda p, s: f"by one of {s.crew.value}",
    threads.Shared: lambda p, s: "of the block",
    threads.Repeat: lambda p, s: "repeat",
}
_LINES: dict[type, Callable[[_Printer, Any], str]] = {
    nodes.Run: lambda p, s: f"run {s.function}({p._box(s.low, s.high)})",
    nodes.Ask: lambda p, s: (
        f"let {p._typed(s.sym)} = {s.function}({', '.join(map(p._outer, s.arguments))})"
    ),
    nodes.Give: lambda p, s: f"result {s.place} = {p._outer(s.value)}",
    nodes.Scan: lambda p, s: (
        f"scan {s.function}({p._box([s.low], [s.high])})"
        + f" in tiles of {s.tile}{' at once' * s.at_once}{' or one' * s.single}" * bool(s.tile)
    ),
    nodes.TiledSums: lambda p, s: (
        f"sums of {s.terms}({p._box(s.low, s.high)}) in{' flat' * s.flat} tiles, "
        f"blocks of {s.block}" + (f", in runs of {s.most}" if s.most else "")
    ),
    nodes.Trimmed: lambda p, s: (
        f"{s.middle} of {p.expr(s.count)} from {p.expr(s.first)} where {s.inside}, else {s.around}"
    ),
    threads.Join: lambda p, s: f"results {p._list(s.sums)} joined by {', '.join(s.joins)}",
    nodes.Alloc: lambda p, s: f"alloc {p._typed(s.sym)}[{s.length}]",
    nodes.Row: lambda p, s: (
        f"row {p._typed(s.sym)}[{s.length}] = {p._sym(s.array)}[{p._outer(s.start)} ...]"
    ),
    nodes.Clear: lambda p, s: f"clear {p._sym(s.sym)}[{s.length}]",
    nodes.Prefetch: lambda p, s: (
        f"prefetch {p.expr(s.load)} + {s.ahead} to {'write' if s.writes else 'read'}"
    ),
    nodes.NoVectors: lambda p, s: "no vectors",
    nodes.Note: lambda p, s: f"note {p._list(s.counters)}",
    threads.One: lambda p, s: (
        f"let {p._typed(s.sym)} = {p._outer(s.value)} by one of {s.crew.value}"
    ),
    threads.Barrier: lambda p, s: f"barrier of {s.crew.value}",
    threads.Leave: lambda p, s: f"leave if {p._outer(s.condition)}",
}
_Printer.statements = {
    **printer.Printer.statements,
    **dict.fromkeys(_HEADS, _Printer._head_of),
    **dict.fromkeys(_LINES, _Printer._line),
    nodes.Loop: _Printer._loop,
    threads.Share: _Printer._share,
}
