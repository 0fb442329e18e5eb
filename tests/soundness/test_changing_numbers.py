"""Random calls of one workunit whose ranges, subscripts and views change: as in plain Python.

Once a few have run, code is shared and mistakes are looked for in a quick way (`runtime.eager`).
Each call must do what the workunit's own Python does, or be refused where that leaves a view.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.analysis.mistakes import refuse_mistakes
from pyfuser.runtime import eager
from pyfuser.runtime.session import SESSION
from pyfuser.trace.call import Call
from pyfuser.trace.shape import shape_of

CALLS = 100


def subscript(rng: random.Random, names: str) -> str:
    terms = [f"{rng.choice((1, 1, 1, 1, 2, -1))} * {name}" for name in names if rng.random() < 0.7]
    return " + ".join([*terms, str(rng.randint(-1, 12))])


def workunit(rng: random.Random, number: int) -> str:
    """Of one index, with two scalars: what is written is at the index alone, so order is free."""
    lines = [f"@pk.workunit\ndef w{number}(i, y, x, z, k, m):"]
    read = "x"
    if rng.random() < 0.4:
        lines.append(f"    t: int = {subscript(rng, 'ikm')}")
        read = "t"
    names = {"x": "ikm", "t": "itk"}[read]
    at = rng.choice(("i", "i + k", "i + m"))
    value = f"x[{subscript(rng, names)}] + 0.5"
    kind = rng.randrange(5)
    if kind == 0:
        lines.append(f"    y[{at}] = {value}")
    elif kind == 1:
        lines.append(f"    for j in range({rng.choice(('k', '0', 'm'))}, {rng.choice('km')} + 2):")
        lines.append(f"        y[{at}] += x[{subscript(rng, names + 'j')}] * 0.5")
    elif kind == 2:
        lines.append(f"    if i >= {rng.choice('km')}:\n        y[{at}] = {value}")
    elif kind == 3:
        lines.append(f"    y[{at}] = {value} + z[(i + k) % 7]")
    else:
        lines.append(f"    y[{at}] = z[{subscript(rng, names)}]\n    y[{at}] += {value}")
    return "\n".join(lines) + "\n"


def module_of(folder: Path, text: str) -> ModuleType:
    path = folder / "changing.py"
    path.write_text("import pykokkos as pk\n\n" + text)
    spec = importlib.util.spec_from_file_location("changing", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Careful(np.ndarray[Any, Any]):
    """An array without negative indices."""

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            raise IndexError(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if index < 0:
            raise IndexError(index)
        super().__setitem__(index, value)


def views(rng: random.Random) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, x and z: apart mostly, of other strides and extents at times, or over one another."""
    memory = np.array([rng.random() for _ in range(500)])
    sizes = [rng.choice((80, 80, 80, 80, 25)) for _ in range(3)]
    y, x, z = (memory[100 * n :][:size] for n, size in enumerate(sizes))
    if rng.random() < 0.1:
        x = memory[100:260:2]
    return y, x, z


def plainly(function: Any, begin: int, end: int, y: Any, x: Any, z: Any, k: int, m: int) -> bool:
    """Run the workunit's Python in order; whether it left no view."""
    given = [array.view(Careful) for array in (y, x, z)]
    try:
        for i in range(begin, end):
            function(i, *given, k, m)
    except IndexError:
        return False
    return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes the quick test has no mistake that the whole analysis finds."""
    is_inside = eager._is_inside

    def watched(call: Call, arguments: Any, ready: Any) -> bool:
        inside = is_inside(call, arguments, ready)
        if inside:
            shape = shape_of((call,), structural_scalars).calls[0]
            try:
                refuse_mistakes(shape, call, warns=False)
            except IndexError as error:
                raise AssertionError("passed, and has a mistake") from error
        return inside

    monkeypatch.setattr(eager, "_is_inside", watched)


@pytest.mark.parametrize("seed", range(10))
def test_calls_do_what_their_python_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    module = module_of(tmp_path, "\n\n".join(workunit(rng, n) for n in range(2)))
    SESSION.clear()
    refused = 0
    with pyfuser.unfused():
        for _ in range(CALLS):
            function = getattr(module, f"w{rng.randrange(2)}")
            begin, k, m = rng.randint(0, 8), rng.randint(0, 9), rng.randint(0, 9)
            end = begin + rng.randint(0, 12)
            arrays = views(rng)
            copies = [np.array(array) for array in arrays]
            right = plainly(function, begin, end, *copies, k, m)
            names = dict(zip("yxz", arrays, strict=True))
            try:
                pk.parallel_for(pk.RangePolicy(begin, end), function, **names, k=k, m=m)
            except IndexError:
                refused += 1
                assert not right
                continue
            if not right:  # the analysis cannot prove it: nobody says what is computed
                continue
            for mine, expected in zip(arrays, copies, strict=True):
                np.testing.assert_array_equal(mine, expected)
    assert refused < CALLS


def test_most_calls_are_served_without_preparation(monkeypatch: Any, tmp_path: Path) -> None:
    """Else the test above would test nothing."""
    anew = []
    prepare = eager._prepare_new
    monkeypatch.setattr(eager, "_prepare_new", lambda *a: (anew.append(1), prepare(*a))[1])
    test_calls_do_what_their_python_does(4, tmp_path)
    assert 0 < len(anew) < CALLS // 2
