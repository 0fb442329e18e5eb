"""Entries of the language that other files have no test of: each with every type it is for."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pyfuser.engine.compiler import find_compiler
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.settings import SETTINGS

CPP = {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
CPP |= {"float": "float", "double": "double"}
INTEGERS = [name for name in CPP if "int" in name]
N = 5

# --------------------------------------------------------------------------- operators

# In Python, and what PyKokkos makes of it in C++.
_OF_ALL = {
    "{0} + {1}": "{0} + {1}", "{0} - {1}": "{0} - {1}", "{0} * {1}": "{0} * {1}",
    "{0} / {1}": "(double){0} / {1}", "{0} // {1}": "(int32_t)({0} / {1})",
    "{0} < {1}": "{0} < {1}", "{0} <= {1}": "{0} <= {1}", "{0} > {1}": "{0} > {1}",
    "{0} >= {1}": "{0} >= {1}", "{0} == {1}": "{0} == {1}", "{0} != {1}": "{0} != {1}",
    "{0} and {1}": "{0} && {1}", "{0} or {1}": "{0} || {1}", "not {0}": "!{0}", "-{0}": "-{0}",
    "+{0}": "+{0}",
}  # fmt: skip
_OF_INTEGERS = {text: text for text in ("{0} % {1}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}")}
_OF_INTEGERS |= {"~{0}": "~{0}", "{0} << ({1} & 3)": "{0} << ({1} & 3)"}
_OF_INTEGERS |= {"{0} >> ({1} & 3)": "{0} >> ({1} & 3)"}
_UPDATES = {"+=": "+=", "-=": "-=", "*=": "*=", "/=": "/=", "//=": "/="}
_UPDATES_OF_INTEGERS = {op: op for op in ("%=", "&=", "|=", "^=")}


def numpy_type(name: str) -> type[np.generic]:
    return {"float": np.float32, "double": np.float64}.get(name) or getattr(np, name)


def operations(left: str) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
    """(Python, C++) of every expression, (Python, C++, right type) of every update."""
    expressions, updates = [], []
    for right in CPP:
        both = {left, right} <= set(INTEGERS)
        for python, cpp in (_OF_ALL | (_OF_INTEGERS if both else {})).items():
            places = ("a[i]", f"b_{right}[i]")
            expressions.append((python.format(*places), cpp.format(*places)))
        if left[0] == "u" and right not in INTEGERS:
            continue  # a negative number as an unsigned one: C++ leaves it open
        for python, cpp in (_UPDATES | (_UPDATES_OF_INTEGERS if both else {})).items():
            updates.append((python, cpp, right))
    return expressions, updates


def python_source(left: str) -> str:
    expressions, updates = operations(left)
    lines = ["import pykokkos as pk", "@pk.workunit"]
    lines.append(f"def every(i, a, out, updated, {', '.join(f'b_{right}' for right in CPP)}):")
    lines += [f"    out[{n}][i] = {python}" for n, (python, _) in enumerate(expressions)]
    for n, (python, _, right) in enumerate(updates):
        lines += [f"    updated[{n}][i] = a[i]", f"    updated[{n}][i] {python} b_{right}[i]"]
    return "\n".join(lines) + "\n"


def cpp_source(left: str) -> str:
    expressions, updates = operations(left)
    rights = ", ".join(f"{CPP[right]}* b_{right}" for right in CPP)
    head = f"{CPP[left]}* a, double* out, {CPP[left]}* updated, {rights}"
    lines = ["#include <cstdint>", f'extern "C" void every({head}) {{']
    lines.append(f"for (int i = 0; i < {N}; ++i) {{")
    lines += [f"out[{n * N} + i] = {cpp};" for n, (_, cpp) in enumerate(expressions)]
    for n, (_, cpp, right) in enumerate(updates):
        lines.append(f"{{ {CPP[left]} x = a[i]; x {cpp} b_{right}[i]; updated[{n * N} + i] = x; }}")
    return "\n".join([*lines, "}}"])


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("left", ["int8", "uint32", "float"])
def test_every_operator_computes_as_cpp_does(left: str, tmp_path: Path) -> None:
    (tmp_path / f"every_{left}.py").write_text(python_source(left))
    (tmp_path / "every.cpp").write_text(cpp_source(left))
    command = [*find_compiler(SETTINGS.compiler).command, "-w", "-fwrapv", "-ffp-contract=off"]
    command += ["-shared", "-fPIC", "every.cpp", "-o", "every.so"]
    subprocess.run(command, cwd=tmp_path, check=True)

    signed = left[0] != "u"
    a = np.array([-7.5, 100.25, -3, 1, 120] if signed else [7, 2**31, 250, 1, 120])
    a = a.astype(numpy_type(left))
    rights = {name: np.array([2.5, 3.25, 5, 7, 1]).astype(numpy_type(name)) for name in CPP}
    for name in ("int8", "int16", "int32", "int64", "float", "double"):
        rights[name][1:3] *= -1
    expressions, updates = operations(left)
    found, expected = (np.zeros((len(expressions), N)) for _ in range(2))
    updated, wanted = (np.zeros((len(updates), N), a.dtype) for _ in range(2))

    arguments = {f"b_{name}": b for name, b in rights.items()}
    every = load(tmp_path / f"every_{left}.py").every
    pk.parallel_for(N, every, a=a, out=found, updated=updated, **arguments)
    arrays = [a, expected, wanted, *rights.values()]
    ctypes.CDLL(str(tmp_path / "every.so")).every(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))

    for (text, _), row, correct in zip(expressions, found, expected, strict=True):
        assert_array_equal(row, correct, err_msg=text)
    for (op, _, right), row, correct in zip(updates, updated, wanted, strict=True):
        assert_array_equal(row, correct, err_msg=f"{op} {right}")


# --------------------------------------------------------------------------- atomics


@pk.workunit
def atomics_of_numbers(i, s, x, old):
    pk.atomic_add(s, [0], x[i])
    pk.atomic_fetch_sub(s, [1], x[i])
    pk.atomic_fetch_mul(s, [2], x[i])
    pk.atomic_fetch_div(s, [3], x[i])
    pk.atomic_fetch_max(s, [4], x[i])
    pk.atomic_fetch_min(s, [5], x[i])
    pk.atomic_increment(s, [6])
    old[i] = pk.atomic_fetch_add(s, [7], x[i])


@pytest.mark.parametrize("name", CPP)
def test_atomics_of_every_type(name: str) -> None:
    dtype = numpy_type(name)
    x, old = np.array([2, 4, 1, 2], dtype), np.zeros(4, dtype)
    s = np.array([1, 100, 1, 96, 1, 100, 1, 0], dtype)
    pk.parallel_for(4, atomics_of_numbers, s=s, x=x, old=old)
    assert_array_equal(s, np.array([10, 91, 16, 6, 4, 1, 5, 9], dtype))
    # each got the sum of those that came before it, in some order
    order = np.argsort(old)
    assert_array_equal(old[order], np.cumsum(x[order]) - x[order])


@pk.workunit
def atomics_of_integers(i, s, x):
    pk.atomic_fetch_mod(s, [0], x[i])
    pk.atomic_fetch_and(s, [1], x[i])
    pk.atomic_fetch_or(s, [2], x[i])
    pk.atomic_fetch_xor(s, [3], x[i])
    pk.atomic_fetch_lshift(s, [4], x[i])
    pk.atomic_fetch_rshift(s, [5], x[i])
    pk.atomic_compare_exchange(s, [6], 5, x[i])


@pytest.mark.parametrize("name", INTEGERS)
def test_atomics_of_every_integer(name: str) -> None:
    dtype = numpy_type(name)
    s, x = np.array([11, 7, 8, 5, 1, 64, 5], dtype), np.array([4, 3], dtype)
    pk.parallel_for(pk.RangePolicy(pk.Serial, 0, 2), atomics_of_integers, s=s, x=x)
    shifted = np.array([128]).astype(dtype)[0]
    assert_array_equal(s, np.array([0, 0, 15, 2, shifted, 0, 4], dtype))


@pk.workunit
def atomics_of_complex_numbers(i, s, x):
    pk.atomic_add(s, [0], x[i])
    pk.atomic_fetch_sub(s, [1], x[i])
    pk.atomic_fetch_mul(s, [2], x[i])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_atomics_of_complex_numbers(dtype: type[np.generic]) -> None:
    s, x = np.array([0, 0, 1], dtype), np.array([1 + 2j, 3 - 1j], dtype)
    pk.parallel_for(2, atomics_of_complex_numbers, s=s, x=x)
    assert_array_equal(s, np.array([4 + 1j, -4 - 1j, 5 + 5j], dtype))


# --------------------------------------------------------------------------- views of every rank


@pk.workunit
def scratch_of_every_rank(t: pk.TeamMember, v):
    a: pk.ScratchView1D[int] = pk.ScratchView1D(t.team_scratch(0), 4)
    b: pk.ScratchView2D[float] = pk.ScratchView2D(t.team_scratch(0), 2, 3)
    c: pk.ScratchView3D[pk.float] = pk.ScratchView3D(t.team_scratch(0), 2, 2, 2)
    d: pk.ScratchView4D[pk.int64] = pk.ScratchView4D(t.team_scratch(0), 2, 2, 2, 2)
    e: pk.ScratchView5D[pk.uint8] = pk.ScratchView5D(t.team_scratch(0), 2, 2, 2, 2, 2)
    f: pk.ScratchView6D[int] = pk.ScratchView6D(t.team_scratch(1), 2, 2, 2, 2, 2, 2)
    g: pk.ScratchView7D[int] = pk.ScratchView7D(t.team_scratch(1), 2, 2, 2, 2, 2, 2, 2)
    h: pk.ScratchView8D[float] = pk.ScratchView8D(t.team_scratch(1), 2, 2, 2, 2, 2, 2, 2, 2)

    def fill(i: int):
        a[i] = i
        b[i // 2][i % 2 + 1] = 0.5 * i
        c[1][i // 2][i % 2] = 10 * i
        d[1][0][i // 2][i % 2] = 100 * i
        e[1][1][0][i // 2][i % 2] = i
        f[0][1][1][0][i // 2][i % 2] = 2 * i
        g[1][0][1][1][0][i // 2][i % 2] = 3 * i
        h[0][1][0][1][1][0][i // 2][i % 2] = 0.25 * i

    pk.parallel_for(pk.TeamThreadRange(t, 4), fill)
    t.team_barrier()

    def collect(i: int):
        j: int = 3 - i
        x: float = a[j] + b[j // 2][j % 2 + 1] + c[1][j // 2][j % 2] + d[1][0][j // 2][j % 2]
        y: float = e[1][1][0][j // 2][j % 2] + f[0][1][1][0][j // 2][j % 2]
        z: float = g[1][0][1][1][0][j // 2][j % 2] + h[0][1][0][1][1][0][j // 2][j % 2]
        v[t.league_rank()][i] = x + y + z

    pk.parallel_for(pk.TeamThreadRange(t, 4), collect)


@pytest.mark.parametrize("team_size", [1, 2, 4])
def test_scratch_views_of_every_rank(team_size: int) -> None:
    policy = pk.TeamPolicy(3, team_size).set_scratch_size(0, pk.PerTeam(4096))
    v = np.zeros((3, 4))
    pk.parallel_for(policy, scratch_of_every_rank, v=v)
    factor = 1 + 0.5 + 10 + 100 + 1 + 2 + 3 + 0.25
    assert_array_equal(v, np.tile(factor * np.arange(3, -1, -1), (3, 1)))


@pk.workunit
def numbered(i, j, k, l, m, n, v):
    v[i][j][k][l][m][n] = i + 2 * j + 4 * k + 8 * l + 16 * m + 32 * n


@pytest.mark.parametrize("layout", [pk.LayoutLeft, pk.LayoutRight])
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"tiling": [1, 2, 1, 2, 1, 2]},
        {"rank": pk.Rank(6, pk.Iterate.Left, pk.Iterate.Right)},
        {"iter_outer": pk.Iterate.Right, "iter_inner": pk.Iterate.Left, "space": pk.Serial},
    ],
    ids=lambda form: "-".join(form) or "plain",
)
def test_boxes_of_six_dimensions(layout: pk.Layout, form: dict[str, object]) -> None:
    v = pk.View([2] * 6, pk.int32, layout=layout)
    pk.parallel_for(pk.MDRangePolicy([0] * 6, [2] * 6, **form), numbered, v=v)
    assert_array_equal(np.asarray(v).transpose().reshape(-1), np.arange(64))


@pk.workunit
def parts(i, m, t, out):
    row = m[i, :]
    column = m[:, i]
    some = m[i, 1:3]
    plane = t[i, :, :]
    block = t[:, i, 0:2]
    out[i] = row[1] + 10 * column[2] + 100 * some[1] + 1000 * plane[1][2] + 10000 * block[2][1]


@pytest.mark.parametrize("order", ["C", "F"])
def test_subviews_of_both_layouts(order: str) -> None:
    m, out = np.arange(9.0).reshape(3, 3), np.zeros(3)
    t = np.arange(27.0).reshape(3, 3, 3)
    pk.parallel_for(3, parts, m=np.array(m, order=order), t=np.array(t, order=order), out=out)
    i = np.arange(3)
    expected = m[i, 1] + 10 * m[2, i] + 100 * m[i, 2] + 1000 * t[i, 1, 2] + 10000 * t[2, i, 1]
    assert_array_equal(out, expected)


# --------------------------------------------------------------------------- modules


@pytest.mark.parametrize(
    ("module", "name"),
    [("linalg.l3_blas", "dgemm"), ("interface.views", "View"), ("lib.create", "zeros")],
)
def test_modules_are_attributes_of_their_packages(module: str, name: str) -> None:
    package = importlib.import_module("pykokkos")
    found = package
    for step in module.split("."):
        found = getattr(found, step)
    assert getattr(found, name) is getattr(importlib.import_module(f"pykokkos.{module}"), name)
