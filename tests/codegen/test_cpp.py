"""Emitted C++: whole kernels as golden files, and the properties that make it right or fast."""
# ruff: noqa: F821

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.native import prepare
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Update, Workunit
from pyfuser.nest.cost.fp_contraction import may_contract
from pyfuser.nest.spec import UNIT
from pyfuser.tuning.target import Target
from tests.analysis.build import S, View, workunit
from tests.codegen.build import Case, case
from tests.vendors import functions

N = 64


def x1() -> np.ndarray[Any, Any]:
    return np.zeros(N)


def x2() -> np.ndarray[Any, Any]:
    return np.zeros((N, N))


def stencil(i, j, c, old, new):
    new[i][j] = old[i][j] + c * (
        old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1] - 4.0 * old[i][j]
    )


def clip(i, x, limit):
    value: float = math.sqrt(x[i])
    if value > limit:
        value = limit
    x[i] = value


def dot_of_rows(i, j, acc, x, y):
    y[i][j] = 0.0
    acc += x[i][j] * x[i][j]


def prefix(i, acc, last, x):
    acc += x[i]
    if last:
        x[i] = acc


def transpose(i, j, x, y):
    y[i][j] = 2.0 * x[j][i]


def histogram(i, keys, counts):
    pk.atomic_add(counts, [keys[i]], 1)


def row_of_scratch(team: pk.TeamMember, acc, x, n):
    row: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), n, 2)
    mine: int = team.team_rank() + 1

    def fill(i: int):
        row[i][0] = x[team.league_rank()][i]

    def add(i: int, total: pk.Acc[float]):
        total += row[i][0] * mine

    pk.parallel_for(pk.TeamThreadRange(team, n), fill)
    team.team_barrier()
    total: float = pk.parallel_reduce(pk.TeamThreadRange(team, n), add)
    if team.team_rank() == 0:
        acc += total


GOLDEN: dict[str, Case] = {
    "stencil": case(stencil, [N - 1, N - 1], lambda: [0.1, x2(), x2()], begin=[1, 1]),
    "transpose": case(transpose, [N, N], lambda: [x2(), x2()]),
    "clip": case(clip, [N], lambda: [x1(), 5.0]),
    "dot_of_rows": case(dot_of_rows, [N, N], lambda: [x2(), x2()], "reduce"),
    "prefix": case(prefix, [N], lambda: [x1()], "scan"),
    "histogram": case(histogram, [N], lambda: [np.zeros(N, "int32"), np.zeros(9, "int64")]),
    "team_of_one": case(row_of_scratch, [N], lambda: [x2(), N], "reduce", team_size=1),
    "team_of_two": case(row_of_scratch, [N], lambda: [x2(), N], "reduce", team_size=2),
    "clip_serial": case(clip, [N], lambda: [x1(), 5.0], execution="Serial"),
}


@pytest.mark.parametrize("name", [name for name in GOLDEN if name != "team_of_one"])
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"cpp/{name}.cpp", emit(spec_of(GOLDEN[name].kernel, target=Target(64))))


# --------------------------------------------------------------------------- specs


def copy(i, x, y):
    y[i] = x[i]


def copy_renamed(k, source, target):
    target[k] = source[k]


def add_rows(i, j, x, y):
    y[i][j] += x[i][j]


def spec(function: Any, extents: list[int], *arguments: Any) -> Any:
    return spec_of(case(function, extents, lambda: list(arguments)).kernel)


def test_a_spec_holds_neither_data_nor_names() -> None:
    one = spec(copy, [8], np.zeros(8), np.zeros(8))
    assert one == spec(copy_renamed, [99], np.ones(99), np.ones(100))
    assert hash(one) == hash(spec(copy_renamed, [99], np.ones(99), np.ones(100)))
    assert one != spec(copy, [8], np.zeros(8), np.zeros(16)[::2])
    assert one != spec(copy, [8], np.zeros(8, "float32"), np.zeros(8))


def test_overlap_costs_restrict_only_where_something_is_written() -> None:
    base = np.zeros(20)

    def three(i, x, y, z):
        z[i] = x[i] + y[i]

    apart = spec(three, [8], base[:8], base[8:16], np.zeros(8))
    assert [v.restrict for v in apart.views] == [True, True, True]
    read_only = spec(three, [8], base[:8], base[1:9], np.zeros(8))
    assert [v.restrict for v in read_only.views] == [True, True, True]
    written = spec(three, [8], base[:8], np.zeros(8), base[1:9])
    assert [v.restrict for v in written.views] == [False, True, False]
    assert "ivdep" in emit(apart)
    assert "ivdep" not in emit(written)


def test_strides() -> None:
    rows = np.zeros((4, 6))
    assert [v.strides for v in spec(add_rows, [4, 6], rows, rows + 1).views] == [(0, UNIT)] * 2
    wide = np.zeros((4, 30))[:, ::5]
    assert [v.strides for v in spec(add_rows, [4, 6], wide, rows).views] == [
        (0, 1),
        (2, UNIT),
    ]
    both = spec(add_rows, [6, 4], rows.T, np.zeros((6, 4)))
    assert [v.unit_axis for v in both.views] == [0, 1]
    thin = spec(add_rows, [4, 1], np.zeros((4, 1)), np.zeros((4, 1)))
    assert [v.unit_axis for v in thin.views] == [1, 1]
    records = np.zeros(4, dtype=[("a", "i1"), ("x", "f8")])["x"]
    assert [v.packed for v in spec(copy, [4], records, np.zeros(4)).views] == [False, True]


# --------------------------------------------------------------------------- hazards


def separate(i, a, x, y, z):
    y[i] = a * x[i] - z[i]
    z[i] = a * x[i] + z[i]


def neighbours(i, a, x, y, z):
    y[2 * i] = a * x[i] - z[i]
    y[2 * i + 1] = a * x[i] + z[i]


def unrolled(i, a, x, y, z):
    for k in range(2):
        y[2 * i + k] = a * x[i] - z[i] if k == 0 else a * x[i] + z[i]


@pytest.mark.parametrize(
    ("function", "expected"),
    [(separate, False), (neighbours, True), (unrolled, True)],
)
def test_contraction_is_prevented_where_it_could_happen(function: Any, expected: bool) -> None:
    found = spec(function, [N // 2], 1.5, x1(), x1(), x1())
    workunit: Workunit = found.workunit
    assert may_contract(workunit.body) is expected
    assert ("pf_rounded(a * x[i])" in emit(found)) is expected


def test_names_are_the_users_made_legal() -> None:
    def words(i, double, template, pf_sum):
        begin: float = double[i]
        slot: float = template[i] + pf_sum
        double[i] = begin + slot

    text = emit(spec(words, [N], x1(), x1(), 2.0))
    assert "const double begin_2 = double_2[i];" in text
    assert "const double slot_2 = template_2[i] + v;" in text


def test_maths_come_from_vectors_where_there_are_any() -> None:
    def exponential(i, x):
        x[i] = math.exp(x[i]) + math.cos(x[i]) + math.pow(x[i], 2)

    found = spec(exponential, [N], x1())
    scalar = emit(replace(found, target=Target()))
    assert '__asm__("exp")' in scalar
    assert "pf_square_f64(x[i])" in scalar
    vector = emit(replace(found, target=Target(32, vector_maths=functions("exp", "cos"))))
    assert "_ZGV" in vector and "pf_cos_f64_kernel" in vector
    assert "static inline double pf_exp_f64(double x)" in vector
    assert '__asm__("exp")' not in vector


def exponential(i, x, y):
    x[i] = math.exp(x[i]) + y[i]


def exponentials(i, x, y):
    for k in range(4):
        x[i] += math.exp(y[k])


def exponential_beside_a_loop(i, x, y):
    for k in range(4):
        x[i] += y[k]
    x[i] = math.exp(x[i])


def exponential_of_a_table(i, j, x, y):
    x[i] = math.exp(y[j])


@pytest.mark.parametrize(
    ("function", "elements", "doubled"),
    [
        (exponential, DType.FLOAT64, 1),
        (exponential, DType.INT64, 1),
        (exponential_beside_a_loop, DType.FLOAT64, 1),
        (exponential, DType.FLOAT32, 0),
        (exponential, DType.INT32, 0),
        (exponentials, DType.FLOAT64, 0),
        (exponential_of_a_table, DType.FLOAT64, 0),
    ],
)
def test_exp_takes_two_vectors_in_long_loops_of_doubles(
    function: Callable[..., None], elements: DType, doubled: int
) -> None:
    """Not in loops that may have few trips, nor in those that take two vectors anyway.

    On Intel's processors with AVX-512 that is not measured.
    """
    space = [N, N] if function is exponential_of_a_table else [N]
    given = spec(function, space, x1(), np.zeros(N, elements.numpy))
    for vector_bytes, intel, at_a_time in (
        (32, True, doubled),
        (64, False, doubled),
        (64, True, 0),
    ):
        target = Target(vector_bytes, intel, functions("exp"))
        source = emit(replace(given, target=target))
        assert f"typedef uint{32 if at_a_time else 64}_t pf_digits;" in source


def weighted_sum(scalars: int, size: int) -> Case:
    """A sum with so many factors, all ones but the first."""
    i, x, acc = S("i"), View("x"), S("acc", DType.FLOAT64)
    factors = [S(f"f{k}", DType.FLOAT64) for k in range(scalars)]
    value = x[i]
    for factor in factors:
        value = value * factor
    body = [Update("+", acc.sym, (), value.node)]
    unit = workunit("weighted", [i], [x, *factors], body, [Accumulator(acc.sym)])
    numbers = np.random.default_rng(7).standard_normal(size)
    return case(unit, [size], lambda: [numbers, 0.3, *(scalars - 1) * [1.0]], "reduce")


def test_blocks_are_long_where_scalars_have_no_registers() -> None:
    sizes = [
        re.findall(r"pf_sum<double, (\d+)> acc_sum;", emit(spec_of(weighted_sum(k, N).kernel)))
        for k in (1, 32, 33)
    ]
    assert sizes == [["32"], ["128"], ["512"]]  # of one scalar, sums stay in registers


@pytest.mark.parametrize("size", [5, 511, 512, 513, 4096 * 3 + 77, 300_001])
def test_bits_of_a_sum_do_not_depend_on_the_block(size: int) -> None:
    found = []
    for scalars in (1, 40):
        given = weighted_sum(scalars, size)
        (launchable,) = prepare([given.kernel])
        found.append(given.run(launchable)[1])
    assert found[0] == found[1] != (0.0,)


def encode(i, code, x):
    if x[i] == 65:
        code[i] = 1.0
    elif x[i] == 67:
        code[i] = 2.0
    elif x[i] == 71:
        code[i] = 3.0
    else:
        code[i] = 4.0


def compare_two(i, code, x, y):
    if x[i] == 65:
        code[i] = 1.0
    elif y[i] == 67:
        code[i] = 2.0
    elif x[i] > 3:
        code[i] = 3.0


def test_tests_of_one_integer_in_turn_are_no_switch() -> None:
    def made(function: Callable[..., Any], count: int) -> str:
        numbers = [np.arange(N, dtype=np.int32) for _ in range(count)]
        return emit(spec_of(case(function, [N], lambda: [x1(), *numbers]).kernel))

    text = made(encode, 1)
    assert text.count("if (pf_one_of((x[i] == ") == 0 < text.count("if (pf_one_of(x[i] == ") == 2
    assert "pf_one_of" not in made(compare_two, 2)
