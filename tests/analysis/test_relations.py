"""Relations of accesses against what iterations of random workunits touch.

No element may be missing; nor may one be too many in an access that is said to be exact. Subscripts
are made as programs seldom make them: quotients, low bits and conversions of locals that conditions
and loops change.
"""

import random

import islpy
import pytest

from pyfuser.analysis.accesses import accesses
from pyfuser.analysis.overlap import _describe
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.trace.call import Space
from tests.analysis.build import (
    E,
    S,
    View,
    any_of,
    assign,
    both,
    call,
    expr,
    let,
    loop,
    no,
    region,
    select,
    when,
    workunit,
)
from tests.analysis.oracle import value

EXTENT = 40
DATA = View("data")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.INT64, DType.UINT32)
STEPS = 2000  # trips of loops that one call may make


class Maker:
    """Makes workunits that touch `x`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.choice = self.random.choice
        self.x, self.y = View("x"), View("y")

    def chance(self, often: float) -> bool:
        return self.random.random() < often

    def small(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def number(self, variables: list[S], depth: int = 0) -> E:
        v = self.choice(variables)
        scaled = v * self.choice([-1, 1, 1, 2]) + self.small(-2, 6)
        base = self.choice([scaled, v + self.small(0, 3), self.small(0, 6) - v, v + v])
        if self.chance(0.35):
            return base
        if depth < 2 and self.chance(0.2):
            ways = self.number(variables, depth + 1), self.number(variables, depth + 1)
            return select(self.condition(variables, depth + 1), *ways)
        unary = [E(nodes.Unary(op, base.node, base.node.dtype)) for op in "-~"]
        divided = [base // 2, base // 3, base % 3, base >> 1, (base + 20) % 7, (base + 9) % 11]
        narrow = base.cast(self.choice(NARROW)).cast(DType.INT32)
        return self.choice([*unary, *divided, base & 1, base & 3, (base & 1) * -1, narrow])

    def condition(self, variables: list[S], depth: int = 0) -> E:
        if depth < 2 and self.chance(0.4):
            parts = self.condition(variables, depth + 1), self.condition(variables, depth + 1)
            return self.choice([both(*parts), any_of(*parts), no(parts[0])])
        if self.chance(0.05):
            return DATA[0] > 0.0
        left = self.number(variables, depth + 1) if self.chance(0.5) else self.choice(variables)
        right = expr(self.small(-1, 8))
        if self.chance(0.2):
            right = self.number(variables, depth + 1)
        return left.compare(self.choice(COMPARISONS), right)

    def body(self, variables: list[S], local: list[S], depth: int = 0) -> list[nodes.Stmt]:
        made: list[nodes.Stmt] = []
        for _ in range(self.small(1, 3)):
            what = self.random.random()
            if not local or what < 0.2:
                new = S("t")
                made.append(let(new, self.number(variables)))
                variables, local = [*variables, new], [*local, new]
            elif what < 0.45:
                made.append(assign(self.choice(local), self.number(variables)))
            elif what < 0.8 and depth < 3:
                ways = [self.body(variables, local, depth + 1), []]
                if self.chance(0.4):
                    ways[1] = self.body(variables, local, depth + 1)
                self.random.shuffle(ways)
                made.append(when(self.condition(variables), *ways))
            elif what < 0.93 and depth < 2:
                k, step = S("k"), self.choice([1, 1, 1, 2, 3, -1, -2])
                ends = self.number(variables), self.number(variables)
                made.append(loop(k, *ends, self.body([*variables, k], local, depth + 1), step))
            else:
                made.append(self.access(variables))
        return [*made, self.access(variables)] if self.chance(0.35) else made

    def access(self, variables: list[S]) -> nodes.Stmt:
        cell = self.x[self.number(variables)]
        stmt = self.choice([cell << 1.0, self.y[0].update("+", expr(cell), atomic=True)])
        return when(self.condition(variables), [stmt]) if self.chance(0.2) else stmt

    def made(self):
        i, begin = S("i"), self.choice([0, 0, 2])
        unit = workunit("w", [i], [self.x, self.y, DATA], self.body([i], []))
        space = Space((begin,), (begin + self.choice([1, 5, 12]),))
        return call(unit, space, region(0, EXTENT), region(1, 1), region(2, 1))


class _TooLong(Exception):
    pass


class Machine:
    """What iterations of a call touch, step by step."""

    def __init__(self, shape, data: float) -> None:
        self.steps, self.touched = 0, set()
        (begin,), (end,) = shape.space.begin, shape.space.end
        for self.iteration in range(begin, end):
            self.locals = {shape.workunit.indices[0]: self.iteration, DATA.sym: data}
            self.run(shape.workunit.body)

    def touch(self, indices) -> None:
        element = value(indices[0], self.locals)
        if 0 <= element < EXTENT:
            self.touched.add((self.iteration, element))

    def run(self, body) -> None:
        for stmt in body:
            match stmt:
                case nodes.Declare() | nodes.Assign():
                    self.locals[stmt.sym] = value(stmt.value, self.locals)
                case nodes.If():
                    self.run(stmt.then if value(stmt.condition, self.locals) else stmt.orelse)
                case nodes.For():
                    at, step = value(stmt.start, self.locals), value(stmt.step, self.locals)
                    while step * at < step * value(stmt.stop, self.locals):
                        self.steps += 1
                        if self.steps > STEPS:
                            raise _TooLong
                        self.locals[stmt.sym] = at
                        self.run(stmt.body)
                        at += step
                case nodes.Store():
                    self.touch(stmt.indices)
                case nodes.Update():
                    self.touch(stmt.value.indices)


def related(relation) -> set[tuple[int, int]]:
    """The pairs of iterations and elements."""
    variables, constraints = _describe(relation, region(0, EXTENT), "p", "a")
    names = [f"p{n}" if n == 0 else f"a{n}" for n in range(len(relation.ranges))]
    (index,) = relation.indices
    constraints.append(f"0 <= e < {EXTENT}" if index is None else f"e = {index.text(names)}")
    inner = ", ".join(v for v in variables if v != "p0")
    where = f"({' and '.join(constraints)})"
    found = set()

    def note(point) -> None:
        pair = (point.get_coordinate_val(islpy.dim_type.set, n).to_python() for n in (0, 1))
        found.add(tuple(pair))

    text = f"{{ [p0, e] : {f'exists {inner} : ' if inner else ''}{where} }}"
    islpy.Set(text).foreach_point(note)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_accesses_touch_what_iterations_touch(seed):
    maker = Maker(seed)
    exact = 0
    for _ in range(40):
        shape = maker.made()
        try:
            one, other = (Machine(shape, data).touched for data in (0.0, 1.0))
        except _TooLong:
            continue
        found = [(a.exact, related(a.relation)) for a in accesses(shape) if a.param == 0]
        assert one | other <= set().union(*(touched for _, touched in found))
        for is_exact, touched in found:
            exact += is_exact
            assert not is_exact or touched <= one & other
    assert exact > 5
