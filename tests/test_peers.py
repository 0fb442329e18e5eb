"""The experts' versions of the programs: right at small sizes, and measured as promised."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from experiments.peers import measure, program, report
from experiments.peers.contestants import CONTESTANTS, Contestant, make
from experiments.peers.measure import Column, Options, Result
from pyfuser.support.settings import SETTINGS

RUNS = 2
COMPILER = shutil.which(SETTINGS.compiler.split()[0])
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def outputs(peer: str, name: str) -> tuple[program.Outputs, int]:
    """What a peer makes of RUNS runs of the small size, and that size."""
    size = program.kernel(name).SIZES["small"]
    made = make(peer, name, size)
    for _ in range(RUNS):
        made.run()
    return made.outputs(), size


def test_every_program_has_its_experts() -> None:
    assert program.names() == sorted(path.stem for path in program.KERNELS.glob("*.py"))
    for name in program.names():
        module = program.load(name)
        assert all(hasattr(module, peer) for peer in ("cpp", "numba", "numpy", "jax")), name


@pytest.mark.parametrize("name", program.names())
def test_numpy_is_right_and_a_wrong_result_is_seen(name: str) -> None:
    if name == "black_scholes":
        pytest.importorskip("scipy", reason="NumPy has no erf: SciPy is not installed")
    found, size = outputs("numpy", name)
    assert program.failed_check(name, found, size, RUNS) is None
    for key in found:
        wrong = {**found, key: np.asarray(found[key]) * 1.001 + 1}
        assert program.failed_check(name, wrong, size, RUNS, expected=found) is not None, key


@needs_compiler
@pytest.mark.parametrize("name", program.names())
def test_cpp_is_right(name: str) -> None:
    found, size = outputs("cpp", name)
    assert program.failed_check(name, found, size, RUNS) is None


@pytest.mark.parametrize("peer", ["numba", "jax", "numexpr"])
def test_other_peers_are_right(peer: str) -> None:
    missing = CONTESTANTS[peer].lacks(program.load("babelstream"))
    if missing is not None:
        pytest.skip(missing)
    found, size = outputs(peer, "babelstream")
    assert program.failed_check("babelstream", found, size, RUNS) is None


def test_a_peer_says_what_it_lacks() -> None:
    module = program.load("kmeans")
    assert CONTESTANTS["numexpr"].lacks(module) == "not written"
    absent = Contestant("x", "X", "numpy", package="no_such_package")
    assert absent.lacks(module) == "no_such_package is not installed: pip install -e '.[peers]'"


def result(fused: list[float], **peers: list[float]) -> Result:
    columns = {"fused": Column(times=fused), "unfused": Column(times=fused)}
    columns |= {name: Column(times=times) for name, times in peers.items()}
    return Result("p", 1, 0, Column(times=[1.0]), columns)


def test_verdict_names_the_fastest_fair_peer() -> None:
    assert report.verdict(result([2.0, 2.0], cpp=[1.0, 1.0])) == "C++ 2.00x before PyFuser"
    assert report.verdict(result([1.0, 1.0], cpp=[3.0, 3.0], numpy=[2.0, 2.0])) == (
        "PyFuser 2.00x before NumPy"
    )
    assert report.verdict(result([1.0], cpp=[1.04])) == "even with C++"
    unfair = result([1.0], numpy=[1.5])
    unfair.columns["cpp-fast"] = Column(times=[0.1])
    unfair.columns["cpp"] = Column(times=[0.1], check="wrong")
    unfair.columns["numba"] = Column(error="not installed")
    assert report.verdict(unfair) == "PyFuser 1.50x before NumPy"


def test_a_wrong_peer_is_complained_of(capsys: pytest.CaptureFixture[str]) -> None:
    made = result([1.0], numpy=[1.0])
    assert report.complain([made]) == 0
    made.columns["numpy"].check = "x differs"
    assert report.complain([made]) == 1
    assert capsys.readouterr().err == "p: NumPy: x differs\n"


@needs_compiler
def test_measuring_in_turns(tmp_path: Path) -> None:
    options = Options(("gray_scott",), ("numpy", "numexpr"), "small", repeat=2, threads=1)
    rounds: list[str] = []
    (made,) = measure.measure(options, rounds.append)
    assert len(rounds) == measure.steps(options)
    assert made.columns["numexpr"].error == "not written"
    for name in ("fused", "unfused", "numpy"):
        column = made.columns[name]
        assert (column.error, column.check, len(column.times)) == (None, None, 2), name
        assert min(column.times) > 0 and column.first > 0
    assert made.floor > 0
    assert json.loads(json.dumps(report.as_json([made], options)))["programs"][0]["floor"] > 0
    assert "| gray_scott |" in report.markdown([made], options)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    report.save_plot([made], options, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").stat().st_size > 1000
