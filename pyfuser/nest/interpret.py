"""The interpreter of nests: what they mean, on top of that of the ir (see `ir.reference`).

Whatever may run in any order runs in a shuffled one: the iterations of an Over, the trips of a
shared Loop. So a pass that is wrong about an order shows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyfuser.ir import arithmetic
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Declare, Sym
from pyfuser.ir.reference import interpret as reference
from pyfuser.ir.reference.interpret import Array, Value, _scalar
from pyfuser.ir.reference.races import accessors, scratch_accessors
from pyfuser.nest.nodes import (
    Alloc,
    Ask,
    Clear,
    Function,
    Loop,
    Nest,
    Note,
    OrderedSum,
    Over,
    Prefetch,
    Row,
    Run,
    RunningSums,
    Scope,
)
from pyfuser.support.caches import cached


def interpret(
    nest: Nest,
    begin: Sequence[int],
    end: Sequence[int],
    arguments: Sequence[Array | Value],
    seed: int = 0,
) -> None:
    """Run a nest over a box. `arguments[k]` is bound to `workunit.params[k]`, arrays in place.

    Raises UndefinedBehaviour for what C++ leaves undefined.
    """
    bound: list[Any] = []
    run, names = _compile(nest)
    for param, argument in zip(nest.workunit.params, arguments, strict=True):
        if param.rank:
            name = names[param.sym]
            bound.append((*accessors(argument, name, None), argument.shape))  # type: ignore[union-attr, arg-type]
        else:
            bound.append(_scalar(argument, param.sym.dtype))
    run(_Orders(random.Random(seed)), begin, end, *bound)


class _Orders:
    """Gives iterations and trips their order."""

    def __init__(self, rng: random.Random) -> None:
        self._shuffle = rng.shuffle

    def points(self, low: Sequence[int], high: Sequence[int], shared: bool) -> Iterable[Any]:
        found = list(itertools.product(*map(range, low, high)))
        if shared:
            self._shuffle(found)
        return found

    def trips(self, start: int, stop: int, step: int, shared: bool) -> Iterable[int]:
        found = list(range(start, stop, step))
        if shared:
            self._shuffle(found)
        return found


class _Row:
    """A part of an array, from a place on."""

    def __init__(self, array: Any, place: int) -> None:
        self._array, self._place = array, place

    def __getitem__(self, index: int) -> Any:
        return self._array[self._place + index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._array[self._place + index] = value


@cached(256)
def _compile(nest: Nest) -> tuple[Callable[..., Any], dict[Sym, str]]:
    translator = _Translator(nest)
    code = compile(translator.source(), f"<nest of {nest.workunit.name}>", "exec")
    namespace = {**arithmetic.OPERATIONS, **translator.functions, "scratch": scratch_accessors}
    namespace["row_of"] = _Row
    exec(code, namespace)
    return namespace["run"], translator.names


class _Translator(reference.Translator):
    """A nest -> the source of `run(orders, begin, end, *arguments)`, with its functions inside."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest.workunit)
        self.nest = nest

    def source(self) -> str:
        params = self.nest.workunit.params
        given = ["orders", "begin", "end", *(self.name(p.sym) for p in params)]
        self.emit(0, f"def run({', '.join(given)}):")
        for param in params:
            if param.rank:
                name = self.name(param.sym)
                self.emit(1, f"{name}_load, {name}_store, {name}_atomic, {name}_shape = {name}")
        for f in self.nest.functions:
            self.function(f)
        self.emit(1, f"{self.nest.functions[-1].name}(*begin, *end)")
        return "\n".join(self.lines) + "\n"

    def function(self, f: Function) -> None:
        given = ", ".join(map(self.name, (*f.low, *f.high, *f.params)))
        self.emit(1, f"def {f.name}({given}):")
        self.body(f.body, 2)
        if f.result is not None:
            self.emit(2, f"return {self.expr(f.result)}")

    def over(self, s: Over, depth: int) -> None:
        low, high = ("".join(f"{self.expr(e)}, " for e in ends) for ends in (s.low, s.high))
        indices = "".join(f"{self.name(i)}, " for i in self.nest.workunit.indices)
        self.emit(
            depth, f"for {indices}in orders.points(({low}), ({high}), {not self.nest.serial}):"
        )
        self.body(s.body, depth + 1)

    def counted(self, s: Loop, depth: int) -> None:
        ends = ", ".join(self.expr(e) for e in (s.start, s.stop, s.step))
        self.emit(depth, f"for {self.name(s.sym)} in orders.trips({ends}, {s.shared}):")
        self.increments.append("pass")
        self.body(s.body, depth + 1)
        self.increments.pop()

    def run_function(self, s: Run, depth: int) -> None:
        self.emit(depth, f"{s.function}({', '.join(self.expr(e) for e in (*s.low, *s.high))})")

    def ask(self, s: Ask, depth: int) -> None:
        arguments = ", ".join(map(self.expr, s.arguments))
        self.emit(depth, f"{self.name(s.sym)} = {s.function}({arguments})")

    def inside(self, s: Scope, depth: int) -> None:
        self.body(s.body, depth)

    def ordered(self, s: OrderedSum | RunningSums, depth: int) -> None:
        self.body((s.meaning,), depth)

    def declare(self, s: Declare, depth: int) -> None:
        start = Const(0, DType.INT32) if s.value is None else s.value
        self.emit(depth, f"{self.name(s.sym)} = {self.value(start, s.sym.dtype)}")

    def alloc(self, s: Alloc, depth: int) -> None:
        self.lengths[s.sym] = s.length
        self.emit(depth, f"{self.name(s.sym)} = [uninitialised] * {s.length}")

    def row(self, s: Row, depth: int) -> None:
        self.lengths[s.sym] = s.length
        array, start = self.name(s.array), self.expr(s.start)
        self.emit(depth, f"{self.name(s.sym)} = row_of({array}, {start})")

    def clear(self, s: Clear, depth: int) -> None:
        zero = self.convert("0", DType.INT32, s.sym.dtype)
        self.emit(depth, f"for cell in range({s.length}): {self.name(s.sym)}[cell] = {zero}")

    def nothing(self, s: Note | Prefetch, depth: int) -> None:
        self.emit(depth, "pass")


_Translator.statements = {
    **reference.Translator.statements,
    Declare: _Translator.declare,
    Over: _Translator.over,
    Loop: _Translator.counted,
    Run: _Translator.run_function,
    Ask: _Translator.ask,
    Note: _Translator.nothing,
    Prefetch: _Translator.nothing,
    Scope: _Translator.inside,
    OrderedSum: _Translator.ordered,
    RunningSums: _Translator.ordered,
    Alloc: _Translator.alloc,
    Row: _Translator.row,
    Clear: _Translator.clear,
}
