"""`pyfuser run script.py` against `python script.py`: arguments, exit codes, tracebacks, stdin."""

# ruff: noqa: E501

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.processes import python, real

SCRIPTS = {
    "arguments": "import sys\nprint(sys.argv, __name__, __file__, sys.path[0])",
    "names of the module": (
        "import sys\nprint(sys.modules['__main__'].__dict__ is globals(), __doc__, __spec__)"
    ),
    "stdin": "print(input(), input())",
    "exit code": "import sys\nprint('x')\nsys.exit(7)",
    "exit message": "import sys\nsys.exit('a message')",
    "exit without a code": "raise SystemExit",
    "an error": "def f(x):\n    return 1 / x\n\ndef g():\n    y = f(\n        0)\n\ng()",
    "an error in a loop": "for x in (1 / k for k in (1, 0)):\n    y = [x]\n    print(y)",
    "an error in a loop that calls": (
        "def f(x): print(x)\nfor x in (1 / k for k in (1, 0)):\n    f(x)"
    ),
    "not iterable": "def f(x): print(x)\nfor x in 5:\n    f(x)",
    "a chain of errors": (
        "def f():\n    try:\n        {}['x']\n    except KeyError as e:\n        raise ValueError(1)\nf()"
    ),
    "a syntax error": "print(1)\nx = = 2",
    "an own module": "import helper\nprint(helper.double(2), helper.__file__, helper.__name__)",
    "an error in an own module": "import helper\nhelper.fail()",
    "an error while importing": "import broken",
    "an excepthook": "import sys\nsys.excepthook = lambda *e: print(e[0], e[1])\n1 / 0",
    "atexit": "import atexit\natexit.register(print, 'end')\nprint('x')\n1 / 0",
    "interrupt": "raise KeyboardInterrupt",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "pickling": "import pickle\nclass C: pass\nprint(pickle.loads(pickle.dumps(C())).__class__ is C)",
    "inspection": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), f.__code__.co_name)",
    "warnings": "import warnings\ndef f():\n    warnings.warn('here', stacklevel=2)\nf()",
    "encoding": "# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))",
    "future": "'Doc.'\nfrom __future__ import annotations\ndef f(x: Undefined): return x\nprint(f(1), __doc__)",
    "stack": "import traceback\ndef f():\n    print(traceback.extract_stack(limit=2))\nf()",
}
HELPER = "def double(x):\n    return 2 * x\n\ndef fail():\n    return double(None)\n"


def ran(command: list[str], script: Path) -> tuple[int, str, str]:
    start = python if command else real
    given = *command, script.name, "--verbose", "-x", "1"
    done = start(*given, cwd=script.parent, stdin="one\ntwo\n")
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_plain_python(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name] + "\n", encoding="latin-1" if name == "encoding" else "utf-8")
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "broken.py").write_text("x = 1\n\nx = x + None\n")
    code, out, errors = ran(["-m", "pyfuser", "run"], script)
    wanted_code, wanted_out, wanted_errors = ran([], script)
    assert out == wanted_out
    assert plain(errors) == plain(wanted_errors)
    assert code == wanted_code


FACTS = """
import sys
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__.name, __spec__.origin)
print(sys.modules["__main__"].__dict__ is globals(), type(__loader__).__base__, __doc__)
"""
MODULES = {
    "facts.py": "'A module.'" + FACTS,
    "package/__init__.py": "import sys\nprint('package', sys.argv)\n",
    "package/__main__.py": "from . import helper" + FACTS + "print(helper.double(4))",
    "package/helper.py": HELPER,
    "package/inner.py": "from .helper import double" + FACTS + "print(double(1))",
    "package/empty/__init__.py": "",
    "loads/__init__.py": "from . import inner\n",
    "loads/inner.py": "print(__name__)\n",
    "exits.py": "import sys\nsys.exit(7)\n",
    "exits_early/__init__.py": "raise SystemExit(5)\n",
    "exits_early/inner.py": "",
    "fails.py": "import package.helper\npackage.helper.fail()\n",
    "fails_early/__init__.py": "1 / 0\n",
    "fails_early/inner.py": "",
    "broken.py": "print(1)\nx = = 2\n",
    "pickles.py": "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)\n",
    "reads.py": "print(input())\n",
}  # fmt: skip


def ran_module(
    command: list[str], *given: str, folder: Path, joined: str = "-m"
) -> tuple[int, str, list[str]]:
    """Exit status, stdout, and of stderr what is not a line of a traceback through runpy."""
    start = python if command else real
    done = start(*command, joined, *given, cwd=folder, stdin="one\ntwo\n")
    errors = re.sub(RUNPY, "", plain(done.stderr)).splitlines()
    return done.returncode, done.stdout.replace(RewritingLoader, PlainLoader), errors


RUNPY = re.compile(r'  File "(?:<frozen |.*/lib/python3.*/runpy\.py).*\n(?:    .*\n)?')
PlainLoader = "<class '_frozen_importlib_external.FileLoader'>"
RewritingLoader = "<class '_frozen_importlib_external.SourceFileLoader'>"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "given",
    [
        "facts",
        "facts --report -m -x 1 -- --json y",
        "facts -- facts",
        "package a",
        "package.inner --space Serial",
        "package.__main__",
        "loads.inner",
        "exits",
        "exits_early.inner",
        "fails",
        "fails_early.inner",
        "broken",
        "pickles",
        "reads",
        "json.tool --help",
        "timeit -n 1 -r 1 -s pass pass --no",
    ],
)
def test_a_module_as_plain_python(given: str, modules: Path) -> None:
    wanted = ran_module([], *given.split(), folder=modules)
    assert ran_module(["-m", "pyfuser", "run"], *given.split(), folder=modules) == wanted


@pytest.mark.parametrize("given", ["no_such", "package.no_such", "package.empty", "facts.inner"])
def test_there_is_no_module(given: str, modules: Path) -> None:
    code, _, (error,) = ran_module(["-m", "pyfuser", "run"], given, folder=modules)
    _, _, (plains,) = ran_module([], given, folder=modules)
    assert code == 2
    assert error == f"pyfuser: cannot run -m {given}: {plains.partition(': ')[2]}"


def test_options_before_m_are_ours(modules: Path) -> None:
    command = ["-m", "pyfuser", "run", "--report", "--json", "facts.json", "--no-fusion"]
    code, out, errors = ran_module(command, "facts", "--json", folder=modules)
    assert code == 0
    assert "'--json'] " in out
    assert "0 calls" in errors[0]
    assert (modules / "facts.json").exists()


def test_what_follows_a_script_is_the_scripts(modules: Path) -> None:
    (modules / "script.py").write_text("import sys\nprint(sys.argv)\n")
    given = ["script.py", "--", "-m", "facts", "--report", "--json", "--", "-h"]
    done = pyfuser(modules / "script.py", "-m", "pyfuser", "run", *given)
    assert done.stdout == f"{given}\n"
    done = pyfuser(modules / "script.py", "-m", "pyfuser", "run", "--space=Serial", "--", *given)
    assert done.stdout == f"{given}\n"


def test_m_and_its_module_may_be_one_word(modules: Path) -> None:
    code, out, _ = ran_module(["-m", "pyfuser", "run"], folder=modules, joined="-mfacts")
    assert (code, "facts.py'] " in out) == (0, True)


def plain(traceback: str) -> str:
    """Without the carets, whose lines only some versions print."""
    return re.sub(r"\n +[~^]+(?=\n)", "", traceback)


def test_there_is_no_script(tmp_path: Path) -> None:
    code, out, errors = ran(["-m", "pyfuser", "run"], tmp_path / "missing.py")
    assert code == 2
    assert out == ""
    assert errors == "pyfuser: cannot run missing.py: No such file or directory\n"


FUSED = """
import numpy as np
import pykokkos as pk
import steps

a = np.zeros(1000)
steps.both(a)
print(a[0])
"""
STEPS = """
import pykokkos as pk

@pk.workunit
def add(i, a, s):
    a[i] += s

def both(a):
    pk.parallel_for(a.shape[0], add, a=a, s=1.0)
    pk.parallel_for(a.shape[0], add, a=a, s=0.5)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    script = tmp_path / "fused.py"
    script.write_text(FUSED)
    return script


def pyfuser(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return python(*arguments, cwd=script.parent, check=True, **variables)


def test_report(program: Path) -> None:
    done = pyfuser(program, "-m", "pyfuser", "run", "--report", "fused.py")
    assert done.stdout == "1.5\n"
    assert done.stderr.count("2 calls ran as 1 kernel") == 1
    assert "launched at fused.py:8: a[0]" in done.stderr
    assert "kernel 1: add (steps.py:9), add (:10)" in done.stderr


@pytest.mark.parametrize("name", ["fused", "package", "package.inner"])
def test_modules_are_fused(name: str, program: Path) -> None:
    (program.parent / "package").mkdir()
    (program.parent / "package" / "__init__.py").write_text("")
    for copy in ("__main__.py", "inner.py"):
        (program.parent / "package" / copy).write_text(FUSED)
    done = pyfuser(program, "-m", "pyfuser", "run", "--report", "-m", name)
    assert done.stdout == "1.5\n"
    assert "2 calls ran as 1 kernel\n" in done.stderr


def test_no_fusion(program: Path) -> None:
    done = pyfuser(program, "-m", "pyfuser", "run", "--no-fusion", "--report", "fused.py")
    assert done.stdout == "1.5\n"
    assert "0 calls" in done.stderr


def test_space(program: Path) -> None:
    program.write_text("import pykokkos as pk\nprint(pk.get_default_space())\n")
    done = pyfuser(program, "-m", "pyfuser", "run", "--space", "Serial", "fused.py")
    assert "Serial" in done.stdout


def test_environment_variable(program: Path) -> None:
    program.write_text("import pyfuser\n" + FUSED + "print(pyfuser.stats().launches)\n")
    assert pyfuser(program, "fused.py").stdout == "1.5\n2\n"
    assert pyfuser(program, "fused.py", PYFUSER="on").stdout == "1.5\n1\n"


def test_explain_takes_a_script(program: Path) -> None:
    done = pyfuser(program, "-m", "pyfuser", "explain", "fused.py")
    assert "kernel 1: add (steps.py:9), add (:10)" in done.stderr


def test_compare_takes_a_script(program: Path) -> None:
    done = pyfuser(program, "-m", "pyfuser", "compare", "--repeat", "2", "fused.py")
    assert "2 -> 1" in done.stdout
    assert "same" in done.stdout


MISTAKES = """\
import numpy as np
import pykokkos as pk

@pk.workunit
def add(i, a, s):
    a[i] = a[i] + s

@pk.workunit
def divide(i, a, k, n):
    a[i] = n // k[i]

def launch(n, k):
    pk.parallel_for(3, add, a=a, s=1.0)
    try:
        pk.parallel_for(n, add, a=a, s=1.0)
        pk.parallel_for(3, divide, a=b, k=k, n=7)
        print("went well", a, b)
    except (IndexError, ZeroDivisionError) as error:
        print(type(error).__name__, n, a, b)

a, b = np.zeros(5), np.ones(3, dtype=np.int64)
for k in np.arange(1, 4), np.arange(3):
    for n in 5, 6, 5, 7:
        launch(n, k)
"""


def test_errors_come_where_the_launch_is(program: Path) -> None:
    program.write_text(MISTAKES)
    fused = pyfuser(program, "-m", "pyfuser", "run", "fused.py")
    plain = pyfuser(program, "-m", "pyfuser", "run", "--no-fusion", "fused.py")
    assert fused.stdout == plain.stdout and not plain.stderr
    assert re.findall(r"^\w+", plain.stdout, re.MULTILINE) == [
        "went", "BoundsError", "went", "BoundsError",
        "DivisionError", "BoundsError", "DivisionError", "BoundsError",
    ]  # fmt: skip


NO_MEMORY = """\
import pykokkos as pk

@pk.workunit
def add(i, x, s):
    x[i] = x[i] + s

@pk.workunit
def double(i, y, x):
    y[i] = 2.0 * x[i]

def main():
    x, large = pk.View([100], pk.double), pk.View([1 << 45], pk.double)
    pk.parallel_for(100, add, x=x, s=1.5)
    pk.parallel_for(100, double, y=large, x=x)
    print(large[0])

main()
"""


@pytest.mark.parametrize("command", ["-m pyfuser run", "-m pyfuser run --no-fusion"])
def test_a_view_without_memory_is_told_once_and_where(program: Path, command: str) -> None:
    program.write_text(NO_MEMORY)
    done = python(*command.split(), "fused.py", cwd=program.parent)
    assert done.returncode == 1
    assert done.stderr.count("MemoryError") == 1
    assert re.findall("line [0-9]+", done.stderr) == ["line 17", "line 14"]


def test_an_error_at_the_end_shows_no_line_of_ours(program: Path) -> None:
    text = NO_MEMORY.replace("print(large[0])", "return large, x").replace(
        "\nmain()", "\nkept = main()"
    )
    program.write_text("import pyfuser\npyfuser.enable()\n" + text)
    done = pyfuser(program, "fused.py")
    assert (
        done.stderr.startswith("pyfuser: no memory for a View") and "Traceback" not in done.stderr
    )


def test_printing_waits_for_nothing_without_a_buffer(program: Path) -> None:
    program.write_text(FUSED.replace("print(a[0])", "print('x')\nsteps.both(a)\nprint(a[0])"))
    for unbuffered in "", "1":
        run = "-m", "pyfuser", "run", "--report", "fused.py"
        done = pyfuser(program, *run, PYTHONUNBUFFERED=unbuffered)
        assert "4 calls ran as 1 kernel\n" in done.stderr


SPAWNS = """
import multiprocessing
import numpy as np
import pykokkos as pk

@pk.workunit
def more(i, a):
    a[i] += 1

def work(k):
    a = np.zeros(4)
    pk.parallel_for(4, more, a=a)
    return float(a.sum() + k)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, range(3)), flush=True)
"""


@pytest.mark.parametrize("options", [(), ("--no-fusion",)])
def test_processes_that_are_spawned_find_pykokkos(tmp_path: Path, options: tuple[str, ...]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWNS)
    done = real("-m", "pyfuser", "run", *options, script)
    assert done.stdout == "[4.0, 5.0, 6.0]\n", done.stderr


LAST = """
import atexit, sys
import module_with_objects as module

def launch():
    import numpy as np
    y = np.ones(4)
    module.parallel_for(4, module.twice, y=y)
    return y

class Last:
    def __del__(self):
        y = launch()
        print('last', y.sum(), module.double(3))

one = module.End('of the script')
some = [module.End('in a list'), Last()]
def function(x=module.End('a default argument')): pass
text = open('text.txt', 'w')
text.write('written')
atexit.register(print, 'at exit', one.name)
{}
"""
MODULE = """
import pykokkos as pk
from pykokkos import parallel_for

@pk.workunit
def twice(i, y):
    y[i] = 2.0 * y[i]

def double(x):
    return 2 * x

class End:
    def __init__(self, name): self.name = name
    def __del__(self): print('end', self.name, double(2))

in_module = End('of a module')
class Holder:
    attribute = End('of a class')
"""


@pytest.mark.parametrize(
    "ending, more", [("", []), ("", ["--no-fusion"]), ("sys.exit(3)", []), ("1 / 0", [])]
)
def test_objects_that_are_left_in_the_end_are_finalised(
    ending: str, more: list[str], tmp_path: Path
) -> None:
    """Files are closed, too. The order of such finalisers is the interpreter's affair."""
    (tmp_path / "module_with_objects.py").write_text(MODULE)
    script = tmp_path / "script.py"
    outputs = []
    for command, first in ((["-m", "pyfuser", "run", *more], ""), ([], "import pyfuser\n")):
        script.write_text(first + LAST.format(ending))  # plainly, too, it takes our PyKokkos
        code, out, _ = ran(command, script)
        assert (tmp_path / "text.txt").read_text() == "written"
        (tmp_path / "text.txt").unlink()
        outputs.append((code, sorted(out.splitlines())))
    outputs[0][1].remove("last 8.0 6")  # plain Python imports nothing any more by then
    assert outputs[0] == outputs[1]
    assert len(outputs[0][1]) == 6
