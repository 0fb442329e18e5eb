"""Vector maths: the same bits in every lane, width and remainder; accurate; really vectorised."""

from __future__ import annotations

import ctypes
import itertools
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.headers import header
from pyfuser.codegen.c.maths import vector as maths_vector
from pyfuser.codegen.cpu.unit import FOLDERS
from pyfuser.engine.compiler import LINK_FLAGS, find_compiler, flags
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, POWERS, evaluate
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.target import Target, host

ROUNDED = header("rounded", FOLDERS).text

Array = np.ndarray[Any, Any]
Function = tuple[str, DType]

DTYPES = {"f64": DType.FLOAT64, "f32": DType.FLOAT32}
COVERED = sorted(host().vector_maths, key=lambda f: (f[0], f[1].value))
NARROW_HOST = replace(host(), vector_bytes=32)
WIDTH_SAMPLE = [f for f in COVERED if f[0] in ("exp", "log", "pow", "sin", "tan", "erf")]
ULP = 4.0  # what libmvec documents
NARROW = ("-mno-avx512f",)

needs_libmvec = pytest.mark.skipif(not COVERED, reason="no libmvec (x86-64, AVX2, glibc 2.22)")


def suffix(dtype: DType) -> str:
    return "f64" if dtype is DType.FLOAT64 else "f32"


def identifier(function: Function) -> str:
    return f"{function[0]}_{suffix(function[1])}"


class Library:
    """Loops over functions, compiled: vectorised, one call at a time, and in long double."""

    def __init__(
        self,
        directory: Path,
        functions: list[Function],
        options: tuple[str, ...],
        doubled: bool = False,
    ):
        source, target = directory / "loops.cpp", directory / "loops.so"
        processor = NARROW_HOST if options[:1] == NARROW else host()
        source.write_text(_source(functions, processor, doubled))
        command = [*find_compiler(SETTINGS.compiler).command, *flags(False), *options]
        command += ["-fopt-info-vec-optimized", str(source), "-o", str(target)]
        done = subprocess.run([*command, *LINK_FLAGS], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
        lines = source.read_text().splitlines()
        self.vectorised = {
            lines[int(line.split(":")[1]) - 1]
            for line in done.stderr.splitlines()
            if "loop vectorized" in line
        }
        self.library = ctypes.CDLL(str(target))

    def vector(self, function: Function, x: Array, y: Array) -> Array:
        """One vectorised loop over all elements."""
        return self._run(f"vector_{identifier(function)}", None, np.empty_like(x), x, y)

    def scalar(self, function: Function, x: Array, y: Array) -> Array:
        """The function called through a pointer, one element at a time."""
        name, kind = identifier(function), suffix(function[1])
        pointer = ctypes.c_void_p.in_dll(self.library, f"scalar_{name}")
        loop = f"each_{FUNCTIONS[function[0]].arity}_{kind}"
        return self._run(loop, pointer, np.empty_like(x), x, y)

    def exact(self, function: Function, x: Array, y: Array) -> Array:
        """The C library's long double function."""
        pointer = ctypes.c_void_p.in_dll(self.library, f"exact_{function[0]}")
        loop = f"exact_{FUNCTIONS[function[0]].arity}_{suffix(function[1])}"
        return self._run(loop, pointer, np.empty(x.shape, np.longdouble), x, y)

    def mixed(self, x: Array) -> tuple[Array, Array]:
        """exp of floats in both precisions: in one loop, and in one that is not vectorised."""
        wide, narrow = np.empty_like(x), np.empty_like(x)
        return self._run("mixed", None, wide, x, x), self._run("mixed_scalar", None, narrow, x, x)

    def _run(self, name: str, pointer: Any, result: Array, x: Array, y: Array) -> Array:
        arguments = [] if pointer is None else [pointer]
        arguments += [ctypes.c_void_p(a.ctypes.data) for a in (result, x, y)]
        self.library[name](*arguments, ctypes.c_int64(x.size))
        return result


def _source(functions: list[Function], target: Target, doubled: bool) -> str:
    text = ["#include <stdint.h>", ROUNDED]
    mixed = {(name, dtype) for name in ("exp",) for dtype in DTYPES.values()}
    text += [maths_vector.prelude(frozenset(functions) | mixed, target, doubled), 'extern "C" {']
    for name in dict.fromkeys(name for name, _ in functions):
        arity = FUNCTIONS[name].arity
        types = ", ".join(["long double"] * arity)
        text.append(f"auto exact_{name} = (long double (*)({types}))__builtin_{name}l;")
    for function in functions:
        t, name = function[1].cpp, identifier(function)
        arity = FUNCTIONS[function[0]].arity
        text.append(f"{t} (*scalar_{name})({', '.join([t] * arity)}) = pf_{name};")
        text.append(
            f"void vector_{name}({t}* __restrict__ r, const {t}* x, const {t}* y, int64_t n) "
            f"{{ for (int64_t i = 0; i < n; ++i) r[i] = pf_{name}({_elements(arity)}); }}"
        )
    for (kind, dtype), arity in itertools.product(DTYPES.items(), (1, 2)):
        for loop, t in (("each", dtype.cpp), ("exact", "long double")):
            text.append(
                f"void {loop}_{arity}_{kind}({t} (*f)({', '.join([t] * arity)}), {t}* r, "
                f"const {dtype.cpp}* x, const {dtype.cpp}* y, int64_t n) "
                f"{{ for (int64_t i = 0; i < n; ++i) r[i] = f({_elements(arity)}); }}"
            )
    body = "r[i] = pf_exp_f32(x[i]) + (float)pf_exp_f64((double)x[i]) * y[i];"
    for name, attribute in (
        ("mixed", ""),
        ("mixed_scalar", '__attribute__((optimize("no-tree-vectorize")))'),
    ):
        text.append(
            f"{attribute} void {name}(float* __restrict__ r, const float* x, const float* y, "
            f"int64_t n) {{ for (int64_t i = 0; i < n; ++i) {body} }}"
        )
    return "\n".join([*text, "}\n"])


def _elements(arity: int) -> str:
    return ", ".join(["x[i]", "y[i]"][:arity])


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays are equal; NaNs are, whatever they carry."""
    integer = np.int64 if a.dtype == np.float64 else np.int32
    return bool(((a.view(integer) == b.view(integer)) | (np.isnan(a) & np.isnan(b))).all())


def specials(dtype: DType) -> Array:
    info = np.finfo(dtype.numpy)
    half = [0.0, 0.5, 0.75, 1, 2, 3, 88, 700, 1e-30, 1e30, info.eps, info.max, info.tiny, np.inf]
    half += [info.tiny / 3, info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg]
    return np.array([*half, *(-v for v in half), np.nan], dtype.numpy)


def points(dtype: DType, n: int, seed: int = 1) -> Array:
    """Random bits, wide magnitudes, small numbers and special ones, next to each other."""
    rng = np.random.default_rng(seed)
    integer = np.int64 if dtype is DType.FLOAT64 else np.int32
    limits = np.iinfo(integer)
    parts = [
        rng.integers(limits.min, limits.max, n, dtype=integer).view(dtype.numpy),
        rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-6, 3, n),
        rng.uniform(-10, 10, n),
        rng.uniform(-1, 1, n),
        rng.choice(specials(dtype), n // 8),
    ]
    with np.errstate(over="ignore"):
        together = np.concatenate([part.astype(dtype.numpy) for part in parts])
    return rng.permutation(together)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("native"), COVERED, ())


@pytest.fixture(scope="module")
def by_width(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    """The same functions with the vectors that g++ prefers set to each size, and without any."""
    options = {w: (f"-mprefer-vector-width={w}",) for w in ("128", "256", "512")}
    options["none"] = ("-fno-tree-vectorize",)
    return {
        name: Library(tmp_path_factory.mktemp(name), WIDTH_SAMPLE, option)
        for name, option in options.items()
    }


@needs_libmvec
@pytest.mark.parametrize("function", COVERED, ids=identifier)
def test_loop_is_vectorised(library: Library, function: Function) -> None:
    assert any(f"void vector_{identifier(function)}(" in line for line in library.vectorised)


@needs_libmvec
@pytest.mark.parametrize("function", COVERED, ids=identifier)
def test_bits_depend_on_arguments_alone(library: Library, function: Function) -> None:
    x, y = points(function[1], 5000), points(function[1], 5000, seed=2)
    expected = library.scalar(function, x, y)
    assert same_bits(library.vector(function, x, y), expected)
    shuffled = np.random.default_rng(3).permutation(x.size)
    assert same_bits(library.vector(function, x[shuffled], y[shuffled]), expected[shuffled])
    for n in range(40):  # every remainder of every width
        assert same_bits(library.vector(function, x[n : 2 * n], y[n : 2 * n]), expected[n : 2 * n])


@needs_libmvec
@pytest.mark.parametrize("function", COVERED, ids=identifier)
def test_within_documented_error(library: Library, function: Function) -> None:
    dtype = function[1]
    x, y = points(dtype, 20_000), points(dtype, 20_000, seed=2)
    actual, exact = library.vector(function, x, y), library.exact(function, x, y)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype.numpy)
        finite = np.isfinite(rounded)
        ulp = np.spacing(np.abs(rounded[finite])).astype(np.longdouble)
        error = np.abs(actual[finite] - exact[finite]) / ulp
    assert error.max() <= ULP
    assert same_bits(actual[~finite], rounded[~finite])


@needs_libmvec
def test_exp_of_floats_is_rounded_once(library: Library) -> None:
    exp = ("exp", DType.FLOAT32)
    x = np.random.default_rng(1).uniform(-105, 90, 100_000).astype(np.float32)
    actual, exact = library.vector(exp, x, x), library.exact(exp, x, x)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    assert np.count_nonzero(actual != rounded) <= 50
    finite = np.isfinite(rounded)
    assert (np.abs(actual - exact)[finite] <= 0.501 * np.spacing(rounded[finite])).all()


@needs_libmvec
@pytest.mark.parametrize("function", COVERED, ids=identifier)
def test_special_values(library: Library, function: Function) -> None:
    """Infinities, NaNs and signed zeros as the scalar functions have them."""
    x, y = (a.ravel() for a in np.meshgrid(specials(function[1]), specials(function[1])))
    actual = library.vector(function, x, y)
    with np.errstate(all="ignore"):
        exact = library.exact(function, x, y).astype(x.dtype)
    special = ~np.isfinite(exact) | (exact == 0) & (actual == 0)
    assert special.any() or function[0] in ("cosh", "erf")
    assert same_bits(actual[special], exact[special])
    assert same_bits(actual[~np.isfinite(actual)], exact[~np.isfinite(actual)])


@needs_libmvec
@pytest.mark.parametrize("function", WIDTH_SAMPLE, ids=identifier)
def test_bits_are_those_of_any_width(by_width: dict[str, Library], function: Function) -> None:
    x, y = points(function[1], 2000), points(function[1], 2000, seed=2)
    assert not by_width["none"].vectorised
    expected = by_width["none"].vector(function, x, y)
    for width in ("128", "256", "512"):
        library = by_width[width]
        assert any(f"void vector_{identifier(function)}(" in line for line in library.vectorised)
        assert same_bits(library.vector(function, x, y), expected)


@needs_libmvec
@pytest.mark.parametrize("doubled", [False, True])
def test_loops_of_doubles_take_two_vectors_at_a_time(tmp_path: Path, doubled: bool) -> None:
    """The steps of their polynomials wait for each other: of two vectors they overlap."""
    source = tmp_path / "loop.cpp"
    prelude = maths_vector.prelude(frozenset({("log", DType.FLOAT64)}), NARROW_HOST, doubled)
    source.write_text(
        f"#include <stdint.h>\n{ROUNDED}{prelude}"
        "void loop(double* __restrict__ r, const double* x, int64_t n) "
        "{ for (int64_t i = 0; i < n; ++i) r[i] = pf_log_f64(x[i]); }\n"
    )
    command = [*find_compiler(SETTINGS.compiler).command, *flags(False), *NARROW, "-S"]
    subprocess.run([*command, str(source), "-o", str(tmp_path / "loop.s")], check=True)
    lines = (tmp_path / "loop.s").read_text().splitlines()
    assert sum("vdivpd" in line and "ymm" in line for line in lines) == 1 + doubled


@needs_libmvec
@pytest.mark.parametrize("name", ["exp", "log"])
def test_bits_are_those_of_one_vector_at_a_time(
    library: Library, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    function = (name, DType.FLOAT64)
    doubled = Library(tmp_path_factory.mktemp(name), [function], (), doubled=True)
    edges = [-746.0, 710.0, -745.13321910194122, 709.78271289338397, 0.5**0.5, 2.0**-1022]
    near = [np.nextafter(x, to) for x in edges for to in (-np.inf, np.inf)]
    x = np.concatenate([points(function[1], 20_000), specials(function[1]), edges, near])
    expected = library.scalar(function, x, x)
    assert same_bits(doubled.vector(function, x, x), expected)
    assert same_bits(doubled.scalar(function, x, x), expected)
    for n in range(20):  # remainders
        assert same_bits(doubled.vector(function, x[:n], x[:n]), expected[:n])


@needs_libmvec
def test_exp_out_of_range_is_zero_or_infinite(library: Library) -> None:
    """Whatever the polynomial made of such arguments; also beside others in a vector."""
    exp = ("exp", DType.FLOAT64)
    for far in (-746.5, -1000.0, -5000.0, -1e30, -1e308, -np.inf):
        x = np.array([far, 1.0] * 9)
        assert same_bits(library.vector(exp, x, x)[::2], np.zeros(9))
        assert same_bits(library.vector(exp, x, x)[1::2], np.full(9, library.scalar(exp, x, x)[1]))
    for far in (710.5, 1000.0, 5000.0, 1e30, 1e308, np.inf):
        assert same_bits(library.vector(exp, np.full(9, far), np.ones(9)), np.full(9, np.inf))


@needs_libmvec
def test_widths_differ_in_libmvec_itself(
    library: Library, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Why one kernel must serve all widths: that of AVX2 gives other last digits."""
    tan = ("tan", DType.FLOAT64)
    if "avx512f" not in Path("/proc/cpuinfo").read_text() or tan not in COVERED:
        pytest.skip("no AVX-512, or a C library before 2.35")
    avx2 = Library(tmp_path_factory.mktemp("avx2"), WIDTH_SAMPLE, NARROW)
    for function in WIDTH_SAMPLE:
        x = np.random.default_rng(1).uniform(-3, 3, 5001).astype(function[1].numpy)
        assert same_bits(avx2.vector(function, x, x), avx2.scalar(function, x, x))
    x = np.random.default_rng(1).uniform(-3, 3, 5001)
    assert not same_bits(avx2.vector(tan, x, x), library.vector(tan, x, x))


@needs_libmvec
def test_two_precisions_in_one_loop(library: Library) -> None:
    """A loop of 16 floats makes two calls for 8 doubles."""
    assert any(" void mixed(" in line for line in library.vectorised)
    assert not any("void mixed_scalar(" in line for line in library.vectorised)
    assert same_bits(*library.mixed(points(DType.FLOAT32, 2000)))


@needs_libmvec
def test_simple_values_are_exact(library: Library) -> None:
    double = DType.FLOAT64
    for name, at, value in (
        ("exp", 0, 1), ("cos", 0, 1), ("cosh", 0, 1), ("log", 1, 0), ("log2", 1, 0), ("log10", 1, 0)
    ):  # fmt: skip
        if (name, double) in COVERED:
            x = np.full(9, float(at))
            assert (library.vector((name, double), x, x) == value).all()


@needs_libmvec
@pytest.mark.parametrize("exponent", POWERS)
@pytest.mark.parametrize("dtype", DTYPES.values())
def test_some_powers_are_no_calls_of_the_library(
    library: Library, exponent: float, dtype: DType
) -> None:
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e30, 5e-324, -1e308]
    numbers = [*edges, *np.random.default_rng(1).uniform(-9, 9, 100)]
    with np.errstate(over="ignore"):
        x = np.array(numbers, dtype.numpy)
    y = np.full_like(x, exponent)
    expected = np.array([evaluate("pow", pair, dtype) for pair in zip(x, y, strict=True)])
    for run in (library.vector, library.scalar):
        assert same_bits(run(("pow", dtype), x, y), expected)


def test_covers_only_real_transcendental_functions() -> None:
    for name in ("sqrt", "floor", "fmax", "isnan", "printf", "square", "no_such_function"):
        assert (name, DType.FLOAT64) not in host().vector_maths
    for dtype in (DType.INT32, DType.COMPLEX128):
        assert ("exp", dtype) not in host().vector_maths
    assert maths_vector.prelude(frozenset(), host()) == ""
