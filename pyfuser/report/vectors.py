"""Whether a kernel's iterations run in the lanes of vectors: what code generation decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir import nodes
from pyfuser.ir.accesses import accesses
from pyfuser.ir.effects import written_views
from pyfuser.ir.nodes import Body, Expr, SourceLocation, Stmt, Sym
from pyfuser.ir.visit import child_expressions, expressions
from pyfuser.nest.build import LOOP
from pyfuser.nest.cost.vectorisable import (
    conditional,
    has_vector_form,
    is_covered,
    local_arrays,
    vectorises,
)
from pyfuser.nest.nodes import Function, Nest
from pyfuser.nest.passes.split_guards import MIDDLE
from pyfuser.nest.passes.tile_sums import TERMS
from pyfuser.nest.sums import is_sum
from pyfuser.report.model import Vectors
from pyfuser.transform.kernel import Kernel
from pyfuser.tuning.target import host

_INNER = "as each iteration has a loop of its own"
_MASKED = "as this processor has no vectors for elements that are accessed under a condition so"

_Obstacle = tuple[str, SourceLocation | None]


def vectors_of(kernel: Kernel, nest: Nest) -> Vectors:
    """Whether a specialised kernel of the host is made of vectors, and what keeps it from that.

    nest: its loops.
    """
    spec = spec_of(kernel)
    if spec.serial:
        return Vectors("unknown", "as a Serial space runs iterations in order")
    if spec.pattern == "scan":
        return Vectors("unknown", "as each iteration of a scan adds to the one before")
    unit = spec.workunit
    if not (written_views(unit) or unit.accumulators):
        return Vectors("unknown", "as nothing of what it computes is read")
    sums = kernel.workunit.accumulators  # of which the spec's have no names
    others = [a.sym.name for a in sums if not is_sum(kernel.workunit, a.sym)]
    if others:
        return Vectors(
            "no", f"{others[0]} is not only added to: one thread runs all iterations in order"
        )
    if nest.overlapping:
        return Vectors("unknown", "as arrays overlap")
    found = {f.name: f for f in nest.functions}
    names = (MIDDLE, TERMS, LOOP)
    return _of_loops(next(found[name] for name in names if name in found))


def _of_loops(function: Function) -> Vectors:
    """The same of the loops that a block of iterations runs."""
    if not {"strip-mine", "unroll-and-jam"}.isdisjoint(function.passes):
        return Vectors("unknown", _INNER)
    found = [_obstacle_of(segment.body) for segment in function.segments]
    obstacles = [obstacle for obstacle in found if obstacle is not None]
    if not obstacles:
        return Vectors("yes")
    why, location = obstacles[0]
    if why in (_INNER, _MASKED):
        return Vectors("unknown", why, location)
    no = len(obstacles) == len(found)
    return Vectors("no" if no else "in part", f"{'because' if no else 'not all:'} {why}", location)


def _obstacle_of(body: Body) -> _Obstacle | None:
    """What keeps the iterations of a body from being lanes of vectors."""
    arrays = local_arrays(body)
    return next(_obstacles(body, arrays), None)


def _obstacles(body: Iterable[Stmt], arrays: frozenset[Sym]) -> Iterator[_Obstacle]:
    for stmt in body:
        where = _location(stmt)
        if vectorises(stmt, arrays):
            if isinstance(stmt, nodes.If) and _needs_masks(stmt):
                yield _MASKED, where
            continue
        if isinstance(stmt, nodes.If):
            yield from _obstacles((*stmt.then, *stmt.orelse), arrays)
            yield from _of_expressions([stmt.condition], arrays, where)
            yield "a maths function is called under a condition", where
        elif isinstance(stmt, (nodes.For, nodes.While)):
            yield _INNER, where
        elif isinstance(stmt, nodes.Update) and stmt.atomic:
            yield "an atomic update runs one iteration at a time", where
        elif isinstance(stmt, nodes.Update) and stmt.op in ("/", "%"):
            yield "integers are divided one by one", where
        else:
            yield from _of_expressions(list(child_expressions(stmt)), arrays, where)
            yield "a statement has no vector version", where


def _needs_masks(stmt: nodes.If) -> bool:
    """Whether branches access memory as only AVX-512 does for some lanes of a vector: elements of
    fewer than 4 bytes, or where other elements say.
    """
    if host().vector_bytes == 64:
        return False
    for access in accesses((*stmt.then, *stmt.orelse)):
        subscripts = (e for index in access.indices for e in expressions(index))
        if access.view.dtype.size < 4 or any(isinstance(e, nodes.Load) for e in subscripts):
            return True
    return False


def _of_expressions(
    found: Sequence[Expr], arrays: frozenset[Sym], where: SourceLocation | None
) -> Iterator[_Obstacle]:
    for e in (part for whole in found for part in expressions(whole)):
        if not has_vector_form(e, arrays):
            yield _why(e), getattr(e, "location", None) or where
    for e in (part for whole in found for part in conditional(whole)):
        if is_covered(e):
            yield "a maths function is called under a condition", where


def _why(e: Expr) -> str:
    """Why an operation has no vector form."""
    if isinstance(e, nodes.Call):
        return f"{e.name}() has no vector version"
    if isinstance(e, nodes.Binary):
        return "integers are divided one by one"
    if isinstance(e, nodes.AtomicFetch):
        return "an atomic update runs one iteration at a time"
    return "a local array is indexed by a variable"


def _location(stmt: Stmt) -> SourceLocation | None:
    """Where a statement is in the user's source, as far as it is known."""
    own: SourceLocation | None = getattr(stmt, "location", None)
    places = (getattr(e, "location", None) for e in expressions(stmt))
    return own or next((place for place in places if place is not None), None)
