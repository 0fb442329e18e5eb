"""One loop of a wavefront: its namespace, its section of the slots, and how it continues."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu import scan as cpu_scan
from pyfuser.codegen.cpu.context import (
    Context,
    alignment_checks,
    function,
    unpacked,
)
from pyfuser.codegen.cpu.functions import SumNames, functions_code
from pyfuser.codegen.cpu.reduce import kept_terms, tile_code
from pyfuser.codegen.cpu.wavefront.reduce import STATE, fold_steps
from pyfuser.ir.dtypes import DType
from pyfuser.nest.abi import ROLLING_WORDS, Slot, abi
from pyfuser.nest.nodes import Scan, SweepNest
from pyfuser.nest.spec import KernelSpec, SweepSpec


def section_words(spec: KernelSpec) -> int:
    """How many 8-byte values the section of a loop has."""
    slots = abi(spec)
    return 1 + 2 * spec.rank + len(slots) + sum(is_wide(spec, slot) for slot in slots)


def is_wide(spec: KernelSpec, slot: Slot) -> bool:
    """Whether a slot takes two values."""
    dtype = spec.workunit.params[slot.param].sym.dtype
    return slot.kind == "scalar" and dtype is DType.COMPLEX128


class Stage:
    """One loop of a sweep.

    sums: the names of its sums. scan: how its passes come, if it is a scan.
    """

    def __init__(self, number: int, context: Context) -> None:
        self.name = f"pf_stage{number}"
        self.context = context
        self.sums: Sequence[SumNames] = ()
        self.scan: Scan | None = None

    def code(self) -> str:
        """The namespace of the loop."""
        context, nest = self.context, self.context.nest
        if nest.spec.pattern == "scan":
            self.scan, code = cpu_scan.passes_code(context, nest)
            return self.wrapped(code + _passes(context))
        tiled = tile_code(context, nest)
        if tiled is None:
            code = functions_code(context, nest, nest.functions)
            return self.with_run(code, "void*", _map_steps(context))
        self.sums = tiled.sums
        code = tiled.code + kept_terms(context, tiled) + STATE
        return self.with_run(code, "void* state", fold_steps(context, tiled))

    def with_run(self, code: str, state: str, body: Sequence[str]) -> str:
        """The namespace of a loop with this code, and `run`, which continues it over some steps.

        state: the parameter for what is kept between steps.
        """
        run = [*unpacked(self.context), *body]
        parameters = ["const int64_t* slot", state, "int64_t first", "int64_t last"]
        return self.wrapped(code + function("void run", parameters, indented(run)))

    def wrapped(self, code: str) -> str:
        """The namespace with this code, and a test of the arrays' alignment."""
        lines = [*unpacked(self.context), *alignment_checks(self.context), "return 0;"]
        code += function("int misaligned", ["const int64_t* slot"], indented(lines))
        return f"namespace {self.name} {{\n\n{code}}}  // namespace {self.name}\n\n"


def stages_of(sweep: SweepNest, loops: Sequence[Context]) -> tuple[str, list[Stage]]:
    """The code of the loops that differ, and all stages in order."""
    distinct = [Stage(n, context) for n, context in enumerate(loops)]
    code = "".join(stage.code() for stage in distinct)
    return code, [distinct[n] for n in sweep.stages]


def indented(lines: Sequence[str]) -> list[str]:
    """The lines one level deeper."""
    return [INDENT + line for line in lines]


def _map_steps(context: Context) -> list[str]:
    """Run the loop over the steps from first to last."""
    rank = context.spec.rank
    if rank == 1:
        return [f"pf_loop({', '.join(['first, last', *context.arguments])});"]
    begins = ["first", *(f"slot[{1 + axis}]" for axis in range(1, rank))]
    ends = ["last", *(f"slot[{1 + rank + axis}]" for axis in range(1, rank))]
    return [
        f"const int64_t begin[] = {{{', '.join(begins)}}}, end[] = {{{', '.join(ends)}}};",
        f"pf_loop({', '.join(['begin, end', *context.arguments])});",
    ]


def _passes(context: Context) -> str:
    """`first_pass` gives a scan's sum of some iterations, `last_pass` continues one over them."""
    kind, tail = cpu_scan.accumulator_type(context), cpu_scan.arguments(context)
    box, code = ["const int64_t* slot", "int64_t first", "int64_t last"], ""
    for flag, name, start in (("false", "first_pass", f"{kind}()"), ("true", "last_pass", "start")):
        lines = [*unpacked(context), f"return pf_pass<{flag}>(first, last, {start}{tail});"]
        given = box if flag == "false" else [*box, f"{kind} start"]
        code += function(f"{kind} {name}", given, indented(lines))
    return code


def sections_of(spec: SweepSpec) -> list[int]:
    """The first slot of each loop's section."""
    place = 2 + len(spec.stages) + ROLLING_WORDS * len(spec.rolling)
    places = []
    for stage in spec.stages:
        places.append(place)
        place += section_words(stage)
    return places


def checks(stages: Sequence[Stage], sections: Sequence[int]) -> list[str]:
    """Statements that return which parameter, of all loops, is misaligned."""
    lines, params = [], 0
    for stage, section in zip(stages, sections, strict=True):
        check = f"if (const int at = {stage.name}::misaligned(slot + {section})) return at"
        lines.append(f"{check} + {params};" if params else f"{check};")
        params += len(stage.context.workunit.params)
    return lines
