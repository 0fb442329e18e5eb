"""PYFUSER_VERIFY=1 finds an illegal fusion, and the script that it writes finds it again."""

from __future__ import annotations

import dataclasses
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.checks.image import Image
from pyfuser.checks.script import Recording
from pyfuser.compare import serve
from pyfuser.plan import legality
from pyfuser.runtime import flush, verify
from pyfuser.runtime import flush as runtime_flush
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import VerificationError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import SYNC
from tests.sessions import fresh

pk = pytest.importorskip("pykokkos")
pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

KERNELS = sorted((Path(__file__).parents[1] / "kernels").glob("*.py"))


@pk.workunit
def twice(i, x, y, factor):
    y[i] = factor * x[i]


@pk.workunit
def pairs(i, y, z):
    z[i] = y[i] + y[i + 1]


@pk.workunit
def halved(i, acc, z):
    acc += z[i] * 0.5


@pk.workunit
def added(i, z, total):
    z[i] += total


@pk.workunit
def deposit(i, x, cells):
    pk.atomic_add(cells, [i % 3], x[i])


@pytest.fixture
def verifying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """PYFUSER_VERIFY=1 in an empty current directory; what is planned meanwhile is forgotten."""
    TRACER.flush(SYNC)
    monkeypatch.setenv("PYFUSER_VERIFY", "1")  # which scripts would set for good
    monkeypatch.setattr(verify, "SETTINGS", dataclasses.replace(SETTINGS, verify=True))
    monkeypatch.chdir(tmp_path)
    with fresh():
        yield tmp_path
        TRACER.calls.clear()


@pytest.fixture
def illegal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Legality forgets what dependences forbid."""
    monkeypatch.setattr(legality, "_forbidding", lambda graph: {})


def program(n: int = 100) -> Any:
    """A shift through a temporary: the two calls must not share a loop."""
    x, z = np.linspace(1.0, 2.0, n + 1), np.zeros(2 * n)
    with pyfuser.fusing():
        y = pk.View([n + 1], pk.double)
        pk.parallel_for(n, twice, x=x, y=y, factor=np.float32(2))
        pk.parallel_for(n, twice, x=x, y=y, factor=float("inf"))
        pk.parallel_for(pk.RangePolicy(0, n), twice, x=x, y=y, factor=2.5)
        pk.parallel_for("shift", pk.RangePolicy(0, n), pairs, y=y, z=z[::-2])
        half = pk.parallel_reduce(n, halved, z=z[::-2])
        pk.parallel_for(n, added, z=z[:n], total=half)
        del y
    return z


def test_passes_where_fusion_is_legal(verifying: Path) -> None:
    program()
    assert list(verifying.iterdir()) == []


def test_illegal_fusion_is_found_and_reproduced(verifying: Path, illegal: None) -> None:
    with pytest.raises(VerificationError, match="'shift' fused gives another 'z': element") as e:
        program()
    script, data = verifying / "pyfuser-verify-1.py", verifying / "pyfuser-verify-1.npz"
    assert sorted(verifying.iterdir()) == [data, script]
    assert str(script.name) in str(e.value) and str(verifying) in str(e.value)
    TRACER.calls.clear()
    with pytest.raises(VerificationError, match="'shift' fused gives another 'z': element"):
        runpy.run_path(str(script))
    assert sorted(verifying.iterdir()) == [data, script], "a script writes no script"


def deposits(cells: Any, factor: float = 1.0) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 99))
    with pyfuser.fusing():
        for values in (x, y, x, y):
            pk.parallel_for(99, deposit, x=values * factor, cells=cells)


@pytest.mark.parametrize("kind", [pk.double, pk.float])
def test_what_is_added_atomically_may_differ_by_rounding(kind: Any, verifying: Path) -> None:
    cells = pk.View([3], kind)
    cells.fill(0.1)
    deposits(cells)
    assert list(verifying.iterdir()) == [] and cells[0] != 0.1


def test_what_is_added_atomically_and_lost_is_found(
    verifying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: one term more in the same view is no rounding."""
    cells = pk.View([3], pk.double)
    execute = runtime_flush.execute

    def wrongly(program: Any, calls: Any, tracer: Any, *_: Any, **__: Any) -> None:
        execute(program, calls, tracer)
        calls[0].arguments[1].array()[1] += 1e-10

    monkeypatch.setattr(runtime_flush, "execute", wrongly)
    with pytest.raises(VerificationError, match="fused gives another 'cells': element"):
        deposits(cells)


def test_elements_beside_atomic_sums_are_compared_bit_for_bit(
    verifying: Path, illegal: None
) -> None:
    cells = pk.View([3], pk.double)
    wrong = pytest.raises(VerificationError, match="'shift' fused gives another 'z': element")
    with wrong, pyfuser.fusing():
        pk.parallel_for(99, deposit, x=np.ones(99), cells=cells)
        program()


def test_script_passes_once_the_mistake_is_mended(
    verifying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(legality, "_forbidding", lambda graph: {})
        with pytest.raises(VerificationError):
            program()
    TRACER.calls.clear()
    SESSION.programs.clear()
    SESSION.families.clear()
    assert "kept" in runpy.run_path(str(verifying / "pyfuser-verify-1.py"))


def test_files_are_not_overwritten(verifying: Path, illegal: None) -> None:
    for _ in range(2):
        with pytest.raises(VerificationError):
            program()
        TRACER.calls.clear()
    assert len(list(verifying.glob("pyfuser-verify-[12].npz"))) == 2


def test_unwritable_directory_does_not_hide_the_difference(
    verifying: Path, illegal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Recording, "write", refuse)
    with pytest.raises(VerificationError, match=r"another 'z'.*no script: PermissionError"):
        program()


def test_script_records_the_same_trace(verifying: Path) -> None:
    """Data, aliasing, what is temporary and what is untouched: all that a plan depends on."""
    shapes = []
    original = flush.shape_of

    def spy(*args: Any) -> Any:
        shapes.append(original(*args))
        return shapes[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "shape_of", spy)
        patch.setattr(verify, "verified", _written)
        program()
        assert "inf" in Path("pyfuser-verify-1.py").read_text(encoding="utf-8")
        runpy.run_path("pyfuser-verify-1.py")
    first, second = shapes
    assert second.clusters == first.clusters
    for a, b in zip(first.calls, second.calls, strict=True):
        assert (a.pattern, a.space, a.arguments) == (b.pattern, b.space, b.arguments)


def _written(calls: Any, run: Any) -> Any:
    import contextlib

    Recording(calls).write(Path.cwd(), "a test")
    return contextlib.nullcontext()


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_verify(path: Path, verifying: Path) -> None:
    module = serve.load(path)
    size = module.SIZES["small"]
    with pyfuser.fusing():
        state = module.setup(size)
        module.run(state)
    assert list(verifying.iterdir()) == []


def test_misaligned_memory_keeps_its_alignment() -> None:
    data = np.zeros(100, np.uint8)
    start = (4 - data.ctypes.data) % 8
    x = np.frombuffer(data, np.float32, 5, start)
    with pyfuser.fusing():
        pk.parallel_for(5, twice, x=x, y=np.zeros(5), factor=1.0)
        (call,) = TRACER.calls
        TRACER.remove([call])
    copied = Image([call]).copy(call)
    assert copied.arguments[0].address % 8 == 4  # type: ignore[union-attr]
