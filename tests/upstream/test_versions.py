"""A PyKokkos that is not known is left alone, and the user is told; none needs to be installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyfuser.frontends.upstream import versions
from pyfuser.frontends.upstream.functions import redirect
from tests.upstream import installed

ROOT = Path(__file__).parents[2]

STAND_IN = """
def parallel_for(policy, workunit, **kwargs):
    return "the stand-in ran"
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A package with the name of PyKokkos and little else."""
    package = tmp_path / "site" / "pykokkos"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN)
    return package


def run(package: Path, script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYFUSER")}
    paths = {"PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**inherited, **paths, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


CALL = "print(pykokkos.parallel_for(1, None))"


@pytest.mark.parametrize("order", ["pyfuser, pykokkos", "pykokkos, pyfuser"])
def test_an_unknown_version_is_left_alone(stand_in: Path, order: str) -> None:
    done = run(stand_in, f"import {order}\npyfuser.enable()\n{CALL}")
    assert (done.returncode, done.stdout) == (0, "the stand-in ran\n"), done.stderr
    assert "does not know the PyKokkos in" in done.stderr
    for name in versions.TESTED.values():
        assert name in done.stderr
    assert "PYFUSER_FRONTEND=embedded" in done.stderr


def test_nothing_is_imported_and_nothing_said_before_the_program_does(stand_in: Path) -> None:
    done = run(stand_in, "import sys, pyfuser\nprint('pykokkos' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_embedded_one_can_be_asked_for(stand_in: Path) -> None:
    script = "import pyfuser, pykokkos\nprint(pykokkos.View([2])[0])"
    done = run(stand_in, script, PYFUSER_FRONTEND="embedded")
    assert (done.stdout, done.stderr) == ("0.0\n", "")


def test_the_engine_needs_an_installed_one(stand_in: Path) -> None:
    settings = {"PYFUSER_FRONTEND": "embedded", "PYFUSER_ENGINE": "pykokkos"}
    done = run(stand_in, "import pyfuser", **settings)
    assert done.returncode == 1
    assert "PYFUSER_ENGINE=pykokkos needs an installed PyKokkos" in done.stderr


def test_bits_are_not_compared_with_another_compiler(stand_in: Path) -> None:
    done = run(stand_in, "import pyfuser", PYFUSER_ENGINE="pykokkos", PYFUSER_VERIFY="1")
    assert done.returncode == 1
    assert "PYFUSER_VERIFY=1 compares bits" in done.stderr


def test_the_digest_sees_every_file_and_no_line_ends(tmp_path: Path) -> None:
    digests = {versions.digest(tmp_path)}
    for name in versions.FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"a = 1\n")
        digests.add(versions.digest(tmp_path))
    assert len(digests) == len(versions.FILES) + 1
    file.write_bytes(b"a = 1\r\n")
    assert versions.digest(tmp_path) in digests


def test_no_version_is_known_by_an_empty_folder(tmp_path: Path) -> None:
    assert versions.refusal(tmp_path) is not None


def test_a_function_that_was_bound_before_is_redirected() -> None:
    namespace: dict[str, object] = {}
    exec("def greet(name='you', *, loud=False):\n    return name, loud\n", namespace)
    greet = bound_before = namespace["greet"]
    seen = []

    def make(original):  # type: ignore[no-untyped-def]
        def call(*args, **kwargs):  # type: ignore[no-untyped-def]
            seen.append(args)
            return original(*args, **kwargs)

        return call

    redirect(greet, make)  # type: ignore[arg-type]
    redirect(greet, make)  # type: ignore[arg-type]
    assert bound_before() == ("you", False)  # type: ignore[operator]
    assert bound_before("me", loud=True) == ("me", True)  # type: ignore[operator]
    assert seen == [(), ("me",)]


@pytest.mark.pykokkos
def test_the_installed_version_is_known() -> None:
    script = "import pyfuser, pykokkos, sys; print(len(sys.argv))"
    done = subprocess.run(
        [installed.require(), "-W", "error", "-c", script],
        env=installed.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
