"""Programs type-check: `import pykokkos` finds its stubs, `fuse` keeps signatures."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import pyfuser
from pyfuser.frontends.embedded import pykokkos
from pyfuser.support import errors
from pyfuser.version import VERSION

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUBS = ROOT / "pykokkos-stubs"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in which PyFuser is installed as from a wheel, for a type checker to look at."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("typing")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    numpy = importlib.util.find_spec("numpy")
    assert numpy is not None and numpy.submodule_search_locations
    for package in (ROOT / "pyfuser", STUBS, Path(numpy.submodule_search_locations[0])):
        (site / package.name).symlink_to(package)
    return folder / "bin" / "python"


def mypy(python: Path, program: str) -> list[str]:
    """What mypy says of a program of a user."""
    copied = shutil.copy(HERE / program, python.parent)  # elsewhere than in our source
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*words, "--python-executable", str(python), "--cache-dir", str(python.parents[1] / "c"),
         copied],
        cwd=python.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines() + done.stderr.splitlines()


def test_a_program_that_is_right(python: Path) -> None:
    assert mypy(python, "accepted.py") == []


def test_mistakes_are_found_where_they_are(python: Path) -> None:
    found = {
        int(match[1])
        for line in mypy(python, "refused.py")
        if (match := re.search(r"refused\.py:(\d+): error", line))
    }
    lines = (HERE / "refused.py").read_text().splitlines()
    assert found == {n for n, line in enumerate(lines, 1) if line.endswith("# WRONG")}


def test_stubs_have_the_names_that_the_package_has() -> None:
    """A name that the embedded PyKokkos gets or loses is one here, too."""
    found: set[str] = set()
    for node in ast.parse((STUBS / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyfuser"):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    has = {name for name in dir(pykokkos) if not name.startswith("_")}
    has -= {"interface", "kokkos_manager"}  # modules
    assert {name for name in found if not name.startswith("_")} == has


def test_all_errors_are_exported() -> None:
    names = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert names <= set(pyfuser.__all__)
    assert all(getattr(pyfuser, name) is getattr(errors, name) for name in names)


def test_the_embedded_package_says_that_it_is() -> None:
    assert pykokkos.__version__ == f"0.1+pyfuser.{VERSION}"
    assert pyfuser.__version__ == VERSION
    assert f"\nversion = {VERSION}\n" in (ROOT / "setup.cfg").read_text()
