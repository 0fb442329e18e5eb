"""Programs that still hold Views when Kokkos ends: they end as if nothing were wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.upstream import installed
from tests.upstream.stand_in import install, run

ABORTS = "is being deallocated after Kokkos::finalize was called"

IN_EVERY_WAY = """
view = pk.View([4], pk.double)
data = pk.View([4], pk.double).data
part = pk.View([4], pk.double).data[1:3]
subview = pk.View([4], pk.double)[1:3]
resized = pk.View([4], pk.double)
before = resized.data
resized.resize(0, 6)
cycle = [pk.View([4], pk.double)]
cycle.append(cycle)
del cycle
"""
#: What a program holds when it ends.
HOLDERS = {
    "in every way": IN_EVERY_WAY,
    "ended by the program": "x = pk.View([4], pk.double)\npk.finalize()\ndel x",
    "after an error": "x = pk.View([4], pk.double)\nraise SystemExit(0)",
}
HOOKED = {
    "pyfuser first": "import pyfuser\nimport pykokkos as pk\n",
    "View first": "import pykokkos as pk\nearly = pk.View([3], pk.double)\nimport pyfuser\n",
    "array first": "import pykokkos as pk\nearly = pk.View([3], pk.double)\nimport pyfuser\n"
    "early = early.data\n",
}
RECORDED = """
import pyfuser
import pykokkos as pk

@pk.workunit
def grow(i, x):
    x[i] += 1

x = pk.View([4], pk.double)
pyfuser.enable()
pk.parallel_for(4, grow, x=x)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    return install(tmp_path / "site")


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_program_that_holds_memory_ends_well(stand_in: Path, holder: str) -> None:
    done = run(stand_in, HOOKED["pyfuser first"] + HOLDERS[holder])
    assert (done.returncode, done.stdout, done.stderr) == (0, "Kokkos ends\n", "")


@pytest.mark.parametrize("hooked", HOOKED)
def test_views_that_are_older_than_the_hooks_count(stand_in: Path, hooked: str) -> None:
    done = run(stand_in, HOOKED[hooked])
    assert (done.returncode, done.stdout, done.stderr) == (0, "Kokkos ends\n", "")


def test_without_the_hooks_it_aborts(stand_in: Path) -> None:
    """Else the others would show nothing."""
    done = run(stand_in, "import pykokkos as pk\nx = pk.View([4])")
    assert done.returncode == -6
    assert ABORTS in done.stderr


def test_memory_that_nothing_holds_is_freed(stand_in: Path) -> None:
    """Only what is alive at the end of Kokkos is kept."""
    program = (
        "import weakref\nimport pyfuser\nimport pykokkos as pk\n"
        "x = pk.View([4])\nfreed = weakref.ref(x.array)\ndel x\nprint(freed() is None)"
    )
    done = run(stand_in, program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nKokkos ends\n", "")


def test_what_is_pending_at_the_end_runs_before_kokkos_ends(stand_in: Path) -> None:
    done = run(stand_in, RECORDED + "import atexit\natexit.register(lambda: print(int(x[3])))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\nKokkos ends\n", "")


@pytest.mark.pykokkos
@pytest.mark.parametrize("holder", HOLDERS)
def test_with_an_installed_pykokkos(tmp_path: Path, holder: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(HOOKED["pyfuser first"] + HOLDERS[holder])
    done = subprocess.run(
        [installed.require(), str(script)],
        env=installed.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
