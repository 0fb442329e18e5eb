"""Abstract interpretation of a workunit: which locals hold affine functions, and what is touched.

The domain is that of affine equalities with constants (M. Karr, "Affine relationships among
variables of a program", 1976), reduced to one affine function a local: where control flow joins,
a local keeps its function only if both ways agree, and a loop forgets what its body assigns.

Of a local without a function the bounds may be known (see `analysis.bounds`). In a subscript it
then is a variable that may have any value between them: enough to say which elements may be
touched, but never which surely are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from pyfuser.analysis import affine
from pyfuser.analysis.affine import EVERYTHING, Affine, Constraint, PointSet
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.evaluate import MAX_CASES, Case, Evaluator, Fact
from pyfuser.analysis.relation import Access, Mode, Relation
from pyfuser.ir import nodes
from pyfuser.ir.divisions import Division
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Body, Expr, SourceLocation, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, contains, declared

_Points: TypeAlias = tuple[PointSet, bool]  # and whether they are exact
_Known: TypeAlias = tuple[dict[Sym, Affine], dict[Sym, tuple[Case, ...]]]
_Combination: TypeAlias = tuple[PointSet, bool, tuple[Affine | None, ...]]
_UNKNOWN = (EVERYTHING, True, None)


class Interpreter(Evaluator):
    """One walk over a workunit's body for one iteration space and one set of facts."""

    # law
    def __init__(
        self,
        workunit: Workunit,
        begin: tuple[int, ...],
        end: tuple[int, ...],
        facts: tuple[Fact, ...],
    ) -> None:
        super().__init__(workunit, begin, end, facts)
        self._params = workunit.params
        self.views = {p.sym: n for n, p in enumerate(workunit.params) if p.rank}
        self.loops: tuple[int, ...] = ()
        self.guard: PointSet = EVERYTHING
        self.exact = True
        self.found: dict[tuple[object, ...], Access] = {}
        self.known = {sym: value.span(self.ranges) for sym, value in self.values.items()}
        self.bounded: dict[Sym, Affine] | None = None  # what bounds stand for; see _guess

    def run(self) -> tuple[Access, ...]:
        self.execute(self.body)
        return tuple(self.found.values())

    # ------------------------------------------------------------------ statements

    def execute(self, body: Body) -> None:
        for stmt in body:
            _STATEMENTS.get(type(stmt), Interpreter._scan_parts)(self, stmt)

    def _scan_parts(self, stmt: Stmt) -> None:
        for expr in child_expressions(stmt):
            self.scan(expr)

    def _bind(self, stmt: nodes.Declare | nodes.Assign) -> None:
        value = cases = None
        if stmt.value is not None:
            self.scan(stmt.value)
            value, cases = self.affine(stmt.value), self.cases(stmt.value)
        self._drop(stmt.sym)
        if value is not None and self._fits(value, stmt.sym):
            self.values[stmt.sym] = value
        if (
            cases is not None
            and len(cases) > 1
            and all(self._fits(value, stmt.sym, points) for points, _, value in cases)
        ):
            self.split[stmt.sym] = cases

    def _drop(self, sym: Sym) -> None:
        """What a variable is worth is not known."""
        self.values.pop(sym, None)
        self.split.pop(sym, None)

    def _store(self, stmt: nodes.Store) -> None:
        self._scan_parts(stmt)
        self._record(stmt.view, stmt.indices, Mode.WRITE, stmt.location)

    def _update(self, stmt: nodes.Update) -> None:  # law
        self._scan_parts(stmt)
        self._record_division(stmt, stmt.target.dtype)
        if stmt.target not in self.views:
            self._drop(stmt.target)  # a local or an accumulator
        elif stmt.atomic:
            self._record(stmt.target, stmt.indices, Mode.REDUCE, stmt.location, stmt.op)
        else:
            self._record(stmt.target, stmt.indices, Mode.READ, stmt.location)
            self._record(stmt.target, stmt.indices, Mode.WRITE, stmt.location)

    def _if(self, stmt: nodes.If) -> None:  # law
        self.scan(stmt.condition)
        ways = self.condition(stmt.condition, True), self.condition(stmt.condition, False)
        before = self.values, self.split
        after, reached = [], []
        for positive, body in ((True, stmt.then), (False, stmt.orelse)):
            self.values, self.split = dict(before[0]), dict(before[1])
            reached.append(self._under(stmt.condition, positive, partial(self.execute, body)))
            after.append((self.values, self.split))
        if all(reached):
            self._join(ways, after, before)
        elif any(reached):  # the other way is never taken
            self.values, self.split = after[reached.index(True)]

    # law
    def _join(self, ways: tuple[_Points, _Points], after: Sequence[_Known], before: _Known) -> None:
        """Locals after a branch: each way has its values, and those that differ become cases."""
        (values, split), (other_values, other_split) = after
        self.values = {s: v for s, v in values.items() if other_values.get(s) == v}
        self.split = {s: c for s, c in split.items() if other_split.get(s) == c}
        changed = {
            sym
            for known in (*after, before)
            for part in known
            for sym in part
            if (values.get(sym), split.get(sym)) != (other_values.get(sym), other_split.get(sym))
        }
        for sym in changed:
            cases: tuple[Case, ...] = ()
            for (points, exact), (known, parts) in zip(ways, after, strict=True):
                mine = parts.get(sym) or (
                    (Case(EVERYTHING, True, known[sym]),) if sym in known else None
                )
                restricted = mine and self.restricted(mine, points, exact)
                if restricted is None:
                    break
                cases += restricted
            else:
                if 0 < len(cases) <= MAX_CASES:
                    self.split[sym] = cases

    def _while(self, stmt: nodes.While) -> None:  # law
        self._forget(stmt.body)
        saved, self.exact = self.exact, False
        self.scan(stmt.condition)
        self.execute(stmt.body)
        self.exact = saved
        self._forget(stmt.body)

    def _for(self, stmt: nodes.For) -> None:  # law
        self.scan(stmt.start)
        start = self.affine(stmt.start)
        self._forget(stmt.body)
        self._drop(stmt.sym)
        self.scan(stmt.stop)
        self.scan(stmt.step)
        saved = self.exact, self.loops
        number = self._loop_variable(stmt, start)
        if number is not None and stmt.sym not in assigned(stmt.body):
            self.values[stmt.sym] = affine.variable(number)
            self.loops = (*self.loops, number)
        else:
            self.exact = False
        if contains(stmt.body, nodes.Break, nodes.Continue):
            self.exact = False
        if number is None or self.ranges[number][0] <= self.ranges[number][1]:
            self.execute(stmt.body)
        else:  # nothing names the variable, and a later guard must not take its range for its own
            self.ranges[number] = (0, 0)
        self.exact, self.loops = saved
        self._forget(stmt.body)
        self._drop(stmt.sym)

    def _forget(self, body: Body) -> None:  # law
        """What a loop's body may change is unknown before, in and after it."""
        for sym in (*assigned(body), *declared(body)):
            self._drop(sym)

    def _under(self, condition: Expr, positive: bool, action: Callable[[], None]) -> bool:
        """Do something under a guard, unless the guard never holds; whether it was done."""
        return self._where(*self.condition(condition, positive), action)

    def _where(self, points: PointSet, exact: bool, action: Callable[[], None]) -> bool:  # law
        """Do something at some points, if there are any; they are all just if `exact`."""
        saved = self.guard, self.exact
        guard = affine.both(self.guard, points)
        if guard is None:  # too many parts: do without the guard, and without its bounds
            guard, points, exact = self.guard, EVERYTHING, False
        self.exact &= exact
        self.guard = guard
        with self.narrowed(points) as reached:
            taken = bool(guard) and reached
            if taken:
                action()
        self.guard, self.exact = saved
        return taken

    # ------------------------------------------------------------------ loops

    def _loop_variable(self, stmt: nodes.For, start: Affine | None) -> int | None:
        """A variable for a loop whose step is a known constant, bounded by what is known."""
        stop, stride = self.affine(stmt.stop), self._stride(stmt)
        if stride is None or not self._comparable(stmt, start, stop):
            return None
        start = start if start is None or self._fits(start, stmt.sym) else None
        self.exact &= start is not None and stop is not None
        sign = 1 if stride > 0 else -1
        low, high = sorted(sign * end for end in stmt.sym.dtype.range())  # of sign * variable
        if start is not None:
            low = start.times(sign).span(self.ranges)[0]
        if stop is not None:
            high = min(high, stop.times(sign).span(self.ranges)[1] - 1)
        number = self._new((low, high) if sign > 0 else (-high, -low))
        it = affine.variable(number)
        limits = []
        if start is not None:
            limits.append(Constraint(it.plus(start, -1).times(sign)))
            if abs(stride) != 1:
                trips = self._new((0, max(high - low, 0) // abs(stride)))
                self.unboxed |= {number, trips}
                exactly = it.plus(start, -1).plus(affine.variable(trips), -stride)
                limits.append(Constraint(exactly, True))
        if stop is not None:
            limits.append(Constraint(stop.plus(it, -1).times(sign).shifted(-1)))
        if any(bound is None or bound.terms for bound in (start, stop)):
            self.unboxed.add(number)
        self.definitions[number] = tuple(limits)
        return number

    # law: not None
    def _stride(self, stmt: nodes.For) -> int | None:
        """The step of a loop that certainly gets nearer to its end."""
        step = self.affine(stmt.step)
        if step is None or step.terms or not step.constant:
            return None
        # One that is negative but no literal runs upwards: never, or until it overflows.
        return step.constant if step.constant > 0 or _is_negative_constant(stmt.step) else None

    # law: True
    def _comparable(self, stmt: nodes.For, start: Affine | None, stop: Affine | None) -> bool:
        """Whether `sym < stop` compares the mathematical values."""
        common = common_type(stmt.sym.dtype, stmt.stop.dtype)
        if common.is_signed or not stmt.sym.dtype.is_signed:
            return True
        if _is_negative_constant(stmt.step):
            return False
        return start is not None and start.span(self.ranges)[0] >= 0

    # ------------------------------------------------------------------ recording

    # law
    def _record(
        self,
        view: Sym,
        indices: tuple[Expr, ...],
        mode: Mode,
        location: SourceLocation | None,
        op: str = "",
    ) -> None:
        param = self.views.get(view)
        if param is None:
            return  # a local array
        for points, exact, known in self._combinations(indices):
            self._where(
                points, exact, partial(self._note, param, known, indices, mode, location, op)
            )

    # law
    def _combinations(self, indices: tuple[Expr, ...]) -> list[_Combination]:
        """The functions that subscripts have together, and where; None for one without any."""
        found: list[_Combination] = [(EVERYTHING, True, ())]
        for index in indices:
            cases = self.cases(index) or (_UNKNOWN,)
            longer: list[_Combination] = []
            for points, exact, known in found:
                for part, sure, value in cases:
                    both = affine.both(points, part)
                    if both is None:
                        return [(EVERYTHING, True, tuple(map(self.affine, indices)))]
                    longer.append((both, exact and sure, (*known, value)))
            found = longer
        if len(found) > MAX_CASES:
            return [(EVERYTHING, True, tuple(map(self.affine, indices)))]
        return found

    # law
    def _note(
        self,
        param: int,
        given: tuple[Affine | None, ...],
        indices: tuple[Expr, ...],
        mode: Mode,
        location: SourceLocation | None,
        op: str,
    ) -> None:
        certain = None not in given
        known = [
            self._guess(index) if value is None else value
            for index, value in zip(indices, given, strict=True)
        ]
        rank = len(self.shapes.get(self._params[param].sym, known))
        subscripts = tuple((known + [None] * rank)[:rank])
        key = (param, mode, op, subscripts, self.guard, self.loops)
        if key in self.found:
            return
        domain, box = self._domain(subscripts)
        ranges, vague = tuple(self.ranges), not certain and None not in subscripts
        relation = Relation(self.begin, self.end, subscripts, domain, ranges, box, vague)
        exact = self.exact and certain
        self.found[key] = Access(param, mode, op, relation, location, exact)

    def _record_division(self, division: Division, dtype: DType) -> None:
        """A division comes here; see `analysis.divided`."""

    def _relation(self, values: tuple[Affine | None, ...]) -> Relation:
        domain, box = self._domain(values)
        return Relation(self.begin, self.end, values, domain, tuple(self.ranges), box)

    def _guess(self, index: Expr) -> Affine | None:  # law: not None
        """A subscript with a variable for each local of which only bounds are known."""
        if self.bounded is None:
            self.bounded = {}
            for sym, bounds in bounded_locals(self.body, self.known).items():
                number = self._new(bounds)
                self.unboxed.add(number)
                self.bounded[sym] = affine.variable(number)
        saved = self.values
        self.values = {**self.bounded, **saved}
        value = self.affine(index)
        self.values = saved
        return value

    def _domain(self, subscripts: tuple[Affine | None, ...]) -> tuple[PointSet, bool]:
        """The guard with the definitions of all variables that matter, and whether it is a box."""
        pending = set(self.loops)
        for expr in subscripts:
            if expr is not None:
                pending.update(number for number, _ in expr.terms)
        for conjunction in self.guard:
            pending.update(number for c in conjunction for number, _ in c.expr.terms)
        needed: set[int] = set()
        ties: list[Constraint] = []
        while pending:
            number = pending.pop()
            needed.add(number)
            for constraint in self.definitions.get(number, ()):
                ties.append(constraint)
                pending.update(n for n, _ in constraint.expr.terms if n not in needed)
        ties.sort()
        # A guard on one variable only narrows its range.
        simple = len(self.guard) == 1 and all(len(c.expr.terms) == 1 for c in self.guard[0])
        box = simple and self.exact and not needed & self.unboxed
        return tuple(conjunction + tuple(ties) for conjunction in self.guard), box

    # ------------------------------------------------------------------ expressions

    def scan(self, expr: Expr) -> None:  # law
        """Record the accesses of an expression, each under the conditions of its evaluation."""
        match expr:
            case nodes.Logical():
                self.scan(expr.left)
                self._under(expr.left, expr.op == "&&", lambda: self.scan(expr.right))
                return
            case nodes.Select():
                self.scan(expr.condition)
                self._under(expr.condition, True, lambda: self.scan(expr.then))
                self._under(expr.condition, False, lambda: self.scan(expr.orelse))
                return
        for child in child_expressions(expr):
            self.scan(child)
        match expr:
            case nodes.Load():
                self._record(expr.view, expr.indices, Mode.READ, expr.location)
            case nodes.Binary():
                self._record_division(expr, expr.dtype)
            case nodes.AtomicFetch():
                self._record_division(expr, expr.dtype)
                self._record(expr.view, expr.indices, Mode.READ, expr.location)
                self._record(expr.view, expr.indices, Mode.WRITE, expr.location)


def _is_negative_constant(step: Expr) -> bool:
    return isinstance(step, nodes.Const) and int(step.value) < 0  # type: ignore[arg-type]


_STATEMENTS: dict[type, Callable[..., None]] = {
    nodes.Declare: Interpreter._bind,
    nodes.Assign: Interpreter._bind,
    nodes.Store: Interpreter._store,
    nodes.Update: Interpreter._update,
    nodes.If: Interpreter._if,
    nodes.For: Interpreter._for,
    nodes.While: Interpreter._while,
}
