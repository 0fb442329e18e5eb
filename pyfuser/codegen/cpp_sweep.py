"""Code for a sweep: several loops in one launch, each a fixed number of steps behind the first.

`plan.sweeps` has the law. Here the outermost axis is cut into a share for each thread; a thread
moves its front on by a wave at a time, and after each wave every loop follows up to its lag. What
lies between two shares runs loop by loop after a barrier.

The entry point is::

    extern "C" int pf_kernel(const int64_t* slot[, int64_t* results])

`slot` holds the number of threads, the steps of a wave, and then for each loop how far ahead of a
share's beginning it starts, followed by its section: its lag, begin and end of each axis, and
what `abi` lists. `results` and what is returned are those of `cpp`, counted through all loops.

A reduction keeps its order of additions (see `cpp_reduce`). A tile that one thread runs as a whole
is summed up on the way; of a tile that lies across two shares the terms are kept and summed at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen import cpp_map, cpp_reduce
from pyfuser.codegen.cpp_context import Context, abi, alignment_checks, function, unpacked
from pyfuser.codegen.cpp_fold import fold_code, fold_steps
from pyfuser.codegen.cpp_reduce import SumNames, tile_code
from pyfuser.codegen.cpp_statements import INDENT
from pyfuser.codegen.spec import KernelSpec, SweepSpec
from pyfuser.ir.dtypes import DType

LOCALS = cpp_map.LOCALS | cpp_reduce.LOCALS | {"first", "last", "state"}


def contexts(spec: SweepSpec) -> list[Context]:
    """A context for each loop that is not like one before."""
    return [Context(stage, LOCALS) for stage in dict.fromkeys(spec.stages)]


def emit(spec: SweepSpec, loops: Sequence[Context]) -> str:
    """The distinct loops, each in a namespace of its own, and the entry point."""
    distinct = {context.spec: _Stage(n, context) for n, context in enumerate(loops)}
    code = "".join(stage.code() for stage in distinct.values())
    return code + _entry(spec, [distinct[stage] for stage in spec.stages])


def section_words(spec: KernelSpec) -> int:
    """How many 8-byte values the section of a loop has."""
    wide = sum(
        slot.kind == "scalar" and spec.workunit.params[slot.param].sym.dtype is DType.COMPLEX128
        for slot in abi(spec)
    )
    return 1 + 2 * spec.rank + len(abi(spec)) + wide


class _Stage:
    """One loop of a sweep."""

    def __init__(self, number: int, context: Context) -> None:
        self.name = f"pf_stage{number}"
        self.context = context
        self.sums: list[SumNames] = []

    def code(self) -> str:
        """Its namespace: the loop, and `run`, which continues it over some steps."""
        context = self.context
        if context.workunit.accumulators:
            self.sums, block, loops = tile_code(context)
            loops += fold_code(context, self.sums, block)
            body, state = fold_steps(context, self.sums), "void* state"
        else:
            loops = cpp_map.loop_code(context, cpp_map.loop_order(context.spec))
            body, state = _map_steps(context), "void*"
        run = [*unpacked(context), *body]
        parameters = ["const int64_t* slot", state, "int64_t first", "int64_t last"]
        code = loops + function("void run", parameters, _indented(run))
        checks = [*unpacked(context), *alignment_checks(context), "return 0;"]
        code += function("int misaligned", ["const int64_t* slot"], _indented(checks))
        return f"namespace {self.name} {{\n\n{code}}}  // namespace {self.name}\n\n"


def _indented(lines: Sequence[str]) -> list[str]:
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


# --------------------------------------------------------------------------- the launch


def _entry(spec: SweepSpec, stages: Sequence[_Stage]) -> str:
    folds = [(n, stage) for n, stage in enumerate(stages) if stage.sums]
    lines = _sections(stages)
    lines += [
        f"const pf_schedule schedule(stages, {len(stages)}, slot[1]);",
        f"const int64_t threads = {'1' if spec.serial else 'schedule.parts(slot[0])'};",
    ]
    if folds:
        lines.append("bool memory = true;")
    for n, stage in folds:
        lines.append(f"{stage.name}::pf_fold fold{n};")
        lines.append(f"memory &= fold{n}.open(section{n});")
    lines += _parallel(spec, stages, folds)
    place = 0
    for n, stage in folds:
        lines.append(f"fold{n}.close(memory, results + {2 * place});")
        place += len(stage.sums)
    lines.append("return memory ? 0 : -1;" if folds else "return 0;")
    results = ", int64_t* results" if folds else ""
    head = f'extern "C" int pf_kernel(const int64_t* slot{results}) {{\n'
    return head + "".join(f"{INDENT}{line}\n" for line in lines) + "}\n"


def _sections(stages: Sequence[_Stage]) -> list[str]:
    """Where the loops find their slots, and whether their arrays are aligned."""
    lines, table, place, params = [], [], 2 + len(stages), 0
    for n, stage in enumerate(stages):
        spec = stage.context.spec
        lines.append(f"const int64_t* const section{n} = slot + {place};")
        check = f"if (const int at = {stage.name}::misaligned(section{n})) return at"
        lines.append(f"{check} + {params};" if params else f"{check};")
        bounds = f"section{n}[1], section{n}[{1 + spec.rank}]"
        table.append(f"{{{stage.name}::run, section{n}, section{n}[0], slot[{2 + n}], {bounds}}},")
        place += section_words(spec)
        params += len(spec.workunit.params)
    return [*lines, "const pf_stage stages[] = {", *_indented(table), "};"]


def _parallel(
    spec: SweepSpec, stages: Sequence[_Stage], folds: Sequence[tuple[int, _Stage]]
) -> list[str]:
    """What each thread does."""
    states = ["0"] * len(stages)
    inside = []
    for n, stage in folds:
        inside.append(f"{stage.name}::pf_state state{n}{{&fold{n}, {{}}}};")
        states[n] = f"&state{n}"
    inside.append(f"void* states[] = {{{', '.join(states)}}};")
    if spec.serial:
        run = "schedule.share(0, 1, states);"
        return ["{", *_indented([*inside, f"if (memory) {run}" if folds else run]), "}"]
    inside.insert(0, "const int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();")
    if folds:
        inside += ["#pragma omp single", "for (int64_t cut = 1; cut < parts; ++cut) {"]
        inside.append(f"{INDENT}const int64_t step = schedule.cut(cut, parts);")
        for n, _ in folds:
            around = f"step - stages[{n}].lag - 1, step + stages[{n}].ahead + 1"
            inside.append(f"{INDENT}memory = memory && fold{n}.keep(section{n}, {around});")
        inside.append("}")
    guard = "if (memory) " if folds else ""
    inside += [
        f"{guard}schedule.share(part, parts, states);",
        "#pragma omp barrier",
        f"{guard}schedule.between(part + 1, parts, states);",
    ]
    parallel = "#pragma omp parallel if (threads > 1) num_threads(threads)"
    return [parallel, "{", *_indented(inside), "}"]
