"""Teams as blocks of threads: what the reference interpreter computes, whoever is first."""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from pyfuser.codegen.gpu.unit import CUDA, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.visit import statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.declined import declined, refusal
from pyfuser.nest.nodes import Kind, Loop
from pyfuser.nest.passes.teams import TEAM, needs_sharing
from pyfuser.pipeline import launched
from tests.codegen.build import Case, case
from tests.engine.test_native import values
from tests.gpu.emulator import Emulated
from tests.gpu.team_cases import (
    BLOCKS,
    LEAGUE,
    NO_KERNEL,
    ONE_THREAD,
    TEAMS,
    M,
    N,
    data,
    row_sums,
    sums_of_sums,
    team,
)


@pytest.fixture(scope="module", params=[32, 64])
def emulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    return Emulated(TEAMS, tmp_path_factory.mktemp("emulated"), request.param)


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_is_a_block(name: str) -> None:
    launch = emit(spec_of(TEAMS[name].kernel), CUDA).launch
    assert launch.rule == "team"
    grid = launch.grid((2,), (1 << 40,))
    assert grid is not None and grid.threads == (BLOCKS.get(name, TEAM), 1, 1)
    assert grid.blocks[0] == (1024 if launch.results else 1 << 22)


@pytest.mark.parametrize("name", TEAMS)
def test_emulated_equals_interpreted(name: str, emulated: Emulated) -> None:
    expected, results = TEAMS[name].interpreted()
    for seed in range(1 if name == "a large league" else 4):
        arguments, actual = emulated.run(name, seed)
        assert actual == results
        for array, reference in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(array, reference)


# --------------------------------------------------------------------------- one thread a team


@pytest.mark.parametrize("name", ONE_THREAD)
def test_what_stays_one_thread_a_team(name: str) -> None:
    reason, tested = ONE_THREAD[name]
    launch = emit(spec_of(tested.kernel), CUDA).launch
    assert launch.rule == "map"
    assert reason in needs_sharing(tested.kernel.workunit)


@pytest.mark.parametrize("name", NO_KERNEL)
def test_what_no_block_can_have(name: str) -> None:
    reason, tested = NO_KERNEL[name]
    assert reason in declined(spec_of(tested.kernel)) == refusal(tested.kernel.workunit)


def test_one_thread_computes_the_same(tmp_path: Path) -> None:
    cases = {name: tested for name, (_, tested) in ONE_THREAD.items()}
    emulated = Emulated(cases, tmp_path)
    for name, tested in cases.items():
        expected, _ = tested.interpreted()
        for array, reference in zip(emulated.run(name, 2)[0], expected, strict=True):
            np.testing.assert_array_equal(array, reference)


def test_a_plain_loop_is_not_shared() -> None:
    """A kernel over a range stays a thread for each iteration."""

    def rows(j, s, a, n):
        for i in range(n):
            a[j][i] += s[j]

    def arguments() -> list[np.ndarray]:
        return [data(LEAGUE), data(LEAGUE, N), N]

    assert emit(spec_of(case(rows, [LEAGUE], arguments).kernel), CUDA).launch.rule == "map"


LANES = {
    "rows by lanes": 1,
    "sums of sums": 1,
    "a box": 2,
    "vectors by 1": 1,
    "by groups": 1,
    "two passes": 0,
}


@pytest.mark.parametrize("name", LANES)
def test_what_groups_of_lanes_share(name: str) -> None:
    body = launched(nest_of(spec_of(TEAMS[name].kernel))).functions[-1].body
    loops = [s for s in statements(body) if isinstance(s, Loop) and s.kind is Kind.GROUPS]
    assert len(loops) == LANES[name]


# --------------------------------------------------------------------------- the order of sums


UNEVEN = {
    "sums of uneven rows": team(
        row_sums, lambda: [np.zeros(LEAGUE), values(LEAGUE * 1000).reshape(-1, 1000), 1000]
    ),
    "sums of uneven sums": team(
        sums_of_sums,
        lambda: [np.zeros(LEAGUE), values(LEAGUE * 9 * M).reshape(LEAGUE, 9, M), 9, M],
    ),
}


def test_the_bits_of_sums_depend_on_the_trips_alone(tmp_path: Path) -> None:
    """Not on which thread is first, nor on the width of a warp."""
    bits: dict[str, set[bytes]] = {name: set() for name in UNEVEN}
    for warp in (32, 64):
        folder = tmp_path / str(warp)
        folder.mkdir()
        emulated = Emulated(UNEVEN, folder, warp)
        for name, found in bits.items():
            found |= {emulated.run(name, seed)[0][0].tobytes() for seed in range(3)}
    for name, found in bits.items():
        assert len(found) == 1
        expected = UNEVEN[name].interpreted()[0][0]
        assert found != {expected.tobytes()}, "in the order of one thread"
        np.testing.assert_allclose(np.frombuffer(found.pop()), expected, rtol=1e-11, atol=1e-11)


# --------------------------------------------------------------------------- barriers


def goes_wrong(tested: Case, change: Callable[[str], str], folder: Path) -> bool:
    """In a process of its own: threads that part at a barrier end it."""
    folder.mkdir()
    emulated = Emulated({"it": tested}, folder, change=change)
    expected, results = tested.interpreted()

    def run() -> None:
        faulthandler.disable()  # to be ended is no news
        for seed in range(4):
            arguments, actual = emulated.run("it", seed)
            if actual != results or not all(map(np.array_equal, arguments, expected)):
                os._exit(1)

    process = get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode != 0


NEEDED = {
    "two passes": 1,
    "by two names": 1,
    "around a store": 2,
    "scratch of a team": 2,
    "rows by lanes": 3,
    "sums of rows": 0,
    "own_locals by 33": 4,
}
"""Barriers that a kernel cannot do without, for these data, of those in the code of the team."""


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_barrier_shows(name: str, tmp_path: Path) -> None:
    source = emit(spec_of(TEAMS[name].kernel), CUDA).source
    start = source.index('extern "C" __global__')
    places = [m for m in re.finditer(r"pf_(lanes_)?barrier\(\);", source) if m.start() > start]
    wrong = 0
    for n, place in enumerate(places):
        count = len(re.findall(r"pf_(?:lanes_)?barrier\(\);", source[: place.start()]))

        def without(text: str, count: int = count) -> str:
            found = list(re.finditer(r"pf_(lanes_)?barrier\(\);", text))[count]
            return text[: found.start()] + text[found.end() :]

        wrong += goes_wrong(TEAMS[name], without, tmp_path / str(n))
    assert wrong == NEEDED[name], len(places)


CHANGES = {
    "before a value is read": ("around a store", "*first = value;\n    pf_barrier();"),
    "before there is another value": ("around a store", "value = *first;\n    pf_barrier();"),
    "a store by one thread": ("times a vector", "if (pf_thread(x) == 0) {"),
    "an atomic by one lane": ("by groups", "if (pf_lane() == 0) {"),
    "a value of one thread": ("tickets", "value = pf_team_first<128>(value);"),
    "a value of one lane": ("by groups", "value_3 = pf_lanes_first(value_3);"),
    "a sum of all lanes": ("sums of sums", "pf_lanes_total<32, pf_plus>"),
    "a sum of all threads": ("sums of rows", "pf_team_total<128, pf_plus>"),
    "zeros": ("tiles", " sums[k_2] = float()"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_missing_shows(what: str, tmp_path: Path) -> None:
    name, text = CHANGES[what]
    kept = "{" if text.endswith("{") else text.partition("\n")[0] if "\n" in text else ""

    def without(source: str) -> str:
        assert text in source
        return source.replace(text, kept)

    assert goes_wrong(TEAMS[name], without, tmp_path / "it")


def test_written_views_are_shared_by_threads() -> None:
    """A compiler may not keep a value past a barrier; what nobody writes it may."""
    source = emit(spec_of(TEAMS["two passes"].kernel), CUDA).source
    assert "double* b" in source and "double* a" in source and "__restrict__" not in source
    source = emit(spec_of(TEAMS["sums of rows"].kernel), CUDA).source
    assert "double* s" in source and "const double* __restrict__ a" in source
