"""Locals that are declared without a value: refused, or warned of, where they are read without."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ScalarType, ViewType
from pyfuser.support.errors import WorkunitError, WorkunitWarning

HEAD = "import pykokkos as pk\n"
TYPES = {"x": ViewType(DType.FLOAT64, 1), "n": ScalarType(DType.INT32)}

#: Bodies of workunits `w(i, x, n)`: the read that has no value is in the line with HERE.
REFUSED = [
    "t: float\nx[i] = t  # HERE",
    "t: float\nt += 1.0  # HERE\nx[i] = t",
    "t: int\nfor k in range(n):\n    t += k  # HERE\nx[i] = t",
    "t: float\nif t > 0.0:  # HERE\n    x[i] = 1.0",
    "t: pk.double\nif n > 3:\n    x[i] = 2.0 * t  # HERE\nt = 1.0",
    "t: bool\nwhile t:  # HERE\n    t = False",
    "for k in range(n):\n    t: float\n    x[i] += t  # HERE\n    t = 1.0",
    "t: float = 1.0\nif n > 3:\n    t: float\n    x[i] = t  # HERE",
    "t: float\nif n > 3:\n    t: float = 1.0\n    x[i] = t\nx[i] += t  # HERE",
    "t: float\nif n > 3:\n    t = 1.0\n    return\nx[i] = t  # HERE",
    "t: int\nx[t] = 1.0  # HERE",
]
WARNED = [
    "t: float\nif n > 3:\n    t = 1.0\nx[i] = t  # HERE",
    "t: float\nif n > 3:\n    t = 1.0\nelif n > 2:\n    x[i] = 0.0\nelse:\n    t = 2.0\n"
    "x[i] = t  # HERE",
    "t: float\nfor k in range(n):\n    t = x[k]\nx[i] = t  # HERE",
    "t: float\nfor k in range(n):\n    if k > 0:\n        x[i] += t  # HERE\n    t = 1.0",
    "t: float\nwhile n > 3:\n    t = 1.0\n    break\nx[i] = t  # HERE",
    "t: float\nfor k in range(3):\n    if n > k:\n        continue\n    t = 1.0\nx[i] = t  # HERE",
    "t: float\nif x[i] > 0.0:\n    t = 1.0\n    x[i] = 0.0\nif x[i] > 0.0:\n    x[i] = t  # HERE",
    "t: float\nm: int = n\nif m > 3:\n    t = 1.0\nm = 4\nif m > 3:\n    x[i] = t  # HERE",
    "t: float\nwhile True:\n    if n > 2:\n        break\n    t = 1.0\nx[i] = t  # HERE",
]
FINE = [
    "t: float\nt = 1.0\nt += 1.0\nx[i] = t",
    "t: float\nif n > 3:\n    t = 1.0\nelse:\n    t = 2.0\nx[i] = t",
    "t: float\nif n > 3:\n    t = 1.0\nelse:\n    return\nx[i] = t",
    "t: float\nfor k in range(3):\n    t = x[k]\nx[i] = t",
    "t: float\nfor k in range(1, 3):\n    t = x[k]\n    x[i] += t",
    "t: float\nif n > 3:\n    t = 1.0\nx[i] = 0.0\nif n > 3:\n    x[i] = t",
    "t: float\nwhile True:\n    t = 1.0\n    if n > 2:\n        break\nx[i] = t",
    "t: float\nif n > 3:\n    t: float = 1.0\n    x[i] = t",
    "t: float\nx[i] = 1.0",
    "t: float\nfor t in range(n):\n    x[i] += t",
]


def _lower(folder: Path, body: str, head: str = HEAD) -> list[warnings.WarningMessage]:
    """Lower a workunit with a body; the warnings are those that it gets."""
    text = body.replace("\n", "\n    ")
    file = folder / "program.py"
    file.write_text(f"{head}@pk.workunit\ndef w(i, x, n):\n    {text}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("program", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lower(module.w, "for", 1, TYPES)
    return caught


def _line(body: str) -> int:
    """The line of the file with the read."""
    return 4 + body[: body.index("# HERE")].count("\n")


@pytest.mark.parametrize("body", REFUSED)
def test_no_way_gives_a_value(tmp_path: Path, body: str) -> None:
    with pytest.raises(WorkunitError, match="has no value here, as line") as caught:
        _lower(tmp_path, body)
    assert f"program.py:{_line(body)}: " in str(caught.value)


@pytest.mark.parametrize("body", WARNED)
def test_some_way_gives_none(tmp_path: Path, body: str) -> None:
    (warned,) = _lower(tmp_path, body)
    assert warned.category is WorkunitWarning and warned.lineno == _line(body)
    assert "'t' may have no value here: line 4 declares it" in str(warned.message)
    assert "write in line 4 `t: float = 0.0`" in str(warned.message)


@pytest.mark.parametrize("body", FINE)
def test_every_way_gives_a_value(tmp_path: Path, body: str) -> None:
    assert not _lower(tmp_path, body)


@pytest.mark.parametrize(
    ("kind", "value"), [("int", "0"), ("bool", "False"), ("pk.int64", "0"), ("pk.float", "0.0")]
)
def test_the_remedy_has_the_type(tmp_path: Path, kind: str, value: str) -> None:
    with pytest.raises(WorkunitError, match=f"`t: {kind} = {value}`"):
        _lower(tmp_path, f"t: {kind}\nx[i] = t")


def test_functions_that_a_workunit_calls(tmp_path: Path) -> None:
    function = "@pk.function\ndef f(s: float) -> float:\n    t: float\n    return t + s\n"
    with pytest.raises(WorkunitError, match=r"program.py:5: 't' has no value here"):
        _lower(tmp_path, "x[i] = f(x[i])", HEAD + function)
