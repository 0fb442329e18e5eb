"""Many sums of one loop, a few at a time.

    if label[i] == k: acc += x[i]    (for k in 0 ... 7)

The terms of so many accumulators need more vector registers than there are: every one goes through
memory, and so does its running sum, once for each block of terms. Here a run of iterations computes
what comes before the sums, and keeps the locals that they read; then loops over the run take a
group of sums each, with running sums that stay in registers. That is loop distribution (see
`passes.distribute`), whose rules it follows. Each accumulator gets the terms that it got before, in
the same lanes and order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.ir import nodes
from pyfuser.ir.effects import effects_of
from pyfuser.ir.nodes import Binary, Body, Declare, Expr, Read, Stmt, Sym
from pyfuser.ir.visit import all_expressions, contains, expressions, map_body, statements
from pyfuser.nest.build import iteration, iterations, local
from pyfuser.nest.cost.vectorisable import local_arrays, vectorises
from pyfuser.nest.cost.work import cheap_declarations
from pyfuser.nest.nodes import Alloc, Kind, number
from pyfuser.nest.passes.blocks import Blocks
from pyfuser.nest.passes.row_sums import order_sums
from pyfuser.nest.segments import MAX_STATEMENTS, Segment, dependences, expanded, expansion
from pyfuser.nest.spec import UNIT
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

LOCALS = frozenset({"done", "run"})

LANES = 32
"""Terms of 8 bytes that `pf_sum` adds to its vectors in one go."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The C++ of an accumulator: its terms' type and array, its `pf_sum` and the type of that."""

    kind: str
    terms: str
    sum: str
    sum_type: str


@dataclass(frozen=True, slots=True)
class Groups:
    """What comes before the sums, then the groups; the locals kept for `run` iterations."""

    segments: tuple[Segment, ...]
    arrays: Mapping[Sym, Sym]
    run: int


def groups_of(context: Context, blocks: Blocks) -> Groups | None:
    """The groups of a body that has many sums, each in a statement of its own; None for others."""
    workunit, spec = context.workunit, context.spec
    sums = [a.sym for a in workunit.accumulators]
    if left_out("split-accumulators"):
        return None
    tuning = spec.tuning
    if len(sums) < tuning.fewest_groups or any(
        s.dtype.size != 8 or s.dtype.is_complex for s in sums
    ):
        return None
    if context.nest.serial or spec.checked or not blocks.single:
        return None
    if context.expressions.products_apart or len(workunit.body) > MAX_STATEMENTS:
        return None  # g++ may contract products with the additions around them
    if any(view is not None and not view.restrict for view in spec.views):
        return None
    parts = _parts(context, sums)
    if parts is None:
        return None
    before, adding, repeated = parts
    segments = expanded(
        [before, *_grouped(adding, sums, tuning.group)], [True] * (1 + len(adding)), repeated
    )
    kept = expansion(segments)
    if local_arrays(before) & set(kept):
        return None
    size = sum(sym.dtype.size for sym in kept)
    runs = (4 * tuning.block, 2 * tuning.block)
    run = next((n for n in runs if n * size <= tuning.block_bytes), None)
    if run is None:
        return None
    fresh, name = context.nest.fresh, context.nest.name
    return Groups(segments, {s: fresh(f"{name(s)}_run", s.dtype) for s in kept}, run)


def _parts(
    context: Context, sums: Sequence[Sym]
) -> tuple[Body, list[Stmt], dict[Sym, Declare]] | None:
    """The body without the statements that add, those statements, and cheap declarations."""
    body = context.workunit.body
    arrays, repeated = local_arrays(body), cheap_declarations(body)
    if not effects_of(body).may_interleave or not all(vectorises(stmt, arrays) for stmt in body):
        return None
    units = [s for s in body if not (isinstance(s, Declare) and s.sym in repeated)]
    added = [_added(stmt, sums) for stmt in units]
    if sorted(sym.uid for syms in added for sym in syms) != sorted(sym.uid for sym in sums):
        return None  # one accumulator in two statements, or in none
    adding = [stmt for stmt, syms in zip(units, added, strict=True) if syms]
    if not all(_only_adds(stmt) and _reads_rows(context, stmt) for stmt in adding):
        return None
    for n, earlier in enumerate(dependences(units, frozenset())):
        if not added[n] and any(added[m] for m in earlier):
            return None  # changes what a sum has read
    rest = tuple(stmt for stmt, syms in zip(units, added, strict=True) if not syms)
    return *_narrowed(context, rest, adding), repeated


def _added(stmt: Stmt, sums: Sequence[Sym]) -> set[Sym]:
    """The accumulators that a statement adds to."""
    found = {s.target for s in statements((stmt,)) if isinstance(s, nodes.Update) and not s.indices}
    return found & set(sums)


def _only_adds(stmt: Stmt) -> bool:
    """Whether a statement does nothing but add, perhaps under conditions."""
    parts = list(statements((stmt,)))
    if contains((stmt,), nodes.Call, nodes.AtomicFetch):
        return False
    updates = [s for s in parts if not isinstance(s, nodes.If)]
    return all(isinstance(s, nodes.Update) and not s.indices for s in updates)


def _reads_rows(context: Context, stmt: Stmt) -> bool:
    """Whether elements are read one after the other: every group reads them again."""
    index, views = context.workunit.indices[-1], context.expressions.views
    for e in all_expressions((stmt,)):
        if not isinstance(e, nodes.Load):
            continue
        view = views.get(e.view)
        if view is None or view.strides[-1] != UNIT or _plain(e.indices[-1]) != Read(index):
            return False
        if any(Read(index) in expressions(outer) for outer in e.indices[:-1]):
            return False
    return True


def _plain(e: Expr) -> Expr:
    while isinstance(e, nodes.Cast):
        e = e.operand
    return e


def _narrowed(context: Context, before: Body, adding: list[Stmt]) -> tuple[Body, list[Stmt]]:
    """Keep integers as narrow as the sums read them: they are converted once, and take less."""
    fresh = context.nest.fresh
    narrow: dict[Expr, Sym] = {}
    local = {stmt.sym for stmt in before if isinstance(stmt, Declare)}

    def change(e: Expr) -> Expr:
        if not isinstance(e, nodes.Cast) or not isinstance(e.operand, nodes.Read):
            return e
        sym = e.operand.sym
        integers = e.dtype.is_integer and sym.dtype.is_integer
        if not integers or e.dtype.size >= sym.dtype.size or sym not in local:
            return e
        if e not in narrow:
            narrow[e] = fresh(sym.name, e.dtype)
            context.names[narrow[e]] = context.unique.take(context.names[sym])
        return Read(narrow[e])

    changed = list(map_body(tuple(adding), change))
    return (*before, *(Declare(sym, e) for e, sym in narrow.items())), changed


def _grouped(adding: Sequence[Stmt], sums: Sequence[Sym], most: int) -> list[Body]:
    """Statements that share a loop, in order; most: sums of a group."""
    groups: list[Body] = []
    size = most
    for stmt in adding:
        own = len(_added(stmt, sums))
        if size + own > most:
            groups.append(())
            size = 0
        groups[-1] = (*groups[-1], stmt)
        size += own
    return groups


# --------------------------------------------------------------------------- printing


def run_function(
    context: Context, groups: Groups, lanes: Mapping[Sym, Lanes], terms: Callable[[Body], Body]
) -> str:
    """`pf_run`: `count` iterations from `at`, a multiple of LANES, into `pf_running`."""
    last = context.spec.rank - 1
    lines = context.print(tuple(Alloc(array, groups.run) for array in groups.arrays.values()), 1)
    for segment in groups.segments:
        own = {sym for stmt in segment.body for sym in _added(stmt, tuple(lanes))}
        if own:
            ordered = [names for sym, names in lanes.items() if sym in own]
            lines += _group_lines(context, groups, segment, ordered, terms)
        elif segment.body:
            at, count, step = map(local, ("at", "count", "step"))
            kept = (nodes.Store(groups.arrays[s], (step,), Read(s)) for s in segment.leaving)
            trip = (*iteration(context.nest, last, Binary("+", at, step)), *segment.body, *kept)
            loop = iterations(context.nest, step, number(0), count, trip, Kind.VECTOR)
            lines += context.print(order_sums(context.nest, (loop,)), 1)
    parameters = ["pf_running& running", "int64_t at", "int64_t count"]
    parameters += [f"const int64_t {context.counter(axis)}" for axis in range(last)]
    return function("void pf_run", [*parameters, *context.signature], lines)


def _group_lines(
    context: Context,
    groups: Groups,
    segment: Segment,
    lanes: Sequence[Lanes],
    terms: Callable[[Body], Body],
) -> list[str]:
    """The loop of a group; g++ keeps the terms of LANES iterations in registers where it can."""
    take = context.unique.take
    vectors = [(s, v, take(f"{s.sum}_{v}")) for s in lanes for v in range(4)]
    at, done, step = map(local, ("at", "done", "step"))
    place = (Binary("+", done, step),)
    arriving = (Declare(s, nodes.Load(groups.arrays[s], place)) for s in segment.arriving)
    here = Binary("+", Binary("+", at, done), step)
    trip = (
        *iteration(context.nest, context.spec.rank - 1, here),
        *arriving,
        *terms(segment.body),
    )
    loop = iterations(context.nest, step, number(0), number(LANES), trip, Kind.VECTOR)
    lines = [
        *(f"    {s.sum_type}::vector {name} = running.{s.sum}.sum[{v}];" for s, v, name in vectors),
        f"    for (int64_t done = 0; done < count; done += {LANES}) {{",
        *(f"        alignas(64) {s.kind} {s.terms}[{LANES}];" for s in lanes),
        *context.print((loop,), 2),
        *(
            f"        {name} += ((const {s.sum_type}::vector*){s.terms})[{v}];"
            for s, v, name in vectors
        ),
        "    }",
        *(f"    running.{s.sum}.sum[{v}] = {name};" for s, v, name in vectors),
    ]
    return [f"{INDENT}{{", *(INDENT + line for line in lines), f"{INDENT}}}"]
