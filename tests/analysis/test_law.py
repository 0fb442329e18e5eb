"""The analysis against brute force: all pairs of iterations of random calls, byte by byte."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from pyfuser.analysis.accesses import Mode, accesses
from pyfuser.analysis.dependences import dependences
from pyfuser.analysis.overlap import Verdict, _by_sets, overlap
from pyfuser.ir import nodes
from pyfuser.ir.dtypes import DType
from pyfuser.ir.visit import statements
from pyfuser.trace.call import Space
from tests.analysis.build import (
    S,
    View,
    assign,
    call,
    expr,
    let,
    loop,
    region,
    select,
    trace,
    when,
    workunit,
)
from tests.analysis.oracle import value

coefficients = st.sampled_from([0, 0, 1, 1, 1, 2, -1])
DATA = View("data")
CHOICE = DATA[0] > 0.0
comparisons = st.sampled_from(["<", "<=", "==", "!=", ">", ">="])


@st.composite
def subscripts(draw, variables):
    """An integer expression over variables, some of it divided."""
    total = expr(draw(st.integers(0, 3)))
    for variable in variables:
        coefficient = draw(coefficients)
        term = variable
        match draw(st.integers(0, 11)):
            case 0:
                term = variable // draw(st.integers(1, 3))
            case 1:
                term = variable % draw(st.integers(1, 3))
            case 2:
                term = variable & 1
            case 3:  # a neighbour around the end
                term = (variable + draw(st.integers(0, 9))) % draw(st.integers(4, 8))
            case 4:  # one that stays inside
                end, other = draw(st.integers(0, 6)), expr(draw(st.integers(0, 6)))
                moved = variable + draw(st.integers(-1, 1))
                term = select(variable.compare(draw(comparisons), end), moved, other)
            case 5:
                term = select(CHOICE, variable + 1, variable)
        if coefficient:
            total = total + coefficient * term
    if draw(st.integers(0, 9)) == 0:
        total = total // 2
    return total


@st.composite
def conditions(draw, variables):
    """A comparison of a subscript, or what data choose."""
    if draw(st.integers(0, 9)) == 0:
        return CHOICE
    return draw(subscripts(variables)).compare(draw(comparisons), draw(st.integers(0, 8)))


@st.composite
def regions(draw, rank):
    """A strided box: an offset, strides of any sign; it may overlap itself."""
    shape = tuple(draw(st.integers(1, 16 // rank)) for _ in range(rank))
    strides = tuple(draw(st.sampled_from([8, 8, 16, -8, 4, 0, 32, 24])) for _ in range(rank))
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True))
    offset = draw(st.integers(0, 3)) * 8 - low
    dtype = draw(st.sampled_from([DType.FLOAT64, DType.FLOAT64, DType.FLOAT32]))
    return region(0, shape, offset, strides, dtype)


@st.composite
def calls(draw, space, where, write):
    """`if guard: for k: x[...] = 1` (or a load), some of it left out."""
    indices = [S(name) for name in "ijh"[: len(space.begin)]]
    rank = len(where.shape)
    x = View("x", rank, where.dtype)
    y = View("y")
    k, local = S("k"), S("t")
    variables = list(indices)
    before = []
    if draw(st.booleans()):
        before.append(let(local, draw(subscripts(indices))))
        variables.append(local)
        for _ in range(draw(st.integers(0, 2))):
            condition = draw(conditions([*indices, local]))
            change = [assign(local, draw(subscripts([*indices, local])))]
            before.append(
                when(condition, change) if draw(st.booleans()) else when(condition, [], change)
            )
    looped = draw(st.booleans())
    if looped:
        variables.append(k)
    cell = x[tuple(draw(subscripts(variables)) for _ in range(rank))]
    body = [cell << 1.0 if write else y[0].update("+", expr(cell), atomic=True)]
    if draw(st.booleans()):
        condition = draw(conditions(variables))
        body = [when(condition, body)] if draw(st.booleans()) else [when(condition, [], body)]
    if looped:
        start, stop = draw(subscripts(indices)), draw(subscripts(indices))
        step = draw(st.sampled_from([1, 1, 2, -1, -2]))
        body = [loop(k, start, stop, body, step)]
    unit = workunit("w", indices, [x, y, DATA], [*before, *body])
    return call(unit, space, where, region(1, 1), region(2, 1))


SPACES = (Space((0,), (5,)), Space((2,), (7,)), Space((0,), (1,)), Space((0, 0), (3, 2)))


@st.composite
def pairs(draw):
    """Two calls over one space, mostly over one region, at least one of them writing."""
    space = draw(st.sampled_from(SPACES))
    first = draw(regions(draw(st.integers(1, 2))))
    second = first if draw(st.booleans()) else draw(regions(draw(st.integers(1, 2))))
    written = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    return draw(calls(space, first, written[0])), draw(calls(space, second, written[1]))


# --------------------------------------------------------------------------- the oracle


def element(where, indices, env):
    """The bytes of an element; none if it is outside."""
    cell = [value(index, env) for index in indices]
    if not all(0 <= n < extent for n, extent in zip(cell, where.shape, strict=True)):
        return ()
    start = where.offset + sum(a * b for a, b in zip(cell, where.strides, strict=True))
    return range(start, start + where.dtype.size)


def touched(shape):
    """For each iteration the bytes of cluster 0 it touches; whether they are written."""
    unit, where = shape.workunit, shape.arguments[0]
    view = unit.params[0].sym

    def run(body, env, found):
        for stmt in body:
            match stmt:
                case nodes.Declare() | nodes.Assign():
                    env[stmt.sym] = value(stmt.value, env)
                case nodes.If():
                    run(stmt.then if value(stmt.condition, env) else stmt.orelse, env, found)
                case nodes.For():
                    at, step = value(stmt.start, env), value(stmt.step, env)
                    while at < value(stmt.stop, env) if step > 0 else at > value(stmt.stop, env):
                        env[stmt.sym] = at
                        run(stmt.body, env, found)
                        at += step
                case nodes.Store():
                    found.update(element(where, stmt.indices, env))
                case nodes.Update():
                    found.update(element(where, stmt.value.indices, env))

    result = {}
    box = [range(b, e) for b, e in zip(shape.space.begin, shape.space.end, strict=True)]
    assert view.dtype is where.dtype
    for point in itertools.product(*box):
        found = result[point] = set()
        for data in (0.0, 1.0):  # it is not known what they choose
            run(unit.body, {**dict(zip(unit.indices, point, strict=True)), DATA.sym: data}, found)
    return result, any(isinstance(stmt, nodes.Store) for stmt in statements(unit.body))


def truth(first, second):
    a, first_writes = touched(first)
    b, second_writes = touched(second)
    if not (first_writes or second_writes):
        return "none"
    answer = "none"
    for p, mine in a.items():
        for q, other in b.items():
            if mine & other:
                if p != q:
                    return "cross"
                answer = "same"
    return answer


def answer(first, second):
    found = [
        d
        for d in dependences(trace(first, second)).dependences
        if d.first_view == d.second_view == "x"
    ]
    if not found:
        return "none"
    return "same" if all(d.same_iteration for d in found) else "cross"


SEVERITY = {"none": 0, "same": 1, "cross": 2}


@settings(max_examples=120, deadline=None)
@given(pairs())
def test_never_misses_a_conflict(pair):
    assert SEVERITY[answer(*pair)] >= SEVERITY[truth(*pair)]


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_is_exact_where_everything_is_affine(pair):
    """isl's answer is the truth; a syntactic one may only add an order that costs no fusion."""
    first, second = pair
    mine, others = ([x for x in accesses(c) if x.param == 0] for c in pair)
    if not all(x.exact for x in (*mine, *others)):
        return
    where, other = first.arguments[0], second.arguments[0]
    found = ["none"]
    for a, b in itertools.product(mine, others):
        if a.mode is b.mode is Mode.READ:
            return
        sets = _by_sets(a.relation, where, b.relation, other, None)
        found.append(sets.value)
        quick = overlap(a.relation, where, b.relation, other)
        assert quick is sets or (quick, sets) == (Verdict.SAME, Verdict.NONE) or _outside(pair)
    assert max(found, key=SEVERITY.__getitem__) == truth(first, second)


def _outside(pair):
    """Whether some subscript leaves its region, which is undefined: then cheap tests may differ."""
    return any(
        index.span(access.relation.ranges)[0] < 0 or index.span(access.relation.ranges)[1] >= extent
        for call_shape in pair
        for access in accesses(call_shape)
        if access.param == 0
        for index, extent in zip(
            access.relation.indices, call_shape.arguments[0].shape, strict=True
        )
    )
