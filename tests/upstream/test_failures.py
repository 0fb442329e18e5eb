"""What PyKokkos cannot compile is told in a line, with the program's file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.upstream import installed
from tests.upstream.stand_in import install, run

PROGRAM = """import pyfuser
import pykokkos as pk

@pk.workunit
def NAME(i, x):
    x[i] = x[i] % 2

x = pk.View([4], pk.double)
RUN
"""
RUN = "pk.parallel_for(4, NAME, x=x)"
PASSED_ON = "with pyfuser.fusing():\n    pk.parallel_for(4, NAME, 1.5, x=x)"
BY_PYKOKKOS = "pk.call_as_its_own_functions_do(4, NAME, x=x)"
BEHIND = "; all that it said is in "
#: How a failed compilation ends, and how it ends where CMake calls the compiler.
CLOSINGS = ("C++ compilation in {folder} failed", "CMake build in {folder} failed")


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    return install(tmp_path / "site")


def program(name: str, text: str = RUN) -> str:
    return PROGRAM.replace("RUN", text).replace("NAME", name)


@pytest.mark.parametrize(("text", "line"), [(RUN, 9), (PASSED_ON, 10), (BY_PYKOKKOS, 9)])
def test_the_compilers_hundred_lines_are_one(
    stand_in: Path, tmp_path: Path, text: str, line: int
) -> None:
    done = run(stand_in, program("wrong", text), PYFUSER_CACHE_DIR=str(tmp_path / "cache"))
    said, _, kept = done.stderr.partition(BEHIND)
    file = tmp_path / "program.py"
    assert said == (
        f"{file}:{line}: PyKokkos cannot compile the workunit 'wrong' of {file}:4: "
        "no operator% for double (functor.hpp:5 of its C++)"
    )
    assert (done.returncode, done.stdout) == (1, "Kokkos ends\n")
    assert len(done.stderr.splitlines()) == 1
    assert len(Path(kept.strip()).read_text().splitlines()) == 103


def test_without_what_cmake_needs_its_error_is_told(tmp_path: Path) -> None:
    changes = (
        ("../functor.hpp:5:30: error: no", "CMake Error at a.txt:7 (find_package):\\n  No"),
        (CLOSINGS[0], "CMake configuration in {folder} failed"),
    )
    package = install(tmp_path / "site", *changes)
    done = run(package, program("wrong"), PYFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert "program.py:4: No operator% for double (CMake); all that" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_translators_lines_are_one(stand_in: Path, tmp_path: Path) -> None:
    script = program("wrong_for_the_translator")
    done = run(stand_in, script, PYFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert f"of {tmp_path}/program.py:4: line 7: 'y' is not a View1D; all" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "\033" not in done.stderr + done.stdout


@pytest.mark.parametrize("closing", CLOSINGS)
def test_it_is_told_again(tmp_path: Path, closing: str) -> None:
    """In the same process, where PyKokkos looks for code that was not made, and in the next."""
    once = f"    try:\n        {RUN}\n    except SystemExit as why:\n        print(why)"
    again = f"for _ in range(2):\n{once}"
    stand_in = install(tmp_path / "site", (CLOSINGS[0], closing))
    for _ in range(2):
        done = run(stand_in, program("wrong", again), PYFUSER_CACHE_DIR=str(tmp_path / "cache"))
        assert len(re.findall("no operator% for double", done.stdout)) == 2, done.stderr
        assert done.returncode == 0
    assert len(list((tmp_path / "cache" / "pykokkos-errors").iterdir())) == 1


def test_debugging_shows_it_all(stand_in: Path, tmp_path: Path) -> None:
    settings = {"PYFUSER_CACHE_DIR": str(tmp_path / "cache"), "PYFUSER_DEBUG": "1"}
    done = run(stand_in, program("wrong"), **settings)
    assert done.stderr.count("required from here") == 100


def test_a_cache_that_cannot_be_written_says_how_to_see_it(stand_in: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    done = run(stand_in, program("wrong"), PYFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stderr.endswith("; PYFUSER_DEBUG=1 shows all that it said\n")


def test_what_ends_the_program_by_itself_is_left_alone(stand_in: Path) -> None:
    """A workunit of the Debug space is the program's own code."""
    script = "import sys\n" + program("leave").replace(
        "x[i] = x[i] % 2", "print('out'); sys.exit(3)"
    )
    done = run(stand_in, script)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\nKokkos ends\n", "")


def test_an_import_error_of_another_kind_is_left_alone(stand_in: Path) -> None:
    script = program("missing").replace("x[i] = x[i] % 2", "import nowhere")
    done = run(stand_in, script)
    assert "ModuleNotFoundError: No module named 'nowhere'" in done.stderr


@pytest.mark.pykokkos
def test_with_an_installed_pykokkos(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program("wrong", PASSED_ON))
    done = installed.run(script)
    said, _, kept = done.stderr.partition(BEHIND)
    assert done.returncode == 1
    assert said.startswith(
        f"{script}:10: PyKokkos cannot compile the workunit 'wrong' of {script}:4: "
    )
    assert "operator%" in said
    assert len(done.stderr.splitlines()) == 1
    assert "error: " in Path(kept.strip()).read_text()
