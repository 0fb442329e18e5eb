"""The command line and the arithmetic behind `pyfuser compare`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pyfuser.cli import main
from pyfuser.compare import command, peer, serve
from pyfuser.compare.measure import Result
from pyfuser.compare.programs import Program

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
    assert "same bits" in capsys.readouterr().out
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

    def measure(one: Program, *rest: object) -> Result:
        if one.path == interrupted:
            raise KeyboardInterrupt
        return real(one, *rest)  # type: ignore[arg-type]

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
