"""The arithmetic and the looks of `pyfuser compare`: medians, intervals, tables and plots."""

from __future__ import annotations

import io
import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from rich.console import Console

from pyfuser.compare import command, plot, report, scripts
from pyfuser.compare.measure import Options, PeerResult, Result, Variant
from pyfuser.compare.scripts import Runs, ScriptResult
from pyfuser.compare.summary import (
    Difference,
    difference,
    geometric_mean,
    median_interval,
    speedup,
    spread,
)

KERNELS = sorted((Path(__file__).parents[1] / "kernels").glob("*.py"))


def result(name: str, before: float, after: float, **changes: object) -> Result:
    made = Result(
        name=name,
        size=1000,
        unfused=Variant(first=1.0, times=[before] * 3, launches=8),
        fused=Variant(first=1.0, times=[after] * 3, launches=1),
        difference=Difference(True, 0.0),
        checked=True,
        check=None,
        peer=None,
    )
    for key, value in changes.items():
        setattr(made, key, value)
    return made


# ------------------------------------------------------------------------------- the arithmetic


def test_speedup_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    before, after = [2.0, 20.0, 30.0], [1.0, 10.0, 3.0]
    assert speedup(before, after) == 2.0  # pairs: 2, 2, 10; the medians 20 and 3 would say 6.7


def test_geometric_mean_of_a_gain_and_an_equal_loss_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_spread() -> None:
    values = spread([3.0, 1.0, 2.0, 9.0])
    assert (values.median, values.low, values.high) == (2.5, 1.0, 9.0)


def test_equal_outputs_with_nan_are_identical() -> None:
    one = {"x": np.array([1.0, np.nan, -0.0]), "n": 3}
    assert difference(one, {"x": one["x"].copy(), "n": 3}).identical


@pytest.mark.parametrize(
    ("one", "other", "acceptable"),
    [
        (np.array([0.0]), np.array([-0.0]), True),
        (np.array([1.0, 1e-30]), np.array([1.0, 2e-30]), True),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-15]), True),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-6]), False),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0]), False),
        (np.array([np.inf]), np.array([-np.inf]), False),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([1.0]), np.array([1.0], np.float32), False),
        (np.array([1.0]), np.array([1.0, 1.0]), False),
        (np.array([0.0]), np.array([1e-30]), False),
    ],
)
def test_outputs_that_are_not_identical(
    one: np.ndarray, other: np.ndarray, acceptable: bool
) -> None:
    found = difference({"x": one}, {"x": other})
    assert not found.identical
    assert found.acceptable is acceptable


def test_outputs_of_other_names_differ() -> None:
    assert not difference({"x": 1.0}, {"y": 1.0}).acceptable


# ------------------------------------------------------------------------------------ the report


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.56e-5, "45.6 us"), (2e-8, "0.02 us")],
)
def test_seconds_in_a_suitable_unit(value: float, text: str) -> None:
    assert report.seconds(value) == text


def rendered(results: list[Result], width: int = 200) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(report.table(results, console))
    return console.export_text()


def test_table_shows_each_program_and_the_mean() -> None:
    text = rendered([result("one", 0.08, 0.01), result("two", 0.02, 0.01)])
    assert "8.00x" in text
    assert "2.00x" in text
    assert "4.00x" in text  # the geometric mean
    assert "8 -> 1" in text
    assert "same bits" in text
    assert "all pass their own checks" in text
    assert "PyKokkos" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_the_mean_is_below_the_speedups(width: int) -> None:
    lines = rendered(of_kernels(), width).splitlines()
    ends = {line.split("-")[0].rindex("x ") for line in lines if "17.5-17.5" in line}
    (mean,) = (line.index("x ") for line in lines if line.startswith("geometric mean"))
    assert ends == {mean}


def test_table_names_what_is_wrong() -> None:
    wrong = result("one", 2.0, 1.0, difference=Difference(False, 0.5), check="x is off")
    assert "differ by 5.0e-01" in rendered([wrong])
    wrong.difference = Difference(True, 0.0)
    assert "check failed" in rendered([wrong])
    assert "all pass their own checks" not in rendered([wrong])


def test_table_has_a_column_for_an_installed_pykokkos() -> None:
    peer_result = PeerResult(error="No module named 'pykokkos'")
    text = rendered([result("one", 2.0, 1.0, peer=peer_result)])
    assert "PyKokkos" in text
    assert "No module named 'pykokkos'" in text


def test_json_holds_all_raw_times() -> None:
    made = report.as_json([result("one", 2.0, 1.0)], Options(repeat=3))
    program = json.loads(json.dumps(made))["programs"][0]
    assert program["unfused"]["times"] == [2.0, 2.0, 2.0]
    assert program["fused"]["launches"] == 1
    assert program["speedup"] == made["geometric_mean_speedup"] == 2.0
    assert {"processor", "threads", "compiler", "python", "numpy"} <= made["machine"].keys()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"difference": Difference(False, 1e-14)}, 0),
        ({"difference": Difference(False, 1e-3)}, 1),
        ({"check": "x is off"}, 1),
    ],
)
def test_exit_code(changes: dict[str, object], code: int) -> None:
    assert command.exit_code([result("fine", 2.0, 1.0), result("one", 2.0, 1.0, **changes)]) == code


# ----------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("n", "k", "confidence"),
    [
        (1, 1, 0.0),
        (2, 1, 0.5),
        (3, 1, 0.75),
        (5, 1, 0.938),
        (6, 1, 0.969),
        (8, 1, 0.992),
        (9, 2, 0.961),
        (12, 3, 0.961),
        (15, 4, 0.965),
        (17, 5, 0.951),
        (20, 6, 0.959),
    ],
)
def test_interval_is_that_of_the_tables(n: int, k: int, confidence: float) -> None:
    found = median_interval([float(value) for value in reversed(range(1, n + 1))])
    assert (found.low, found.high) == (k, n + 1 - k)
    assert found.confidence == pytest.approx(confidence, abs=5e-4)


@pytest.mark.parametrize("n", [6, 9, 20])
def test_interval_covers_the_median_as_often_as_it_says(n: int) -> None:
    rng = np.random.default_rng(1)
    found = [median_interval(list(rng.exponential(size=n))) for _ in range(4000)]
    covered = np.mean([each.low <= np.log(2.0) <= each.high for each in found])
    assert covered == pytest.approx(found[0].confidence, abs=0.015)
    assert covered >= 0.94


def test_interval_is_of_the_pairs_and_contains_the_speedup() -> None:
    made = result("one", 1.0, 1.0)
    made.unfused.times = [2.0, 4.0, 30.0, 8.0, 10.0, 12.0]
    made.fused.times = [1.0, 1.0, 10.0, 2.0, 2.0, 2.0]
    assert (made.interval.low, made.interval.high) == (2.0, 6.0)
    assert made.interval.low <= made.speedup <= made.interval.high
    assert report.as_json([made], Options())["programs"][0]["speedup_interval"]["high"] == 6.0


# -------------------------------------------------------------------------- what fits a terminal


def of_kernels(pairs: int = 9) -> list[Result]:
    """As `make demo` has them: the longest names, times and counts there are."""
    made = []
    for number, path in enumerate(KERNELS):
        one = result(path.stem, 0.1, 0.1)
        one.size = 50_000_000
        one.unfused = Variant(1.0, [0.0215 * (number + 1)] * pairs, launches=30_001)
        one.fused = Variant(0.123, [0.00123] * pairs, launches=12_035)
        made.append(one)
    return made


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_table_fits_and_loses_no_result(width: int) -> None:
    lines = rendered(of_kernels(), width).splitlines()
    assert max(map(len, lines)) <= width
    for path in KERNELS:
        (line,) = (line for line in lines if line.startswith(path.stem + " "))
        assert line.rstrip().endswith("same bits")
        assert "x " in line and "-" in line
    assert "…" not in "".join(lines)
    assert ("first run" in "".join(lines)) == (width == 160)


def test_a_narrow_table_folds_what_it_cannot_leave_out() -> None:
    text = rendered(of_kernels(), 50)
    assert max(map(len, text.splitlines())) <= 50
    assert "…" not in text


def test_few_pairs_have_no_interval_of_95_percent() -> None:
    assert "with its 95% interval" in rendered(of_kernels(6))
    assert "with the lowest and the highest" in rendered(of_kernels(5))
    assert "speedup: one run" in rendered(of_kernels(1))


def test_a_table_of_scripts_fits() -> None:
    made = ScriptResult(
        "a_script_with_a_rather_long_name",
        Runs((), times=[1.25] * 9, wall=[1.5] * 9, launches=100_000),
        Runs((), times=[0.25] * 9, wall=[0.5] * 9, launches=12_345),
        "line 17 of the output: what differs may be long, and it is, up to sixty",
        3,
    )
    made.pykokkos = Runs((), wall=[5.0] * 9)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(scripts.table([made], console))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert "differs:" in "".join(lines)


# ----------------------------------------------------------------------------------- the plot


def test_plot_is_sorted_with_error_bars(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    names = {"two": 2.0, "loses": 0.5, "eight": 8.0}
    results = [result(name, value, 1.0) for name, value in names.items()]
    results[0].unfused.times = [1.5, 2.0, 3.0]
    axes = plot.figure(results).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["loses", "two", "eight"]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert np.allclose(ends, [(1.0, 0.5), (1.0, 2.0), (1.0, 8.0)])
    assert axes.patches[0].get_facecolor() != axes.patches[1].get_facecolor()
    (errors,) = axes.collections
    assert np.allclose(errors.get_segments()[1][:, 0], [1.5, 3.0])
    assert axes.get_xscale() == "log"
    assert axes.get_xlim()[0] < 0.5 and axes.get_xlim()[1] > 8.0
    plot.save(results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_plot_of_like_speedups_is_linear() -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    axes = plot.figure([result("one", 2.0, 1.0)]).axes[0]
    assert axes.get_xscale() == "linear"
    assert axes.get_legend() is None  # one program has no mean


def test_plot_shortens_long_names_and_names_units() -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    axes = plot.figure([result("a" * 30 + "b" * 30, 2.0, 0.001)]).axes[0]
    (label,) = axes.get_yticklabels()
    assert len(label.get_text()) == plot.LONGEST
    assert "2 s → 1 ms" in axes.texts[0].get_text()
    axes = plot.figure([result("short", 0.002, 0.001)]).axes[0]
    assert "2 → 1 ms" in axes.texts[0].get_text()


def test_no_pair_of_runs_is_lost() -> None:
    made = of_kernels()[0]
    assert made.speedup == pytest.approx(median(made.unfused.times) / median(made.fused.times))
