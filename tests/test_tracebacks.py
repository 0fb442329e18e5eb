"""What a program prints that ends with an error of its own."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from pyfuser.support.tracebacks import advice, in_a_value, users_part
from tests.processes import python

PROGRAM = """
import pyfuser
import pykokkos as pk


@pk.workunit
def wrong(i, x):
    y += x[i]
    x[i] = y


def simulate(x):
    pk.parallel_for(4, wrong, x=x)


simulate(pk.View([4], pk.double))
"""


def printed(tmp_path: Path, program: str = PROGRAM, **environment: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(program)
    done = python(script, PYFUSER_FRONTEND="embedded", **environment)
    assert done.returncode == 1
    return done.stderr


def test_an_error_shows_the_programs_lines_only(tmp_path: Path):
    text = printed(tmp_path)
    assert "'y' has no value yet" in text
    assert "pk.parallel_for(4, wrong, x=x)" in text
    assert "simulate(pk.View" in text
    assert os.path.join("pyfuser", "lower") not in text


@pytest.mark.parametrize("level", ["1"])
def test_debugging_shows_all(tmp_path: Path, level: str):
    assert os.path.join("pyfuser", "lower") in printed(tmp_path, PYFUSER_DEBUG=level)


VIEWS = """
import numpy as np
import pyfuser
import pykokkos as pk

v, m = pk.View([4], pk.double), pk.View([3, 4], pk.int32)
s, row = pk.View([], pk.double), m[0]
"""

KEYS = {
    "v[1.5]": "an index of a View is an integer, a slice of integers or an array, not 1.5",
    "v['a']": "an array, not 'a'",
    "m['a']": "an array, not 'a'",
    "m[0, 1.5]": "an array, not 1.5",
    "v[1.0:2]": "an array, not 1.0",
    "v[None]": "`None` is not supported: index view.data",
    "m[..., 0]": "`...` is not supported: index view.data",
    "v[[1, 2]]": "ValueError: not supported: a list, mask or array as the only index of a View",
    "m[np.array([True, False, True])]": "view.data[...] takes it, and makes a copy",
    "v[0, 0]": "ValueError: 2 indices for a View of 1 dimension",
    "m[1:]": "ValueError: Please include slices for all dimensions: 1 of 2 are given",
    "m[9]": "IndexError: index 9 is out of bounds for axis 0 of a View with extent 3",
    "m[:, 9]": "IndexError: index 9 is out of bounds for axis 1 of a View with extent 4",
    "m[0, 9]": "IndexError: index 9 is out of bounds for axis 1 with size 4",
    "v[9]": "IndexError: index 9 is out of bounds for axis 0 with size 4",
    "row[9]": "IndexError: index 9 is out of bounds",
    "row['a']": "IndexError: only integers, slices",
    "s[1]": "IndexError: index 1 for a View of 0 dimensions, whose one element is view[0]",
    "v[9] = 1": "IndexError: index 9 is out of bounds for axis 0 with size 4",
    "v[:] = [1, 2, 3]": "could not broadcast input array from shape (3,) into shape (4,)",
    "v[0] = 'a'": "could not convert string to float: 'a'",
    "m[0, 0] = 2**40": "OverflowError",
    "float(v)": "TypeError: only single element arrays can be converted to Python scalars",
}


def raised(program: str, use: str) -> tuple[BaseException, TracebackType]:
    """The error of the last line of a program, and its traceback from that line on."""
    namespace: dict[str, Any] = {}
    linecache.cache["program.py"] = len(program), None, program.splitlines(True), "program.py"
    exec(compile(program, "program.py", "exec"), namespace)
    with pytest.raises(Exception) as caught:
        exec(compile(use, "use.py", "exec"), namespace)
    traceback = caught.value.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != "use.py":
        traceback = traceback.tb_next
    assert traceback is not None
    return caught.value, traceback


@pytest.mark.parametrize("use", KEYS)
def test_uses_of_views_show_the_programs_line_only(use: str):
    error, traceback = raised(VIEWS, use)
    assert KEYS[use] in f"{type(error).__name__}: {error}"
    assert in_a_value(error, traceback)
    shown = users_part(traceback)
    assert shown is not None and shown.tb_next is None


def test_mistakes_of_ours_are_shown_whole():
    error, traceback = raised(VIEWS, "del v._memory\nv[0]")
    assert isinstance(error, AttributeError) and not in_a_value(error, traceback)
    assert not in_a_value(*raised(VIEWS, "[1][2]"))


def test_an_uncaught_error_of_a_view(tmp_path: Path):
    text = printed(tmp_path, f"{VIEWS}v[1.5]\n")
    assert "TypeError: an index of a View" in text.splitlines()[-1]
    assert "v[1.5]" in text and text.count('File "') == 1


SUM = """
import json, decimal, fractions, statistics
import pyfuser
import pykokkos as pk


@pyfuser.fuse
@pk.workunit
def add(i, acc, x):
    acc += x[i]


total = pk.parallel_reduce(4, add, x=pk.View([4], pk.double))
"""


USES = ["json.dumps({'loss': total})", "decimal.Decimal(total)", "total[0]", "len(total)"]


@pytest.mark.parametrize("use", USES)
def test_where_no_future_will_do_the_number_is_shown(use: str):
    error, traceback = raised(SUM, use)
    assert isinstance(error, TypeError)
    assert "give it float(total) or int(total)" in advice(error, traceback)


def test_the_advice_follows_the_error(tmp_path: Path):
    text = printed(tmp_path, SUM + USES[0] + "\n")
    assert text.splitlines()[-2].startswith("TypeError: Object of type Future")
    assert "give it float(total) or int(total)" in text.splitlines()[-1]


@pytest.mark.parametrize(
    "use", ["v + v", "-v", "v < 1", "v.sum()", "m.T", "v += 1", "m[:, 1:] - 1", "v @ v", "abs(v)"]
)
def test_views_are_no_arrays(use: str):
    error, traceback = raised(VIEWS, use)
    assert "v.data is the NumPy array" in advice(error, traceback)


def test_a_view_is_no_output_of_numpys():
    use = "np.add(1.0, 2.0, out=v)"
    assert "give out=view.data" in advice(*raised(f"import numpy as np\n{VIEWS}", use))
    assert not advice(*raised("import numpy as np\nv = []", use))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="fractions take what has a ratio")
def test_an_error_that_does_not_name_the_future():
    assert advice(*raised(SUM, "fractions.Fraction(total)"))


@pytest.mark.parametrize("use", ["add(1)", "pk.parallel_reduce(4, add(total), x=1)"])
def test_a_workunit_is_not_called(use: str):
    assert "add is a workunit: a launch takes it without a call" in advice(*raised(SUM, use))


@pytest.mark.parametrize("use", ["len(1.5)", "pk.parallel_reduce(4, add, y=1)"])
def test_a_future_near_an_error_is_not_its_cause(use: str):
    assert not advice(*raised(SUM, use))


@pytest.mark.parametrize("block", ["pyfuser.fusing", "pyfuser.unfused"])
def test_a_block_has_to_be_called(block: str, tmp_path: Path):
    text = printed(tmp_path, f"import pyfuser\nwith {block}:\n    pass\n")
    assert text.splitlines()[-1] == f"{block} has to be called: with {block}():"


@pytest.mark.parametrize(
    "use",
    [
        "np.ones(100_000) + np.ones(99_999)",
        "bool(np.ones(100_000) > 0)",
        "np.ones(100_000).reshape(3, 7)",
        "np.ones(100_000)[200_000]",
        "np.concatenate([np.ones((300, 300)), np.ones((300, 200))])",
        "np.arange(100_000).__iadd__(0.5)",
    ],
)
def test_errors_of_numpy_show_no_lines_of_ours(use: str, tmp_path: Path):
    text = printed(tmp_path, f"import pyfuser.numpy as np\n{use}\n")
    assert "program.py" in text and "Error: " in text
    assert os.path.join("pyfuser", "frontends") not in text


def test_an_error_in_the_debug_space_shows_the_programs_lines_only(tmp_path: Path):
    program = (
        "import pyfuser\nimport pykokkos as pk\n"
        "@pk.workunit\ndef f(i, y):\n    y[i] = 1 // (i - 2)\n"
        "pk.parallel_for(pk.RangePolicy(pk.Debug, 0, 4), f, y=[0] * 4)\n"
    )
    text = printed(tmp_path, program)
    assert "line 5, in f" in text and "line 6, in <module>" in text and "ZeroDivision" in text
    assert os.path.join("pyfuser", "frontends") not in text


def test_an_error_that_a_block_repeats_is_shown_once(tmp_path: Path):
    program = (
        "import pyfuser\nimport pykokkos as pk\n@pk.workunit\ndef f(i, y):\n    y[i] += 1.25\n"
        "y = pk.View([5])\nwith pyfuser.fusing():\n    pk.parallel_for(5, f, y=y)\n    print(y)\n"
    )
    text = printed(tmp_path, program, PYFUSER_CXX="gpp", PYFUSER_CACHE_DIR=str(tmp_path / "new"))
    assert text.count("no C++ compiler found") == 1
    assert "line 9" in text and os.path.join("pyfuser", "runtime") not in text


MISUSES = {
    "with pyfuser.enable():\n    pass": "pyfuser.enable is no block",
    "with pyfuser.fuse():\n    pass": "fuse is no block; the one that records calls",
    "with pyfuser.fusing(len):\n    pass": "The decorator of workunits is @pyfuser.fuse.",
    "@pyfuser.fusing\ndef f(i, x): pass": "The decorator of workunits is @pyfuser.fuse.",
    "@pyfuser.fusing()\ndef f(i, x): pass": "The decorator of workunits is @pyfuser.fuse.",
    "@pyfuser.unfused()\ndef f(i, x): pass": "decorates nothing: with pyfuser.unfused():",
    "[1, 2, 3, 4, 5][total]": "give it float(total) or int(total)",
}


@pytest.mark.parametrize("use", MISUSES)
def test_the_last_line_says_what_to_write(use: str, tmp_path: Path):
    assert MISUSES[use] in printed(tmp_path, f"{SUM}{use}\n").splitlines()[-1]


@pytest.mark.parametrize(
    "use", ["pk.max(pk.View([2]))", "pk.fuse(add)", "pk.sqrt(pk.View([2], int))"]
)
def test_what_pykokkos_does_not_have_shows_the_programs_line_only(use: str, tmp_path: Path):
    text = printed(tmp_path, f"{SUM}{use}\n")
    assert text.count('File "') == 1


@pytest.mark.parametrize(
    "use",
    [
        "len(1.5)",
        "1 + 'a'",
        "(lambda v: v)()",
        "raised()",
        "json.dumps({1})",
        "1 // 0",
        "v[0]",
        "v.data",
        "v + 1",
    ],
)
def test_other_errors_have_no_advice(use: str):
    assert not advice(*raised("import json\nv = []", use))


def test_pytest_shows_the_programs_lines_only(tmp_path: Path):
    test = tmp_path / "test_program.py"
    test.write_text(f"{PROGRAM.replace('simulate(pk.View', 'def test(): simulate(pk.View')}")
    for level in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(test)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYFUSER_FRONTEND": "embedded", "PYFUSER_DEBUG": level},
            check=False,
        )
        assert done.returncode == 1 and "'y' has no value yet" in done.stdout
        hidden = os.path.join("pyfuser", "lower") not in done.stdout
        assert hidden is (level == "0")
