"""Text of nests, for people and golden files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pyfuser.ir import printer
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.nodes import Expr, Sym
from pyfuser.ir.printer import Line
from pyfuser.ir.visit import declared
from pyfuser.nest.nodes import (
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

_INDENT = "    "


def show(nest: Nest) -> str:
    """A nest as readable, stable text: its functions, one statement a line (see `ir.printer`)."""
    functions = _Printer(nest).functions()
    return "\n".join("".join(f"{_INDENT * depth}{line}\n" for depth, line in f) for f in functions)


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

    def _over(self, s: Over, depth: int) -> Iterator[Line]:
        indices = ", ".join(map(self._sym, self.nest.workunit.indices))
        order = " in order" if self.nest.serial else ""
        yield depth, f"over {indices} in {self._box(s.low, s.high)}{order}:"
        yield from self._body(s.body, depth + 1)

    def _loop(self, s: Loop, depth: int) -> Iterator[Line]:
        (_, head), *body = self._for(s, depth)
        kind = "" if s.kind is Kind.SEQ else f" {s.kind.value}"
        yield depth, f"{head[:-1]}{kind}:"
        yield from body

    def _run(self, s: Run, depth: int) -> Iterator[Line]:
        yield depth, f"run {s.function}({self._box(s.low, s.high)})"

    def _ask(self, s: Ask, depth: int) -> Iterator[Line]:
        arguments = ", ".join(self.expr(e, outer=True) for e in s.arguments)
        yield depth, f"let {self._typed(s.sym)} = {s.function}({arguments})"

    def _give(self, s: Give, depth: int) -> Iterator[Line]:
        yield depth, f"result {s.place} = {self.expr(s.value, outer=True)}"

    def _scan(self, s: Scan, depth: int) -> Iterator[Line]:
        tiles = f" in tiles of {s.tile}{' at once' * s.at_once}{' or one' * s.single}"
        yield depth, f"scan {s.function}({self._box([s.low], [s.high])}){tiles * bool(s.tile)}"

    def _tiled(self, s: TiledSums, depth: int) -> Iterator[Line]:
        flat = " flat" * s.flat
        runs = f", in runs of {s.most}" if s.most else ""
        text = f"sums of {s.terms}({self._box(s.low, s.high)}) in{flat} tiles"
        yield depth, f"{text}, blocks of {s.block}{runs}"

    def _trimmed(self, s: Trimmed, depth: int) -> Iterator[Line]:
        first, count = self.expr(s.first), self.expr(s.count)
        yield depth, f"{s.middle} of {count} from {first} where {s.inside}, else {s.around}"

    def _scope(self, s: Scope, depth: int) -> Iterator[Line]:
        yield depth, "scope:"
        yield from self._body(s.body, depth + 1)

    def _ordered(self, s: OrderedSum, depth: int) -> Iterator[Line]:
        how = f"in blocks of {s.block}" if s.block else "in lanes"
        yield depth, f"ordered sum of {', '.join(map(self._sym, s.sums))} {how}:"
        yield from self._body(s.body, depth + 1)

    def _running(self, s: RunningSums, depth: int) -> Iterator[Line]:
        sums = ", ".join(map(self._sym, s.sums))
        every = f"every {s.lanes} of {self.expr(s.count, outer=True)}"
        yield depth, f"running sums {sums} of {', '.join(map(self._sym, s.terms))} {every}:"
        yield from self._body(s.body, depth + 1)

    def _alloc(self, s: Alloc, depth: int) -> Iterator[Line]:
        yield depth, f"alloc {self._typed(s.sym)}[{s.length}]"

    def _row(self, s: Row, depth: int) -> Iterator[Line]:
        start = f"{self._sym(s.array)}[{self.expr(s.start)} ...]"
        yield depth, f"row {self._typed(s.sym)}[{s.length}] = {start}"

    def _clear(self, s: Clear, depth: int) -> Iterator[Line]:
        yield depth, f"clear {self._sym(s.sym)}[{s.length}]"

    def _prefetch(self, s: Prefetch, depth: int) -> Iterator[Line]:
        why = "write" if s.writes else "read"
        yield depth, f"prefetch {self.expr(s.load)} + {s.ahead} to {why}"

    def _note(self, s: Note, depth: int) -> Iterator[Line]:
        yield depth, f"note {', '.join(map(self._sym, s.counters))}"


_Printer.statements = {
    **printer.Printer.statements,
    Over: _Printer._over,
    Loop: _Printer._loop,
    Run: _Printer._run,
    Ask: _Printer._ask,
    Give: _Printer._give,
    Scan: _Printer._scan,
    TiledSums: _Printer._tiled,
    Trimmed: _Printer._trimmed,
    Note: _Printer._note,
    Scope: _Printer._scope,
    OrderedSum: _Printer._ordered,
    RunningSums: _Printer._running,
    Alloc: _Printer._alloc,
    Row: _Printer._row,
    Clear: _Printer._clear,
    Prefetch: _Printer._prefetch,
}
