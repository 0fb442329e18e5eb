from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np
import pytest

from pyfuser.ir import arithmetic, maths
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, POWERS, Overload, _fma, evaluate, overload

F32, F64 = DType.FLOAT32, DType.FLOAT64
I32, I64 = DType.INT32, DType.INT64


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sqrt", (F32,), Overload(F32, F32)),
        ("sqrt", (I32,), Overload(F64, F64)),
        ("pow", (F32, F32), Overload(F32, F32)),
        ("pow", (F32, I32), Overload(F64, F64)),
        ("pow", (F32, F64), Overload(F64, F64)),
        ("pow", (I32, I32), Overload(F64, F64)),
        ("abs", (I32,), Overload(I32, I32)),
        ("abs", (DType.INT8,), Overload(I32, I32)),
        ("abs", (I64,), Overload(I64, I64)),
        ("abs", (F32,), Overload(F32, F32)),
        ("abs", (DType.COMPLEX64,), Overload(DType.COMPLEX64, F32)),
        ("isnan", (F32,), Overload(F32, DType.BOOL)),
        ("isnan", (I32,), Overload(F64, DType.BOOL)),
        ("exp", (DType.COMPLEX128,), Overload(DType.COMPLEX128, DType.COMPLEX128)),
        ("erf", (DType.COMPLEX128,), None),
        ("sqrt", (F64, F64), None),
    ],
)
def test_overloads(name: str, arguments: tuple[DType, ...], expected: Overload | None) -> None:
    assert overload(name, arguments) == expected


@pytest.mark.parametrize("dtype", [DType.COMPLEX64, DType.COMPLEX128])
def test_parts_of_complex_numbers(dtype: DType) -> None:
    part = F32 if dtype is DType.COMPLEX64 else F64
    for name, expected in (("real", 1.5), ("imag", -2.5)):
        assert overload(name, (dtype,)) == Overload(dtype, part)
        assert overload(name, (part,)) is None
        assert evaluate(name, [dtype.numpy.type(1.5 - 2.5j)], part) == part.numpy.type(expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_rounds_once(kind: Any) -> None:
    function = ctypes.CDLL(None).fmaf if kind is np.float32 else ctypes.CDLL(None).fma
    part = ctypes.c_float if kind is np.float32 else ctypes.c_double
    function.argtypes, function.restype = [part] * 3, part
    numbers = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3e38, 1e300, 1e-45, 5e-324, 1 + 2**-23]
    for _ in range(2000):
        x, y = (kind(numbers.choice([numbers.normal(), numbers.choice(special)])) for _ in "xy")
        z = kind(numbers.choice([-float(x) * float(y), numbers.normal(), numbers.choice(special)]))
        with np.errstate(all="ignore"):
            expected, found = kind(function(x, y, z)), _fma(x, y, z)
        assert type(found) is kind
        assert found.tobytes() == expected.tobytes() or (found != found and expected != expected)


def test_only_printf_and_fence_have_effects() -> None:
    assert {name for name in FUNCTIONS if not maths.is_pure(name)} == {"printf", "fence"}


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize(
    "name", [n for n, f in FUNCTIONS.items() if f.pure and f.rule in ("float", "abs", "test")]
)
def test_every_function_evaluates_to_its_type(name: str, dtype: DType) -> None:
    function = FUNCTIONS[name]
    types = overload(name, (dtype,) * function.arity)
    assert types is not None
    args = [dtype.numpy.type(1.25)] * function.arity
    assert type(evaluate(name, args, types.result)) is types.result.numpy.type


REFERENCE: dict[str, Any] = {
    **{name: getattr(math, name) for name in FUNCTIONS if hasattr(math, name)},
    "tgamma": math.gamma,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "abs": abs,
    "fma": lambda x, y, z: x * y + z,
}
NOT_COMPARED = {
    "round",
    "cyl_bessel_j0",
    "cyl_bessel_j1",
    "fmax",
    "fmin",
    "complex",
    "real",
    "imag",
}


@pytest.mark.parametrize(
    "name", [n for n, f in FUNCTIONS.items() if f.pure and n not in NOT_COMPARED]
)
def test_doubles_agree_with_pythons_mathematics(name: str) -> None:
    for x in (0.3, 1.0, 2.75):
        try:
            expected = REFERENCE[name](*[x] * FUNCTIONS[name].arity)
        except ValueError:
            continue
        result = DType.BOOL if FUNCTIONS[name].rule == "test" else F64
        actual = evaluate(name, [np.float64(x)] * FUNCTIONS[name].arity, result)
        assert actual == pytest.approx(expected, rel=4e-16)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("round", [2.5], 3.0),
        ("round", [-0.5], -1.0),
        ("round", [0.49999999999999994], 0.0),
        ("fmin", [math.nan, 1.0], 1.0),
        ("fmax", [1.0, math.nan], 1.0),
        ("fmax", [0.0, -0.0], -0.0),
        ("fmin", [-0.0, 0.0], 0.0),
        ("sqrt", [-1.0], math.nan),
        ("log", [0.0], -math.inf),
        ("exp", [1000.0], math.inf),
        ("tgamma", [200.0], math.inf),
        ("fmod", [-7.0, 2.0], -1.0),
        ("remainder", [7.0, 4.0], -1.0),
        ("copysign", [1.0, -0.0], -1.0),
        ("pow", [2.0, -1.0], 0.5),
        ("atan2", [0.0, -1.0], math.pi),
        ("cyl_bessel_j0", [0.0], 1.0),
        ("cyl_bessel_j1", [0.0], 0.0),
    ],
)
def test_corners(name: str, args: list[float], expected: float) -> None:
    actual = evaluate(name, [np.float64(arg) for arg in args], F64)
    assert repr(float(actual)) == repr(expected)


def test_some_powers_are_products_or_roots() -> None:
    for x in np.random.default_rng(1).uniform(0.1, 10.0, 200):
        assert evaluate("pow", [x, np.float64(2.0)], F64) == x * x
        assert evaluate("pow", [x, np.float64(3.0)], F64) == x * x * x
        assert evaluate("pow", [x, np.float64(0.5)], F64) == np.sqrt(x)
        single = np.float32(x)
        assert evaluate("pow", [single, np.float32(3.0)], F32) == single * single * single


@pytest.mark.parametrize("exponent", POWERS)
@pytest.mark.parametrize(
    "x", [0.0, -0.0, math.inf, -math.inf, math.nan, -2.0, 1e-200, -1e200, 5e-324]
)
def test_powers_at_the_edges_are_those_of_the_c_library(x: float, exponent: float) -> None:
    try:
        expected = math.pow(x, exponent)
    except (ValueError, OverflowError):  # Python's; C gives NaN or an infinity
        expected = math.nan if exponent == 0.5 else math.copysign(math.inf, x ** (exponent - 2))
    actual = evaluate("pow", [np.float64(x), np.float64(exponent)], F64)
    assert repr(float(actual)) == repr(expected)


def test_single_precision_is_computed_in_single_precision() -> None:
    x = np.float32(0.1)
    assert evaluate("sqrt", [x], F32) == np.sqrt(x)
    # a float32 function may differ from the rounded double, but by one unit in the last place
    assert evaluate("exp", [x], F32) == pytest.approx(np.float32(math.exp(x)), rel=1.2e-7)


def test_integers_and_complex_numbers() -> None:
    assert evaluate("abs", [np.int32(-7)], I32) == 7
    assert evaluate("abs", [np.complex128(3 + 4j)], F64) == 5.0
    made = evaluate("complex", [np.float64(1), np.float64(-2)], DType.COMPLEX128)
    assert made == 1 - 2j


def test_without_the_c_library_python_computes() -> None:
    compute = maths._python_function
    assert compute("tgamma")(5.0) == 24.0
    assert math.isnan(compute("acos")(2.0))
    assert compute("exp")(1e4) == math.inf


_SPECIAL = (0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 64.0, 2.0**52 + 0.5, -(2.0**53) - 2.0, 1e300, 5e-324)
_NUMBERS = (*_SPECIAL, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("name", sorted(arithmetic.FAST))
def test_what_the_interpreter_computes_without_numpy_is_the_same(name: str) -> None:
    arity = FUNCTIONS[name].arity
    fast = arithmetic.function(name, (F64,) * arity, F64)
    assert fast is arithmetic.FAST[name]
    for numbers in itertools.product(_NUMBERS, repeat=arity):
        expected = evaluate(name, [np.float64(x) for x in numbers], F64).item()
        assert repr(fast(*numbers)) == repr(expected), numbers
