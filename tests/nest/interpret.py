"""The interpreter of nests: what they mean, on top of that of the ir (see `ir.reference`).

Whatever may run in any order runs in a shuffled one: the iterations of an Over, the trips of a
shared Loop, the tiles of sums and scans. So a pass that is wrong about an order shows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pyfuser.ir import arithmetic
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Declare, Sym, While
from pyfuser.ir.reference import interpret as reference
from pyfuser.ir.reference.elements import accessors, scratch_accessors
from pyfuser.ir.reference.interpret import Array, Value, _scalar
from pyfuser.nest import nodes, threads
from pyfuser.nest.nodes import RUN, Function, Nest
from pyfuser.nest.shares import Shares
from pyfuser.support.caches import cached
from tests.nest.tiled import tiled_sums


def interpret(
    nest: Nest,
    begin: Sequence[int],
    end: Sequence[int],
    arguments: Sequence[Array | Value],
    seed: int = 0,
) -> tuple[Value, ...]:
    """Run a nest over a box, and return its accumulators' values.

    `arguments[k]` is bound to `workunit.params[k]`, arrays in place.

    Raises UndefinedBehaviour for what C++ leaves undefined.
    """
    rng = random.Random(seed)
    if nest.shares is not None and nest.shares.least and nest.shares.tables:
        return _with_copies(nest, nest.shares, begin, end, arguments, rng)
    functions, results = functions_of(nest, arguments, Orders(rng))
    for f in nest.functions if nest.launch else nest.functions[-1:]:
        functions[f.name](*begin, *end)
    return tuple(results)


def _with_copies(
    nest: Nest,
    shares: Shares,
    begin: Sequence[int],
    end: Sequence[int],
    arguments: Sequence[Array | Value],
    rng: random.Random,
) -> tuple[Value, ...]:
    """The same by several threads, each with copies of tables, which are joined in the end.

    Sums are those of one thread, as it may run all tiles.
    """
    axis = rng.randrange(len(begin))
    cuts = sorted(rng.randint(begin[axis], max(begin[axis], end[axis])) for _ in "12")
    cuts = [] if nest.workunit.accumulators else cuts
    places = {param.sym: n for n, param in enumerate(nest.workunit.params)}
    copies = list[list[Any]]()
    for low, high in itertools.pairwise([begin[axis], *cuts, end[axis]]):
        given: list[Any] = [*arguments]
        for table in shares.tables:
            place = places[table.view]
            assert given[place].size == table.count
            given[place] = np.full_like(given[place], table.nothing.value)
        functions, results = functions_of(nest, given, Orders(rng))
        functions[nest.functions[-1].name](
            *begin[:axis], low, *begin[axis + 1 :], *end[:axis], high, *end[axis + 1 :]
        )
        copies.append(given)
    for own in copies:
        for table in shares.tables:
            place = places[table.view]
            whole: Any = arguments[place]
            whole[...] = _JOINS[table.op](whole, own[place])
    return tuple(results)


_JOINS: dict[str, Any] = {
    "+": np.add, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def functions_of(
    nest: Nest, arguments: Sequence[Array | Value], orders: Orders
) -> tuple[dict[str, Callable[..., Any]], list[Value]]:
    """What a nest's functions do with these arguments, and where its results will be."""
    bound: list[Any] = []
    bind, names = _compile(nest)
    for param, argument in zip(nest.workunit.params, arguments, strict=True):
        if param.rank:
            name = names[param.sym]
            bound.append((*accessors(argument, name, None), argument.shape))  # type: ignore[union-attr, arg-type]
        else:
            bound.append(_scalar(argument, param.sym.dtype))
    results: list[Value] = [0] * len(nest.workunit.accumulators)
    return bind(orders, results, *bound), results


class Orders:
    """Gives iterations, trips and tiles their order. around: what a scan's passes become."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self.shuffle = rng, rng.shuffle
        self.around: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda one_pass: one_pass

    def points(self, low: Sequence[int], high: Sequence[int], shared: bool) -> Iterable[Any]:
        found = list(itertools.product(*map(range, low, high)))
        if shared:
            self.shuffle(found)
        return found

    def trips(self, start: int, stop: int, step: int, shared: bool) -> Iterable[int]:
        found = list(range(start, stop, step))
        if shared:
            self.shuffle(found)
        return found

    def scan(
        self,
        one_pass: Callable[..., Any],
        add: Callable[[Any, Any], Any],
        zero: Any,
        box: tuple[int, int],
        how: tuple[int, bool, bool],
    ) -> Any:
        """The sum of a scan; how: `tile`, `single` and `at_once` of its node."""
        (low, high), (tile, single, at_once) = box, how
        one_pass = self.around(one_pass)
        if not tile or high - low <= tile or (single and self._rng.random() < 0.2):
            return one_pass(low, high, zero, True)
        cuts = [*range(low, high, tile), high]
        totals: dict[int, Any] = {}
        for place, last_pass in tiles_in_turn(len(cuts) - 1, at_once, self._rng):
            first, last = cuts[place : place + 2]
            if not last_pass:
                totals[place] = one_pass(first, last, zero, False)
                continue
            found = one_pass(first, last, reduce(add, map(totals.get, range(place)), zero), True)
            if last == high:
                result = found
        return result


def tiles_in_turn(count: int, at_once: bool, rng: random.Random) -> Iterator[tuple[int, bool]]:
    """An order in which a scan's passes over its tiles may come: a tile, and whether it is the last
    pass, which needs the first passes over all tiles before.
    """
    waiting, left, done = list(range(count)), list(range(count)), 0
    rng.shuffle(waiting)
    first = set(waiting)
    while left:
        done = min(first, default=count)
        ready = [tile for tile in left if tile < done]
        if waiting and not (ready and at_once and rng.random() < 0.5):
            tile = waiting.pop()
            first.discard(tile)
            yield tile, False
        else:
            tile = rng.choice(ready)
            left.remove(tile)
            yield tile, True


class _Row:
    """A part of an array, from a place on."""

    def __init__(self, array: Any, place: int) -> None:
        self._array, self._place = array, place

    def __len__(self) -> int:
        return len(self._array) - self._place

    def __getitem__(self, index: int) -> Any:
        return self._array[self._place + index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._array[self._place + index] = value


@cached(256)
def _compile(nest: Nest) -> tuple[Callable[..., Any], dict[Sym, str]]:
    translator = _Translator(nest)
    code = compile(translator.source(), f"<nest of {nest.workunit.name}>", "exec")
    namespace = {**arithmetic.OPERATIONS, **translator.functions, "scratch": scratch_accessors}
    namespace |= {"row_of": _Row, "tiled_sums": tiled_sums, "tuning": nest.spec.tuning}
    namespace["edges"] = _edges
    namespace |= translator.nodes
    exec(code, namespace)
    return namespace["bind"], translator.names


def _edges(widest: int, count: int) -> Iterator[int]:
    edge = 1
    while edge <= widest and count > 2 * edge:
        yield edge
        edge *= 2


class _Translator(reference.Translator):
    """A nest -> the source of `bind(orders, results, *arguments)`, which gives its functions."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest.workunit)
        self.nest = nest
        self.nodes: dict[str, nodes.TiledSums] = {}

    def source(self) -> str:
        params = self.nest.workunit.params
        given = ["orders", "results", *(self.name(p.sym) for p in params)]
        self.emit(0, f"def bind({', '.join(given)}):")
        for param in params:
            if param.rank:
                name = self.name(param.sym)
                self.emit(1, f"{name}_load, {name}_store, {name}_atomic, {name}_shape = {name}")
        for f in self.nest.functions:
            self.function(f)
        functions = ", ".join(f"'{f.name}': {f.name}" for f in self.nest.functions)
        self.emit(1, f"return {{{functions}}}")
        return "\n".join(self.lines) + "\n"

    def function(self, f: Function) -> None:
        given = ", ".join(map(self.name, (*f.sums, *f.low, *f.high, *f.params)))
        self.lengths |= {array: f"len({self.name(array)})" for array in f.arrays}
        self.emit(1, f"def {f.name}({given}):")
        self.body(f.body, 2)
        if f.result is not None:
            self.emit(2, f"return {self.expr(f.result)}")

    def over(self, s: nodes.Over | threads.Walk, depth: int) -> None:
        syms, shared = self.nest.workunit.indices, not self.nest.serial
        if isinstance(s, threads.Walk):
            syms, shared = s.counters, True
        low, high = ("".join(f"{self.expr(e)}, " for e in ends) for ends in (s.low, s.high))
        names = "".join(f"{self.name(sym)}, " for sym in syms)
        self.emit(depth, f"for {names}in orders.points(({low}), ({high}), {shared}):")
        self.body(s.body, depth + 1)

    def counted(self, s: nodes.Loop, depth: int) -> None:
        ends = ", ".join(self.expr(e) for e in (s.start, s.stop, s.step))
        self.emit(depth, f"for {self.name(s.sym)} in orders.trips({ends}, {s.shared}):")
        self.increments.append("pass")
        self.body(s.body, depth + 1)
        self.increments.pop()

    def run_function(self, s: nodes.Run, depth: int) -> None:
        self.emit(depth, f"{s.function}({', '.join(self.expr(e) for e in (*s.low, *s.high))})")

    def ask(self, s: nodes.Ask, depth: int) -> None:
        arguments = ", ".join(map(self.expr, s.arguments))
        self.emit(depth, f"{self.name(s.sym)} = {s.function}({arguments})")

    def give(self, s: nodes.Give, depth: int) -> None:
        accumulator = self.nest.workunit.accumulators[s.place].sym
        self.emit(depth, f"results[{s.place}] = {self.value(s.value, accumulator.dtype)}")

    def scan(self, s: nodes.Scan, depth: int) -> None:
        dtype = self.nest.workunit.accumulators[0].sym.dtype
        zero, box = (
            self.convert("0", DType.INT32, dtype),
            f"({self.expr(s.low)}, {self.expr(s.high)})",
        )
        add = f"lambda a, b: {self.binary('+', dtype, 'a', 'b')}"
        how = (s.tile, s.single, s.at_once)
        found = f"orders.scan({s.function}, {add}, {zero}, {box}, {how})"
        self.emit(depth, f"results[0] = {found}")

    def tiled(self, s: nodes.TiledSums, depth: int) -> None:
        self.nodes[name := f"node_{len(self.nodes)}"] = s
        low, high = ("".join(f"{self.expr(e)}, " for e in ends) for ends in (s.low, s.high))
        run, box = RUN if s.most else None, f"(({low}), ({high}))"
        how = f"{s.terms}, {run}, {box}, {name}, tuning, orders.shuffle"
        self.emit(depth, f"results[:] = tiled_sums({how})")

    def trimmed(self, s: nodes.Trimmed, depth: int) -> None:
        first, count = self.expr(s.first), self.expr(s.count)
        others = "".join(f", {self.expr(e)}" for e in s.others)

        def run(depth: int, function: str, skipped: str, count: str) -> None:
            rows = "".join(f", row_of({self.name(a)}, {skipped})" for a in s.arrays)
            self.emit(depth, f"{function}({first} + {skipped}, {count}{rows}{others})")

        self.emit(depth, f"if {s.inside}({first}, {first} + {count} - 1{others}):")
        run(depth + 1, s.middle, "0", count)
        self.emit(depth, "else:")
        self.emit(depth + 1, f"for edge in edges({s.widest}, {count}):")
        self.emit(
            depth + 2, f"if {s.inside}({first} + edge, {first} + {count} - edge - 1{others}):"
        )
        run(depth + 3, s.around, "0", "edge")
        run(depth + 3, s.middle, "edge", f"{count} - 2 * edge")
        run(depth + 3, s.around, f"{count} - edge", "edge")
        self.emit(depth + 3, "break")
        self.emit(depth + 1, "else:")
        run(depth + 2, s.around, "0", count)

    def running(self, s: nodes.RunningSums, depth: int) -> None:
        name, count = self.name(s.sym), self.expr(s.count)
        self.emit(depth, f"for {name} in range(0, {count}, {s.lanes}):")
        self.body((*s.allocs, *s.body), depth + 1)
        for sym, array in zip(s.sums, s.terms, strict=True):
            self.emit(depth + 1, f"{self.name(sym)}.add({self.name(array)})")

    def inside(self, s: nodes.Scope | threads.Alone | threads.Shared, depth: int) -> None:
        self.body(s.body, depth)

    def repeat(self, s: threads.Repeat, depth: int) -> None:
        self.while_loop(While(Const(True, DType.BOOL), s.body), depth)

    def declare(self, s: Declare | threads.One, depth: int) -> None:
        start = Const(0, DType.INT32) if s.value is None else s.value
        self.emit(depth, f"{self.name(s.sym)} = {self.value(start, s.sym.dtype)}")

    def alloc(self, s: nodes.Alloc, depth: int) -> None:
        self.lengths[s.sym] = s.length
        self.emit(depth, f"{self.name(s.sym)} = [uninitialised] * {s.length}")

    def row(self, s: nodes.Row, depth: int) -> None:
        self.lengths[s.sym] = s.length
        array, start = self.name(s.array), self.expr(s.start)
        self.emit(depth, f"{self.name(s.sym)} = row_of({array}, {start})")

    def clear(self, s: nodes.Clear, depth: int) -> None:
        zero = self.convert("0", DType.INT32, s.sym.dtype)
        self.emit(depth, f"for cell in range({s.length}): {self.name(s.sym)}[cell] = {zero}")

    def nothing(
        self, s: nodes.Note | nodes.NoVectors | nodes.Prefetch | threads.Barrier, depth: int
    ) -> None:
        self.emit(depth, "pass")


_Translator.statements = {
    **reference.Translator.statements,
    **dict.fromkeys((Declare, threads.One), _Translator.declare),
    **dict.fromkeys((nodes.Over, threads.Walk), _Translator.over),
    nodes.Loop: _Translator.counted,
    nodes.Run: _Translator.run_function,
    nodes.Ask: _Translator.ask,
    nodes.Give: _Translator.give,
    nodes.Scan: _Translator.scan,
    nodes.RunningSums: _Translator.running,
    nodes.TiledSums: _Translator.tiled,
    nodes.Trimmed: _Translator.trimmed,
    nodes.Alloc: _Translator.alloc,
    nodes.Row: _Translator.row,
    nodes.Clear: _Translator.clear,
    **dict.fromkeys(
        (nodes.Note, nodes.NoVectors, nodes.Prefetch, threads.Barrier), _Translator.nothing
    ),
    **dict.fromkeys((nodes.Scope, threads.Alone, threads.Shared), _Translator.inside),
    **dict.fromkeys(
        (nodes.OrderedSum, threads.Share, threads.Join, threads.Pass),
        lambda t, s, depth: t.body((s.meaning,), depth),
    ),
    threads.Repeat: _Translator.repeat,
    threads.Leave: lambda t, s, depth: t.emit(depth, f"if {t.expr(s.condition)}: break"),
}
