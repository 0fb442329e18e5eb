"""The experts' versions for GPUs: right at small sizes, as far as that shows without a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from experiments.peers import measure, program, report
from experiments.peers.contestants import CONTESTANTS, GPUS, DeviceCopy, make, of
from experiments.peers.measure import Column, Options
from tests import strict_cupy
from tests.gpu.conftest import FAKE, real_cupy
from tests.test_peers import needs_compiler

RUNS = 2
PAIRS = [
    (peer, name)
    for peer in ("cupy", "cupy-fuse")
    for name in program.names()
    if CONTESTANTS[peer].written(program.load(name))
]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """NumPy in CuPy's place."""
    module = strict_cupy.StrictCuPy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    if importlib.util.find_spec("scipy") is not None:
        from scipy import special

        stand_in = ModuleType("cupyx.scipy.special")
        stand_in.erf = strict_cupy.on_device(special.erf)  # type: ignore[attr-defined]
        for name in ("cupyx", "cupyx.scipy"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, "cupyx.scipy.special", stand_in)
    return module


@pytest.mark.parametrize(("peer", "name"), PAIRS)
def test_cupy_is_right(peer: str, name: str, cupy: Any) -> None:
    if name == "black_scholes":
        pytest.importorskip("scipy", reason="NumPy has no erf: SciPy is not installed")
    size = program.kernel(name).SIZES["small"]
    made = make(peer, name, size, "Cuda")
    for _ in range(RUNS):
        made.run()
    assert program.failed_check(name, made.outputs(), size, RUNS) is None


@pytest.mark.parametrize(
    "name", [name for name in program.names() if CONTESTANTS["torch"].written(program.load(name))]
)
def test_torch_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the host, and not compiled: the expressions are the same."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(torch, "compile", lambda function: function)
    size = program.kernel(name).SIZES["small"]
    made = make("torch", name, size)
    for _ in range(RUNS):
        made.run()
    assert program.failed_check(name, made.outputs(), size, RUNS) is None


def test_numba_cuda_is_right() -> None:
    """In Numba's simulator, which a process has to ask for before it imports Numba."""
    pytest.importorskip("numba", reason="Numba is not installed")
    code = """
from threading import current_thread as thread
from numba import cuda
cuda.grid = lambda _: thread().blockIdx.x * 256 + thread().threadIdx.x  # it looks among globals
from experiments.peers import program
from experiments.peers.contestants import CONTESTANTS, make
names = [n for n in program.names() if CONTESTANTS["numba-cuda"].written(program.load(n))]
for name in names:
    made = make("numba-cuda", name, 300, "Cuda")
    made.run()
    found = program.failed_check(name, made.outputs(), 300, 1)
    assert found is None, f"{name}: {found}"
print(*names)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["black_scholes", "elementwise_chain", "sine_cosine"]


def test_arrays_of_host_and_device_do_not_mix(cupy: Any) -> None:
    here, there = np.ones(3), cupy.asarray(np.ones(3))
    for mixed in (
        lambda: there + here,
        lambda: cupy.dot(there, here),
        lambda: np.sqrt(there).sum(here),
    ):
        with pytest.raises(TypeError, match="Unsupported"):
            mixed()
    with pytest.raises(TypeError, match="Unsupported"):
        there[:] = here
    with pytest.raises(TypeError, match="Implicit"):
        np.asarray(there)
    with pytest.raises(AttributeError, match="not among"):
        cupy.unwrap(there)


def test_cupy_has_what_peers_call() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    names = strict_cupy.FUNCTIONS | strict_cupy.CONSTANTS | {"fuse", "asarray"}
    assert [name for name in sorted(names) if not hasattr(cupy, name)] == []
    assert [name for name in sorted(strict_cupy.METHODS) if not hasattr(cupy.ndarray, name)] == []


def test_most_programs_have_versions_for_gpus() -> None:
    assert set(of("Cuda")) - set(of("HIP")) == {"numba-cuda"}
    assert all(set(CONTESTANTS[peer].spaces) & set(GPUS) for peer in of("Cuda"))
    fused = {name for peer, name in PAIRS if peer == "cupy-fuse"}
    assert fused >= {
        "adam_optimizer", "babelstream", "black_scholes", "elementwise_chain", "gray_scott",
        "harris", "heat2d", "layer_norm", "rk4", "sine_cosine", "softmax",
    }  # fmt: skip
    unfused = {name for peer, name in PAIRS if peer == "cupy"}
    assert set(program.names()) - unfused == {"adi", "lennard_jones"}, "NumPy's loops over rows"


@needs_compiler
def test_measuring_on_the_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no arithmetic for whole arrays: the peer fails, and that is all that fails."""
    if real_cupy() is not None:
        pytest.skip("needs the stand-in for CuPy; there is a GPU")
    paths = [str(FAKE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.syspath_prepend(FAKE)
    options = Options(("sine_cosine",), ("cupy",), "small", 2, 1, "Cuda", check_size="100")
    (made,) = measure.measure(options, lambda what: None)
    for name in ("fused", "unfused"):
        column = made.columns[name]
        assert (column.error, column.check, len(column.times)) == (None, None, 2), name
    assert made.columns["cupy"].error is not None
    assert (made.copy.error, made.copy_bytes) == (None, DeviceCopy.BYTES)
    assert made.floor > 0
    assert made.device is not None
    assert report.as_json([made], options)["machine"]["gpu"] == made.device


def test_a_wrong_result_at_the_size_for_checks_is_seen() -> None:
    class Answers:
        """A process whose results are all wrong."""

        def ask(self, command: str) -> float:
            return 0.0

        run = outputs = lambda self: {"total": np.zeros(100)}

    columns = {"fused": Column(), "absent": Column(error="is not installed")}
    conversations: Any = {"fused": Answers()}
    measure.check_at("sine_cosine", 100, columns, conversations)
    assert "Mismatched elements: 100" in str(columns["fused"].check)
    assert columns["absent"].check is None


@pytest.mark.parametrize("name", program.names())
def test_every_program_has_a_size_for_gpus(name: str) -> None:
    sizes = program.kernel(name).SIZES
    assert sizes["gpu"] > sizes["small"]
