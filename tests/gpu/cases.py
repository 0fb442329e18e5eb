"""Kernels for each path of the GPU's code, with results that no order of additions changes."""
# ruff: noqa: F821

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, overload
from pyfuser.ir.nodes import (
    Accumulator,
    AtomicFetch,
    Binary,
    Body,
    Call,
    Cast,
    Compare,
    Const,
    If,
    Load,
    Param,
    Read,
    Scratch,
    Store,
    Update,
    Workunit,
)
from tests.codegen.build import Case, case

N = 1500
WHOLE = [d for d in DType if d.is_integer and d is not DType.BOOL]
NUMBERS = [d for d in DType if not d.is_complex and d is not DType.BOOL]
CELLS = 5
INDEX = fresh("i", DType.INT64)


def whole(n: int, dtype: DType, low: int = 1, high: int = 9) -> np.ndarray[Any, Any]:
    """Small whole numbers, which sum up exactly in every type."""
    rng = np.random.default_rng(n)
    values = rng.integers(low, high, n).astype(dtype.numpy)
    return values + values[::-1] * dtype.numpy.type(1j) if dtype.is_complex else values


# --------------------------------------------------------------------------- maps


def four_axes(i, j, k, l, x, y):
    y[i][j][k][l] = x[l][k][j][i] + i * 1000 + j * 100 + k * 10 + l


def short_rows(i, j, x):
    x[i][j] += i * 3 + j


def local_list(i, x, y):
    weights: List[float] = [0.25, 0.5, 1e30]
    weights[1] = x[i]
    for k in range(2):
        y[i] += weights[k]


def not_numbers(i, x, y, z):
    y[i] = math.inf if x[i] > 1.0 else -math.inf
    if x[i] < 0.0:
        y[i] = math.nan
    z[i] = y[i]


def divided(i, a, b, q, r):
    q[i] = a[i] // b[i]
    r[i] = a[i] % b[i]


def wrapped(i, x, y, n):
    a: int = x[i]
    y[i] = a * 2 // 2
    if a + 1 > a:
        y[i] += 1
    if -a < 0 or a - 2 < a:
        y[i] += 2
    count: int = a
    for k in range(3):
        count += n + k
    y[i] = y[i] * 2 + (count < a)


def hashed(i, x, y):
    k: int = i * 1103515245 + 12345
    y[((i * 7919 * 7919 * 7919) % 64 + 64) % 64] = k
    x[i] *= k


def scratch() -> Case:
    """Memory of an iteration's own, two numbers of which are kept."""
    x, row = fresh("x", DType.FLOAT64), fresh("row", DType.FLOAT64)
    sizes = (Const(4, DType.INT32), Const(3, DType.INT32))
    zero, three = Const(0, DType.INT64), Const(3, DType.INT64)
    here, value = (three, zero), Load(x, (Read(INDEX),))
    body = (
        Scratch(row, sizes),
        Update("+", row, here, value),
        Store(x, (Read(INDEX),), Binary("+", Load(row, here), Load(row, (zero, zero)))),
    )
    workunit = Workunit("scratch", (INDEX,), (Param(x, 1),), body)
    return case(workunit, [300], lambda: [np.arange(300.0)])


def shapes() -> dict[str, Case]:
    return {
        "four axes": case(
            four_axes,
            [3, 4, 5, 6],
            lambda: [np.arange(360.0).reshape(6, 5, 4, 3), np.zeros((3, 4, 5, 6))],
            begin=[1, 0, 2, 1],
        ),
        "rows of three": case(short_rows, [700, 3], lambda: [np.zeros((700, 3))]),
        "rows of many": case(short_rows, [3, 700], lambda: [np.zeros((3, 700))]),
        "scratch": scratch(),
        "wrapped": case(
            wrapped,
            [5],
            lambda: [
                np.array([2**31 - 1, -(2**31), 2**30, -5, 7], "int32"),
                np.zeros(5, "int32"),
                2**30,
            ],
        ),
        "hashed": case(hashed, [60], lambda: [np.arange(60, dtype="int32"), np.zeros(64, "int32")]),
        "a local list": case(local_list, [70], lambda: [np.arange(70.0), np.zeros(70)]),
        "no numbers": case(
            not_numbers,
            [70],
            lambda: [np.arange(-30.0, 40.0), np.zeros(70), np.zeros(70, "float32")],
        ),
        "whole quotients": case(
            divided,
            [70],
            lambda: [
                np.arange(-35, 35, dtype="int32") * 61356675,
                np.arange(-40, 30, dtype="int32") * 2 + 1,
                np.zeros(70, "int32"),
                np.zeros(70, "int32"),
            ],
        ),
    }


# --------------------------------------------------------------------------- sums


def reduction(*updates: tuple[str, DType]) -> Case:
    """Accumulators, each with its own operation and dtype, over views of the same dtypes."""
    views = [fresh("x", dtype) for _, dtype in updates]
    sums = [fresh("acc", dtype) for _, dtype in updates]
    body: Body = tuple(
        Update(op, acc, (), Load(x, (Read(INDEX),)))
        for (op, _), acc, x in zip(updates, sums, views, strict=True)
    )
    params = tuple(Param(view, 1) for view in views)
    workunit = Workunit("several", (INDEX,), params, body, tuple(map(Accumulator, sums)))
    low = -4 if all(dtype.is_signed or dtype.is_float for _, dtype in updates) else 0
    return case(
        workunit, [N], lambda: [whole(N, dtype, low) for _, dtype in updates], "reduce", begin=[3]
    )


def guarded_count(i, j, acc, x):
    if x[i][j] > 2.0:
        acc += 1.0
    else:
        x[i][j] = 0.5
        acc -= x[i][j]


def read_again(i, acc, x):
    acc += x[i]
    if acc > 10.0:
        acc = 0.0


def sums() -> dict[str, Case]:
    cases = {f"sum of {d.value}": reduction(("+", d)) for d in DType}
    cases |= {
        f"{op} of {d.value}": reduction((op, d))
        for op in ("min", "max")
        for d in (DType.INT8, DType.INT64, DType.FLOAT32, DType.FLOAT64)
    }
    cases |= {f"{op} of integers": reduction((op, DType.UINT32)) for op in ("|", "^")}
    cases["seven at once"] = reduction(
        ("+", DType.FLOAT64), ("max", DType.FLOAT64), ("min", DType.INT32), ("-", DType.FLOAT64),
        ("+", DType.COMPLEX128), ("+", DType.INT16), ("+", DType.FLOAT64),
    )  # fmt: skip
    cases["a product"] = reduction(("*", DType.FLOAT64))
    cases["two operations on one"] = case(read_again, [N], lambda: [np.ones(N)], "reduce")
    cases["of a box, with a map"] = case(
        guarded_count, [90, 70], lambda: [np.arange(6300.0).reshape(90, 70) % 5], "reduce", [2, 3]
    )
    cases["of columns"] = case(
        guarded_count, [90, 70], lambda: [np.arange(6300.0).reshape(70, 90).T % 5], "reduce"
    )
    return cases


# --------------------------------------------------------------------------- scans


def prefix(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


def decayed(i, acc, last, x):
    acc = acc * 2.0 + x[i]
    if last:
        x[i] = acc


def scans() -> dict[str, Case]:
    cases = {
        f"scan of {d.value}": case(
            prefix, [3000], lambda d=d: [whole(3000, d), np.zeros(3000, d.numpy)], "scan", [5]
        )
        for d in (DType.FLOAT64, DType.FLOAT32, DType.INT64)
    }
    # Blocks enough for a second round of their prefix sums.
    n = 256 * 8 * 256 + 1000
    cases["scan of many"] = case(
        prefix, [n], lambda: [whole(n, DType.FLOAT64), np.zeros(n)], "scan"
    )
    cases["not a sum"] = case(decayed, [40], lambda: [np.ones(40)], "scan")
    return cases


# --------------------------------------------------------------------------- atomics


def updates(op: str, dtype: DType) -> Case:
    """Iterations that update a few neighbouring cells; the order does not matter."""
    x, cells = fresh("x", dtype), fresh("cells", dtype)
    place = Binary("%", Read(INDEX), Const(CELLS, DType.INT64))
    body = (Update(op, cells, (place,), Load(x, (Read(INDEX),)), atomic=True),)
    workunit = Workunit("updates", (INDEX,), (Param(x, 1), Param(cells, 1)), body)
    n = 12 if op in ("*", "/", "<<") else 300
    fixed = {"*": 2, "/": 2, "<<": 1, "exchange": 7, "%": 4}

    def arguments() -> list[Any]:
        values = whole(n, x.dtype, 0, 2 if dtype.size == 1 else 9)
        if op in fixed:
            values = np.full(n, fixed[op], x.dtype.numpy)
        start = 16 if op in ("/", "*", "&", "%") else 5
        return [values, np.full(CELLS, start, dtype.numpy)]

    return case(workunit, [n], arguments)


def old_values(dtype: DType) -> Case:
    """One iteration that keeps what each kind of atomic returns."""
    x, out = fresh("x", dtype), fresh("out", dtype)
    zero = Const(0, DType.INT64)

    def number(value: int) -> Const:
        return Const(dtype.numpy.type(value).item(), dtype)

    operations = [AtomicFetch(op, x, (zero,), number(3)) for op in ("+", "-", "*", "exchange")]
    if not dtype.is_complex:
        operations += [AtomicFetch(op, x, (zero,), number(9)) for op in ("min", "max")]
    operations += [
        AtomicFetch("compare_exchange", x, (zero,), number(7), number(expected))
        for expected in (1, 9, 3)
    ]
    body = tuple(
        Store(out, (Const(n, DType.INT64),), operation) for n, operation in enumerate(operations)
    )
    workunit = Workunit("old_values", (INDEX,), (Param(x, 1), Param(out, 1)), body)
    return case(workunit, [1], lambda: [np.full(3, 5, dtype.numpy), np.zeros(9, dtype.numpy)])


def atomics() -> dict[str, Case]:
    cases = {f"atomic {op} of {d.value}": updates(op, d)
             for d in NUMBERS for op in ("+", "-", "*", "min", "max", "exchange")}  # fmt: skip
    cases |= {f"atomic {op} of {d.value}": updates(op, d)
              for d in WHOLE for op in ("&", "|", "^", "<<", "/", "%")}  # fmt: skip
    cases |= {
        f"atomic {op} of {d.value}": updates(op, d)
        for d in (DType.COMPLEX64, DType.COMPLEX128)
        for op in ("+", "-", "exchange")
    }
    cases |= {f"old values of {d.value}": old_values(d) for d in DType if d is not DType.BOOL}
    return cases


# --------------------------------------------------------------------------- functions


def functions(dtype: DType) -> Case:
    """Every function that takes arguments of a dtype, each with an output of its own."""
    x, y = fresh("x", dtype), fresh("y", dtype)
    params, body = [Param(x, 1), Param(y, 1)], []
    here = (Read(INDEX),)
    for name, function in FUNCTIONS.items():
        if function.rule in ("effect", "complex") or (dtype.is_complex and not function.on_complex):
            continue
        if function.rule == "part" and not dtype.is_complex:
            continue
        found = overload(name, [dtype] * function.arity)
        assert found is not None
        out = fresh(name, found.result)
        params.append(Param(out, 1))
        arguments = (Load(x, here), Load(y, here), Load(x, here))[: function.arity]
        body.append(Store(out, here, Call(name, arguments, found.result)))
    workunit = Workunit("functions", (INDEX,), tuple(params), tuple(body))

    def values() -> list[Any]:
        special = [0.0, -0.0, 1.0, 2.0, -2.0, 0.5, -2.5, 3.5, math.inf, -math.inf, math.nan]
        if dtype.is_complex:  # finite, and off the branch cuts
            special = [0.5, -2.5, 3j, 1 + 1j, -1 - 2j, 1e-3 - 1j, 4.0 + 0.1j]
        pairs = np.array(np.meshgrid(special, special)).reshape(2, -1).astype(dtype.numpy)
        outputs = [np.zeros(pairs.shape[1], p.sym.dtype.numpy) for p in params[2:]]
        return [pairs[0].copy(), pairs[1].copy(), *outputs]

    return case(workunit, [values()[0].size], values)


def conditional() -> Case:
    """An index that is narrower than its loop, and a comparison of it."""
    narrow, x = fresh("i", DType.INT32), fresh("x", DType.FLOAT64)
    condition = Compare("<", Read(narrow), Const(7, DType.INT32))
    then = (Store(x, (Read(narrow),), Cast(Read(narrow), DType.FLOAT64)),)
    workunit = Workunit("narrow", (narrow,), (Param(x, 1),), (If(condition, then),))
    return case(workunit, [20], lambda: [np.full(20, -1.0)])


CASES: dict[str, Case] = {
    **shapes(),
    **sums(),
    **scans(),
    **atomics(),
    "functions of float64": functions(DType.FLOAT64),
    "functions of float32": functions(DType.FLOAT32),
    "a narrow index": conditional(),
}


def say(i, x):
    pk.printf('x[%d] is "%g" %%\n', i, x[i])


PRINTING: dict[str, Case] = {"printf": case(say, [2], lambda: [np.array([0.5, 1e6])])}
"""Kernels whose effect is not in memory."""

CLOSE: dict[str, Case] = {
    f"functions of {dtype.value}": functions(dtype) for dtype in (DType.COMPLEX64, DType.COMPLEX128)
}
"""Kernels whose formulas are not those of the reference."""
