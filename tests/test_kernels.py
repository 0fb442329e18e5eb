"""Every program of kernels/, fused and unfused: the same bits, and right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import KERNELS, check_fused_equals_unfused


@pytest.mark.filterwarnings("error::pyfuser.WorkunitWarning")
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_fused_equals_unfused(path: Path) -> None:
    # The second run meets what the first left behind, and replays its plan.
    check_fused_equals_unfused(path, runs=2)


# ------------------------------------------------------------------------- as plain Python programs

FOLDER = KERNELS[0].parent
REAL = """
import sys
from . import part

print("real", __name__, __spec__.name, part.__name__, sys.modules["pykokkos"] is not None)
print(__file__, len(__path__))
sys.exit(0)
"""


def python(*given: str, folder: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(FOLDER.parent), path))}
    return subprocess.run(
        [sys.executable, *given],
        capture_output=True, text=True, check=False, cwd=folder, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("given", ["heat2d.py", "-m pyfuser run heat2d.py"])
@pytest.mark.parametrize("inside", [True, False])
def test_runs_where_no_pykokkos_is_installed(given: str, inside: bool, tmp_path: Path) -> None:
    *before, name = given.split()
    done = python(
        *before, name if inside else str(FOLDER / name), folder=FOLDER if inside else tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.startswith("heat2d: size 64, runs 1, ")
    assert done.stdout.endswith(" s, correct\n")


def test_the_folder_is_no_installed_pykokkos() -> None:
    text = (
        "import pyfuser, pykokkos, sys; print(pykokkos.__name__, sys.path[0] in ('', sys.argv[0]))"
    )
    assert python("-c", text, folder=FOLDER).stdout.startswith("pyfuser.frontends.embedded")


def test_an_installed_pykokkos_is_used(tmp_path: Path) -> None:
    package = tmp_path / "pykokkos"
    package.mkdir()
    (package / "__init__.py").write_text(REAL)
    (package / "part.py").write_text("")
    done = python(str(KERNELS[0]), folder=tmp_path, path=str(tmp_path))
    assert (
        done.stdout == f"real pykokkos pykokkos pykokkos.part True\n{package / '__init__.py'} 1\n"
    )
    assert done.stderr == ""


def test_without_either_the_error_says_what_to_do(tmp_path: Path) -> None:
    text = (
        "import runpy, sys; sys.modules['pyfuser'] = None; sys.path[0] = sys.argv[1]; import heat2d"
    )
    done = python("-c", text, str(FOLDER), folder=tmp_path)
    assert done.returncode == 1
    assert "ModuleNotFoundError: these programs need PyKokkos, or PyFuser" in done.stderr
