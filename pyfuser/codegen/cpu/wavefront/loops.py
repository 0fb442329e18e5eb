"""Code for a sweep: several loops in one launch, each a fixed number of steps behind the first.

`plan.wavefront` has the law. Here the outermost axis is cut into a share for each thread; a thread
moves its front on by a wave at a time, and after each wave every loop follows up to its lag. What
lies between two shares runs loop by loop after a barrier.

The entry point is::

    extern "C" int pf_kernel(const int64_t* slot[, int64_t* results])

`slot` holds the number of threads, the steps of a wave (negative: see `pf_schedule`), for each loop
how far ahead of a share's beginning it starts, for each rolling view the numbers of `plan.Rolling`,
and then for each loop its section: its lag, begin and end of each axis, and what `abi` lists.
`results` and what is returned are those of `cpu.unit`, counted through all loops.

A reduction keeps its order of additions (see `wavefront.reduce`). A rolling view has no memory of
its own: each thread keeps a window of it, and points its copy of the slots at that.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu import map as cpu_map
from pyfuser.codegen.cpu import reduce as cpu_reduce
from pyfuser.codegen.cpu import scan as cpu_scan
from pyfuser.codegen.cpu.context import (
    RESULTS,
    SLOT,
    Context,
    entry_point,
)
from pyfuser.codegen.cpu.wavefront.stage import (
    Stage,
    checks,
    indented,
    is_wide,
    section_words,
    sections_of,
    stages_of,
)
from pyfuser.nest.abi import ROLLING_WORDS, abi
from pyfuser.nest.nodes import SweepNest
from pyfuser.nest.spec import SweepSpec

LOCALS = cpu_map.LOCALS | cpu_reduce.LOCALS | cpu_scan.LOCALS | {"first", "last", "state", "sum"}


def contexts(spec: SweepSpec) -> list[Context]:
    """A context for each loop that is not like one before."""
    return [Context(stage, LOCALS) for stage in dict.fromkeys(spec.stages)]


def emit(sweep: SweepNest, loops: Sequence[Context]) -> str:
    """The distinct loops, each in a namespace of its own, and the entry point."""
    code, stages = stages_of(sweep, loops)
    return code + _entry(sweep, stages)


# --------------------------------------------------------------------------- the launch


def _entry(sweep: SweepNest, stages: Sequence[Stage]) -> str:
    spec = sweep.spec
    sums = [(n, stage) for n, stage in enumerate(stages) if stage.sums]
    sections = sections_of(spec)
    size = sections[-1] + section_words(spec.stages[-1])
    guarded = bool(sums or spec.rolling)  # something needs memory
    lines = checks(stages, sections)
    lines += _stage_table("slot", stages, sections)
    context = stages[0].context
    context.uses("wavefront", *[] if spec.serial else ["threads"])
    lines.append(f"const pf_schedule schedule(stages, {len(stages)}, slot[1]);")
    lines.append(f"const int64_t threads = {'schedule.parts(slot[0])' if sweep.shared else '1'};")
    if guarded:
        lines.append("bool memory = true;")
    for n, stage in sums:
        lines.append(f"{stage.name}::pf_fold fold{n};")
        lines.append(f"memory &= fold{n}.open(slot + {sections[n]});")
    lines += _window_table(spec, sections)
    if spec.rolling:
        context.uses("windows")
        lines.append(f"pf_storage storage(windows, {len(spec.rolling)}, slot[1], threads);")
        lines.append("memory &= storage.memory != 0;")
    lines += _parallel(spec, stages, sections, size)
    place = 0
    for n, stage in sums:
        lines.append(f"fold{n}.close(memory, results + {2 * place});")
        place += len(stage.sums)
    lines.append("return memory ? 0 : -1;" if guarded else "return 0;")
    parameters = [*SLOT, *RESULTS] if sums else SLOT
    return entry_point([stage.context for stage in stages], parameters, lines)


def _stage_table(slots: str, stages: Sequence[Stage], sections: Sequence[int]) -> list[str]:
    """`stages`, whose loops find their arguments in `slots`."""
    table = []
    for n, (stage, section) in enumerate(zip(stages, sections, strict=True)):
        bounds = f"slot[{section + 1}], slot[{section + 1 + stage.context.spec.rank}]"
        table.append(
            f"{{{stage.name}::run, {slots} + {section}, slot[{section}], slot[{2 + n}], {bounds}}},"
        )
    return ["const pf_stage stages[] = {", *indented(table), "};"]


def _window_table(spec: SweepSpec, sections: Sequence[int]) -> list[str]:
    """`windows`, one for each rolling view."""
    lines, table = [], []
    for n, params in enumerate(spec.rolling):
        places = [str(_pointer_slot(spec, sections, *param)) for param in params]
        lines.append(f"static const int places{n}[] = {{{', '.join([*places, '0'])}}};")
        first = 2 + len(spec.stages) + ROLLING_WORDS * n
        numbers = ", ".join(f"slot[{first + k}]" for k in range(ROLLING_WORDS))
        table.append(f"{{{{{numbers}}}, places{n}, 0, 0, 0}},")
    return [*lines, "pf_window windows[] = {", *indented(table), "};"] if table else []


def _pointer_slot(spec: SweepSpec, sections: Sequence[int], loop: int, param: int) -> int:
    """The slot with the address of a loop's parameter."""
    stage = spec.stages[loop]
    place = sections[loop] + 1 + 2 * stage.rank
    for slot in abi(stage):
        if slot.param == param:
            return place
        place += 1 + is_wide(stage, slot)
    raise AssertionError("a rolling view is a parameter")


def _parallel(
    spec: SweepSpec, stages: Sequence[Stage], sections: Sequence[int], size: int
) -> list[str]:
    """What each thread does."""
    sums = [n for n, stage in enumerate(stages) if stage.sums]
    guard = "if (memory) " if sums or spec.rolling else ""
    states = ["0"] * len(stages)
    inside = []
    if spec.serial:
        inside.append("const int64_t part = 0, parts = 1;")
    else:
        thread = "part = omp_get_thread_num(), parts = omp_get_num_threads()"
        inside.append(f"const int64_t {thread};")
    for n in sums:
        inside.append(f"{stages[n].name}::pf_state state{n}{{&fold{n}, {{}}}};")
        states[n] = f"&state{n}"
    inside.append(f"void* states[] = {{{', '.join(states)}}};")
    tail = "states, 0, 0, 0"
    if spec.rolling:
        inside += [
            f"int64_t slots[{size}];",
            "__builtin_memcpy(slots, slot, sizeof slots);",
            *_stage_table("slots", stages, sections),
            f"const pf_schedule schedule(stages, {len(stages)}, slot[1]);",
            f"pf_window mine[{len(spec.rolling)}];",
            "if (memory) storage.of(part, mine);",
        ]
        tail = f"states, slots, mine, {len(spec.rolling)}"
    if spec.serial:
        inside.append(f"{guard}schedule.share(part, parts, {tail});")
        return ["{", *indented(inside), "}"]
    if sums:
        cuts = "int64_t cut = !schedule.ring; cut < parts + schedule.ring; ++cut"
        inside += ["#pragma omp single", f"for ({cuts}) {{"]
        inside.append(f"{INDENT}const int64_t step = schedule.cut(cut, parts);")
        for n in sums:
            around = f"step - stages[{n}].lag, step + stages[{n}].ahead"
            kept = f"fold{n}.keep(slot + {sections[n]}, {around})"
            inside.append(f"{INDENT}memory = memory && {kept};")
        inside.append("}")
    inside += [
        f"{guard}schedule.share(part, parts, {tail});",
        "#pragma omp barrier",
        f"{guard}schedule.between(part + 1, parts, {tail});",
    ]
    parallel = "#pragma omp parallel if (threads > 1) num_threads(threads)"
    return [parallel, "{", *indented(inside), "}"]
