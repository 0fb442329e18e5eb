"""What the parts of one C++ translation unit share: argument slots, names and printers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyfuser.codegen.c.expressions import Expressions
from pyfuser.codegen.c.names import Names, SymNames
from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu import checked as cpu_checked
from pyfuser.codegen.cpu.checked import CheckedExpressions, Declared
from pyfuser.codegen.cpu.scratch import scratch_views
from pyfuser.ir.canonical import all_syms
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Sym, Workunit
from pyfuser.nest.abi import DIVIDED, OUTSIDE, abi
from pyfuser.nest.nodes import Nest
from pyfuser.nest.shares import Shares, Varying, Work
from pyfuser.nest.spec import KernelSpec, ViewSpec
from pyfuser.support.records import dataclass

Bounds = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the function that holds the loops, and how the entry point gets it."""

    type: str
    name: str
    value: str
    restrict: bool = False
    written: bool = False

    @property
    def plain(self) -> str:
        """Its declaration without `restrict`."""
        return f"{self.type} {self.name}"

    def __str__(self) -> str:
        return f"{self.type} __restrict__ {self.name}" if self.restrict else self.plain


class Context:
    """What the parts of one translation unit share: the nest, names, printers and parameters.

    `reserved` are the names of the code around the body, which user's names must not meet.
    `printer`: how expressions are printed for the target.
    """

    nest: Nest

    def __init__(
        self,
        spec: KernelSpec,
        reserved: Iterable[str],
        printer: type[Expressions] = Expressions,
    ) -> None:
        self.spec = spec
        literal = frozenset((*reserved, "begin", "end"))
        self.unique = Names(literal)
        known = self.unique.take_all(all_syms(spec.workunit), spec.names)
        self.names = SymNames(known, self.unique, literal)
        views = spec.views_by_name
        views |= scratch_views(spec.workunit.body, views)
        self.strides = self._name_strides(views)
        self.expressions = printer(self.names, views, self.strides, spec.serial)
        if spec.checked:
            self.expressions = CheckedExpressions(
                self.names, views, self.strides, spec.workunit.body
            )
        self.parameters = self._parameters()

    def take(self, nest: Nest) -> None:
        """Print this nest: that of the spec after all passes, with `names`."""
        self.nest, self.expressions.rounded = nest, nest.rounded
        self.expressions.own = (
            set() if nest.shares is None else {t.view for t in nest.shares.tables}
        )

    def _name_strides(self, views: dict[Sym, ViewSpec]) -> dict[int, str]:
        names: dict[int, str] = {}
        for sym, view in views.items():
            for axis, stride in enumerate(view.strides):
                if stride >= 0 and stride not in names:
                    names[stride] = self.unique.take(f"{self.names[sym]}_stride{axis}")
        return names

    def _parameters(self) -> list[Parameter]:
        result: list[Parameter] = []
        place = 1 + 2 * self.spec.rank
        for slot in abi(self.spec):
            sym = self.workunit.params[slot.param].sym
            view, name, kind = self.spec.views[slot.param], self.names[sym], sym.dtype.cpp
            value = f"slot[{place}]"
            place += 1
            if slot.kind == "pointer":
                assert view is not None
                pointer = f"{'' if view.written else 'const '}{kind}*"
                result.append(
                    Parameter(pointer, name, f"({pointer}){value}", view.restrict, view.written)
                )
            elif slot.kind == "scalar":
                place += sym.dtype is DType.COMPLEX128
                result.append(Parameter(f"const {kind}", name, f"pf_bits<{kind}>({value})"))
            elif slot.kind == "stride":
                assert view is not None
                stride = self.strides[view.strides[slot.axis]]
                result.append(Parameter("const int64_t", stride, value))
            else:
                extent = self.expressions.extent_name(sym, slot.axis)
                result.append(Parameter("const int64_t", extent, value))
        return result

    @property
    def signature(self) -> list[str]:
        """The parameters for a function's declaration."""
        return [str(p) for p in self.parameters]

    @property
    def arguments(self) -> list[str]:
        """The same as arguments of a call."""
        return [p.name for p in self.parameters]

    @property
    def workunit(self) -> Workunit:
        """What is printed."""
        return self.spec.workunit

    def counter(self, axis: int) -> str:
        """The name of the loop variable of an axis, which is 64 bits wide whatever the index is."""
        return self.names[self.nest.counters[axis]]

    def uses(self, *headers: str) -> None:
        """Note that the unit needs headers, see `c.headers`."""
        self.expressions.headers.update(headers)

    def guard(self, nothing: str = "") -> list[str]:
        """What a function that holds loops starts with; it returns `nothing` after a mistake."""
        return [INDENT + cpu_checked.guard(nothing)] if self.spec.checked else []

    def team(self, shares: Shares | None, size: str) -> str:
        """The declaration of `threads`, those that share so many iterations."""
        self.uses("threads")
        if shares is None:
            return "const int64_t threads = 1;"
        return f"const int64_t threads = pf_team(slot[0], {size}, {self.least(shares)});"

    def least(self, shares: Shares) -> str:
        """The number of iterations that is worth another thread."""
        if not isinstance(shares.least, Varying):
            return str(shares.least)
        self.uses("grain")
        return f"pf_grain({shares.least.worth}, {self._work(shares.least.work)})"

    def _work(self, work: Work) -> str:
        text = self.expressions.text
        return " + ".join(
            str(term)
            if isinstance(term, int)
            else f"pf_trips({text(term.start)}, {text(term.stop)}) * (1 + {self._work(term.work)})"
            for term in work
        )


def entry(context: Context, lines: list[str]) -> str:
    """The entry point around `lines`: unpacks the slots and checks alignment."""
    rank = context.spec.rank
    first = ", ".join(f"slot[{1 + axis}]" for axis in range(rank))
    last = ", ".join(f"slot[{1 + rank + axis}]" for axis in range(rank))
    parameters = [*SLOT, *RESULTS] if context.workunit.accumulators else SLOT
    text = [f"int64_t begin[] = {{{first}}}, end[] = {{{last}}};", *unpacked(context)]
    text += [*alignment_checks(context), *lines]
    if not context.spec.checked:
        return entry_point([context], parameters, text)
    context.uses("checked")
    guarded = cpu_checked.guarded(RESULTS if context.workunit.accumulators else (), OUTSIDE)
    code = _defined("static int pf_unguarded", parameters, text)
    return f"{code}\n{entry_point([context], [*parameters, cpu_checked.REPORT], guarded)}"


SLOT = (Declared("const int64_t*", "slot"),)
RESULTS = (Declared("int64_t*", "results"),)


def entry_point(
    contexts: Sequence[Context], parameters: Sequence[Declared], lines: list[str]
) -> str:
    """`pf_kernel`; it returns DIVIDED if an integer was divided by 0, see division.h."""
    kernel = 'extern "C" int pf_kernel'
    if not any("division" in context.expressions.headers for context in contexts):
        return _defined(kernel, parameters, lines)
    names = ", ".join(parameter.name for parameter in parameters)
    reported = [
        f"const int status = pf_dividing({names});",
        f"return __atomic_exchange_n(&pf_zero, 0, __ATOMIC_RELAXED) ? {DIVIDED} : status;",
    ]
    inner = _defined("static int pf_dividing", parameters, lines)
    return f"{inner}\n{_defined(kernel, parameters, reported)}"


def _defined(head: str, parameters: Sequence[Declared], lines: list[str]) -> str:
    body = "".join(f"{INDENT}{line}\n" for line in lines)
    return f"{head}({', '.join(map(str, parameters))}) {{\n{body}}}\n"


def unpacked(context: Context) -> list[str]:
    """The declarations of the parameters, from their slots."""
    if any(view is None for view in context.spec.views):
        context.uses("bits")
    return [f"{parameter.plain} = {parameter.value};" for parameter in context.parameters]


def alignment_checks(context: Context) -> list[str]:
    """Statements that return 1 + k if the address of parameter k is misaligned."""
    lines = []
    for n, (param, view) in enumerate(
        zip(context.workunit.params, context.spec.views, strict=True)
    ):
        if view is not None and view.packed and param.sym.dtype.size > 1:
            name, kind = context.names[param.sym], param.sym.dtype.cpp
            lines.append(f"if ((uintptr_t){name} % alignof({kind})) return {n + 1};")
    return lines


def box_bounds(context: Context) -> tuple[list[str], list[Bounds]]:
    """Locals for the bounds of all axes: behind a pointer a store might change them."""
    lines, bounds = [], []
    for axis, sym in enumerate(context.workunit.indices):
        first = context.unique.take(f"{context.names[sym]}_begin")
        last = context.unique.take(f"{context.names[sym]}_end")
        lines.append(f"{INDENT}const int64_t {first} = begin[{axis}], {last} = end[{axis}];")
        bounds.append((first, last))
    return lines, bounds


def function(
    head: str, parameters: list[str], lines: list[str], inline: bool = False, once: bool = False
) -> str:
    """A function that is never (or always) inlined, one parameter a line if they are many.

    once: whether g++ may not compile it again for arguments that it knows.
    """
    text = ", ".join(parameters)
    if len(head) + len(text) > 60:
        text = f"\n{INDENT}" + f",\n{INDENT}".join(parameters)
    apart = "__attribute__((noinline, noclone))" if once else "__attribute__((noinline))"
    kind = "inline __attribute__((always_inline))" if inline else apart
    return f"static {kind} {head}({text}) {{\n" + "\n".join(lines) + "\n}\n\n"
