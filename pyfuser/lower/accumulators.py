"""Workunits whose results are lost: sums of nothing, of chance, or in the wrong parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Body, Expr, Sym
from pyfuser.ir.visit import all_expressions, contains, reads, statements, written
from pyfuser.lower.signature import Signature
from pyfuser.lower.source import FunctionSource
from pyfuser.support.errors import WorkunitError, WorkunitWarning, warn


def check_order(header: Signature, pattern: str, rank: int) -> None:
    """Refuse an accumulator that is annotated as such but stands where an index does."""
    for name in header.policy_names(pattern, rank)[:rank]:
        annotation = header.annotations.get(name)
        if annotation is not None and annotation.kind == "accumulator":
            raise swapped(header.source, header.source.node, name)


def check_use(
    header: Signature, rank: int, accumulators: Sequence[Accumulator], body: Body
) -> None:
    """Refuse a sum that goes into an index; warn of one that nothing is added to.

    body: as it was written, before teams become loops.
    """
    source = header.source
    for accumulator in accumulators:
        acc = accumulator.sym
        _check_partial_sums(source, accumulator, body)
        if acc.name not in header.annotations and _adds_integers(acc, body):
            _warn(
                source,
                f"the accumulator {acc.name!r} is a double, which is exact up to 2**53, "
                "and gets 64-bit integers: annotate it pk.Acc[pk.int64] (or pk.Acc[pk.double])",
                acc.name,
            )
        if any(isinstance(s, nodes.Update) and s.target == acc for s in statements(body)):
            continue
        values = list(_assigned_values(acc, body))
        indices = header.names[:rank]
        taken = [name for name in indices if name in source.assigned_names]
        if not values and taken:
            raise swapped(source, source.node, taken[0], acc.name)
        if not values:
            _warn(source, f"nothing is added to the accumulator {acc.name!r}: the result is 0")
        elif acc not in reads(*statements(body)):
            _warn(
                source,
                f"the accumulator {acc.name!r} is assigned to, not added to: the result is that of "
                f"some iterations; write {acc.name} += ...",
                acc.name,
            )
        elif acc.dtype.is_integer and any(_is_cut(value) for value in values):
            _warn(
                source,
                f"the accumulator {acc.name!r} is an integer, and each sum loses its fraction: "
                "annotate it pk.Acc[pk.double]",
                acc.name,
            )
        elif not all(_adds(value, acc) for value in values):
            _warn(
                source,
                f"the accumulator {acc.name!r} gets more than sums: what iterations that run at "
                "the same time made of it is added up, so the result depends on their number; "
                "extremes and products are NumPy's, as in x.max() of an array, and v.data.max() of "
                "a View",
                acc.name,
            )


def _check_partial_sums(source: FunctionSource, accumulator: Accumulator, body: Body) -> None:
    """Warn of views that get the sum of some iterations."""
    changes = [s for s in statements(body) if isinstance(s, (nodes.Store, nodes.Update))]
    acc, last = accumulator.sym, accumulator.last_pass
    if last is None:
        kept = any(isinstance(s, nodes.Store) and _mentions(s.value, acc) for s in changes)
        if kept and any(isinstance(s, nodes.Update) and s.target == acc for s in changes):
            _warn(
                source,
                f"a view gets the accumulator {acc.name!r}, which is the sum of some iterations "
                "only, and chance decides of which: use parallel_scan",
                acc.name,
            )
        return
    added = sum(isinstance(s, nodes.Update) and s.target == acc for s in changes)
    if added and added == sum(
        isinstance(s, nodes.Update) and s.target == acc for s in _in_last_pass(body, last)
    ):
        _warn(
            source,
            f"{acc.name!r} is added to only where {last.name!r} is true, so iterations do not get "
            f"the sum of all before them: write {acc.name} += ... before `if {last.name}:`",
            acc.name,
        )
    changed = any(isinstance(s, nodes.Update) and s.target != acc for s in changes)
    if changed and not any(_mentions(e, last) for e in all_expressions(body)):
        _warn(
            source,
            "a scan may run iterations twice, and each time this changes a view: write "
            f"`if {last.name}:` before the change",
        )


def _in_last_pass(body: Body, last: Sym) -> Iterator[nodes.Stmt]:
    """The statements that a scan runs in its last pass only."""
    for stmt in statements(body):
        if isinstance(stmt, nodes.If) and _implies(stmt.condition, last):
            yield from statements(stmt.then)


def _implies(condition: Expr, last: Sym) -> bool:
    if isinstance(condition, nodes.Logical) and condition.op == "&&":
        return _implies(condition.left, last) or _implies(condition.right, last)
    return condition == nodes.Read(last)


def check_effect(header: Signature, pattern: str, body: Body) -> None:
    """Warn of a workunit that computes something and keeps nothing of it."""
    if pattern != "for" or not body or written(body):
        return
    if contains(body, nodes.Eval):
        return
    _warn(header.source, "it changes no view, so the call does nothing")


def swapped(source: FunctionSource, node: ast.AST, index: str = "", acc: str = "") -> WorkunitError:
    """The error for an index and an accumulator that stand in each other's place.

    index: the parameter that fills an index, by default the one that is assigned to. acc: the one
    that is the accumulator, by default the next.
    """
    names = [argument.arg for argument in source.node.args.args]
    message = "index and accumulator are swapped: the index comes before the accumulator"
    if not index:
        before = names[: names.index(acc)] if acc in names else []
        index = next((name for name in before if name in source.assigned_names), "")
    if index in names:
        first = names.index(index)
        second = names.index(acc) if acc in names else first + 1
        if second < len(names):
            names[first], names[second] = names[second], names[first]
            message += f": write `def {source.name}({', '.join(names)})`"
    return source.error(node, message)


def _assigned_values(acc: Sym, body: Body) -> Iterator[Expr]:
    for stmt in statements(body):
        if isinstance(stmt, nodes.Assign) and stmt.sym == acc:
            yield stmt.value


def _adds(value: Expr, acc: Sym) -> bool:
    """Whether a value is the accumulator's plus or minus something that is not made of it."""
    if isinstance(value, nodes.Cast):
        return _adds(value.operand, acc)
    if isinstance(value, nodes.Select):
        return _adds(value.then, acc) and _adds(value.orelse, acc)
    if isinstance(value, nodes.Binary) and value.op in "+-":
        left, right = _mentions(value.left, acc), _mentions(value.right, acc)
        if left and not right:
            return _adds(value.left, acc)
        return value.op == "+" and right and not left and _adds(value.right, acc)
    return isinstance(value, nodes.Read) and value.sym == acc


def _naming(definition: ast.FunctionDef, name: str) -> Iterator[ast.AST]:
    assignments = (ast.Assign, ast.AnnAssign, ast.AugAssign)
    for node in ast.walk(definition):
        if isinstance(node, assignments) and any(
            isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)
        ):
            yield node


def _adds_integers(acc: Sym, body: Body) -> bool:
    """Whether a floating-point accumulator gets elements of 64-bit integers as they are."""
    return any(
        isinstance(stmt, nodes.Update)
        and stmt.target == acc
        and acc.dtype.is_float
        and isinstance(stmt.value, nodes.Cast)
        and not stmt.value.explicit
        and isinstance(stmt.value.operand, nodes.Load)
        and stmt.value.operand.dtype in (DType.INT64, DType.UINT64)
        for stmt in statements(body)
    )


def _is_cut(value: Expr) -> bool:
    """Whether a conversion that nobody wrote drops the fraction of a sum."""
    return isinstance(value, nodes.Cast) and not value.explicit and value.operand.dtype.is_float


def _mentions(value: Expr, acc: Sym) -> bool:
    return acc in reads(value)


def _warn(source: FunctionSource, message: str, acc: str = "") -> None:
    """Warn of a workunit, at the first assignment that names the accumulator, if one does."""
    place = source.location(next(_naming(source.node, acc), source.node))
    warn(f"workunit {source.name!r}: {message}", place.file, place.line, WorkunitWarning)
