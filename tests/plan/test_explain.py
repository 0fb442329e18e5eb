"""The report's times: modelled, and measured where a launch was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyfuser.launches import REMEMBERED, Timing
from pyfuser.plan.explain import CallReport, Explanation, GroupReport, SweepReport

CALLS = (CallReport("scale", "a.py:1"), CallReport("shift", "a.py:2"))
GROUP = GroupReport(
    calls=CALLS,
    source="source\n",
    contracted=(),
    removed_stores={},
    removed_loads={},
    bytes_moved=1024,
    bytes_unfused=4096,
    modelled=2.1e-3,
    modelled_unfused=9.8e-3,
    measured=2.3e-3,
)
ALONE = replace(GROUP, calls=CALLS[:1], bytes_unfused=1024, modelled_unfused=2.1e-3, measured=None)


def text(*groups: GroupReport, sweeps: tuple[SweepReport, ...] = (), source: bool = False) -> str:
    return str(Explanation(groups, (), 2 * len(groups), source, sweeps))


def test_a_kernel_tells_what_it_should_take_and_took() -> None:
    assert text(GROUP).split("\n")[2:] == [
        "kernel 1: 2 calls: scale (a.py:1), shift (a.py:2)",
        "    moves about 1 KiB, unfused 4 KiB",
        "    modelled 2.1 ms, unfused 9.8 ms",
        "    measured 2.3 ms",
    ]
    assert str(GROUP).split("\n")[1:] == [line[4:] for line in text(GROUP).split("\n")[3:]]


def test_coarsened_calls_come_with_how_many_iterations_run_as_one() -> None:
    coarse = replace(GROUP, coarsened={4: ("scale", "shift"), 8: ("mask",)})
    assert text(coarse).split("\n")[3:5] == [
        "    coarsened, 4 iterations in one: scale, shift",
        "    coarsened, 8 iterations in one: mask",
    ]
    assert "coarsened" not in text(GROUP)


def test_flattened_calls() -> None:
    flat = replace(GROUP, boxed=("scale", "shift"))
    assert text(flat).split("\n")[3] == "    flattened, runs over rows and columns: scale, shift"
    assert "flattened" not in text(GROUP)


def test_edges_come_with_their_rows() -> None:
    edges = replace(GROUP, placed={"scale": (1,), "shift": (1, 98)})
    assert text(edges).split("\n")[3:5] == [
        "    an edge, runs beside row 1: scale",
        "    an edge, runs beside row 1 and 98: shift",
    ]
    assert "edge" not in text(GROUP)


def test_guarded_calls_come_with_how_they_run() -> None:
    guarded = replace(GROUP, guarded=("scale", "shift"))
    assert "    guarded by ranges of their own: scale, shift" in text(guarded)
    split = replace(guarded, split=True)
    assert "    split at the ends of ranges of their own: scale, shift" in text(split)
    assert "ranges of their own" not in text(GROUP)


def test_nothing_saved_nothing_measured_nothing_told() -> None:
    assert text(ALONE).split("\n")[2:] == ["kernel 1: 1 call: scale (a.py:1)"]


def test_the_source_comes_last() -> None:
    assert text(GROUP, source=True).split("\n")[-2:] == ["    measured 2.3 ms", "    source"]


def test_equal_kernels_are_told_once_with_their_range() -> None:
    slow, same = replace(GROUP, measured=4e-3), replace(GROUP, measured=2.3004e-3)
    assert text(GROUP, slow, same).split("\n")[2:] == [
        "kernels 1 to 3, each: 2 calls: scale (a.py:1), shift (a.py:2)",
        "    moves about 1 KiB, unfused 4 KiB",
        "    modelled 2.1 ms, unfused 9.8 ms",
        "    measured 2.3 ms to 4 ms",
    ]
    assert text(GROUP, same).endswith("    measured 2.3 ms")
    assert "kernel 2" in text(GROUP, replace(GROUP, modelled=3e-3))


def test_a_sweep_tells_of_its_launch_and_not_of_its_loops() -> None:
    loops = [replace(GROUP, measured=None)] * 2
    sweep = SweepReport((0, 1), (0, 1), 64, (), 2048, 8192, 3e-3, 1.96e-2, 3.5e-3)
    assert text(*loops, sweeps=(sweep,)).split("\n")[2:] == [
        "kernel 1: a sweep of 2 loops, up to 1 step apart",
        "    loops 1 to 2, each: 2 calls: scale (a.py:1), shift (a.py:2)",
        "    moves about 2 KiB, unfused 8 KiB",
        "    modelled 3 ms, unfused 19.6 ms",
        "    measured 3.5 ms",
    ]


def test_a_launch_s_time_is_the_mean_of_the_latest_runs() -> None:
    timing = Timing()
    assert timing.runs == 0
    timing.add(10.0)
    assert timing.mean == 10.0
    timing.add(2.0)
    assert timing.mean == 6.0
    for _ in range(20 * REMEMBERED):
        timing.add(2.0)
    assert timing.mean == pytest.approx(2.0, rel=1e-6)
