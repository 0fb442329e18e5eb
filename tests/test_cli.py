"""The command line and the arithmetic behind `pyfuser compare`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pyfuser.cli import BROKEN_PIPE, main
from pyfuser.compare import command, peer, serve
from pyfuser.compare.measure import Result
from pyfuser.compare.programs import Program
from pyfuser.run import program as program_runner
from tests.processes import python

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


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_the_report_alone_is_on_stdout(program: Path, script: bool, option: str) -> None:
    """Also where the program prints, and its kernels."""
    text = program.read_text().replace("    y[i] += 1.0", '    y[i] += 1.0\n    pk.printf("k\\n")')
    text = text.replace("    x, y = state", '    print("hello")\n    x, y = state')
    if script:
        text = text.replace("SIZES =", "sizes =") + "\nrun(setup(10))\n"
    program.write_text(text)
    done = python("-m", "pyfuser", "explain", program, option, "-", check=True)
    assert "hello" in done.stderr and "k\n" in done.stderr
    if option == "--json":
        assert json.loads(done.stdout)["summary"]["calls"] == 2
    else:
        assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.rstrip().endswith(
            "</html>"
        )


def test_explain(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(program)]) == 0
    text = capsys.readouterr().out
    assert "double_it" in text
    assert "add_one" in text
    assert "launched at the end of the program" in text


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "compiler" in text
    assert "kernel cache" in text


def test_cache(program: Path) -> None:
    """It is filled, shown and emptied; scripts have their own options."""
    script = program.with_name("runs.py")
    text = "import sys\nassert sys.argv[1:] == ['--clear', 'info']\nstate = setup(10)\nrun(state)\n"
    script.write_text(PROGRAM + text)
    folder = program.parent

    def said(*arguments: str) -> str:
        command = "-m", "pyfuser", "cache", *arguments
        done = python(*command, cwd=folder, check=True, PYFUSER_CACHE_DIR=str(folder / "cache"))
        return done.stdout + done.stderr

    assert "removed 0 files" in said("clear")
    warm = "warm", "runs.py", "--clear", "info"
    assert "compiled 1 kernel; 0 were there" in said(*warm)
    assert "compiled 0 kernels; 1 were there" in said(*warm)
    assert re.search(r"kernels +1 file, .*\nplans +[3-9] files, .*\nlimit +1 GiB", said("info"))
    assert re.search(r"removed [4-9] files", said("clear"))
    assert re.search(r"kernels +0 files, 0 B", said("info"))
    assert "compiled 1 kernel; 0 were there" in said(*warm)


@pytest.mark.parametrize("given", [["cache"], ["cache", "clear"], ["cache", "warm"]])
def test_help_of_the_cache(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([*given, "--help"]) == 0
    assert "usage: pyfuser cache info | clear | warm" in capsys.readouterr().out


@pytest.mark.parametrize("script", [False, True])
def test_files_are_named(script: bool, tmp_path: Path, program: Path) -> None:
    """On stderr: stdout has the report alone. In a process: a script changes how calls are seen."""
    if script:
        program.write_text("print(1)\n")
    written = tmp_path / "report.html"
    done = python("-m", "pyfuser", "explain", program, "--html", written, check=True)
    assert done.stderr.endswith(f"wrote {written}\n") and "wrote" not in done.stdout
    assert written.read_text().startswith("<!DOCTYPE html>")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("pyfuser ")


# -------------------------------------------------------------------- what people give by mistake

FILES = {
    "doubles.py": PROGRAM,
    "script.py": "print(1)\n",
    "broken.py": "x = 1\ny = = 2\n",
    "null.py": "x = 1\0",
    "notebook.ipynb": "{}",
    "half.py": "SIZES = {'small': 1, 'default': 2}\ndef run(state): ...\n",
    "exits.py": "raise SystemExit(3)\n",
    "package/__init__.py": "",
}

# What is given, and what the one line on stderr says; the exit status is 2.
WRONG = [
    ("compar doubles.py", "pyfuser: unknown command compar; did you mean compare?"),
    ("kernels", "pyfuser: unknown command kernels (see pyfuser --help)"),
    ("doubles.py", "doubles.py is not a command; to run a program: pyfuser run doubles.py"),
    ("--verson", "pyfuser: unknown option --verson; did you mean --version?"),
    ("compare", "the following arguments are required: PROGRAM"),
    ("compare missing.py", "pyfuser: missing.py: no such file"),
    ("compare duobles.py", "pyfuser: duobles.py: no such file; did you mean doubles.py?"),
    ("compare nothing/*.py", "pyfuser: nothing/*.py: no file has such a name"),
    (
        "compare doubles.py package",
        "package: a folder, not a program; to take all in it: package/*.py",
    ),
    ("compare broken.py", "pyfuser: broken.py:2: not valid Python: invalid syntax"),
    ("compare doubles.py broken.py", "pyfuser: broken.py:2: not valid Python"),
    ("compare null.py", "pyfuser: null.py: not valid Python"),
    ("compare notebook.ipynb", "notebook.ipynb: a notebook, not a script; in it, use %load_ext"),
    ("compare half.py", "pyfuser: half.py: lacks setup, outputs, check; kernels/ has examples"),
    ("compare exits.py", "pyfuser: exits.py: ends with exit status 3 when it runs unfused"),
    ("compare doubles.py --repeat -1", "--repeat: expected a whole number of at least 1, not -1"),
    (
        "compare doubles.py --repeat many",
        "--repeat: expected a whole number of at least 1, not many",
    ),
    ("compare doubles.py --repeat", "argument --repeat: expected one argument"),
    ("compare doubles.py --repet 3", "unknown option --repet; did you mean --repeat?"),
    ("compare doubles.py --p 3", "ambiguous option: --p could match --plot, --pykokkos"),
    (
        "compare doubles.py --size huge",
        "doubles.py: --size huge: expected small, default, large or",
    ),
    ("compare doubles.py --size -3", "doubles.py: --size -3: expected small, default, large"),
    ("compare doubles.py --size 0", "doubles.py: --size 0: expected small, default, large or a"),
    ("compare doubles.py --check-size huge", "doubles.py: --check-size huge: expected small"),
    (
        "compare doubles.py --space openmp",
        "--space openmp: no such execution space; did you mean OpenMP?",
    ),
    (
        "compare doubles.py --space GPU",
        "--space GPU: no such execution space; there are Cuda, HIP,",
    ),
    (
        "compare doubles.py --space Threads",
        "--space Threads: Execution space Threads is not available",
    ),
    ("compare doubles.py --json script.py/x.json", "--json script.py/x.json: cannot be written: "),
    ("compare doubles.py --json package", "--json package: cannot be written: Is a directory"),
    ("compare doubles.py --plot package/../script.py/x.png", "cannot be written: "),
    (
        "compare doubles.py --plot x.foo",
        "--plot x.foo: a file of kind .foo cannot be drawn; use .png",
    ),
    ("compare doubles.py --plot x", "--plot x: a file without a suffix cannot be drawn; use .png"),
    ("compare script.py --plot x.png", "--plot draws programs with SIZES, setup and run"),
    ("compare doubles.py --arguments 3", "--arguments are for scripts; these are programs"),
    ("compare script.py --size 10", "--size is for programs with SIZES; what scripts are given is"),
    ("compare script.py --arguments '", "--arguments ': no closing quotation"),
    (
        "compare doubles.py --pykokkos no/python",
        "--pykokkos no/python: no such Python; give the path",
    ),
    ("run", "pyfuser: run: give a script, or -m and a module"),
    ("run -m", "pyfuser: run -m: give the name of a module"),
    ("run -m no.such.module", "pyfuser: cannot run -m no.such.module: "),
    ("run -m package", "No module named package.__main__; 'package' is a package and cannot be"),
    ("run missing.py", "pyfuser: cannot run missing.py: No such file or directory"),
    ("run null.py", "pyfuser: cannot run null.py: a binary file, not the text of a Python program"),
    ("rum script.py", "pyfuser: unknown command rum; did you mean run?"),
    ("compare doubles.py --without widne", "--without widne: no such pass; did you mean widen?"),
    ("run package", "pyfuser: cannot run package: Is a directory"),
    ("run notebook.ipynb", "pyfuser: cannot run notebook.ipynb: a notebook; in it, use %load_ext"),
    ("run --reprot script.py", "pyfuser run: unknown option --reprot; did you mean --report?"),
    (
        "run --space openmp script.py",
        "--space openmp: no such execution space; did you mean OpenMP?",
    ),
    ("run --space Threads script.py", "--space Threads: Execution space Threads is not available"),
    ("run --json script.py/x script.py", "--json script.py/x: cannot be written: "),
    ("explain", "the following arguments are required: PROGRAM"),
    ("explain missing.py", "pyfuser: missing.py: no such file"),
    ("explain package", "pyfuser: package: a folder, not a program"),
    ("explain broken.py", "pyfuser: broken.py:2: not valid Python: invalid syntax"),
    ("explain half.py", "pyfuser: half.py: lacks setup, outputs, check"),
    ("explain doubles.py 3", "pyfuser explain: unexpected argument 3"),
    ("explain doubles.py --size huge", "doubles.py: --size huge: expected small, default, large"),
    ("explain doubles.py --flushes 0", "--flushes: expected a whole number of at least 1, not 0"),
    ("explain doubles.py --sources", "unknown option --sources; did you mean --source?"),
    ("calibrate --space Foo", "--space Foo: no such execution space; there are Cuda, HIP"),
    ("calibrate now", "pyfuser calibrate: unexpected argument now"),
    ("info --jason", "pyfuser info: unknown option --jason"),
    ("cache", "pyfuser cache: the following arguments are required: ACTION"),
    ("cache fill", "pyfuser cache: unknown command fill"),
    ("cache clear all", "pyfuser cache: unexpected argument all"),
    ("cache warm", "pyfuser: cache warm: give a script"),
    ("cache warm missing.py", "pyfuser: cannot run missing.py: No such file or directory"),
]


def ended(arguments: list[str]) -> int:
    """The exit status of a command, whichever way it ends."""
    try:
        return main(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


@pytest.fixture
def mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with FILES, in which nothing is measured."""

    def measured(*_: object) -> None:
        raise AssertionError("something was measured")

    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # of child processes
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(command, "measure", measured)
    monkeypatch.setattr(program_runner, "watch", lambda folder: None)
    return tmp_path


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[given for given, _ in WRONG])
def test_mistakes_are_one_line_with_status_2(
    given: str, said: str, mistakes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended(given.split()) == 2
    out, errors = capfd.readouterr()
    assert out == ""
    assert said in errors
    assert errors.count("\n") == 1
    assert errors.startswith("pyfuser")
    assert not (mistakes / "x.png").exists()


@pytest.mark.parametrize(("text", "noted"), [("1", True), ("'--report' in sys.argv", False)])
def test_an_option_behind_the_script_is_noted(text: str, noted: bool, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nprint(sys.argv[1:], {text})\n")
    done = python("-m", "pyfuser", "run", script, "--report", "x", check=True)
    assert done.stdout.startswith("['--report', 'x'] ")
    assert ("the script gets it; options of pyfuser come before" in done.stderr) is noted


def test_no_command_is_answered_by_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for name in ("run", "compare", "explain", "calibrate", "info"):
        assert re.search(rf"^    {name}\b", said.err, re.MULTILINE)


@pytest.mark.parametrize("of", ["", "run", "compare", "explain", "calibrate", "info"])
def test_help_fits_80_columns(
    of: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert ended([*of.split(), "-h"]) == 0
    text = capsys.readouterr().out
    assert "usage: pyfuser" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_plot_needs_matplotlib(
    mistakes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert main(["compare", "doubles.py", "--plot", "x.png"]) == 2
    assert capsys.readouterr().err == "pyfuser: --plot needs matplotlib: pip install matplotlib\n"


def test_what_can_be_written_is_not_written_early(mistakes: Path) -> None:
    (mistakes / "old.json").write_text("kept")
    given = ["compare", "doubles.py", "--size", "huge", "--json"]
    assert main([*given, "old.json"]) == 2
    assert (mistakes / "old.json").read_text() == "kept"
    assert main([*given, "new/new.json"]) == 2
    assert not (mistakes / "new" / "new.json").exists()


@pytest.mark.parametrize("part", ["setup", "run", "outputs"])
def test_a_program_that_fails(part: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own lines, one line of ours, and the results by then."""
    broken = program.with_name("broken.py")
    broken.write_text(PROGRAM.replace(f"def {part}(", f"def {part}(*_): 1 / 0\n\ndef _{part}("))
    assert main(["compare", str(program), str(broken), "--size", "small", "--repeat", "1"]) == 2
    out, errors = capsys.readouterr()
    assert "doubles" in out
    assert f"in {part}\n" in errors and "1 / 0" in errors
    assert "pyfuser/" not in errors and "<frozen" not in errors
    assert errors.endswith("broken.py: stopped by ZeroDivisionError\n")


def test_a_program_that_cannot_be_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "imports.py"
    path.write_text("import nosuch\nSIZES = {}\n")
    for name in ("compare", "explain"):
        assert main([name, str(path)]) == 2
        errors = capsys.readouterr().err
        assert "line 1, in <module>" in errors and "<frozen" not in errors
        assert errors.endswith("imports.py: stopped by ModuleNotFoundError\n")


def test_a_file_that_is_given_twice_is_measured_once(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = program.parent / ".." / program.parent.name / program.name
    given = ["compare", str(program), str(again), "--size", "small", "--repeat", "1"]
    assert main(given) == 0
    out, errors = capsys.readouterr()
    assert out.count("doubles") == 1
    assert errors == "pyfuser: a file is given more than once and measured once\n"


def test_files_of_one_name_are_told_apart(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = program.parent / "other" / program.name
    other.parent.mkdir()
    other.write_text(PROGRAM)
    written = program.with_name("both.json")
    given = [str(program), str(other), "--size", "small", "--repeat", "1", "--json", str(written)]
    assert main(["compare", *given]) == 0
    names = [made["name"] for made in json.loads(written.read_text())["programs"]]
    assert names == [str(program.with_suffix("")), str(other.with_suffix(""))]


def test_programs_and_scripts_are_written_together(program: Path) -> None:
    script = program.with_name("script.py")
    script.write_text("print(1)\n")
    written = program.with_name("both.json")
    given = [str(program), str(script), "--size", "small", "--repeat", "1", "--json", str(written)]
    assert main(["compare", *given]) == 0
    found = json.loads(written.read_text())
    assert [made["name"] for made in found["programs"]] == ["doubles"]
    assert [made["name"] for made in found["scripts"]] == ["script"]


def test_a_script_that_fails_does_not_hide_those_before(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("fine", "exits"):
        (tmp_path / f"{name}.py").write_text(FILES.get(f"{name}.py", "print(1)\n"))
    given = [str(tmp_path / "fine.py"), str(tmp_path / "exits.py")]
    written = tmp_path / "both.json"
    assert main(["compare", *given, "--repeat", "1", "--json", str(written)]) == 2
    out, errors = capfd.readouterr()
    assert "fine" in out
    assert "exits.py: ends with exit status 3" in errors
    assert [made["name"] for made in json.loads(written.read_text())["scripts"]] == ["fine"]


def test_what_scripts_say_on_stderr_passes_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through this process, which else overwrites it with its progress."""
    script = tmp_path / "warns.py"
    script.write_text("import sys\nsys.exit('too bad')\n")
    assert main(["compare", str(script), "--repeat", "1"]) == 2
    assert capsys.readouterr().err.startswith("too bad\npyfuser: ")


def pyfuser(*arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pyfuser", *arguments]
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("given", ["info", "explain doubles.py", "compare doubles.py --repeat 1"])
def test_a_closed_pipe_ends_quietly(given: str, program: Path) -> None:
    process = pyfuser(*given.split(), cwd=program.parent)
    process.stdout.close()  # type: ignore[union-attr]
    errors = process.stderr.read()  # type: ignore[union-attr]
    assert process.wait() == BROKEN_PIPE
    assert errors.strip() == ""


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    wait = "def run(state):\n    import time\n    print('ready', flush=True)\n    time.sleep(60)\n"
    slow = PROGRAM.replace("def run(state):", wait)
    (tmp_path / "slow.py").write_text(slow)
    process = pyfuser("compare", "slow.py", cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == command.INTERRUPTED
    assert (out, errors.strip()) == ("", "pyfuser: interrupted in slow")


@pytest.mark.parametrize("given", ["compare doubles.py", "explain doubles.py", "calibrate"])
def test_no_compiler(given: str, program: Path) -> None:
    environment = {**os.environ, "PATH": str(program.parent), "PYFUSER_CXX": "g++"}
    environment["PYFUSER_CACHE_DIR"] = str(program.parent / "empty")  # compiled code needs none
    process = pyfuser(*given.split(), cwd=program.parent, env=environment)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == ""
    assert errors.startswith("pyfuser: no C++ compiler found ('g++'): install g++")
    assert errors.count("\n") == 1


def test_no_compiler_for_a_script(program: Path) -> None:
    script = program.with_name("runs.py")
    script.write_text(PROGRAM + "state = setup(10)\nrun(state)\nprint(outputs(state))\n")
    environment = {**os.environ, "PATH": str(program.parent), "PYFUSER_CXX": "g++"}
    environment["PYFUSER_CACHE_DIR"] = str(program.parent / "empty")
    process = pyfuser("run", "runs.py", cwd=program.parent, env=environment)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    assert errors.count("Traceback") == 1
    assert errors.count("no C++ compiler found") == 1
    assert "/pyfuser/" not in errors.replace(str(program.parent), "")


# ------------------------------------------------------------------------- an installed PyKokkos


def test_what_runs_in_another_python_needs_no_pyfuser(tmp_path: Path) -> None:
    (tmp_path / "pykokkos.py").write_text("")
    (tmp_path / "adds.py").write_text(NUMPY_PROGRAM)
    blocker = "import sys; sys.modules['pyfuser'] = None; import runpy; runpy.run_path(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", blocker, str(Path(serve.__file__).resolve())],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0


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
