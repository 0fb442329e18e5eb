"""What workunits cannot do: each message has the place, what is wrong, and what to write."""

from __future__ import annotations

import importlib.util
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser import ArgumentError, WorkunitError, WorkunitWarning
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.maths import FUNCTIONS

HEAD = "import math\nimport numpy as np\nfrom pyfuser.frontends.embedded import pykokkos as pk\n"
W = "@pk.workunit\ndef w(i, x, m, a):"
MESSAGES = {
    # what is written, and the line that is wrong: what is said
    (
        "@pk.function\ndef f(n: int) -> int:\n    return n * f(n - 1)  # HERE\n"
        f"{W} x[i] = f(i)"
    ): "f calls itself: recursion is not supported; write a loop",
    (
        "@pk.function\ndef f(n: int) -> int:\n    return g(n)\n"
        "@pk.function\ndef g(n: int) -> int:\n    return f(n)  # HERE\n"
        f"{W} x[i] = f(i)"
    ): "f calls itself (by g): recursion",
    f"{W} m[i, :] = 0.0  # HERE": "`for k in range(m.extent(1)): m[i, k] = ...`",
    f"{W} m[i, :] = m[0, :]  # HERE": "`for k in range(m.extent(1)): m[i, k] = ...`",
    f"{W} m[i, 1:3] += 1.0  # HERE": "`for k in range(1, 3): m[i, k] = ...`",
    f"{W} m[:, :] = 1.0  # HERE": (
        "`for k in range(m.extent(0)): for l in range(m.extent(1)): m[k, l] = ...`"
    ),
    f"{W} m[i] = m[0, 0]  # HERE": "an element is m[i, k], of which a loop takes one after",
    f"{W} m[i, 0] = m[i]  # HERE": "an element is m[i, k], of which a loop takes one after",
    f"{W} x[i] = m[i, :]  # HERE": "which is given one name: write `s = m[i, :]` first",
    f"{W}\n    for k in range(a / 2):  # HERE\n        x[i] += k": "range needs integers, not "
    "float64: write a // 2",
    f"{W}\n    for k in range(0, 1, 0.1):  # HERE\n        x[i] += k": "count whole steps, `for k "
    "in range(n)`, and compute `t = start + k * 0.1`",
    f"@pk.function\ndef g(s, t):  # HERE\n    return s + t\n{W} x[i] = g(x[i], i)": "'s' has none, "
    "'t' has none, the result has none; write for example `def g(s: float, t: int) -> float:`",
    f"@pk.function\ndef g(s: list, t, u: int) -> float:  # HERE\n    return t\n"
    f"{W} x[i] = g(x[i], x, 1)": "'s' has 'list', 't' has none; write for example "
    "`def g(s: float, t: pk.View1D[pk.double], u: int) -> float:`",
    f"@pk.function\ndef g(s: float):  # HERE\n    return s\n{W} x[i] = g(x[i])": "but the result "
    "has none; write for example `def g(s: float) -> float:`",
    f"{W} x[i] = math.gcd(i, 4)  # HERE": "'gcd' is not supported in a workunit: write a "
    "@pk.function with a loop, `while b != 0:`; docs/maths.md lists",
    f"{W} x[i] = np.arcsinh(x[i])  # HERE": "did you mean 'asinh'",
    f"{W} x[i] = np.flipud(x)  # HERE": "docs/maths.md lists the functions that are",
    f"{W} x[i] = round(x[i], 2)  # HERE": "for 2 digits write round(x[i] * 100.0) / 100.0",
    f"{W}\n    a = 3.0  # HERE": "'a' is an argument of the call: it cannot be assigned to; write "
    "`value = a`, and change that",
    f"{W} x.shape = 3  # HERE": "a view keeps its shape and type",
    f"{W} x[i] = zzz  # HERE": "unknown name 'zzz': known are the parameters (i, x, m, a), locals",
    f"{W} x[i] = HEDA  # HERE\nHEAD = 2.0": "unknown name 'HEDA': did you mean 'HEAD'?",
    f"{W} pyfuser.sync()  # HERE": "'sync' is not supported in a workunit: the program calls it",
    f"{W} yield x[i]  # HERE": "yield is not supported in a workunit: store each value in a view",
    f"{W}\n    with a:  # HERE\n        x[i] = 1": "with is not supported in a workunit: do this "
    "before or after the call",
    f"{W}\n    try:  # HERE\n        x[i] = 1\n    finally:\n        pass": "test with if",
    f"{W}\n    t = [x[k] for k in range(3)]  # HERE": "write a for loop over range(...)",
    f'{W}\n    t = f"{{i}}"  # HERE': "pk.printf writes text and numbers",
    f"{W}\n    f = lambda t: t + 1  # HERE": "write a function outside, with @pk.function",
    f"{W}\n    t = 1\n    del t  # HERE": "leave it out, as a name ends with its block",
    f"{W}\n    global COUNT  # HERE\n    COUNT += 1": "add to the accumulator of a parallel_reduce",
    f"{W}\n    t = {{1, 2}}  # HERE": "compare with each element",
    f"{W}\n    class A: pass  # HERE": "define it outside, with @pk.classtype",
    f"{W}\n    import math  # HERE": "import at the top of the file",
    f"{W}\n    c = [1.0, 2.0]  # HERE": "value of `name: List[float] = [...]`",
    f"{W}\n    c: List[float] = [0.0] * 5  # HERE": "elements written out, as in c: List",
    f"{W} x[i], x[0] = x[0], x[i]  # HERE": "what is exchanged is kept first, as in `t = x[i]`",
    f"{W} x[i] = x['a']  # HERE": "of pk.printf: indices and choices are numbers",
    f"{W}\n    if a == None:  # HERE\n        x[i] = 1": "no argument is None: test for a number",
    f"{W} x[i] = m[i] @ x  # HERE": "'@' is not supported in a workunit: add up products in a loop",
    f"{W} x[()] += m[i, 0]  # HERE": "'x' is indexed with nothing: an element is x[0]",
    f"{W} m[()] = 1.0  # HERE": "'m' is indexed with nothing: an element is m[0, 0]",
    f"{W} x[i] = 2.0 * x  # HERE": "as in x[i]; one number is passed as x=float(...)",
    f"{W} a += x[i]  # HERE": "results are elements of views, as in result[i] = ..., or the sum of",
    f"{W}\n    while a > 3:\n        x[i] = 1\n    else:\n        x[i] = 0  # HERE": "set a flag "
    "where the loop is left",
}  # fmt: skip
COUNTED = np.zeros(4, dtype=np.int32)


def workunit(tmp_path: Path, text: str) -> Any:
    """The `w` of a module that has this text."""
    place = tmp_path / "user.py"
    place.write_text(HEAD + text + "\n")
    spec = importlib.util.spec_from_file_location("user", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.w


def launch(work: Any) -> None:
    with pyfuser.unfused():
        pk.parallel_for(4, work, x=np.zeros(4), m=np.zeros((4, 4)), a=2)


@pytest.mark.parametrize("text", MESSAGES)
def test_place_mistake_and_remedy(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, text)
    with pytest.raises(WorkunitError) as caught:
        launch(work)
    (line,) = (n for n, row in enumerate((HEAD + text).split("\n"), 1) if "# HERE" in row)
    assert re.match(rf"{re.escape(str(tmp_path / 'user.py'))}:{line}: ", str(caught.value))
    assert MESSAGES[text] in str(caught.value)


_MADE = re.compile(r"def w.* x\[i\]|while")  # where the mistake is made
F = "@pk.function\ndef f(n: int, s: float, b: bool) -> float:\n    return n * s\n"
WARNED = {
    f"{W} x[i] =+ m[i, 0]": "`=+` assigns +m[i, 0]: `+=` is what updates",
    f"{W} x[i] =+m[i, 0]": "`=+` assigns +m[i, 0]: `+=` is what updates",
    f"{W} x[i] =- m[i, 0]": "`=-` assigns -m[i, 0]: `-=` is what updates",
    f"{W}\n    k = 9\n    while k < 9:\n        if m[i, 0] < 0.0:\n            continue\n"
    "        x[i] += 1.0": "never ends once it has begun: nothing in it changes 'k'",
    f"{W}\n    k = 9\n    while k < a:\n        x[i] = k": "nothing in it changes 'a' or 'k'",
    f"{W}\n    t = 1.0\n    while t != 1.0:\n        x[i] += 1\n        t += 0.1": "and no "
    "float is exactly 0.1, by which it goes",
    f"{F}{W} x[i] = f(x[i], 1, a)": "'n' of f is of type int32, so what it gets, of type",
    f"{F}{W} x[i] = f(0.5, 1, a)": "'n' of f is of type int32, so what it gets, of type",
}


@pytest.mark.parametrize("text", WARNED)
def test_what_is_warned_of(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, text)
    with pytest.warns(WorkunitWarning, match=re.escape(WARNED[text])) as caught:
        launch(work)
    line = next(n for n, row in enumerate((HEAD + text).split("\n"), 1) if _MADE.search(row))
    assert (caught[0].filename, caught[0].lineno) == (str(tmp_path / "user.py"), line)


@pytest.mark.parametrize(
    "text",
    [
        f"{W} x[i] = +m[i, 0]",
        f"{W} x[i] = -m[i, 0]",
        f"{W} x[i] =-m[i, 0]",
        f"{W} x[i] = (\n+ m[i, 0])",
        f"{W}\n    k = 0\n    while k < 3:\n        k += 1\n    x[i] = k",
        f"{W}\n    while a > 0:\n        x[i] += 1.0\n        if x[i] > 3.0:\n            break",
        f"{W}\n    while a > 0:\n        x[i] += 1.0\n        if x[i] > 3.0:\n            return",
        f"{W}\n    while x[i] < 3.0:\n        x[i] += 1.0",
        f"{W}\n    t = 0.0\n    while t != 1.0:\n        t += 0.25\n    x[i] = t",
        f"{W}\n    t = 0.0\n    while t < 1.0:\n        t += 0.1\n    x[i] = t",
        f"{W}\n    t = 1.0\n    while t != x[i]:\n        t = x[i]\n        x[i] = 0.5 * (t + 0.1)",
        f"{F}{W} x[i] = f(int(x[i]), 1, x[i])",
        f"{F}{W} x[i] = f(a, a, a)",
    ],
)
def test_what_is_not_warned_of(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(work)


EMPTY = {
    "range(10, 0)": "to count down write range(10, 0, -1)",
    "range(10, 0, 2)": "to count down write range(10, 0, -2)",
    "range(0, 10, -1)": "to count up write range(0, 10, 1)",
}


@pytest.mark.parametrize("text", EMPTY)
def test_a_loop_that_never_runs(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, f"{W}\n    for k in {text}:\n        x[i] += 1")
    with pytest.warns(WorkunitWarning, match=re.escape(EMPTY[text])):
        launch(work)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: pk.View([n / 2], pk.double),
        lambda n: pk.View(n / 2, pk.double),
        lambda n: pk.RangePolicy(0, n / 2),
        lambda n: pk.MDRangePolicy([0, 0], [n, n / 2]),
        lambda n: pk.TeamPolicy(n / 2, 1),
        lambda n: pk.parallel_for(n / 2, lambda i: None),
        lambda n: pk.View([n], pk.double)[n / 2],
        lambda n: pk.View([np.float64(n)], pk.double),
    ],
)
def test_a_float_where_an_integer_is_meant(make: Any) -> None:
    with pytest.raises(TypeError, match="make it an integer, as n // 2 is and n / 2 is not"):
        make(8)
    with pytest.raises(ArgumentError) as caught:
        pk.View(["a"], pk.double)
    assert "make it" not in str(caught.value)


# ----------------------------------------------------------------- powers


def counted(text: str, dtype: Any, work: Any) -> np.ndarray[Any, Any]:
    x = np.zeros(4, dtype=dtype)
    with pyfuser.unfused():
        pk.parallel_for(4, work, x=x)
    return x


V = "@pk.workunit\ndef w(i, x):"


@pytest.mark.parametrize(
    "text", ["x[i] = 10 ** 10", "x[i] = 1e10", "t: int = 2 ** 31; x[i] = t", "x[i] = math.inf"]
)
def test_a_number_that_an_integer_cannot_hold(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, f"{V} {text}")
    with pytest.raises(WorkunitError, match="does not fit into int32, which holds -2147483648 to"):
        counted(text, np.int32, work)


@pytest.mark.parametrize(
    ("text", "dtype", "last"),
    [
        ("x[i] = 2 ** 30", np.int32, 2**30),
        ("x[i] = 10 ** 10", np.int64, 10**10),
        ("x[i] = 10 ** 10", np.float64, 1e10),
        ("x[i] = 2 ** (i + 27)", np.int32, 2**30),
        ("x[i] = 2 ** (i + 28)", np.uint32, 2**31),
        ("t: pk.int64 = 2 ** (i + 29); x[i] = t", np.int64, 2**32),
    ],
)
def test_powers_that_fit(tmp_path: Path, text: str, dtype: Any, last: Any) -> None:
    work = workunit(tmp_path, f"{V} {text}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = counted(text, dtype, work)
    assert x[3] == last


@pytest.mark.parametrize(
    "text",
    [
        "x[i] = 2 ** (i + 29)",
        "t: int = 2 ** (i + 29); x[i] = t",
        "x[i] = int(2 ** (i + 29))",
    ],
)
def test_a_power_that_overflows_somewhere(tmp_path: Path, text: str) -> None:
    work = workunit(tmp_path, f"{V} {text}")
    with pytest.warns(WorkunitWarning, match=r"a power is 4294967296 where i = 3, which int32"):
        counted(text, np.int32, work)


def test_the_debug_space_does_not_make_all_indices_first() -> None:
    class Stop(Exception):
        pass

    def work(i: int, x: Any) -> None:
        raise Stop

    for end in (2**62, 2**63 - 1):
        with pytest.raises(Stop):
            pk.parallel_for(pk.RangePolicy(pk.Debug, -(2**62), end), pk.workunit(work), x=COUNTED)


def test_the_documentation_lists_all_functions() -> None:
    text = (Path(__file__).parents[2] / "docs" / "maths.md").read_text()
    listed = set(re.findall(r"`([\w]+)`", text.split("## Functions")[1].split("##")[0]))
    assert listed == set(FUNCTIONS) - {"fence", "printf", "complex", "fma", "imag", "real"} | {
        "max",
        "min",
    }
