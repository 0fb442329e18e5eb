"""Elements of local arrays that a local of few values looks up."""

from __future__ import annotations

import numpy as np

from pyfuser.ir.nodes import Const, DeclareArray, Load, Select
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.selects import select_elements
from pyfuser.transform.unroll import unroll
from pyfuser.tuning.thresholds import DEFAULT
from tests.transform.build import Program
from tests.transform.test_rows import outcome
from tests.vendors import tune

N = 7


def kernel_of(function, **scalars: int) -> Kernel:
    """The unrolled kernel of a workunit after the pass, which computes what it did."""
    a = np.random.default_rng(1).integers(-3, 9, (N, 4)).astype(float)
    program = Program(N)
    program.call(function, b=np.zeros(N), a=a, **scalars)
    kernel = program.check()
    changed = select_elements(unroll(kernel))
    for found, wanted in zip(outcome(program, changed), outcome(program, kernel), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return changed


def moving(kernel: Kernel) -> int:
    """How many loads of local arrays are left whose place is not a constant."""
    arrays = {s.sym for s in statements(kernel.workunit.body) if isinstance(s, DeclareArray)}
    return sum(
        isinstance(e, Load) and e.view in arrays and not isinstance(e.indices[0], Const)
        for e in all_expressions(kernel.workunit.body)
    )


def selects(kernel: Kernel) -> int:
    return sum(isinstance(e, Select) for e in all_expressions(kernel.workunit.body))


def greatest(i, b, a):
    t: List[float] = [a[i, 0], a[i, 1], a[i, 2], a[i, 3]]  # noqa: F821
    best: int = 0
    for k in range(1, 4):
        if t[k] > t[best]:
            best = k
    b[i] = t[best]


def counted(i, b, a):
    t: List[float] = [a[i, 0], a[i, 1], a[i, 2], a[i, 3]]  # noqa: F821
    best: int = 0
    for k in range(1, 4):
        if t[k] > t[best]:
            best = best + 1
    b[i] = t[best]


def of_the_index(i, b, a):
    t: List[float] = [a[i, 0], a[i, 1], a[i, 2], a[i, 3]]  # noqa: F821
    best: int = 0
    if t[1] > t[0]:
        best = i % 4
    b[i] = t[best]


def of_a_loop(i, b, a):
    t: List[float] = [a[i, 0], a[i, 1], a[i, 2], a[i, 3]]  # noqa: F821
    best: int = 0
    while best < 3 and t[best] > 0.0:
        best = 3
    b[i] = t[best]


def test_each_place_that_it_may_be():
    kernel = kernel_of(greatest)
    assert moving(kernel) == 0
    assert selects(kernel) == 0 + 1 + 2 + 3


def test_what_is_computed_of_few_values_is_one_of_few():
    kernel = kernel_of(counted)
    assert moving(kernel) == 0
    assert selects(kernel) == 0 + 1 + 2 + 3


def test_what_the_index_decides_is_looked_up():
    kernel = kernel_of(of_the_index)
    assert moving(kernel) > 0
    assert selects(kernel) == 0


def test_what_a_loop_changes_is_looked_up():
    kernel = kernel_of(of_a_loop)
    assert moving(kernel) == 2
    assert selects(kernel) == 0


def test_the_limit_is_not_out_of_reach():
    assert DEFAULT.choices > 3


def neighbour(i, b, a, most):
    d: int = 0
    if a[i, 1] > 2.0:
        d = 1
    if i < most:
        b[i] = a[i + d, 0]


def corner(i, b, a):
    d: int = 0
    k: int = 2
    if a[i, 1] > 2.0:
        d = 1
    elif a[i, 1] > 0.0:
        k = 3
    b[i] = a[i // 2 + d, k]


def summed(i, b, a):
    d: int = 0
    for k in range(3):
        if a[i, k] > 2.0:
            d = d + 1
    b[i] = a[i // 2 + d, 0]


def views_kernel(function, **scalars: int) -> Kernel:
    """`kernel_of`, with views of one element more than there are iterations."""
    a = np.random.default_rng(1).integers(-3, 9, (N + scalars.pop("rows", 1), 4)).astype(float)
    program = Program(N)
    program.call(function, b=np.zeros(N), a=a, **scalars)
    kernel = program.check()
    changed = select_elements(kernel)
    for found, wanted in zip(outcome(program, changed), outcome(program, kernel), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return changed


def test_a_neighbour_that_data_chooses():
    assert selects(views_kernel(neighbour, most=N)) == 1
    assert selects(views_kernel(corner)) == 3


def test_not_where_a_value_would_leave_the_view():
    """`i + 1` is none of its rows in the last iteration, in which a guard keeps it from a load."""
    assert selects(views_kernel(neighbour, most=N - 1, rows=0)) == 0


def test_not_among_many_or_unknown_values(monkeypatch):
    assert selects(views_kernel(summed)) == 0
    tune(monkeypatch, neighbours=3)
    assert selects(views_kernel(corner)) == 0


def many_paths(i, b, a):
    d: int = 0
    k: int = 2
    if a[i, 1] > 3.0:
        d = 1
    elif a[i, 1] > 2.0:
        k = 3
    elif a[i, 1] > 1.0:
        d = 1
        k = 3
    b[i] = a[i // 2 + d, k]


def test_not_what_many_paths_choose():
    assert selects(views_kernel(many_paths)) == 0
