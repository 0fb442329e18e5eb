"""The command line and the arithmetic behind `pyfuser compare`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pyfuser.cli import main
from pyfuser.compare import command, peer, report, serve
from pyfuser.compare.measure import Options, PeerResult, Result, Variant
from pyfuser.compare.summary import Difference, difference, geometric_mean, speedup, spread

PROGRAM = '''
"""Doubles, then adds one: two launches that fuse into one."""
import numpy as np
import pykokkos as pk

SIZES = {"small": 100, "default": 1000, "large": 10_000}

@pk.workunit
def double_it(i, y, x):
    y[i] = 2.0 * x[i]

@pk.workunit
def add_one(i, y):
    y[i] += 1.0

def setup(size):
    x, y = pk.View([size], pk.double), pk.View([size], pk.double)
    x.data[:] = np.arange(size)
    return x, y

def run(state):
    x, y = state
    pk.parallel_for(x.extent(0), double_it, y=y, x=x)
    pk.parallel_for(x.extent(0), add_one, y=y)

def outputs(state):
    return {"y": np.array(state[1].data)}

def check(state, size, runs):
    np.testing.assert_array_equal(outputs(state)["y"], 2.0 * np.arange(size) + 1.0)
'''

# What an installed PyKokkos is to `serve`, without one: a module of that name.
NUMPY_PROGRAM = """
import numpy as np

SIZES = {"small": 10, "default": 10, "large": 10}

def setup(size):
    return np.zeros(size)

def run(state):
    state += 1.0

def outputs(state):
    return {"x": state.copy()}

def check(state, size, runs):
    assert (state == runs).all(), f"{state[0]} is not {runs}"
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "doubles.py"
    path.write_text(PROGRAM)
    return path


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


def rendered(results: list[Result]) -> str:
    from rich.console import Console

    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.table(results))
    return console.export_text()


def test_table_shows_each_program_and_the_mean() -> None:
    text = rendered([result("one", 0.08, 0.01), result("two", 0.02, 0.01)])
    assert "8.00x" in text
    assert "2.00x" in text
    assert "4.00x" in text  # the geometric mean
    assert "8 -> 1" in text
    assert "bit-identical, correct" in text
    assert "PyKokkos" not in text


def test_table_names_what_is_wrong() -> None:
    wrong = result("one", 2.0, 1.0, difference=Difference(False, 0.5), check="x is off")
    assert "differ by 5.0e-01, check failed" in rendered([wrong])


def test_table_has_a_column_for_an_installed_pykokkos() -> None:
    peer_result = PeerResult(error="No module named 'pykokkos'")
    text = rendered([result("one", 2.0, 1.0, peer=peer_result)])
    assert "installed PyKokkos" in text
    assert "No module named 'pykokkos'" in text


def test_json_holds_all_raw_times() -> None:
    made = report.as_json([result("one", 2.0, 1.0)], Options(repeat=3))
    program = json.loads(json.dumps(made))["programs"][0]
    assert program["unfused"]["times"] == [2.0, 2.0, 2.0]
    assert program["fused"]["launches"] == 1
    assert program["speedup"] == made["geometric_mean_speedup"] == 2.0
    assert {"processor", "threads", "compiler", "python", "numpy"} <= made["machine"].keys()


def test_plot_has_a_bar_for_each_program(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    results = [result("one", 0.08, 0.01), result("two", 0.02, 0.01)]
    axes = report.figure(results).axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([8.0, 2.0])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
    report.save_plot(results, tmp_path / "sub" / "plot.png")
    assert (tmp_path / "sub" / "plot.png").stat().st_size > 1000


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


# --------------------------------------------------------------------------------- the programs


def test_a_file_that_is_not_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half.py"
    path.write_text("SIZES = {}\ndef run(state): ...\n")
    assert main(["compare", str(path)]) == 2
    assert "lacks setup, outputs, check" in capsys.readouterr().err


def test_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no/such.py"]) == 2
    assert "no/such.py" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "size"), [("small", 10), ("77", 77)])
def test_sizes(tmp_path: Path, text: str, size: int) -> None:
    path = tmp_path / "sizes.py"
    path.write_text(NUMPY_PROGRAM)
    module = serve.load(path)
    assert serve.size_of(module, text) == size
    with pytest.raises(serve.ProgramError, match="--size huge: expected small"):
        serve.size_of(module, "huge")


# ----------------------------------------------------------------------------------- end to end


def test_compare(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "result.json"
    code = main(
        ["compare", str(program), "--size", "small", "--repeat", "2", "--json", str(written)]
    )
    assert code == 0
    assert "bit-identical, correct" in capsys.readouterr().out
    made = json.loads(written.read_text())["programs"][0]
    assert made["size"] == 100
    assert made["unfused"]["launches"] == 2
    assert made["fused"]["launches"] == 1
    assert len(made["fused"]["times"]) == 2


def test_compare_reports_a_failed_check(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.replace("np.arange(size) + 1.0", "np.arange(size) + 7.0"))
    assert main(["compare", str(program), "--size", "small", "--repeat", "1"]) == 1
    assert "doubles: Arrays are not equal" in capsys.readouterr().err
    assert main(["compare", str(program), "--size", "small", "--repeat", "1", "--no-check"]) == 0


def test_compare_checks_at_another_size(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(
        PROGRAM.replace(
            "def check(state, size, runs):",
            """
def check(state, size, runs):
    assert size == 100
    assert runs > 0""",
        )
    )
    arguments = ["compare", str(program), "--size", "large", "--repeat", "1"]
    assert main(arguments) == 1
    assert main([*arguments, "--check-size", "small"]) == 0


def test_compare_reports_results_that_differ(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text(
        PROGRAM.replace("np.arange(size)\n    return", "np.random.rand(size)\n    return")
    )
    arguments = ["compare", str(program), "--size", "small", "--repeat", "1", "--no-check"]
    assert main(arguments) == 1
    assert "fused and unfused results differ by" in capsys.readouterr().err


def test_compare_shows_what_it_has_when_it_is_interrupted(
    program: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = program.with_name("second.py")
    second.write_text(PROGRAM)

    def measure(path: Path, *rest: object) -> Result:
        if path == interrupted:
            raise KeyboardInterrupt
        return real(path, *rest)  # type: ignore[arg-type]

    real, written = command.measure, tmp_path / "results" / "so-far.json"
    monkeypatch.setattr(command, "measure", measure)
    options = ["--size", "small", "--repeat", "1", "--json", str(written)]
    interrupted = second
    assert main(["compare", str(program), str(second), *options]) == command.INTERRUPTED
    said = capsys.readouterr()
    assert "doubles" in said.out and "interrupted in second" in said.err
    assert "1 of 2: doubles" in said.err
    assert [made["name"] for made in json.loads(written.read_text())["programs"]] == ["doubles"]
    interrupted = program
    assert main(["compare", str(program), str(second), *options]) == command.INTERRUPTED
    assert "interrupted in doubles" in capsys.readouterr().err


def test_explain(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(program)]) == 0
    text = capsys.readouterr().out
    assert "double_it" in text
    assert "add_one" in text


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "compiler" in text
    assert "kernel cache" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("pyfuser ")


# ------------------------------------------------------------------------- an installed PyKokkos


def test_peer_runs_a_program_in_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pykokkos.py").write_text("print('chatter on stdout')\n")
    path = tmp_path / "adds.py"
    path.write_text(NUMPY_PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = peer.Peer(sys.executable, path, 10, None)
    try:
        assert other.run() > 0.0
        assert other.run() > 0.0
        np.testing.assert_array_equal(other.outputs()["x"], np.full(10, 2.0))
        assert other.failed_check() is None
    finally:
        other.close()


def test_peer_says_why_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pykokkos.py").write_text("raise ImportError('no Kokkos here')\n")
    path = tmp_path / "adds.py"
    path.write_text(NUMPY_PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = peer.Peer(sys.executable, path, 10, None)
    try:
        with pytest.raises(peer.PeerError, match="no Kokkos here"):
            other.run()
    finally:
        other.close()


def test_peer_that_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text(NUMPY_PROGRAM)
    with pytest.raises(peer.PeerError, match="No such file"):
        peer.Peer(str(tmp_path / "python"), tmp_path / "adds.py", 10, None)
