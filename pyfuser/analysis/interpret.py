"""Abstract interpretation of a workunit: which locals hold affine functions, and what is touched.

The domain is that of affine equalities with constants (M. Karr, "Affine relationships among
variables of a program", 1976), reduced to one affine function a local: where control flow joins,
a local keeps its function only if both ways agree, and a loop forgets what its body assigns.

Of a local without a function the bounds may be known (see `analysis.bounds`). In a subscript it
then is a variable that may have any value between them: enough to say which elements may be
touched, but never which surely are.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.analysis import affine
from pyfuser.analysis.affine import EVERYTHING, Affine, Constraint, Interval, PointSet
from pyfuser.analysis.bounds import bounded_locals
from pyfuser.analysis.intervals import fits
from pyfuser.analysis.relation import Access, Mode, Relation
from pyfuser.ir import nodes
from pyfuser.ir.divisions import Division
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import Body, Expr, SourceLocation, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, child_expressions, contains, declared

Fact = tuple[int, ...] | int | None  # a view's shape, a scalar's value, nothing


class Interpreter:
    """One walk over a workunit's body for one iteration space and one set of facts."""

    # law
    def __init__(
        self,
        workunit: Workunit,
        begin: tuple[int, ...],
        end: tuple[int, ...],
        facts: tuple[Fact, ...],
    ) -> None:
        self.begin, self.end = begin, end
        self.body = workunit.body
        self.views = {p.sym: n for n, p in enumerate(workunit.params) if p.rank}
        self.shapes: dict[Sym, tuple[int, ...]] = {}
        self.values: dict[Sym, Affine] = {}
        self.ranges: list[Interval] = [(b, e - 1) for b, e in zip(begin, end, strict=True)]
        self.definitions: dict[int, tuple[Constraint, ...]] = {}  # of inner variables
        self.unboxed: set[int] = set()  # inner variables that are not free in their range
        self.loops: tuple[int, ...] = ()
        self.guard: PointSet = EVERYTHING
        self.exact = True
        self.found: dict[tuple[object, ...], Access] = {}
        for param, fact in zip(workunit.params, facts, strict=True):
            if isinstance(fact, tuple):
                self.shapes[param.sym] = fact
            elif fact is not None and param.sym.dtype.is_integer:
                self.values[param.sym] = affine.constant(fact)
        for number, sym in enumerate(workunit.indices):
            if fits(self.ranges[number], sym.dtype):
                self.values[sym] = affine.variable(number)
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
        value = None
        if stmt.value is not None:
            self.scan(stmt.value)
            value = self.affine(stmt.value)
        if value is not None and self._fits(value, stmt.sym):
            self.values[stmt.sym] = value
        else:
            self.values.pop(stmt.sym, None)

    def _store(self, stmt: nodes.Store) -> None:
        self._scan_parts(stmt)
        self._record(stmt.view, stmt.indices, Mode.WRITE, stmt.location)

    def _update(self, stmt: nodes.Update) -> None:  # law
        self._scan_parts(stmt)
        self._record_division(stmt, stmt.target.dtype)
        if stmt.target not in self.views:
            self.values.pop(stmt.target, None)  # a local or an accumulator
        elif stmt.atomic:
            self._record(stmt.target, stmt.indices, Mode.REDUCE, stmt.location, stmt.op)
        else:
            self._record(stmt.target, stmt.indices, Mode.READ, stmt.location)
            self._record(stmt.target, stmt.indices, Mode.WRITE, stmt.location)

    def _if(self, stmt: nodes.If) -> None:  # law
        self.scan(stmt.condition)
        before = dict(self.values)
        self._under(stmt.condition, True, lambda: self.execute(stmt.then))
        after_then, self.values = self.values, before
        self._under(stmt.condition, False, lambda: self.execute(stmt.orelse))
        get = self.values.get
        self.values = {sym: value for sym, value in after_then.items() if get(sym) == value}

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
        self.values.pop(stmt.sym, None)
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
        self.values.pop(stmt.sym, None)

    def _forget(self, body: Body) -> None:  # law
        """What a loop's body may change is unknown before, in and after it."""
        for sym in (*assigned(body), *declared(body)):
            self.values.pop(sym, None)

    def _under(self, condition: Expr, positive: bool, action: Callable[[], None]) -> None:  # law
        """Do something under a guard, unless the guard never holds."""
        points, exact = self.condition(condition, positive)
        saved = self.guard, self.exact, self.ranges
        guard = affine.both(self.guard, points)
        if guard is None:  # too many parts: do without the guard, and without its bounds
            guard, points, exact = self.guard, EVERYTHING, False
        self.exact &= exact
        self.ranges = affine.narrowed(self.ranges, points)
        self.guard = guard
        if guard and all(low <= high for low, high in self.ranges):
            action()
        # Variables made meanwhile keep their numbers.
        self.guard, self.exact, ranges = saved
        self.ranges = ranges + self.ranges[len(ranges) :]

    # ------------------------------------------------------------------ variables

    def _new(self, interval: Interval, *constraints: Constraint) -> int:
        number = len(self.ranges)
        self.ranges.append(interval)
        self.definitions[number] = constraints
        return number

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

    def _quotient(self, dividend: Affine, divisor: int) -> Affine:
        """floor(dividend / divisor) as a new variable q: 0 <= dividend - divisor q < divisor."""
        low, high = dividend.span(self.ranges)
        number = self._new((low // divisor, high // divisor))
        rest = dividend.plus(affine.variable(number), -divisor)
        self.definitions[number] = (
            Constraint(rest),
            Constraint(rest.times(-1).shifted(divisor - 1)),
        )
        self.unboxed.add(number)
        return affine.variable(number)

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
        known = [self.affine(index) for index in indices]
        certain = None not in known
        if not certain:
            known = [self._guess(index) for index in indices]
        rank = len(self.shapes.get(view, known))
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

    def _fits(self, value: Affine, sym: Sym) -> bool:
        return sym.dtype.is_integer and fits(value.span(self.ranges), sym.dtype)

    def affine(self, expr: Expr) -> Affine | None:  # law: not None
        """The expression as an affine function, if its value certainly is the mathematical one."""
        rule = _EXPRESSIONS.get(type(expr))
        if rule is None or not expr.dtype.is_integer:
            return None
        value = rule(self, expr)
        if value is None or not fits(value.span(self.ranges), expr.dtype):
            return None
        return value

    def _extent(self, expr: nodes.Extent) -> Affine | None:
        shape = self.shapes.get(expr.view)
        return None if shape is None else affine.constant(shape[expr.axis])

    def _cast(self, expr: nodes.Cast) -> Affine | None:
        if expr.dtype is DType.BOOL and expr.operand.dtype is not DType.BOOL:
            return None
        return self.affine(expr.operand)

    def _unary(self, expr: nodes.Unary) -> Affine | None:
        value = self.affine(expr.operand)
        if value is None or expr.op == "+":
            return value
        if expr.op == "-":
            return value.times(-1)
        return value.times(-1).shifted(-1) if expr.op == "~" else None

    def _binary(self, expr: nodes.Binary) -> Affine | None:
        left, right = self.affine(expr.left), self.affine(expr.right)
        if left is None or right is None:
            return None
        if expr.op in "+-":
            return left.plus(right, 1 if expr.op == "+" else -1)
        if expr.op == "*" and not left.terms:
            left, right = right, left
        if right.terms:
            return None
        return self._by_constant(expr.op, left, right.constant)

    def _by_constant(self, op: str, left: Affine, right: int) -> Affine | None:  # law: not None
        if op == "*":
            return left.times(right)
        if op in ("<<", ">>") and not 0 <= right < 63:
            return None
        if op == "<<":
            return left.times(1 << right) if left.span(self.ranges)[0] >= 0 else None
        if op == ">>":
            return self._quotient(left, 1 << right)  # arithmetic: rounds down
        if op == "&":
            if right < 0 or right & (right + 1):
                return None
            return left.plus(self._quotient(left, right + 1), -right - 1)
        # C rounds towards zero; for an operand that is not negative that is down.
        if op not in ("/", "%") or right <= 0:
            return None
        low, high = left.span(self.ranges)
        if low < 0:
            return left if op == "%" and -right < low and high < right else None
        quotient = self._quotient(left, right)
        return quotient if op == "/" else left.plus(quotient, -right)

    # ------------------------------------------------------------------ conditions

    def condition(self, expr: Expr, positive: bool) -> tuple[PointSet, bool]:  # law
        """Where a condition (or its negation) may hold, and whether that is where it does."""
        if isinstance(expr, nodes.Unary) and expr.op == "!":
            return self.condition(expr.operand, not positive)
        if isinstance(expr, nodes.Logical):
            left, left_exact = self.condition(expr.left, positive)
            right, right_exact = self.condition(expr.right, positive)
            exact = left_exact and right_exact
            if (expr.op == "&&") != positive:
                return affine.either(left, right), exact
            points = affine.both(left, right)
            return (left, False) if points is None else (points, exact)
        if isinstance(expr, nodes.Compare):
            left_value, right_value = self.affine(expr.left), self.affine(expr.right)
            if left_value is None or right_value is None:
                return EVERYTHING, False
            op = expr.op if positive else _NEGATED[expr.op]
            return affine.COMPARED_TO_ZERO[op](left_value.plus(right_value, -1)), True
        if isinstance(expr, nodes.Cast) and expr.dtype is DType.BOOL:
            if expr.operand.dtype is DType.BOOL:
                return self.condition(expr.operand, positive)
            value = self.affine(expr.operand)
        else:
            value = self.affine(expr)
        if value is None:
            return EVERYTHING, False
        return (affine.not_zero if positive else affine.equal_zero)(value), True


def _is_negative_constant(step: Expr) -> bool:
    return isinstance(step, nodes.Const) and int(step.value) < 0  # type: ignore[arg-type]


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_STATEMENTS: dict[type, Callable[..., None]] = {
    nodes.Declare: Interpreter._bind,
    nodes.Assign: Interpreter._bind,
    nodes.Store: Interpreter._store,
    nodes.Update: Interpreter._update,
    nodes.If: Interpreter._if,
    nodes.For: Interpreter._for,
    nodes.While: Interpreter._while,
}
_EXPRESSIONS: dict[type, Callable[..., Affine | None]] = {
    nodes.Const: lambda self, expr: affine.constant(int(expr.value)),
    nodes.Read: lambda self, expr: self.values.get(expr.sym),
    nodes.Extent: Interpreter._extent,
    nodes.Cast: Interpreter._cast,
    nodes.Unary: Interpreter._unary,
    nodes.Binary: Interpreter._binary,
}
