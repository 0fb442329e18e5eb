"""ir -> the source of one PyKokkos workunit that a person would have written.

Conversions that C++ inserts by itself are not printed. What the language cannot say in an
expression is computed in an annotated local before the statement:

* a conversion where C++ would insert none (e.g. a rounding to float32 inside a float64 sum);
* a conditional expression: `t: int = 0`, then `if`/`else` with an assignment in each branch;
* a minimum or maximum that is not atomic: an `if` with a store.

A loop whose variable is not a 32-bit int, or whose bound needs such a local, becomes a `while`; an
uninitialised local starts at zero. PyKokkos drops the parentheses around `and`, `or` and loses the
grouping with them, so a grouping that precedence does not give is printed as `not not (a or b)`.

A kernel with scratch memory or nested sums takes a team's member, and a sum is a nested
parallel_reduce. Other loops of a team stay loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyfuser.codegen.pykokkos.expressions import Expressions
from pyfuser.codegen.pykokkos.team import needs_team, nested_sum
from pyfuser.codegen.pykokkos.text import (
    ATOMICS,
    COMPARE,
    RESERVED,
    Text,
    element_annotation,
    identifier,
    local_annotation,
    stripped,
)
from pyfuser.ir import nodes
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Body, For, Sym, Workunit
from pyfuser.support.errors import PyFuserError
from pyfuser.transform.kernel import Kernel

COLUMNS = 72
"""Of a function's first line: beside the workunits as written, there is half a page for it."""


def emit(kernel: Kernel | Workunit) -> str:
    """The source of a module that defines the kernel's workunit; lowering it gives its ir back.

    Raises PyFuserError for a kernel that `without_source` names a reason for.
    """
    workunit = kernel.workunit if isinstance(kernel, Kernel) else kernel
    why = without_source(workunit)
    if why is not None:
        raise PyFuserError(f"{workunit.name}: {why}")
    return _Emitter(workunit).module()


def without_source(workunit: Workunit) -> str | None:
    """Why a kernel cannot be said as one PyKokkos workunit; None if it can."""
    if len(workunit.indices) != 1 and needs_team(workunit):
        return (
            f"this kernel has no PyKokkos source: its iterations have {len(workunit.indices)} "
            "indices, and only teams, which have one, sum or use scratch memory within an iteration"
        )
    return None


def shown(workunit: Workunit) -> str:
    """The source for people to read, or a comment why there is none."""
    why = without_source(workunit)
    return emit(workunit) if why is None else f"# {why}\n"


def _header(function: str, parameters: Sequence[str]) -> list[str]:
    """The first line of a function, or several where its parameters are many."""
    line = f"def {function}({', '.join(parameters)}):"
    if len(line) <= COLUMNS:
        return [line]
    rows = [""]
    for parameter in parameters:
        longer = f"{rows[-1]} {parameter},".lstrip()
        if len(longer) + 4 <= COLUMNS or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(f"{parameter},")
    return [f"def {function}(", *(f"    {row}" for row in rows), "):"]


class _Emitter(Expressions):
    def __init__(self, workunit: Workunit) -> None:
        self.workunit = workunit
        self.function = identifier(workunit.name)
        super().__init__({*RESERVED, self.function})
        for sym in all_syms(workunit):
            self.names[sym] = self.unique(sym.name)
        self.member = self.unique("team_member") if needs_team(workunit) else ""
        if self.member:
            (rank,) = workunit.indices
            self.names[rank] = f"{self.member}.league_rank()"
        self.nested = 0  # functions around the one that is printed
        self.steps: list[list[str]] = []  # what `continue` does first, by enclosing loop

    def module(self) -> str:
        self.body(self.workunit.body)
        header = _header(self.function, self.parameters())
        imports = ["import pykokkos as pk"]
        if "math" in self.imports:
            imports.insert(0, "import math")
        if "List" in self.imports:
            imports.insert(0, "from typing import List")
        decorator = ["# for pk.TeamPolicy(n, 1)"] * bool(self.member) + ["@pk.workunit"]
        return "\n".join([*imports, "", "", *decorator, *header, *self.lines, ""])

    def parameters(self) -> list[str]:
        w, name = self.workunit, self.names
        result = [f"{name[s]}: int" for s in w.indices]
        if self.member:
            result = [f"{self.member}: pk.TeamMember"]
        for accumulator in w.accumulators:
            result.append(
                f"{name[accumulator.sym]}: pk.Acc[{element_annotation(accumulator.sym.dtype)}]"
            )
            if accumulator.last_pass is not None:
                result.append(f"{name[accumulator.last_pass]}: bool")
        for param in w.params:
            dtype = param.sym.dtype
            kind = (
                f"pk.View{param.rank}D[{element_annotation(dtype)}]"
                if param.rank
                else local_annotation(dtype)
            )
            result.append(f"{name[param.sym]}: {kind}")
        return result

    # ----------------------------------------------------------------- statements

    def body(self, body: Body) -> None:
        start = len(self.lines)
        summed: For | None = None
        for place, stmt in enumerate(body):
            total = nested_sum(body, place) if self.member else None
            if total is not None:
                summed = total[1]
                self.nested_sum(*total)
            elif stmt is not summed:
                _STATEMENTS[type(stmt)](self, stmt)
        if len(self.lines) == start:
            self.line("pass")

    def block(self, header: str, body: Body) -> None:
        self.line(header)
        self.depth += 1
        self.body(body)
        self.depth -= 1

    def declare(self, s: nodes.Declare) -> None:
        zero = "False" if s.sym.dtype is DType.BOOL else "0"
        value = zero if s.value is None else self.converted(s.value).source
        self.line(f"{self.names[s.sym]}: {local_annotation(s.sym.dtype)} = {value}")

    def declare_array(self, s: nodes.DeclareArray) -> None:
        self.imports.add("List")
        values = ", ".join(self.converted(v).source for v in s.values)
        self.line(f"{self.names[s.sym]}: List[{local_annotation(s.sym.dtype)}] = [{values}]")

    def scratch(self, s: nodes.Scratch) -> None:
        kind = f"pk.ScratchView{len(s.shape)}D"
        shape = "".join(f", {self.converted(extent).source}" for extent in s.shape)
        made = f"{kind}({self.member}.team_scratch(0){shape})"
        self.line(f"{self.names[s.sym]}: {kind}[{element_annotation(s.sym.dtype)}] = {made}")

    def nested_sum(self, total: Sym, loop: For) -> None:
        function, name = self.unique(f"{total.name}_terms"), self.names[total]
        term, kind = self.unique(total.name), element_annotation(total.dtype)
        index = f"{self.names[loop.sym]}: int"
        kept, self.names[total], self.nested = self.steps, term, self.nested + 1
        self.steps = []
        self.block(f"def {function}({index}, {term}: pk.Acc[{kind}]):", loop.body)
        self.steps, self.names[total], self.nested = kept, name, self.nested - 1
        extent = "ThreadVectorRange" if self.nested else "TeamThreadRange"
        over = f"pk.{extent}({self.member}, {self.expr(loop.stop).source})"
        annotation = local_annotation(total.dtype)
        self.line(f"{name}: {annotation} = pk.parallel_reduce({over}, {function})")

    def assign(self, s: nodes.Assign) -> None:
        value = s.value
        if isinstance(value, nodes.Binary) and value.op == "/" and value.left == nodes.Read(s.sym):
            # The one way to say C++'s division in a type other than double and int.
            self.update(nodes.Update("/", s.sym, (), value.right))
            return
        self.line(f"{self.names[s.sym]} = {self.converted(s.value).source}")

    def store(self, s: nodes.Store) -> None:
        value = self.converted(s.value).source
        self.line(f"{self.element(s.view, s.indices)} = {value}")

    def update(self, s: nodes.Update) -> None:
        if s.atomic:
            value = self.converted(s.value).source
            self.line(self.atomic(ATOMICS[s.op], s.target, s.indices, [value]))
            return
        target = self.element(s.target, s.indices)
        bare = stripped(s.value)
        repeated = s.op in ("<<", ">>") or common_type(s.target.dtype, bare.dtype) is s.target.dtype
        value = self.expr(bare if repeated else s.value).source
        if s.op in ("min", "max"):
            local = self.hoisted(s.target.dtype, Text(value)).source
            self.line(f"if {local} {'<' if s.op == 'min' else '>'} {target}:")
            self.line(f"    {target} = {local}")
        else:
            self.line(f"{target} {'' if s.op == 'exchange' else s.op}= {value}")

    def branch(self, s: nodes.If) -> None:
        self.branches("if", self.condition(s.condition), s)

    def branches(self, word: str, condition: Text, s: nodes.If) -> None:
        """The branches of an `if` or `elif`; a lone `if` in the last is an `elif`, ...

        ... unless its condition needs lines of its own before it.
        """
        self.block(f"{word} {condition.source}:", s.then)
        nested = s.orelse[0] if len(s.orelse) == 1 else None
        if not isinstance(nested, nodes.If):
            if s.orelse:
                self.block("else:", s.orelse)
            return
        start = len(self.lines)
        self.depth += 1
        condition = self.condition(nested.condition)
        self.depth -= 1
        if len(self.lines) == start:
            self.branches("elif", condition, nested)
            return
        self.lines.insert(start, "    " * self.depth + "else:")
        self.depth += 1
        self.branches("if", condition, nested)
        self.depth -= 1

    def loop(self, s: nodes.For) -> None:
        before, self.lines = self.lines, []
        bounds = [self.converted(s.start), self.expr(s.stop), self.expr(s.step)]
        inner, self.lines = self.lines, before
        if inner or s.sym.dtype is not DType.INT32:
            self.counted_while(s)
            return
        start, stop, step = (bound.source for bound in bounds)
        parts = [start, stop, step] if step != "1" else [start, stop]
        self.steps.append([])
        span = stop if parts == ["0", stop] else ", ".join(parts)
        self.block(f"for {self.names[s.sym]} in range({span}):", s.body)
        self.steps.pop()

    def counted_while(self, s: nodes.For) -> None:
        """The loop as C++ runs it: the bound is evaluated before every iteration."""
        name = self.names[s.sym]
        self.line(f"{name}: {local_annotation(s.sym.dtype)} = {self.converted(s.start).source}")
        self.line("while True:")
        self.depth += 1
        step = s.step.value if isinstance(s.step, nodes.Const) else 1
        down = isinstance(step, int) and step < 0
        stop = self.expr(s.stop).within(COMPARE + 1)
        self.line(f"if {name} {'<=' if down else '>='} {stop}:")
        self.line("    break")
        before, self.lines = self.lines, []
        depth, self.depth = self.depth, 0
        self.line(f"{name} += {self.expr(s.step).source}")
        self.steps.append(self.lines)
        self.lines, self.depth = before, depth
        self.body(s.body)
        for text in self.steps.pop():
            self.line(text)
        self.depth -= 1

    def while_loop(self, s: nodes.While) -> None:
        start = len(self.lines)
        self.line("while True:")
        self.depth += 1
        condition = self.condition(s.condition)
        simple = len(self.lines) == start + 1
        if simple:
            self.lines[start] = "    " * (self.depth - 1) + f"while {condition.source}:"
        else:
            self.line(f"if not {condition.within(COMPARE)}:")
            self.line("    break")
        self.steps.append([])
        self.body(s.body)
        self.steps.pop()
        self.depth -= 1

    def skip(self) -> None:
        for text in self.steps[-1]:
            self.line(text)
        self.line("continue")


_STATEMENTS: dict[type, Callable[[_Emitter, Any], None]] = {
    nodes.Declare: _Emitter.declare,
    nodes.DeclareArray: _Emitter.declare_array,
    nodes.Scratch: _Emitter.scratch,
    nodes.Assign: _Emitter.assign,
    nodes.Store: _Emitter.store,
    nodes.Update: _Emitter.update,
    nodes.If: _Emitter.branch,
    nodes.For: _Emitter.loop,
    nodes.While: _Emitter.while_loop,
    nodes.Break: lambda m, s: m.line("break"),
    nodes.Continue: lambda m, s: m.skip(),
    nodes.Eval: lambda m, s: m.line(m.expr(s.expr).source),
}
