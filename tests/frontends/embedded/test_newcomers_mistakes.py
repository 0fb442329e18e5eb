"""Workunits that Python would run otherwise, each warned of or refused, beside its legal twin.

The first function of each pair is the mistake, and `# WRONG` the line that is named; the second is
what somebody may mean, and nothing is said of it.
"""

from __future__ import annotations

import linecache
import re
import warnings
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser import WorkunitWarning
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.support.errors import DivisionError, StepError, WorkunitError

# ruff: noqa: F821, F841, B007, PLW0177, RET503

N = 4


def arguments() -> dict[str, Any]:
    """Whatever a workunit below may name."""
    return {
        "y": np.zeros(N),
        "x": np.array([0.0, 1.5, 2.5, 3.0]),
        "wide": np.arange(N, dtype=np.int64),
        "narrow": np.arange(N, dtype=np.int32),
        "bytes8": np.arange(N, dtype=np.uint8),
        "mask": np.array([True, False, True, False]),
        "big": 3_000_000_000,
        "much": 300,
        "few": 200,
        "none": 0,
        "zeros": np.array([1, 2, 0, 4], dtype=np.int32),
    }


# ----------------------------------------------------------------- loops


@pk.workunit
def the_variable_after_its_loop(i, x, y):
    for k in range(4):
        if x[k] > 1:
            break
    y[i] = k  # WRONG


@pk.workunit
def the_variable_is_copied(i, x, y):
    last = -1
    for k in range(4):
        last = k
        if x[k] > 1:
            break
    y[i] = last


@pk.workunit
def a_loop_hides_a_local(i, x, y):
    k = -1
    for k in range(4):  # WRONG
        if x[k] > 5:
            break
    y[i] = k


@pk.workunit
def a_local_that_starts_again(i, x, y):
    k = -1
    for k in range(4):
        y[i] += x[k]
    for k in range(2):
        y[i] += x[k]
    if y[i] > 1:
        k = 2
        y[i] += k
    else:
        k = 3
    y[i] += k


@pk.workunit
def a_loop_hides_the_index(i, x, y):
    for i in range(4):  # WRONG
        if x[i] > 1:
            break
    if x[0] < 1:
        y[i] = 1.0


@pk.workunit
def a_loop_hides_the_index_to_the_end(i, x, y):
    y[i] = 1.0
    for i in range(4):
        if x[i] > 1:
            break


@pk.workunit
def a_variable_that_is_set_forward(i, x, y):
    for k in range(4):  # WRONG
        y[i] += x[k]
        if x[k] > 0:
            k += 2


@pk.workunit
def a_while_loop_that_is_set_forward(i, x, y):
    k = 0
    while k < 4:
        y[i] += x[k]
        k += 2


@pk.workunit
def a_bound_that_its_loop_changes(i, x, y):
    n = 4
    for k in range(n):  # WRONG
        y[i] += x[k]
        n = 2


@pk.workunit
def a_bound_that_the_loop_around_changes(i, x, y):
    n = 1
    for j in range(2):
        for k in range(n):
            y[i] += x[k]
        n = 2


@pk.workunit
def an_element_as_a_bound_that_its_loop_changes(i, x, y, narrow):
    for k in range(narrow[i]):  # WRONG
        narrow[i] -= 1


@pk.workunit
def an_element_as_a_bound(i, x, y, narrow, wide):
    for k in range(narrow[i]):
        wide[i] -= 1


@pk.workunit
def a_loop_down_without_a_step(i, x, y, few):  # WRONG
    for k in range(few, 0):
        y[i] += x[k]


@pk.workunit
def loops_that_may_be_empty(i, x, y, few, none):
    for k in range(few, 0, -1):
        y[i] += x[k % 4]
    for k in range(none, 0):
        y[i] += x[k]
    for k in range(few, 4 * i):
        y[i] += x[k % 4]
    if i < 0:
        for k in range(few, 0):
            y[i] += x[k]


# ----------------------------------------------------------------- types


@pk.workunit
def a_sum_of_wide_integers(i, wide, y):
    s = 0
    for j in range(2):
        s += wide[j]  # WRONG
    y[i] = s


@pk.workunit
def a_wide_sum(i, wide, narrow, bytes8, y):
    s: pk.int64 = 0
    for j in range(2):
        s += wide[j]
    small = 0
    small += narrow[i]
    small += bytes8[i] * 2
    small += wide[i] % 10
    small = wide[i] & 255
    small = int(wide[i])
    found = False
    found = wide[i] > 1
    y[i] = s + small


@pk.workunit
def a_wide_integer_in_a_narrow_local(i, wide, y):
    k = 0
    if i > 1:
        k = wide[i]  # WRONG
    y[i] = k


@pk.workunit
def a_local_of_a_wide_element(i, wide, y):
    k = wide[0]
    if i > 1:
        k = wide[i]
    y[i] = k


@pk.workunit
def a_mask_as_an_index(i, x, mask):
    x[mask[i]] = 0.0  # WRONG


@pk.workunit
def a_mask_as_a_guard(i, x, mask):
    if mask[i]:
        x[i] = 0.0


@pk.workunit
def a_comparison_as_an_index(i, x, y):
    y[i] = x[x[i] > 1]  # WRONG


@pk.workunit
def a_comparison_that_is_made_an_index(i, x, y):
    y[i] = x[int(x[i] > 1)]


@pk.workunit
def a_default(i, x, y):
    y[i] = x[i] or 5.0  # WRONG


@pk.workunit
def truth(i, x, y, narrow, mask):
    y[i] = x[i] > 1 or mask[i]
    narrow[i] = narrow[i] and mask[i]
    both: bool = x[i] and y[i]
    if (x[i] or y[i]) and not (x[i] and 2.0):
        y[i] = 1.0 if x[i] or both else 2.0
    y[i] = bool(x[i] or 3.0)


@pk.workunit
def a_default_for_an_integer(i, narrow, y):
    y[i] = narrow[i] or 10  # WRONG


@pk.workunit
def integers_as_marks(i, narrow, wide, y):
    y[i] = narrow[i] or 1
    y[i] = narrow[i] and wide[i]


@pk.workunit
def half_of_an_integer(i, narrow, y):
    t = narrow[i]
    t /= 2  # WRONG
    y[i] = t


@pk.workunit
def half_of_a_number(i, x, narrow, y):
    t = x[i]
    t /= 2
    n = narrow[i]
    n //= 2
    y[i] = t + n


@pk.workunit
def half_of_an_element(i, narrow):
    narrow[i] /= 2  # WRONG


@pk.workunit
def half_of_a_floating_element(i, y, narrow):
    y[i] /= 2
    narrow[i] //= 2


@pk.workunit
def compared_with_nan(i, x, y):
    if x[i] == np.nan:  # WRONG
        y[i] = 1.0


@pk.workunit
def compared_with_itself(i, x, y):
    if x[i] != x[i] or isnan(x[i]):
        y[i] = np.nan


@pk.workunit
def not_compared_with_nan(i, x, y):
    y[i] = 1.0 if math.nan != x[i] else 2.0  # WRONG


@pk.workunit
def compared_with_infinity(i, x, y):
    y[i] = 1.0 if math.inf != x[i] else 2.0


@pk.workunit
def a_mask_that_is_inverted(i, mask, narrow):
    if ~mask[i]:  # WRONG
        narrow[i] = 1


@pk.workunit
def bits_that_are_inverted(i, mask, narrow):
    if not mask[i]:
        narrow[i] = ~narrow[i] & ~(i + 1)


# ----------------------------------------------------------------- divisions


@pk.workunit
def a_remainder_below_zero(i, narrow, wide):
    narrow[i] = (i - 5) % 3  # WRONG


@pk.workunit
def half_a_remainder_below_zero(i, y):
    y[i] += (i - 5) % 3  # WRONG


@pk.workunit
def remainders_that_are_made_positive(i, narrow, wide):
    narrow[i] = ((i - 5) % 3 + 3) % 3
    wide[i] = (i + 5) % 3
    narrow[i] = (3 * i - 6) % 3
    if i > 4:
        narrow[i] = (i - 5) % 3


@pk.workunit
def by_elements_of_an_array(i, narrow, zeros):
    narrow[i] = 10 // zeros[i]  # WRONG


@pk.workunit
def by_elements_that_are_written(i, zeros):
    zeros[i] = i + 1
    zeros[i] = 10 // zeros[i]


@pk.workunit
def steps_of_zero(i, x, y):  # WRONG
    for k in range(0, 4, i):
        y[i] += x[k]


@pk.workunit
def steps_that_are_never_made(i, x, y):
    if i > 0:
        for k in range(0, 4, i):
            y[i] += x[k]
    for k in range(4, 4, 0 * i):
        y[i] += x[k]
    for k in range(0, 4, 0 * i):
        if x[k] >= 0:
            break


# ----------------------------------------------------------------- what elements hold


@pk.workunit
def an_argument_too_large(i, narrow, big):
    narrow[i] = big + i  # WRONG


@pk.workunit
def an_argument_that_fits(i, narrow, wide, bytes8, big, few):
    wide[i] = big + i
    narrow[i] = few
    bytes8[i] = few
    bytes8[i] = few + few  # unsigned numbers may mean to wrap
    narrow[i] = int(big)
    if i < 0:
        narrow[i] = big


@pk.workunit
def an_argument_too_large_for_a_byte(i, bytes8, much):
    bytes8[i] = much  # WRONG


# ----------------------------------------------------------------- races that memory decides on


@pk.workunit
def the_greatest(i, x, y):
    if x[i] > y[0]:
        y[0] = x[i]  # WRONG


@pk.workunit
def the_one_that_is_looked_for(i, x, y, narrow):
    if x[i] == 1.5:
        y[0] += x[i]
    if x[i] > 1.0 and x[i] < 2.0:
        y[1] += 1.0
    if x[i] > 1.0:
        y[i] += 1.0
        y[2] = 5.0
        narrow[0] |= 1
        pk.atomic_add(y, [3], 1.0)
    if i > 2:
        narrow[1] += 1


@pk.workunit
def a_counter_under_a_guard(i, x, narrow):
    if x[i] >= 1.0:
        narrow[0] += 1  # WRONG


#: Each mistake with what is said of it, and its twin.
# ----------------------------------------------------------------- one element, under a condition


@pk.workunit
def whichever_is_found_last(i, x, narrow):
    if x[i] > 1.0:
        narrow[0] = i  # WRONG


@pk.workunit
def the_least_is_found_and_a_flag_set(i, x, narrow, mask):
    if x[i] > 1.0:
        pk.atomic_fetch_min(narrow, [0], i)
        mask[0] = True
    if x[i] == 1.5:
        narrow[1] = i
    if x[i] > 1.0 and x[i] < 2.0:
        narrow[2] = i


@pk.workunit
def a_value_of_whichever_comes_last(i, x, y):
    if x[i] >= 1.0:
        y[1] = 2.0 * x[i]  # WRONG


@pk.workunit
def a_value_of_all(i, x, y, few):
    t = 2.0 * few
    if x[i] >= 1.0:
        y[1] = t
    if x[i] > 1.0:
        y[i] = x[i]


@pk.workunit
def counted_and_reset(i, wide, narrow):
    pk.atomic_add(wide, [narrow[i]], 1)
    if wide[narrow[i]] > 5:
        wide[narrow[i]] = 0  # WRONG


@pk.workunit
def counted_and_reset_by_the_last(i, wide, narrow):
    before = pk.atomic_fetch_add(wide, [narrow[i]], 1)
    if before == 5:
        wide[narrow[i]] = 0


@pk.workunit
def one_counted_and_reset(i, wide, narrow):
    pk.atomic_add(wide, [0], 1)
    if narrow[i] == 5:
        wide[0] = 0  # WRONG


@pk.workunit
def each_counts_its_own(i, wide, narrow):
    wide[i] = 0
    pk.atomic_add(wide, [i], narrow[i])


PAIRS: dict[Any, tuple[type[Exception], str, Any]] = {
    the_variable_after_its_loop: (
        WorkunitError,
        "the variable of the loop in line",
        the_variable_is_copied,
    ),
    whichever_is_found_last: (
        WorkunitWarning,
        "may write one element of 'narrow', so chance decides whose value stays: pk.atomic_fetch_m",
        the_least_is_found_and_a_flag_set,
    ),
    a_value_of_whichever_comes_last: (
        WorkunitWarning,
        "may write one element of 'y', so chance",
        a_value_of_all,
    ),
    counted_and_reset: (
        WorkunitWarning,
        "write elements of 'wide' that others change atomically",
        counted_and_reset_by_the_last,
    ),
    one_counted_and_reset: (
        WorkunitWarning,
        "write elements of 'wide' that others change atomically",
        each_counts_its_own,
    ),
    a_loop_hides_a_local: (WorkunitWarning, "ends with it", a_local_that_starts_again),
    a_loop_hides_the_index: (WorkunitWarning, "ends with it", a_loop_hides_the_index_to_the_end),
    a_variable_that_is_set_forward: (
        WorkunitWarning,
        "counts on from there",
        a_while_loop_that_is_set_forward,
    ),
    a_bound_that_its_loop_changes: (
        WorkunitWarning,
        "this loop changes range(n)",
        a_bound_that_the_loop_around_changes,
    ),
    an_element_as_a_bound_that_its_loop_changes: (
        WorkunitWarning,
        "this loop changes range(narrow[i])",
        an_element_as_a_bound,
    ),
    a_sum_of_wide_integers: (WorkunitWarning, "`s: pk.int64 = ...`", a_wide_sum),
    a_wide_integer_in_a_narrow_local: (WorkunitWarning, "upper bits", a_local_of_a_wide_element),
    a_mask_as_an_index: (WorkunitWarning, "'mask[i]' is a bool", a_mask_as_a_guard),
    a_comparison_as_an_index: (
        WorkunitWarning,
        "'x[i] > 1' is a bool",
        a_comparison_that_is_made_an_index,
    ),
    a_mask_that_is_inverted: (WorkunitWarning, "write `not mask[i]`", bits_that_are_inverted),
    a_remainder_below_zero: (
        WorkunitWarning,
        "is 1 in Python where i = 0, and not here",
        remainders_that_are_made_positive,
    ),
    half_a_remainder_below_zero: (
        WorkunitWarning,
        "(x % n + n) % n",
        remainders_that_are_made_positive,
    ),
    a_loop_down_without_a_step: (
        WorkunitWarning,
        "never runs, as range(200, 0) is empty",
        loops_that_may_be_empty,
    ),
    a_default: (WorkunitWarning, "`x[i] or 5.0` is a bool", truth),
    a_default_for_an_integer: (WorkunitWarning, "is a bool, 0 or 1", integers_as_marks),
    half_of_an_integer: (WorkunitWarning, "write `//=`", half_of_a_number),
    half_of_an_element: (WorkunitWarning, "write `//=`", half_of_a_floating_element),
    compared_with_nan: (WorkunitWarning, "is never true: write isnan(x[i])", compared_with_itself),
    not_compared_with_nan: (WorkunitWarning, "is always true", compared_with_infinity),
    the_greatest: (WorkunitWarning, "pk.atomic_fetch_max", the_one_that_is_looked_for),
    a_counter_under_a_guard: (WorkunitWarning, "may change", the_one_that_is_looked_for),
    steps_of_zero: (StepError, "is 0 where i = 0, so it never ends", steps_that_are_never_made),
    an_argument_too_large: (WorkunitWarning, "cannot hold 3000000000", an_argument_that_fits),
    an_argument_too_large_for_a_byte: (WorkunitWarning, "cannot hold 300,", an_argument_that_fits),
    by_elements_of_an_array: (DivisionError, "zeros[2], which is 0", by_elements_that_are_written),
}


def run(workunit: Any) -> None:
    function = workunit.__pyfuser__.function
    workunit.__pyfuser__ = WorkunitState(function, {}, False)  # nothing is kept of earlier calls
    known = arguments()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    with pyfuser.fusing():
        pk.parallel_for(N, workunit, **{name: known[name] for name in names if name in known})


@pytest.mark.parametrize("workunit", PAIRS, ids=lambda workunit: workunit.__name__)
def test_a_mistake_is_told(workunit: Any, request: pytest.FixtureRequest) -> None:
    kind, message, _ = PAIRS[workunit]
    if kind is WorkunitWarning:
        request.getfixturevalue("idle_kernels")
        with pytest.warns(kind, match=re.escape(message)) as caught:
            run(workunit)
        (warning,) = caught
        assert warning.filename == __file__
        line = warning.lineno
    else:
        with pytest.raises(kind, match=re.escape(message)) as raised:
            run(workunit)
        line = int(str(raised.value).split(":")[1])
    assert linecache.getline(__file__, line).rstrip().endswith("# WRONG")


@pytest.mark.parametrize("workunit", PAIRS, ids=lambda workunit: workunit.__name__)
def test_nothing_is_said_of_its_twin(workunit: Any, idle_kernels: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(PAIRS[workunit][2])


# ----------------------------------------------------------------- results that nobody has


def lose_by_an_index(fill: Any, y: Any, places: Any) -> None:
    pk.parallel_for(2, fill, y=y[places])


def lose_by_a_conversion(fill: Any, y: Any, places: Any) -> None:
    pk.parallel_for(
        2,
        fill,
        y=y.astype(np.float32),
    )


def lose_by_a_copy_of_a_list(fill: Any, y: Any, places: Any) -> None:
    pk.parallel_for("label", 2, fill, y=np.array([1.0, 2.0]))


def lose_by_a_sum(fill: Any, y: Any, places: Any) -> None:
    pk.parallel_for(2, fill, y=y + 1)


def lose_by_a_chain(fill: Any, y: Any, places: Any) -> None:
    pk.parallel_for(2, fill, y=y.reshape(2, 2).ravel().copy())


def setting() -> Any:
    @pk.workunit
    def fill(i, y):
        y[i] = 1.0

    return fill


def doubling() -> Any:
    @pk.workunit
    def double(i, y):
        y[i] = 2.0 * y[i]

    return double


def adding() -> Any:
    @pk.workunit
    def add(i, y):
        y[i] += y[i]

    return add


@pytest.mark.parametrize("block", [pyfuser.fusing, pyfuser.unfused])
@pytest.mark.parametrize("fill", [setting, doubling, adding])
@pytest.mark.parametrize(
    "lose",
    [
        lose_by_an_index,
        lose_by_a_conversion,
        lose_by_a_copy_of_a_list,
        lose_by_a_sum,
        lose_by_a_chain,
    ],
)
def test_results_that_are_lost(lose: Any, fill: Any, block: Any) -> None:
    y = np.zeros(4)
    with pytest.warns(WorkunitWarning, match="so what it writes is lost") as caught, block():
        lose(fill(), y, [1, 3])
    assert caught[0].filename == __file__
    assert lose.__code__.co_firstlineno < caught[0].lineno <= lose.__code__.co_firstlineno + 5


def test_results_that_somebody_has() -> None:
    @pk.workunit
    def fill(i, y):
        y[i] = 1.0

    @pk.workunit
    def with_room(i, room, y):
        room[i] = y[i]
        y[i] = 2.0 * room[i]

    @pk.workunit
    def total(i, acc, y):
        acc += y[i]

    @pk.workunit
    def total_of_room(i, acc, room, y):
        room[i] = 2.0 * y[i]
        acc += room[i]

    def anew(n: int) -> Any:
        return np.zeros(n)

    y, rows, by_name = np.zeros(4), np.zeros((2, 4)), {"y": np.zeros(4)}
    chosen = y[[0, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (
            lambda: pk.parallel_for(2, fill, y=y[1:]),  # a part of an array is no copy
            lambda: pk.parallel_for(2, fill, y=rows.T[0]),
            lambda: pk.parallel_for(2, fill, y=by_name["y"]),
            lambda: pk.parallel_for(2, fill, y=chosen),
            lambda: pk.parallel_for(2, fill, y=y.copy()),  # a trial
            lambda: pk.parallel_for(2, fill, y=anew(2)),
            lambda: pk.parallel_for(2, with_room, room=y[[0, 1]], y=y),
            lambda: pk.parallel_reduce(2, total, y=y[[0, 1]]),
            lambda: pk.parallel_reduce(2, total_of_room, room=y[[0, 1]], y=y),
        ):
            fill.__pyfuser__ = WorkunitState(fill.__pyfuser__.function, {}, False)
            call()


# ----------------------------------------------------------------- functions and hidden names


@pk.function
def without_return(t: float) -> float:
    u: float = t + 1


@pk.function
def sometimes(t: float) -> float:
    if t > 1:
        return t


@pk.function
def either(t: float) -> float:
    if t > 1:
        return t
    if t < 0:
        return -t
    return 0.0


@pk.function
def in_the_end(t: float) -> float:
    while True:
        t = t / 2
        if t < 1:
            return t


@pk.function
def left(t: float) -> float:
    while True:
        t = t / 2
        if t < 1:
            break
        if t > 100:
            return 100.0


@pk.function
def half(t: int) -> int:
    return t / 2


@pk.function
def half_of_integers(t: int) -> int:
    return int(t / 2) + t // 2


@pk.workunit
def of_half(i, x, y):
    y[i] = half(i)


@pk.workunit
def of_half_of_integers(i, x, y):
    y[i] = half_of_integers(i)


@pk.workunit
def of_nothing(i, x, y):
    y[i] = without_return(x[i])


@pk.workunit
def of_sometimes(i, x, y):
    y[i] = sometimes(x[i])


@pk.workunit
def of_a_loop_that_is_left(i, x, y):
    y[i] = left(x[i])


@pk.workunit
def of_either(i, x, y):
    y[i] = either(x[i]) + in_the_end(x[i])


@pk.workunit
def index_hidden(i, x, y):
    for i in range(3):
        y[i] = x[i]


@pk.workunit
def index_in_use(i, x, y):
    for k in range(3):
        y[i] = x[k]


def call(work: Any) -> None:
    given = arguments()
    work.__pyfuser__ = WorkunitState(work.__pyfuser__.function, {}, False)
    with pyfuser.unfused():
        pk.parallel_for(N, work, x=given["x"], y=given["y"])


def test_a_function_that_returns_nothing_is_refused() -> None:
    with pytest.raises(WorkunitError, match="-> float` and returns nothing: end it with `return"):
        call(of_nothing)


@pytest.mark.parametrize("work", [of_sometimes, of_a_loop_that_is_left])
def test_a_function_that_sometimes_returns_nothing_is_warned_of(work: Any) -> None:
    with pytest.warns(WorkunitWarning, match="not every way through"):
        call(work)


def test_an_index_that_a_loop_hides_is_warned_of() -> None:
    with pytest.warns(WorkunitWarning, match="hides the index"):
        call(index_hidden)


def test_a_value_that_is_cut_when_it_is_returned_is_warned_of() -> None:
    with pytest.warns(WorkunitWarning, match="loses its fraction: annotate half `-> float`"):
        call(of_half)


@pytest.mark.parametrize("work", [of_either, index_in_use, of_half_of_integers])
def test_functions_and_loops_that_nothing_is_said_of(work: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(work)


@pk.workunit
def product(i, acc, x):
    if x[i] > 0:
        acc *= x[i]


def test_a_warning_of_an_accumulator_names_the_assignment() -> None:
    with pytest.warns(WorkunitWarning, match="'acc'") as caught, pyfuser.unfused():
        pk.parallel_reduce(N, product, x=np.ones(N))
    assert caught[0].lineno == product.__pyfuser__.function.__code__.co_firstlineno + 3


def test_arguments_that_newcomers_pass() -> None:
    y = np.zeros(N)
    with pytest.raises(TypeError, match="passed by keyword, as in x=x"):
        pk.parallel_for(N, index_in_use, y)
    with pytest.raises(TypeError, match="start at 0; add it to the result"):
        pk.parallel_reduce(N, product, initial=5.0, x=y)
    with pytest.raises(TypeError, match=re.escape("MDRangePolicy([0, 0], [5, 5])")):
        pk.MDRangePolicy([5, 5])
