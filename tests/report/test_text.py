"""The report's text: what is said of kernels, folded, wrapped, with its times."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from pyfuser.ir.nodes import SourceLocation
from pyfuser.plan.plan import Note, Told
from pyfuser.plan.rewrites.coarsen import Coarsened
from pyfuser.plan.rewrites.delinearize import Delinearized
from pyfuser.plan.rewrites.embed_boundary import Placed
from pyfuser.plan.rewrites.enlarge_domain import Guarded
from pyfuser.plan.rewrites.recompute import Recomputed
from pyfuser.report import Explanation
from pyfuser.report.model import (
    Asked,
    CallReport,
    Cost,
    GroupReport,
    Kept,
    RejectionReport,
    SweepReport,
    Vectors,
)
from pyfuser.report.text import width
from pyfuser.runtime.launch import REMEMBERED, Timing

CALLS = (CallReport("scale", "a.py", 1), CallReport("shift", "a.py", 2))
COST = Cost(1024, 4096, 2.1e-3, 9.8e-3, 512.0, 2.3e-3, 2)
GROUP = GroupReport(calls=CALLS, source="source\n", cost=COST)
ALONE = GroupReport(calls=CALLS[:1], source="other\n", cost=Cost(1024, 1024, 2.1e-3, 2.1e-3))


def text(*groups: GroupReport, sweeps: tuple[SweepReport, ...] = (), source: bool = False) -> str:
    return str(Explanation(groups, (), 2 * len(groups), source, sweeps))


def kernels(*groups: GroupReport, sweeps: tuple[SweepReport, ...] = ()) -> list[str]:
    """The lines about kernels."""
    return text(*groups, sweeps=sweeps).split("\n\n", 1)[1].split("\n")


def facts(group: GroupReport) -> list[str]:
    """What is said of a kernel before its costs."""
    return [line.strip() for line in kernels(replace(group, cost=Cost()))[1:]]


def test_the_first_lines_say_what_was_gained() -> None:
    assert text(GROUP, ALONE).split("\n\n")[0].split("\n") == [
        "4 calls ran as 2 kernels",
        "    memory traffic about 2 KiB, unfused 5 KiB: 2.5 times less",
    ]
    avoided = replace(GROUP, contracted=("y", "t"), bytes_avoided=3 << 20)
    assert text(avoided).split("\n")[2:4] == [
        "    2 arrays never stored: 3 MiB less memory",
        "    measured 2.3 ms together, first launches left out",
    ]


def test_times_together_need_a_warm_launch_of_each() -> None:
    first = replace(GROUP, cost=replace(COST, launches=1))
    assert "together" in text(GROUP, GROUP)
    assert "together" not in text(GROUP, first)


def test_a_kernel_says_what_it_should_take_and_took() -> None:
    assert kernels(GROUP) == [
        "kernel 1: scale (a.py:1), shift (:2)",
        "    moves about 1 KiB, unfused 4 KiB",
        "    modelled 2.1 ms, unfused 9.8 ms",
        "    measured 2.3 ms",
    ]


def test_a_first_launch_is_told_from_others() -> None:
    first = replace(GROUP, cost=replace(COST, measured=0.8, launches=1))
    assert kernels(first)[-1] == "    measured 800 ms at the first launch, start-up included"


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (COST, True),
        (replace(COST, measured=4.3e-3), False),  # measured twice the modelled time
        (replace(COST, measured=1e-3), False),
        (replace(COST, measured=0.8, launches=1), True),  # a first launch contradicts nothing
        (replace(COST, operations=2048.0, launches=0), False),  # arithmetic counts more
        (replace(COST, operations=None, launches=0), False),
        (replace(COST, operations=None), True),  # but what was measured agrees
    ],
)
def test_a_modelled_time_is_shown_where_nothing_contradicts_it(cost: Cost, shown: bool) -> None:
    assert ("modelled" in text(replace(GROUP, cost=cost))) == shown


def test_nothing_saved_nothing_measured_nothing_said() -> None:
    assert kernels(ALONE) == ["kernel 1: scale (a.py:1)"]


def test_a_file_is_named_where_it_changes() -> None:
    other = CallReport("mask", "b.py", 3)
    again = replace(GROUP, calls=(*CALLS, other, other, CALLS[0]))
    assert kernels(again)[0] == (
        "kernel 1: scale (a.py:1), shift (:2), mask (b.py:3) x2, scale (a.py:1)"
    )


def test_calls_that_take_turns_are_folded() -> None:
    again = replace(GROUP, calls=(CALLS[0], CALLS[1], CALLS[1]) * 8)
    assert kernels(again)[0] == "kernel 1: (scale (a.py:1), shift (:2) x2) x8"


def lines(*notes: Note, split: bool = False) -> list[str]:
    """What is said of notes of one kind about the calls of GROUP, and of `mask` before them."""
    names = ("scale", "shift", "scale", "mask")
    return list(type(notes[0]).lines(notes, Told(names.__getitem__, split)))


def test_what_was_done_to_calls() -> None:
    assert lines(Coarsened(0, 4), Coarsened(3, 8), Coarsened(1, 4), Coarsened(2, 4)) == [
        "4 iterations run as one: scale, shift",
        "8 iterations run as one: mask",
    ]
    assert lines(Delinearized(0), Delinearized(1), Delinearized(2)) == [
        "the one index runs as rows and columns: scale, shift"
    ]
    assert lines(Placed(0, (1,), 1), Placed(1, (1, 98), 1)) == [
        "boundary update, runs with row 1: scale",
        "boundary update, runs with row 1 and 98: shift",
    ]
    assert lines(Guarded(0, 1)) == [
        "inside an `if`, as their ranges are smaller than the loop's: scale"
    ]
    assert lines(Guarded(0, 1), Guarded(1, 1), split=True) == [
        "the loop is split where the ranges of these begin and end: scale, shift"
    ]
    assert facts(replace(GROUP, rewritten=("a", "b"))) == ["a", "b"]
    assert facts(GROUP) == []


def test_what_is_recomputed() -> None:
    again = Recomputed(1, (), ((0, 3), (2, 5), (3, 1)), frozenset({3}))
    assert lines(again) == [
        "recomputed where shift reads it: scale (3 or 5 times), mask (once)",
        "and computed by itself as well: mask",
    ]


def test_arrays_without_memory_are_not_told_of_twice() -> None:
    group = replace(
        GROUP,
        contracted=("y",),
        bytes_avoided=1024,
        removed_stores={"y": 1, "z": 2},
        removed_loads={"y": 3},
    )
    assert facts(group) == ["no memory needed: y (1 KiB less)", "stores removed: z (2)"]


def test_why_arrays_stay_in_memory() -> None:
    reader = CallReport("blur", "a.py", 9)
    group = replace(GROUP, kept=(Kept("y", 1 << 20), Kept("z", 1 << 20), Kept("t", 4096, reader)))
    assert " ".join(facts(group)) == (
        "kept in memory: y and z (2 MiB), as names still held them when the kernel ran. "
        "Dropped before, as by a function that returns, they would need no memory "
        "kept in memory: t (4 KiB), as blur (a.py:9) reads it in another kernel"
    )


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (Vectors("yes"), "yes"),
        (Vectors("no", "because it prints", SourceLocation("a.py", 7)), "no, because it prints (a"),
        (Vectors("unknown", "as arrays overlap"), "up to the compiler, as arrays overlap"),
        (Vectors("in part", "not all: f() has no"), "in part, not all: f() has no"),
    ],
)
def test_whether_it_is_vectorised(vectors: Vectors, said: str) -> None:
    (line,) = facts(replace(GROUP, vectors=vectors))
    assert line.startswith(f"vectorised: {said}")


def test_the_source_comes_last() -> None:
    assert text(GROUP, source=True).split("\n")[-2:] == ["    measured 2.3 ms", "    source"]


# --------------------------------------------------------------------------- folding


def test_equal_kernels_are_shown_once_with_their_numbers() -> None:
    slow, same = (replace(GROUP, cost=replace(COST, measured=t)) for t in (4e-3, 2.3004e-3))
    assert kernels(GROUP, slow, same) == [
        "kernels 1 to 3, each: scale (a.py:1), shift (:2)",
        "    moves about 1 KiB, unfused 4 KiB",
        "    modelled 2.1 ms, unfused 9.8 ms",
        "    measured 2.3 ms to 4 ms",
    ]
    assert text(GROUP, same).endswith("    measured 2.3 ms")
    assert "kernel 2" in text(GROUP, replace(GROUP, source="another\n"))


def test_kernels_that_take_turns_are_shown_once() -> None:
    found = kernels(ALONE, *(GROUP, ALONE) * 8)
    assert [line for line in found if "kernel" in line] == [
        "kernels 1 to 16: these 2 in turn, 8 times",
        "  kernel 1: scale (a.py:1)",
        "  kernel 2: scale (a.py:1), shift (:2)",
        "kernel 17: scale (a.py:1)",
    ]


def test_repeats_inside_of_repeats() -> None:
    third = replace(ALONE, calls=CALLS[1:])
    found = kernels(*(ALONE, GROUP, ALONE, GROUP, third, third) * 3)
    assert [line for line in found if "kernel" in line] == [
        "kernels 1 to 18: these 6 in turn, 3 times",
        "  kernels 1 to 4: these 2 in turn, 2 times",
        "    kernel 1: scale (a.py:1)",
        "    kernel 2: scale (a.py:1), shift (:2)",
        "  kernels 5 to 6, each: shift (a.py:2)",
    ]


def test_a_sweep_says_what_its_launch_takes() -> None:
    loops = [replace(GROUP, cost=replace(COST, measured=None, launches=0))] * 2
    sweep = SweepReport(
        (0, 1), (0, 1), 64, cost=Cost(2048, 8192, 3e-3, 1.96e-2, 0.0, 3.5e-3, launches=2)
    )
    assert kernels(*loops, sweeps=(sweep,)) == [
        "kernel 1: a sweep of 2 loops (one pass over memory), up to 1 step apart",
        "    loops 1 to 2, each: scale (a.py:1), shift (:2)",
        "    moves about 2 KiB, unfused 8 KiB",
        "    modelled 3 ms, unfused 19.6 ms",
        "    measured 3.5 ms",
    ]


def test_equal_rejections_are_shown_once() -> None:
    apart = RejectionReport(*CALLS, "space", "they differ", remedy="make them alike", sweep="no")
    found = str(Explanation((GROUP,), (apart, replace(apart, sweep="nor here"), apart), 2))
    assert found.split("not fused:\n")[1].split("\n") == [
        "  scale (a.py:1) and shift (:2), 3 times: they differ",
        "      nor in one sweep over memory: no",
        "      to fuse them: make them alike",
    ]


# --------------------------------------------------------------------------- wrapping


def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(CallReport(f"workunit_{n}", "program.py", n) for n in range(40))
    group = replace(GROUP, calls=many, kept=(Kept("y", 1), Kept("z", 1, many[0])))
    report = Explanation((group,), (), 40, asked=(Asked("program.py", 5, "a result is read"),))
    assert 70 < max(map(len, str(report).split("\n"))) <= 80
    for columns in (50, 200):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        assert columns - 30 < max(map(len, str(report).split("\n"))) <= columns


def test_without_a_terminal_there_are_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert width() == 80
    monkeypatch.setattr(sys, "stdout", None)
    assert width() == 80


def test_names_and_their_lines_stay_together() -> None:
    many = tuple(CallReport("w" * (20 + n), "program.py", n) for n in range(20))
    for line in kernels(replace(GROUP, calls=many)):
        assert not line.strip().startswith("(")


# --------------------------------------------------------------------------- times


def test_a_launch_s_time_is_the_mean_of_the_latest_runs_without_the_first() -> None:
    timing = Timing()
    assert timing.runs == 0
    timing.add(10.0)
    assert timing.mean == 10.0  # there is no other
    timing.add(2.0)
    assert timing.mean == 2.0
    timing.add(4.0)
    assert timing.mean == 3.0
    for _ in range(20 * REMEMBERED):
        timing.add(2.0)
    assert timing.mean == pytest.approx(2.0, rel=1e-6)
