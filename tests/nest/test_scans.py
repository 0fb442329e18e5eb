"""Nests of scans: what they compute, in which order passes over tiles may come."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.nodes import Const
from pyfuser.ir.verify import IRError
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Give, Nest, Scan
from pyfuser.nest.passes.scan_tiles import scan_tiles
from pyfuser.nest.printer import show
from pyfuser.nest.verify import verify
from pyfuser.pipeline import lowered
from tests.codegen.build import Case, case, from_text
from tests.nest.interpret import interpret, tiles_in_turn

N, TILE = 19, 4


def prefix(i, acc, last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[i] = acc


def in_place(i, acc, last_pass, x):
    acc += x[i]
    if last_pass:
        x[i] = acc


def scattered(i, acc: pk.Acc[pk.int32], last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[acc] = x[i]


def mirrored(i, acc: pk.Acc[pk.int32], last_pass, x, n):
    """Legal, though the last pass writes what other iterations' first pass reads."""
    if last_pass:
        x[n - 1 - i] = 5
    else:
        acc += x[i]


def counted(i, acc: pk.Acc[pk.int32], last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[acc // 2] += 1


def shifted(i, acc, last_pass, x):
    acc += x[i]
    if last_pass:
        x[i + 1] = acc


def changed(i, acc, last_pass, x, y):
    acc += y[i]
    if last_pass:
        x[i] = acc - x[i]


def halved(i, acc, last_pass, x):
    i = i // 2
    acc += x[i]
    if last_pass:
        x[i] = acc


def read_behind(i, acc: pk.Acc[pk.int32], last_pass, x, w, n):
    if last_pass:
        acc += w[i]
        x[i] = acc + n
    else:
        acc += x[(i + n - 1) % n]


def nest(given: Case) -> Nest:
    spec = spec_of(given.kernel)
    made = nest_of(replace(spec, tuning=replace(spec.tuning, scan_tile=TILE)))
    verify(made)
    return made


def of(function: Callable[..., Any], *arguments: Any, n: int = 9, **options: Any) -> Case:
    return case(function, [n], lambda: copy.deepcopy([*arguments]), "scan", **options)


def scan_of(made: Nest) -> Scan:
    (found,) = made.functions[-1].body
    assert isinstance(found, Scan)
    return found


def at_once(function: Callable[..., Any], *arguments: Any) -> bool:
    return scan_of(lowered(nest(of(function, *arguments)))).at_once


def test_a_tile_is_passed_twice_at_once_if_iterations_are_apart() -> None:
    x, out, whole = np.zeros(10), np.zeros(10), np.zeros(10, np.int32)
    assert at_once(prefix, x, out)
    assert at_once(in_place, x)
    assert at_once(scattered, whole, np.zeros(10, np.int32))


def test_else_all_first_passes_come_before() -> None:
    whole = np.zeros(10, np.int32)
    assert not at_once(shifted, np.zeros(10))
    assert not at_once(mirrored, whole, 9)
    assert not at_once(counted, whole, np.zeros(10, np.int32))
    assert not at_once(read_behind, whole, whole.copy(), 9)
    assert not at_once(halved, np.zeros(10))
    shared = np.zeros(10)
    for function in (prefix, changed):
        assert at_once(function, np.zeros(10), np.zeros(10))
        overlapping = case(function, [9], lambda: [shared[:9], shared[1:]], "scan")
        assert not scan_of(lowered(nest(overlapping))).at_once


def test_only_sums_that_are_exact_may_run_on_from_tile_to_tile() -> None:
    whole = np.zeros(10, np.int32)
    assert scan_of(lowered(nest(of(scattered, whole, whole.copy())))).single
    assert not scan_of(lowered(nest(of(in_place, np.zeros(10))))).single
    serial = scan_of(lowered(nest(of(in_place, np.zeros(10), execution="Serial"))))
    assert serial == Scan(serial.function, serial.low, serial.high)


# --------------------------------------------------------------------------- interpreted

STEPS = (
    "acc += x[i]", "acc += w[i] * {c}", "if x[i] > {c}:\n        acc += 1", "acc -= w[n - 1 - i]",
    "t{c} = x[i] - w[i]\n    acc += t{c}", "for k in range({c}):\n        acc += w[k]",
)  # fmt: skip
LAST = (
    "y[i] = acc", "x[i] = acc - x[i]", "y[i] = x[i] + {c}", "z[to[i]] = acc", "z[to[i]] += w[i]",
    "if acc > {c}:\n            y[i] -= acc", "v[n - 1 - i] = acc", "pk.atomic_add(u, [0], w[i])",
)  # fmt: skip


def random_scan(seed: int) -> Case:
    """A scan whose last pass stores, over integers or numbers of which all sums are exact."""
    rng = random.Random(seed)

    def some(lines: Sequence[str]) -> list[str]:
        return [one.format(c=c) for c, one in enumerate(rng.sample(lines, rng.randint(1, 3)), 1)]

    last = "\n        ".join(["if last_pass:", *some(LAST)])
    lines = [*some(STEPS), last]
    dtype = ("int32", "double", "int64")[seed % 3]
    head = f"def scan(i, acc: pk.Acc[pk.{dtype}], last_pass, x, y, z, w, v, u, to, n):"
    source = "\n    ".join([head, *dict.fromkeys(lines)]) + "\n"
    kind = {"double": "float64"}.get(dtype, dtype)
    arrays = [np.arange(N, dtype=kind) * k % 7 for k in (3, 5, 2, 1, 4, 6)]
    to = np.random.default_rng(seed).permutation(N).astype(np.int32)
    n = rng.choice((1, TILE, TILE + 1, N))
    return of(from_text(source), *arrays, to, N, n=n, begin=[rng.randint(0, n - 1)])


def assert_same(given: Case, made: Nest, seed: int = 0) -> None:
    verify(made)
    space, found = given.kernel.space, given.arguments()
    results = interpret(made, space.begin, space.end, found, seed)
    expected, wanted = given.interpreted()
    assert results == wanted
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_tiles_keep_what_is_computed() -> None:
    kinds = set()
    for seed in range(150):
        given = random_scan(seed)
        before = nest(given)
        after = lowered(before)
        assert_same(given, before, seed)
        assert_same(given, scan_tiles(before), seed)
        assert_same(given, after, seed)
        kinds.add((scan_of(after).at_once, scan_of(after).single))
    assert len(kinds) == 4


def test_passes_that_may_not_come_at_once() -> None:
    """Which also shows that these tests see a fault."""
    x = np.arange(N, dtype=np.int32)
    given = of(read_behind, x, np.roll(x, 1), N, n=N)
    made = lowered(nest(given))
    *passes, last = made.functions
    wrong = replace(last, body=(replace(scan_of(made), at_once=True),))
    faults = 0
    for seed in range(20):
        assert_same(given, made, seed)
        try:
            assert_same(given, replace(made, functions=(*passes, wrong)), seed)
        except AssertionError:
            faults += 1
    assert faults >= 5


def test_a_last_pass_starts_from_all_totals_before() -> None:
    for seed in range(30):
        rng, known = random.Random(seed), set[int]()
        order = list(tiles_in_turn(6, seed % 2 == 0, rng))
        assert sorted(order) == [(tile, last) for tile in range(6) for last in (False, True)]
        for tile, last in order:
            assert not last or known >= {*range(tile + 1)}
            known |= set() if last else {tile}
            assert seed % 2 == 0 or not last or len(known) == 6


def test_what_verify_refuses() -> None:
    made = nest(of(in_place, np.zeros(10)))
    one_pass, last = made.functions
    sym = made.workunit.accumulators[0].sym
    faults = {
        "that sums in order": replace(last, body=(replace(scan_of(made), function="pf_other"),)),
        "no result": replace(last, body=(Give(1, Const(0.0, sym.dtype)),)),
        "is not declared here": replace(last, body=(*one_pass.body,)),
        "adds to other sums": replace(one_pass, name="pf_other", params=one_pass.params[::-1]),
    }
    for message, function in faults.items():
        with pytest.raises(IRError, match=message):
            verify(replace(made, functions=(one_pass, function)))


def test_text() -> None:
    text = show(scan_tiles(nest(of(prefix, np.zeros(10), np.zeros(10)))))
    assert text.endswith(") in tiles of 4 at once\n")
