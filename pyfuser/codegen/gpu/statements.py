"""Prints the functions of a nest that is launched (see `pipeline.launched`)."""

from __future__ import annotations

import math

from pyfuser.codegen.c.statements import INDENT, Statements
from pyfuser.codegen.gpu.context import SIGNED, WRAPPING, GpuContext
from pyfuser.codegen.gpu.dialect import SHARED
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Expr, Sym
from pyfuser.ir.visit import all_expressions, expressions
from pyfuser.nest.launch import LANES, WORKSPACE_HEAD
from pyfuser.nest.nodes import Function, Give, Kind, Loop
from pyfuser.nest.scratch import lengths_of
from pyfuser.nest.segments import is_zero
from pyfuser.nest.threads import Alone, Barrier, Join, Leave, One, Pass, Repeat, Share, Shared, Walk

_JOINS = {"+": "pf_plus", "|": "pf_or", "^": "pf_xor", "min": "pf_least", "max": "pf_most"}


class GpuStatements(Statements):
    """Prints statements for one of many threads; its memory of known size is a local array."""

    changing_bool = "bool"

    def __init__(self, context: GpuContext) -> None:
        body = context.spec.workunit.body
        super().__init__(context.expressions, body)
        self.context, self.launch = context, context.launch
        self.headers, self.take = context.device.headers, context.unique.take
        asked = (e for e in all_expressions(body) if isinstance(e, nodes.Extent))
        self.extents = {(e.view, e.axis) for e in asked}
        self.spaces = [space.sym for space in self.launch.spaces]
        self.places: list[str] = []  # of a scan
        threads = self.launch.threads
        self.trips = {  # the first trip of a thread, and how far it is to the next one
            **{kind: (f"pf_first({axis})", f"pf_step({axis})") for kind, axis in _GRID.items()},
            Kind.BLOCKS: ("pf_block(x)", "pf_blocks(x)"),
            Kind.BLOCK: ("pf_thread(x)", f"{threads}"),
            Kind.GROUPS: ("pf_group()", f"{threads // LANES}"),
            Kind.LANES: ("pf_lane()", f"{LANES}"),
        }
        # Of a crew: the barrier, the total of all, the value of the first.
        self.words = {
            Kind.BLOCK: ("pf_barrier", f"pf_team_total<{threads}, ", f"pf_team_first<{threads}>"),
            Kind.LANES: ("pf_lanes_barrier", f"pf_lanes_total<{LANES}, ", "pf_lanes_first"),
        }

    def function(self, f: Function) -> str:
        """A function as an entry point."""
        lines = self.print(f.body, 1)
        return self.context.head(f.name) + "\n".join(lines) + "\n}\n"

    # ------------------------------------------------------------------ loops

    def counted(self, s: Loop, depth: int) -> None:
        if s.kind not in self.trips:
            super().counted(s, depth)
            return
        self.headers.update({"team", "lanes", "joins"} if s.kind is Kind.BLOCKS else ())
        self.headers.update({"index"} if s.kind in _GRID else ())
        k, stop, (first, step) = self.names[s.sym], self.text(s.stop), self.trips[s.kind]
        if isinstance(s.start, nodes.Cast):
            first = f"({s.start.dtype.cpp})({self.text(s.start.operand)}) + {first}"
        elif not is_zero(s.start):
            first = f"{self.text(s.start)} + {first}"
        self.emit(depth, f"for (int64_t {k} = {first}; {k} < {stop}; {k} += {step}) {{")
        # Before an `else if` no value could be computed by one, and no barrier could stand.
        chains, self.chains = self.chains, s.kind not in (Kind.BLOCKS, Kind.GROUPS)
        self.body(s.body, depth + 1)
        self.chains = chains
        self.emit(depth, "}")

    def walk(self, s: Walk, depth: int) -> None:
        self.headers.update(("index", "walk"))
        place, begin, end = map(self.take, ("place", "place_begin", "place_end"))
        low, high = (", ".join(map(self.text, ends)) for ends in (s.low, s.high))
        head = f"pf_walk<{len(s.low)}> {place}({begin}, {end}, {', '.join(self.trips[s.kind])})"
        self.emit(depth, f"const int64_t {begin}[] = {{{low}}}, {end}[] = {{{high}}};")
        self.emit(depth, f"for ({head}; {place}.more(); {place}.next()) {{")
        for n, sym in enumerate(s.counters):
            self.emit(depth + 1, f"const int64_t {self.names[sym]} = {place}.index({n});")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    def repeat(self, s: Repeat, depth: int) -> None:
        self.emit(depth, "for (;;) {")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    # ------------------------------------------------------------------ results

    def join(self, s: Join, depth: int) -> None:
        """Join the threads' values, then the blocks'."""
        self.headers.update(("total", "joins", "is_last"))
        self.context.device.atomics.add(("+", DType.UINT32))  # of is_last.h
        threads, offset = self.launch.threads, f"(char*)workspace + {WORKSPACE_HEAD}"
        names, joins = [self.names[sym] for sym in s.sums], [_JOINS[op] for op in s.joins]
        totals = [f"pf_total<{threads}, {op}>" for op in joins]
        parts = []
        for k, (sym, name) in enumerate(zip(s.sums, names, strict=True)):
            kind, part = sym.dtype.cpp, self.take(f"{name}_parts")
            place = f"{offset} + {16 * k} * pf_blocks(x)" if k else offset
            self.emit(depth, f"{kind}* const {part} = ({kind}*)({place});")
            self.emit(depth, f"{name} = {totals[k]}({name});")
            parts.append(part)
        self.emit(depth, "if (pf_thread(x) == 0) {")
        for part, name in zip(parts, names, strict=True):
            self.emit(depth + 1, f"{part}[pf_block(x)] = {name};")
        self.emit(depth, "}")
        self.emit(depth, "if (!pf_is_last((uint32_t*)workspace)) return;")
        block = self.take("block")
        blocks = f"int64_t {block} = pf_thread(x); {block} < pf_blocks(x); {block} += {threads}"
        for k, (sym, name) in enumerate(zip(s.sums, names, strict=True)):
            self.emit(depth, f"{name} = {sym.dtype.cpp}();")
            self.emit(depth, f"for ({blocks}) {{")
            one = f"{joins[k]}::join({name}, {parts[k]}[{block}])"
            self.emit(depth + 1, f"{name} = {one};")
            self.emit(depth, "}")
            self.emit(depth, f"{name} = {totals[k]}({name});")
            self.emit(depth, f"if (pf_thread(x) == 0) {self.result(k, sym)}")

    def result(self, k: int, value: Sym) -> str:
        """The statement that stores a result."""
        place = f"(results + {2 * k})" if k else "results"
        return f"*({value.dtype.cpp}*){place} = {self.names[value]};"

    def give(self, s: Give, depth: int) -> None:
        assert isinstance(s.value, nodes.Read)
        self.emit(depth, self.result(s.place, s.value.sym))

    def one_pass(self, s: Pass, depth: int) -> None:
        """What came out of each thread is in `own`, what comes before each block in `tile`."""
        self.headers.update(("index", "before", "is_last"))
        self.context.device.atomics.add(("+", DType.UINT32))  # of is_last.h
        told, summed, loop = s.parts
        threads, kind, name = self.launch.threads, summed.dtype.cpp, self.names[summed]
        flag = self.names[told]
        if not self.places:
            self.places = [*map(self.take, ("first", "stop", "own", "tile", "before", "total"))]
        first, last, own, tile, before, total = self.places
        i, begin, end = self.names[loop.sym], self.text(loop.start), self.text(loop.stop)
        value = f"{kind}()"
        lines = [
            f"{kind}* const {own} = ({kind}*)((char*)workspace + {WORKSPACE_HEAD});",
            f"{kind}* const {tile} = {own} + pf_blocks(x) * {threads};",
            f"const int64_t {first} = {begin} + pf_first(x) * {s.items};",
            f"const int64_t {last} = {first} + {s.items} < {end} ? {first} + {s.items} : {end};",
            f"const bool {flag} = {'true' if s.last else 'false'};",
            f"(void){flag};",
        ]
        if s.last:
            starts = f"pf_before<{threads}>({own}[pf_first(x)], {total})"
            lines += [f"{kind} {total};", f"const {kind} {before} = {starts};"]
            value = f"({kind})({tile}[pf_block(x)] + {before})"
            after = [f"if ({first} < {last} && {last} == {end}) {self.result(0, summed)}"]
        else:
            after = [
                f"{own}[pf_first(x)] = {name};",
                f"{kind} {total};",
                f"pf_before<{threads}>({name}, {total});",
                f"if (pf_thread(x) == 0) {tile}[pf_block(x)] = {total};",
                *self.prefix(kind, tile),
            ]
        lines.append(f"{kind} {name} = {value};")
        lines.append(f"for (int64_t {i} = {first}; {i} < {last}; ++{i}) {{")
        self.lines += [INDENT * depth + line for line in lines]
        self.body(loop.body, depth + 1)
        self.lines += [INDENT * depth + line for line in ("}", *after)]

    def prefix(self, kind: str, tile: str) -> list[str]:
        """Replace the blocks' totals by what comes before each, as many at a time as threads."""
        names = ("at", "block", "mine", "before", "carry", "total")
        at, block, mine, before, carry, total = map(self.take, names)
        threads = self.launch.threads
        return [
            "if (!pf_is_last((uint32_t*)workspace)) return;",
            f"{kind} {carry} = {kind}();",
            f"for (int64_t {at} = 0; {at} < pf_blocks(x); {at} += {threads}) {{",
            f"    const int64_t {block} = {at} + pf_thread(x);",
            f"    const {kind} {mine} = {block} < pf_blocks(x) ? {tile}[{block}] : {kind}();",
            f"    {kind} {total};",
            f"    const {kind} {before} = pf_before<{threads}>({mine}, {total});",
            f"    if ({block} < pf_blocks(x)) {tile}[{block}] = ({kind})({carry} + {before});",
            f"    {carry} = ({kind})({carry} + {total});",
            "}",
        ]

    # ------------------------------------------------------------------ what a crew does

    def share(self, s: Share, depth: int) -> None:
        self.body(s.body[:-1], depth)
        self.emit(depth, f"const int64_t {self.names[s.sym]} = {self.text(s.stop)};")
        self.counted(s.loop, depth)
        for total, part in zip(s.sums, s.parts, strict=True):
            kind, name = total.dtype.cpp, self.names[total]
            of_all = f"{self.words[s.crew][1]}pf_plus>({self.names[part]})"
            self.emit(depth, f"{name} = pf_plus::join<{kind}>({name}, {of_all});")

    def one(self, s: One, depth: int) -> None:
        name, first = self.names[s.sym], self.trips[s.crew][0]
        self.emit(depth, f"{s.sym.dtype.cpp} {name}{{}};")
        self.emit(depth, f"if ({first} == 0) {name} = {self.text(s.value)};")
        self.emit(depth, f"{name} = {self.words[s.crew][2]}({name});")

    def by_first(self, s: Alone, depth: int) -> None:
        self.emit(depth, f"if ({self.trips[s.crew][0]} == 0) {{")
        self.body(s.body, depth + 1)
        self.emit(depth, "}")

    # ------------------------------------------------------------------ memory

    def scratch(self, s: nodes.Scratch, depth: int) -> None:
        self.emit(depth, f"{self.cells(s, depth)} = {{}};")

    def cells(self, s: nodes.Scratch, depth: int) -> str:
        """The declaration of scratch memory of known size, after what its subscripts need."""
        e, lengths = self.expressions, lengths_of(s)
        assert lengths is not None  # see `gpu.unit.declined`
        for axis, length in enumerate(lengths):
            if (s.sym, axis) in self.extents:
                extent = e.extent_name(s.sym, axis)
                self.emit(depth, f"const int64_t {extent} = {length};")
        self.row_strides(s, [f"{math.prod(lengths[k:])}" for k in range(1, len(lengths))], depth)
        return f"{s.sym.dtype.cpp} {self.names[s.sym]}[{max(math.prod(lengths), 1)}]"

    def row_strides(self, s: nodes.Scratch, products: list[str], depth: int) -> None:
        strides, names = self.expressions.views[s.sym].strides[:-1], self.expressions.strides
        for stride, product in zip(strides, products, strict=True):
            self.emit(depth, f"const int64_t {names[stride]} = {product};")

    def memory(self, s: Shared, depth: int) -> None:
        memory, lengths = s.memory, lengths_of(s.memory)
        name, starts = self.names[memory.sym], tuple[Expr, ...]()
        if lengths is None:
            assert isinstance(memory, nodes.Scratch)
            self.clear_all(memory.sym, self.dynamic(memory, depth), depth)
            return
        if isinstance(memory, nodes.DeclareArray):
            starts = memory.values
            cells = f"{memory.sym.dtype.cpp} {name}[{max(len(starts), 1)}]"
        else:
            cells = self.cells(memory, depth)
        self.emit(depth, f"{SHARED} {cells};")
        if all(map(is_zero, starts)):
            self.clear_all(memory.sym, str(math.prod(lengths)), depth)
            return
        self.emit(depth, "if (pf_thread(x) == 0) {")
        for n, start in enumerate(starts):
            self.emit(depth + 1, f"{name}[{n}] = {self.text(start)};")
        self.emit(depth, "}")

    def dynamic(self, s: nodes.Scratch, depth: int) -> str:
        """Scratch memory of a size that is known when it runs, and how many cells it has."""
        self.headers.add("dynamic")
        kind, place = s.sym.dtype.cpp, self.spaces.index(s.sym)
        extents = [self.expressions.extent_name(s.sym, axis) for axis in range(len(s.shape))]
        for extent, length in zip(extents, s.shape, strict=True):
            self.emit(depth, f"const int64_t {extent} = pf_length({self.text(length)});")
        self.row_strides(s, [" * ".join(extents[k:]) for k in range(1, len(extents))], depth)
        before = f"pf_after_{place - 1}" if place else "0"
        cells = " * ".join(extents)
        self.emit(depth, f"{kind}* const {self.names[s.sym]} = ({kind}*)(pf_dynamic + {before});")
        if place + 1 < len(self.spaces):
            room = f"({cells} * (int64_t)sizeof({kind}) + 15) / 16 * 16"
            self.emit(depth, f"const int64_t pf_after_{place} = {before} + {room};")
        return cells

    def clear_all(self, sym: Sym, cells: str, depth: int) -> None:
        """Make memory of a block zero, by all threads."""
        k, threads = self.take("k"), self.launch.threads
        head = f"for (int64_t {k} = pf_thread(x); {k} < {cells}; {k} += {threads})"
        self.emit(depth, f"{head} {self.names[sym]}[{k}] = {sym.dtype.cpp}();")

    # ------------------------------------------------------------------ values

    def compound(self, target: str, dtype: DType, s: nodes.Update, depth: int) -> None:
        e, common = self.context.device, common_type(dtype, s.value.dtype)
        fetches = any(isinstance(x, nodes.AtomicFetch) for i in s.indices for x in expressions(i))
        if s.op not in WRAPPING or common not in SIGNED or fetches:
            super().compound(target, dtype, s, depth)
            return
        cast = "" if common is dtype else f"({dtype.cpp})"
        total = e.wrapping(s.op, common, target, self.text(s.value))
        self.emit(depth, f"{target} = {cast}{total};")


_GRID = {Kind.GRID_X: "x", Kind.GRID_Y: "y", Kind.GRID_Z: "z"}

GpuStatements.statements = {
    **Statements.statements,
    Loop: GpuStatements.counted,
    Walk: GpuStatements.walk,
    Repeat: GpuStatements.repeat,
    Leave: lambda p, s, depth: p.emit(depth, f"if ({p.text(s.condition)}) break;"),
    Give: GpuStatements.give,
    Join: GpuStatements.join,
    Pass: GpuStatements.one_pass,
    Share: GpuStatements.share,
    One: GpuStatements.one,
    Alone: GpuStatements.by_first,
    Shared: GpuStatements.memory,
    Barrier: lambda p, s, depth: p.emit(depth, f"{p.words[s.crew][0]}();"),
}
