"""What the parts of one GPU kernel share: names, parameters, and printers for device code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyfuser.codegen.c.expressions import PRIMARY, Expressions, Text
from pyfuser.codegen.c.maths.scalar import SUFFIXES
from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context
from pyfuser.codegen.gpu.dialect import BUILTINS, DEVICE, Dialect
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Expr
from pyfuser.ir.visit import expressions
from pyfuser.nest.abi import abi
from pyfuser.nest.build import nest_of
from pyfuser.nest.spec import KernelSpec
from pyfuser.pipeline import launched
from pyfuser.support.records import dataclass

_WORKSPACE = "workspace"
SIGNED = (DType.INT32, DType.INT64)
WRAPPING = {"+": "add", "-": "sub", "*": "mul"}
_OPERATIONS = {
    "+": "add",
    "-": "sub",
    "&": "and",
    "|": "or",
    "^": "xor",
    **{op: op for op in ("min", "max", "exchange")},
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a GPU kernel.

    kind: "begin" and "end" (int64, of `axis` of the space), "pointer", "scalar" (of `dtype`),
    "address" (behind each real floating-point scalar: where its value is, on the device; 0: the
    scalar is the value), "stride" and "extent" (int64, of `axis` of view `param`; see
    `cpu.context.Slot`), "workspace" or "results" (pointers). param: the position in
    workunit.params of the five in the middle.
    """

    kind: str
    dtype: DType = DType.INT64
    param: int = -1
    axis: int = -1


class GpuExpressions(Expressions):
    """Prints expressions; atomics by instructions of the processor, where it has one."""

    by_doubles: Mapping[str, str] = {}  # a GPU gains nothing by dividing integers as doubles
    traps = False
    switches = False
    dialect: Dialect
    atomics: set[tuple[str, DType]]
    plain = False  # whether sums are printed as operators, see `_term`

    def not_a_number(self, f: str) -> str:
        return f"pf_nan{f}()"

    def infinity(self, f: str) -> str:
        return f"pf_inf{f}()"

    def _term(self, index: Expr, stride: int) -> str:
        """An index computed in 64 bits that overflows is outside every view: operators will do."""
        before, self.plain = self.plain, all(map(_keeps_size, expressions(index)))
        text = super()._term(index, stride)
        self.plain = before
        return text

    def unary(self, e: nodes.Unary) -> Text:
        if e.op == "-" and e.dtype in SIGNED and not isinstance(e.operand, nodes.Const):
            return self.wrapping("-", e.dtype, "0", self.text(e.operand)), PRIMARY
        return super().unary(e)

    def binary(self, e: nodes.Binary) -> Text:
        """Signed integers wrap, where CUDA's compiler would rely on their not doing so."""
        if e.op in WRAPPING and e.dtype in SIGNED and not self.plain:
            return self.wrapping(e.op, e.dtype, self.text(e.left), self.text(e.right)), PRIMARY
        return super().binary(e)

    def wrapping(self, op: str, dtype: DType, left: str, right: str) -> str:
        """A sum, difference or product modulo 2**32 or 2**64."""
        self.headers.add("wrapping")
        return f"pf_{WRAPPING[op]}_{SUFFIXES[dtype]}({left}, {right})"

    def atomic_operation(
        self, op: str, cell: str, dtype: DType, value: str, node: nodes.Update | nodes.AtomicFetch
    ) -> str:
        if not self.serial and op in _OPERATIONS and self.dialect.native(op, dtype):
            self.atomics.add((op, dtype))
            return f"{native_name(op, dtype)}(&{cell}, {value})"
        return self.composed_atomic(op, cell, dtype, value, node)

    def atomic(self, cell: str, dtype: DType, value: str, change: str) -> str:
        """Reached by size: a word at a time, the word around it, or behind a lock."""
        if self.serial:
            return super().atomic(cell, dtype, value, change)
        way = {4: "32", 8: "64", 16: "locked"}.get(dtype.size, "narrow")
        self.headers.add(f"atomic_{way}")
        return f"pf_atomic_{way}<{dtype.cpp}>(&{cell}, {value}, {change})"


def _keeps_size(e: Expr) -> bool:
    """Whether an expression is part of a sum of products in 64 bits."""
    if isinstance(e, nodes.Binary):
        return e.op in WRAPPING and e.dtype is DType.INT64
    if isinstance(e, nodes.Cast):
        return e.dtype is DType.INT64 and e.operand.dtype.is_integer
    return isinstance(e, (nodes.Read, nodes.Const, nodes.Load, nodes.Extent))


def native_name(op: str, dtype: DType) -> str:
    """The function that applies an operation atomically: `pf_atomic_add_f64`."""
    return f"pf_atomic_{_OPERATIONS[op]}_{SUFFIXES[dtype]}"


def native_atomics(atomics: Iterable[tuple[str, DType]], dialect: Dialect) -> str:
    """Definitions of the atomics that are instructions."""
    lines = []
    for op, dtype in sorted(atomics, key=lambda a: (a[0], a[1].value)):
        kind, value = dtype.cpp, dialect.native(op, dtype)
        head = f"{kind} {native_name(op, dtype)}({kind}* cell, {kind} value)"
        lines.append(f"static {DEVICE} inline {head} {{\n    return {value};\n}}\n")
    return "".join(lines)


class GpuContext(Context):
    """A context whose parameters are those of the kernel itself, and its nest as it is launched."""

    def __init__(self, spec: KernelSpec, dialect: Dialect) -> None:
        super().__init__(spec, {_WORKSPACE, *BUILTINS}, GpuExpressions)
        assert isinstance(self.expressions, GpuExpressions)
        self.device = self.expressions
        self.device.dialect, self.device.atomics = dialect, set()
        self.take(launched(nest_of(spec, self.names)))
        assert self.nest.launch is not None
        self.launch = self.nest.launch
        box = self.nest.functions[-1]
        self.bounds = [self.names[sym] for sym in (*box.low, *box.high)]
        # By name: type, name, and the two parameters that the value comes from.
        self.numbers: dict[str, tuple[str, str, str, str]] = {}
        for param in spec.workunit.params:
            if not param.rank and param.sym.dtype.is_float:
                name = self.names[param.sym]
                given, where = (self.unique.take(f"{name}_{end}") for end in ("given", "at"))
                self.numbers[name] = (param.sym.dtype.cpp, name, given, where)

    def head(self, entry: str) -> str:
        """An entry point, up to what its body does."""
        text = ",\n".join(INDENT + parameter for parameter in self.kernel_parameters())
        head = f'extern "C" __global__ void __launch_bounds__({self.launch.threads}) {entry}'
        return f"{head}(\n{text}\n) {{\n" + "".join(
            f"{INDENT}const {kind} {name} = {where} ? *{where} : {given};\n"
            for kind, name, given, where in self.numbers.values()
        )

    def kernel_parameters(self) -> list[str]:
        """The declarations of all parameters, in the order of `gpu_arguments`."""
        bounds = [f"const int64_t {name}" for name in self.bounds]
        slots = []
        # No compiler may take a written view for one thread's if others of its block read it.
        shares_views = self.launch.rule == "team"
        for parameter in self.parameters:
            number = self.numbers.get(parameter.name)
            if number is None:
                own = not (shares_views and parameter.written)
                slots.append(str(parameter) if own else parameter.plain)
            else:
                kind, _, given, where = number
                slots += [f"const {kind} {given}", f"const {kind}* const {where}"]
        outputs = []
        if self.workunit.accumulators:
            outputs = [f"void* const {_WORKSPACE}", "int64_t* const results"]
        return [*bounds, *slots, *outputs]


def gpu_arguments(spec: KernelSpec) -> tuple[Argument, ...]:
    """The parameters of a spec's kernel, in order."""
    bounds = [Argument(kind, axis=a) for kind in ("begin", "end") for a in range(spec.rank)]
    slots = []
    for slot in abi(spec):
        own = slot.kind in ("pointer", "scalar")
        dtype = spec.workunit.params[slot.param].sym.dtype if own else DType.INT64
        axis = -1 if own else slot.axis
        slots.append(Argument(slot.kind, dtype, slot.param, axis))
        if slot.kind == "scalar" and dtype.is_float:
            slots.append(Argument("address", DType.INT64, slot.param))
    outputs = ["workspace", "results"] if spec.workunit.accumulators else []
    return (*bounds, *slots, *(Argument(kind) for kind in outputs))
