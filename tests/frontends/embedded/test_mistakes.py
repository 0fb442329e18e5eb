"""Typical mistakes: each error names the line, points at the place, and says what to do."""

from __future__ import annotations

import functools
import linecache
import math
import re
import warnings
from typing import Any, List  # noqa: UP035  # as programs write it

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import ArgumentError, PyFuserError, WorkunitError, WorkunitWarning
from pyfuser.support.tracebacks import is_users, users_part

# ruff: noqa: B007, F821, F841, NPY002, PLC3002, SIM105, UP006

N = 8
NUMBERS = [1.0, 2.0]


class Settings:
    def __init__(self) -> None:
        self.scale = 2.0


SETTINGS = Settings()


def increment(x):  # WRONG
    return x + 1


@pk.function
def times(x: float, factor: float = 2.0) -> float:
    return x * factor


@pk.workunit
def a_mask_of_comparisons(i, v):
    if v[i] > 1.0 & i < 3:  # WRONG
        v[i] = 1.0


@pk.workunit
def a_dict(i, v):
    d = {"a": 1.0}  # WRONG
    v[i] = d["a"]


@pk.workunit
def a_comprehension(i, v):
    a = [v[j] for j in range(3)]  # WRONG


@pk.workunit
def a_choice_of_numpy(i, v):
    v[i] = np.where(v[i] > 0.0, 1.0, 0.0)  # WRONG


@pk.workunit
def a_dot(i, v):
    v[i] = np.dot(v[i], v[i])  # WRONG


@pk.workunit
def an_item(i, v):
    v[i] = v[i].item()  # WRONG


@pk.workunit
def a_rank_without_a_team(i, v):
    j: int = i.league_rank()  # WRONG
    v[j] = 1.0


@pk.workunit
def a_loop_over_a_team(i, v):
    for k in pk.TeamThreadRange(i, 4):  # WRONG
        v[k] = 1.0


@pk.workunit
def a_call_with_arguments(i, v):
    pk.parallel_for(3, a_dict, v=v)  # WRONG


@pk.workunit
def a_complex_number(i, v):
    v[i] = 1j  # WRONG


# In the workunits, `# WRONG` marks the line that the error shows.


@pk.workunit
def a_local_without_a_value(i, v):
    x += v[i]  # WRONG
    v[i] = x


@pk.workunit
def a_function_that_is_not_there(i, v):
    v[i] = pk.flor(v[i])  # WRONG


@pk.workunit
def a_name_that_is_not_there(i, v):
    v[i] = vv[i] + nothing  # WRONG


@pk.workunit
def a_matrix_that_is_none(i, v):
    v[i][0] = 1.0  # WRONG


@pk.workunit
def a_text(i, v):
    v[i] = "one"  # WRONG


@pk.workunit
def a_local_text(i, v):
    s: str = "one"  # WRONG


@pk.workunit
def a_list_that_grows(i, v):
    a: List[int] = [1, 2]
    a.append(3)  # WRONG


@pk.workunit
def a_chain(i, v):
    if 0 < i < 3:  # WRONG
        v[i] = 1.0


@pk.workunit
def a_swap(i, v):
    a: float = v[i]
    b: float = 2.0
    a, b = b, a  # WRONG


@pk.workunit
def a_try(i, v):
    try:  # WRONG
        v[i] = 1.0
    except ValueError:
        pass


@pk.workunit
def a_with(i, v):
    with open("file"):  # WRONG
        v[i] = 1.0


@pk.workunit
def an_import(i, v):
    import math  # WRONG

    v[i] = math.pi


@pk.workunit
def a_python_function(i, v):
    v[i] = increment(v[i])


@pk.workunit
def a_list_from_outside(i, v):
    v[i] = NUMBERS[0]  # WRONG


@pk.workunit
def an_object_from_outside(i, v):
    v[i] = SETTINGS.scale  # WRONG


@pk.workunit
def the_shape(i, v):
    v[i] = v.shape[0]  # WRONG


@pk.workunit
def the_length(i, v):
    v[i] = len(v)  # WRONG


@pk.workunit
def a_print(i, v):
    print(v[i])  # WRONG


@pk.workunit
def an_f_string(i, v):
    pk.printf(f"{i}")  # WRONG


@pk.workunit
def a_result(i, v):
    return v[i]  # WRONG


@pk.workunit
def a_yield(i, v):
    yield v[i]  # WRONG


@pk.workunit
def a_loop_over_a_view(i, v):
    for x in v:  # WRONG
        v[i] = x


@pk.workunit
def a_sum(i, v):
    v[i] = sum([v[j] for j in range(3)])  # WRONG


@pk.workunit
def a_remainder_of_floats(i, v):
    v[i] = v[i] % 2.0  # WRONG


@pk.workunit
def a_view_as_a_whole(i, v):
    v += 1.0  # WRONG


@pk.workunit
def a_fill(i, v):
    v.fill(1.0)  # WRONG


@pk.workunit
def a_second_declaration(i, v):
    x: int = 1
    x: int = 2  # WRONG


@pk.workunit
def a_loop_variable_afterwards(i, v):
    for j in range(3):
        pass
    v[i] = j  # WRONG


@pk.workunit
def an_index_that_is_no_list(i, v):
    pk.atomic_add(v, i, 1.0)  # WRONG


@pk.workunit
def bits_of_a_double(i, v):
    pk.atomic_fetch_and(v, [i], 1)  # WRONG


@pk.workunit
def a_part_of_a_number(i, v):
    v[i] = (v[i] + 1.0).real  # WRONG


@pk.workunit
def a_function_of_mathematics(i, v):
    v[i] = math.factorial(3)  # WRONG


@pk.workunit
def a_comparison_with_none(i, v):
    if v[i] is None:  # WRONG
        v[i] = 0.0


@pk.workunit
def a_default_of_a_function(i, v):
    v[i] = times(v[i])  # WRONG


@pk.workunit
def a_keyword_of_a_function(i, v):
    v[i] = times(v[i], factor=2.0)  # WRONG


@pk.workunit
def a_format_of_another_type(i, v):
    pk.printf("%d\n", v[i])  # WRONG


@pk.workunit
def a_power_of_other_languages(i, v):
    v[i] = v[i] ^ 2  # WRONG


@pk.workunit
def a_counter_of_the_module(i, v):
    N += 1  # noqa: F823  # WRONG


@pk.workunit
def a_format_of_an_integer(i, v):
    pk.printf("%5.2f\n", i)  # WRONG


@pk.workunit
def a_format_of_a_text(i, v):
    pk.printf("%s\n", i)  # WRONG


@pk.workunit
def a_format_of_too_many(i, v):
    pk.printf("%d %% %d\n", i)  # WRONG


@pk.workunit
def a_format_of_too_few(i, v):
    pk.printf("done\n", i)  # WRONG


@pk.workunit
def a_membership(i, v):
    v[i] = 1.0 if i in (1, 2) else 0.0  # WRONG


@pk.workunit
def a_walrus(i, v):
    v[i] = (y := v[i])  # WRONG


@pk.workunit
def a_raise(i, v):
    raise ValueError(v[i])  # WRONG


@pk.workunit
def a_lambda(i, v):
    v[i] = (lambda x: x)(v[i])  # WRONG


@pk.workunit
def a_view_that_is_called(i, v):
    v(i)  # WRONG


@pk.workunit
def a_numpy_array(i, v):
    t = np.zeros(3)  # WRONG


@pk.workunit
def a_view_made_inside(i, v):
    t = pk.View([3])  # WRONG


@pk.workunit
def a_random_number(i, v):
    v[i] = np.random.rand()  # WRONG


@pk.workunit
def a_text_as_infinity(i, v):
    v[i] = float("inf")  # WRONG


@pk.workunit
def a_type_that_is_asked_for(i, v):
    v[i] = isinstance(v[i], float)  # WRONG


@pk.workunit
def a_method_of_numbers(i, v):
    v[i] = v[i].astype(int)  # WRONG


@pk.workunit
def a_slice_that_is_set(i, v):
    v[:] = 1.0  # WRONG


@pk.workunit
def a_loop_over_pairs(i, v):
    for j, x in enumerate(v):  # WRONG
        v[j] = x


@pk.workunit
def a_match(i, v):
    match i:  # WRONG
        case 1:
            v[i] = 1.0


@pk.workunit
def a_function_inside(i, v):
    def twice(x):  # WRONG
        return 2 * x

    v[i] = twice(v[i])


IN_WORKUNITS = {
    a_format_of_another_type: "'%d' shows an integer, not float64: use %f, or int(...)",
    a_format_of_an_integer: "'%5.2f' shows a float, not int32: use %d",
    a_format_of_a_text: "'%s' shows no number",
    a_format_of_too_many: "the text shows 2 value(s), and 1 are given",
    a_format_of_too_few: "the text shows 0 value(s), and 1 are given",
    a_membership: "as in `a == b or a == c`",
    a_walrus: "assign in a statement of its own",
    a_raise: "store what is wrong in a view, and look at it after",
    a_lambda: "write one outside, with @pk.function",
    a_view_that_is_called: "'v' is a view: index it, as in v[i]",
    a_numpy_array: "an array of the iteration is `name: List[float]",
    a_view_made_inside: "make it outside, and pass it as a keyword argument",
    a_random_number: "use pk.rand(float), with a parameter `pool: pk.RandomPool`",
    a_text_as_infinity: "use math.inf",
    a_type_that_is_asked_for: "types are known before the call runs",
    a_method_of_numbers: "use int(...), pk.double(...)",
    a_slice_that_is_set: "as in `for k in range(v.extent(0)): v[k] = ...`",
    a_loop_over_pairs: "a loop has one variable, as in `for j in range",
    a_match: "match is not supported in a workunit: use if and elif",
    a_function_inside: "one that is only called is defined outside, with @pk.function",
    a_default_of_a_function: "default arguments are not supported, pass 'factor' (2.0), too",
    a_keyword_of_a_function: "times takes its arguments by position: pass 'factor' so",
    a_local_without_a_value: "give it a first value before",
    a_function_that_is_not_there: "did you mean 'floor' or",
    a_name_that_is_not_there: "'vv' is no view of this workunit: did you mean 'v'?",
    a_matrix_that_is_none: "'v' has 1 dimension but is indexed with 2",
    a_text: "a text may only be the first argument of pk.printf",
    a_local_text: "use int, float, bool, pk.int64, ...",
    a_list_that_grows: "a list keeps its length",
    a_mask_of_comparisons: "write `a < b and c < d`",
    a_chain: "write `a < b and b < c`",
    a_swap: "assign to one name after the other",
    a_dict: "use a name for each entry",
    a_comprehension: "write a for loop over range(...)",
    a_choice_of_numpy: "write `a if condition else b`",
    a_dot: "add up in a loop",
    an_item: "leave it out",
    a_rank_without_a_team: "call the workunit with a pk.TeamPolicy",
    a_loop_over_a_team: "write pk.parallel_for(pk.TeamThreadRange(i, 4), inner)",
    a_call_with_arguments: "starts no kernels: call it outside",
    a_complex_number: "store it in a complex view",
    a_try: "nothing raises in it; test with if",
    a_with: "do this before or after the call",
    an_import: "import at the top of the file",
    a_python_function: "write for example `def increment(x: float) -> float:`",
    a_list_from_outside: "but a list: pass np.array(NUMBERS) as a keyword argument of the call",
    an_object_from_outside: "pass 'scale' as a keyword argument of the call",
    the_shape: "use v.extent(axis)",
    the_length: "use view.extent(0)",
    a_print: "use pk.printf",
    an_f_string: 'as in pk.printf("%d\\n", i)',
    a_result: "add to a parallel_reduce's accumulator",
    a_yield: "yield is not supported",
    a_loop_over_a_view: "range(v.extent(0))",
    a_sum: "use parallel_reduce",
    a_remainder_of_floats: "use fmod(a, b)",
    a_power_of_other_languages: "a power is a ** b",
    a_counter_of_the_module: "cannot change what is called 'N' outside; add to the accumulator",
    a_view_as_a_whole: "assign to an element, as in v[i] = ...",
    a_fill: "assign to the elements",
    a_second_declaration: "assign without annotation",
    a_loop_variable_afterwards: "it is the variable of the loop in line",
    an_index_that_is_no_list: "as in [i]",
    bits_of_a_double: "does not work on float64",
    a_part_of_a_number: "a number has no attribute 'real'",
    a_function_of_mathematics: "function 'factorial' is not supported",
    a_comparison_with_none: "`is` and `in` are not supported",
}


@pytest.mark.parametrize("workunit", IN_WORKUNITS, ids=lambda workunit: workunit.__name__)
def test_in_a_workunit(workunit) -> None:
    with pytest.raises(WorkunitError) as caught:
        pk.parallel_for(N, workunit, v=pk.View([N]))
    message, location = str(caught.value), caught.value.location
    assert IN_WORKUNITS[workunit] in message
    line = linecache.getline(__file__, location.line).rstrip()
    assert line.endswith("# WRONG")
    place, source, caret = message.splitlines()
    assert place.startswith(f"{__file__}:{location.line}: ")
    assert source == f"    {line}"
    assert caret.strip() == "^" and re.match(r"\S", source[caret.index("^") :])


@pk.workunit
def store(i, v):
    v[i] = 1.0


@pk.workunit
def scaled(i, v, a):
    v[i] = a


@pk.workunit
def total(i, acc, v):
    acc += v[i]


@pk.workunit
def repeated(i, v, n: int):
    v[i] = n


@pk.workunit
def of_integers(i: int, v: pk.View1D[int]):
    v[i] = 1


@pk.workunit
def in_two(i, j, v):
    v[i][j] = 1.0


@pk.workunit
def with_default(i, v, a=2.0, *, b: pk.double = 3.0):
    v[i] = a * b


@pk.workunit
def of_a_team(t: pk.TeamMember, v):
    v[t.league_rank()] = 1.0


@pk.workunit
async def asynchronous(i, v):
    v[i] = 1.0


CALLS = {
    "missing argument 'a'": lambda v: pk.parallel_for(N, scaled, v=v),
    "not supported: pass a=2.0, b=3.0": lambda v: pk.parallel_for(N, with_default, v=v),
    "not supported: pass b=3.0\n": lambda v: pk.parallel_for(N, with_default, v=v, a=1.0),
    "unknown argument 'vv': did you mean 'v'? It takes 'v', 'a'": (
        lambda v: pk.parallel_for(N, scaled, vv=v)
    ),
    "unknown argument 'b'; it takes 'v'": lambda v: pk.parallel_for(N, store, v=v, b=1),
    "is passed by keyword": lambda v: pk.parallel_for(N, store, v, 1.0),
    "parallel_reduce itself fills 'v', as the accumulator": (
        lambda v: pk.parallel_reduce(N, store, v=v)
    ),
    "else write one before 'v', such as `acc: pk.Acc[pk.double]`": (
        lambda v: pk.parallel_reduce(N, store, v=v)
    ),
    "parallel_scan itself fills 'v', as the bool": lambda v: pk.parallel_scan(N, total, v=v),
    "an accumulator is for parallel_reduce": lambda v: pk.parallel_for(N, total, v=v),
    "a 1-D view of int32 but is a 1-D view of float64": (
        lambda v: pk.parallel_for(N, of_integers, v=v)
    ),
    "n // 2 is and n / 2 is not": lambda v: pk.parallel_for(N / 2, store, v=v),
    "(label, policy, workunit)": lambda v: pk.parallel_for("label", store, v=v),
    "forget to return it?": lambda v: pk.parallel_for(N, scaled, v=v, a=None),
    "pass each entry as": lambda v: pk.parallel_for(N, scaled, v=v, a={}),
    "give a number for each choice": lambda v: pk.parallel_for(N, scaled, v=v, a="x"),
    "'a' is of type builtins.str": lambda v: pk.parallel_for(N, scaled, v=v, a="x"),
    "make it an array before the call, as in v = np.array(v)": lambda v: pk.parallel_for(
        N, store, v=[1.0, 2.0]
    ),
    "or float(a) for a text": lambda v: pk.parallel_for(N, scaled, v=v, a="2.0"),
    "annotate it, as in `n: pk.int64`": lambda v: pk.parallel_for(N, repeated, v=v, n=1 << 31),
    "pass its fields, each as an argument of its own, as in v['mass']": lambda v: pk.parallel_for(
        N, store, v=np.zeros(N, [("mass", float)])
    ),
    "give the workunit, and what the partial binds": lambda v: pk.parallel_for(
        N, functools.partial(scaled, a=1.0), v=v
    ),
    "give the function itself, not its name": lambda v: pk.parallel_for(N, "store", v=v),
    "the value of this lambda goes nowhere": lambda v: pk.parallel_for(N, lambda i: v[i] + 1.0),
    "as in pk.zeros([3, 4]), and the type as dtype=...": lambda v: pk.zeros(3, 4),
    "as in pk.ones([n, m]), and the type as dtype=...": lambda v: pk.ones((3, 4), pk.float),
    "a View of an array's memory is pk.array(a)": lambda v: pk.View(np.arange(3.0)),
    "flushes is how many of the latest to show, not 'full'": lambda v: pyfuser.explain("full"),
    "give it the function itself, as in pyfuser.capture(step)": lambda v: pyfuser.capture(None)(v),
    "convert it with astype": lambda v: pk.parallel_for(1, store, v=np.zeros(3, np.float16)),
    "use pk.RangePolicy(2, 5)": lambda v: pk.parallel_for(range(2, 5), store, v=v),
    "use pk.MDRangePolicy([0, 0], [2, 3])": lambda v: pk.parallel_for((2, 3), store, v=v),
    "give the number, as in v.extent(0)": lambda v: pk.parallel_for(v, store, v=v),
    "without calling it": lambda v: pk.parallel_for(N, store(0, v), v=v),
    "a range has no step": lambda v: pk.parallel_for(pk.RangePolicy(0, N, 2), store, v=v),
    "several indices are those of a pk.MDRangePolicy": lambda v: pk.parallel_for(N, in_two, v=v),
    "indices from (0,) to (1180591620717411303424,) do not fit 64 bits": (
        lambda v: pk.parallel_for(1 << 70, store, v=v)
    ),
    "2.5 is not an execution policy": lambda v: pk.parallel_for(2.5, store, v=v),
    "end must be an integer, not 2.5": (
        lambda v: pk.parallel_for(pk.RangePolicy(0, 2.5), store, v=v)
    ),
    "the policy comes before the workunit": lambda v: pk.parallel_for(store, N, v=v),
    "decorate the function with @pk.workunit": lambda v: pk.parallel_for(N, increment, v=v),
    "2 begins but 1 ends": lambda v: pk.MDRangePolicy([0, 0], [3]),
    "there are: Debug, OpenMP, Serial": (
        lambda v: pk.parallel_for(pk.RangePolicy(pk.Cuda, 0, N), store, v=v)
    ),
    "RangePolicy takes ([space,] begin, end)": lambda v: pk.RangePolicy(5),
    "'t' is a pk.TeamMember": lambda v: pk.parallel_for(N, of_a_team, v=v),
    "use i.league_rank()": lambda v: pk.parallel_for(pk.TeamPolicy(N, 1), store, v=v),
    "an async function cannot be a workunit": lambda v: pk.parallel_for(N, asynchronous, v=v),
    "as in pk.View([n, m]), not 5": lambda v: pk.View(5),
    "not [5.0]": lambda v: pk.View([5.0]),
    "'HostSpace' is not a pk.MemorySpace": lambda v: pk.View([5], pk.double, "HostSpace"),
    "'text' is not a data type": lambda v: pk.View([5], "text"),
}


@pytest.mark.parametrize("message", CALLS)
def test_in_a_call(message: str) -> None:
    with pytest.raises(PyFuserError, match=re.escape(message)) as caught:
        CALLS[message](pk.View([N]))
    shown = users_part(caught.value.__traceback__)
    while shown is not None:  # what an uncaught error prints
        assert shown.tb_frame.f_code.co_filename == __file__
        shown = shown.tb_next


@pytest.mark.parametrize("workunits", [store, [store]])
def test_a_number_of_indices_that_is_none_is_told_with_its_line(workunits: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        pk.parallel_for(N / 2, workunits, args_0={"v": pk.View([N])})
    line = test_a_number_of_indices_that_is_none_is_told_with_its_line.__code__.co_firstlineno + 3
    assert str(caught.value).startswith(f"{__file__}:{line}: {N / 2} is not an execution policy")


def test_a_view_that_no_memory_holds_is_an_error_of_the_users() -> None:
    v = pk.View([10**13], pk.double)
    with pytest.raises(MemoryError, match="no memory for a View of shape") as caught:
        v[0] = 1.0
    assert is_users(caught.value, caught.value.__traceback__)


def test_an_execution_space_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^pk\.ExecutionSpace has no Opnemp; it has .*OpenMP"):
        _ = pk.ExecutionSpace.Opnemp
    assert not hasattr(pk.ExecutionSpace, "__wrapped__")


def test_defaults_do_no_harm() -> None:
    v = pk.View([N])
    pk.parallel_for(N, with_default, v=v, a=2.0, b=4)
    assert set(v) == {8.0}


@pytest.mark.parametrize(
    ("workunit", "arguments", "what", "caret"),
    [
        (of_integers, lambda v: {"v": v}, "parameter 'v'", "v: pk.View1D[int]"),
        (scaled, lambda v: {"v": v}, "parameter 'a'", "a):"),
        (scaled, lambda v: {"v": v, "a": 1.0, "b": 2.0}, "the workunit", "def scaled"),
    ],
)
def test_the_call_and_the_parameter_have_lines_of_their_own(
    workunit, arguments, what: str, caret: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        pk.parallel_for(N, workunit, **arguments(pk.View([N])))
    first, second, source, mark = str(caught.value).splitlines()
    assert re.match(rf"{re.escape(__file__)}:\d+: workunit {workunit.__name__!r}: ", first)
    assert first.count(__file__) == 1
    assert second == f"  {what} is at {__file__}:{workunit.__code__.co_firstlineno + 1}"
    assert source[mark.index("^") :].startswith(caret)


@pk.workunit
def store_2d(i, j, v):
    v[i] = 1.0


REVERSED = [
    (store, -3), (store, pk.RangePolicy(5, 2)), (store_2d, pk.MDRangePolicy([4, 6], [0, 0])),
    (store_2d, pk.MDRangePolicy([1, 1], [3, -1])),
]  # fmt: skip


@pytest.mark.parametrize("workunit, policy", REVERSED, ids=["count", "range", "box", "axis"])
def test_a_range_that_ends_before_it_begins_is_empty_aloud(workunit, policy) -> None:
    v = pk.View([N])
    with pytest.warns(WorkunitWarning, match="is empty: the workunit does not run") as caught:
        pk.parallel_for(policy, workunit, v=v)
    assert caught[0].filename == __file__
    assert not np.any(v)


@pytest.mark.parametrize("policy", [pk.MDRangePolicy([2, 0], [2, 3]), pk.RangePolicy(3, 3)])
def test_a_range_without_indices_is_empty_in_silence(policy) -> None:
    workunit = store_2d if isinstance(policy, pk.MDRangePolicy) else store
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pk.parallel_for(policy, workunit, v=pk.View([N]))


class Simulation:
    @pk.workunit
    def step(self, i, v):
        v[i] = 1.0

    @pk.workunit
    def without_self(i, v):
        v[i] = 1.0


@pk.workunit
def two_sums(i, a, b, v):
    a += v[i]
    b += v[i]


@pk.workunit
def index_as_a_number(i: float, v):
    v[i] = 1.0


@pk.workunit
def entries_of_a_dict(i, v):
    v[i] = ENTRIES["a"]


ENTRIES = {"a": 1.0}
ARRAY = {"v": np.zeros(N)}
WHOLE_CALLS = {
    "a label comes first": lambda: pk.parallel_for(N, store, "name", **ARRAY),
    "a method is called of an object": lambda: pk.parallel_for(N, Simulation.step, **ARRAY),
    "`def without_self(self, i, ...)`": lambda: pk.parallel_for(
        N, Simulation().without_self, **ARRAY
    ),
    "a parallel_reduce has one accumulator": lambda: pk.parallel_reduce(N, two_sums, **ARRAY),
    "annotate i: int": lambda: pk.parallel_for(N, index_as_a_number, **ARRAY),
    "pass each entry that is used, as in b=ENTRIES['b']": lambda: pk.parallel_for(
        N, entries_of_a_dict, **ARRAY
    ),
    "pass each array as an argument of its own": lambda: pk.parallel_for(
        N, store, v=[ARRAY["v"], ARRAY["v"]]
    ),
}


@pytest.mark.parametrize("message", WHOLE_CALLS)
def test_what_is_said_of_a_call(message: str) -> None:
    with pytest.raises(PyFuserError, match=re.escape(message)):
        WHOLE_CALLS[message]()


def test_errors_are_those_that_pykokkos_raises() -> None:
    with pytest.raises(ValueError, match="not available"):
        pk.RangePolicy(pk.HIP, 0, 3)
    with pytest.raises(ValueError, match="takes"):
        pk.parallel_for()
    with pytest.raises(TypeError, match="list of integers"):
        pk.View(5)
    assert issubclass(ArgumentError, TypeError)
