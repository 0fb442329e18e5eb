"""One loop of a wavefront: its namespace, its section of the slots, and how a map continues."""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu import map as cpu_map
from pyfuser.codegen.cpu.context import (
    Context,
    Slot,
    abi,
    alignment_checks,
    function,
    unpacked,
)
from pyfuser.codegen.cpu.sums import SumNames
from pyfuser.ir.dtypes import DType
from pyfuser.nest.spec import KernelSpec, SweepSpec

ROLLING_WORDS = 5  # of a rolling view, see `pf_rolling`


def section_words(spec: KernelSpec) -> int:
    """How many 8-byte values the section of a loop has."""
    slots = abi(spec)
    return 1 + 2 * spec.rank + len(slots) + sum(is_wide(spec, slot) for slot in slots)


def is_wide(spec: KernelSpec, slot: Slot) -> bool:
    """Whether a slot takes two values."""
    dtype = spec.workunit.params[slot.param].sym.dtype
    return slot.kind == "scalar" and dtype is DType.COMPLEX128


class Stage:
    """One loop of a sweep."""

    def __init__(self, number: int, context: Context) -> None:
        self.name = f"pf_stage{number}"
        self.context = context
        self.sums: Sequence[SumNames] = ()

    def map_code(self) -> str:
        """The namespace of a map."""
        return self.with_run(cpu_map.loop_code(self.context), "void*", _map_steps(self.context))

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
