"""Warnings of what NumPy computes for us name the program's line, once for each."""

from __future__ import annotations

import traceback
import warnings

import numpy
import pytest

import pyfuser.numpy as lazy

N = 1_100_000  # so many that nothing runs at once


def complex_numbers(np, n):
    a = np.arange(n) * (1 + 1j)
    a.astype(float)
    b = np.empty(n)
    b[:] = a + 1
    np.array(a + 1, dtype=float)


def overflows(np, n):
    np.add.reduceat(np.full(n, 1e308) * 1.0, [0, 3])
    np.divide.outer(np.zeros(n) + 0.0, [0.0])
    (np.zeros(n) * 1e300).var(ddof=n + 1)


def of_python(np, n):
    np.nanmean(np.full(n, np.nan) + 1.0)
    (1,) // np.arange(n)
    np.array([2]) // np.arange(n)


def told(work, np, n):
    """Category, text and line of each warning."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        work(np, n)
    return [
        (w.category, str(w.message), w.lineno)
        for w in found
        if w.filename == __file__ or (np is lazy and "pyfuser" in w.filename)
    ]


@pytest.mark.parametrize("n", [8, N])
@pytest.mark.parametrize("work", [complex_numbers, overflows, of_python])
def test_a_warning_names_the_line_of_the_program(work, n):
    expected = told(work, numpy, n)
    assert expected and told(work, lazy, n) == expected


def warns_twice(np):
    for _ in range(3):
        (np.arange(N) * 1j).astype(float)
    (np.arange(N) * 1j).astype(float)


@pytest.mark.parametrize("np", [numpy, lazy])
def test_each_line_warns_once(np):
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        warns_twice(np)
    assert len({w.lineno for w in found}) == len(found) == 2


def test_an_error_shows_the_line_of_the_program_once():
    def fails(np):
        np.linalg.inv(np.zeros((300, 300)))

    lines = {}
    for np in numpy, lazy:
        with pytest.raises(numpy.linalg.LinAlgError) as caught:
            fails(np)
        frames = traceback.extract_tb(caught.value.__traceback__)
        lines[np] = [frame.lineno for frame in frames if frame.filename == __file__]
    assert lines[numpy] == lines[lazy]


@pytest.mark.parametrize("n", [3, N])
def test_arrays_compare_with_what_has_no_common_type(n):
    """As NumPy: nothing is equal; of structures an error, and of shapes that do not fit."""
    others = {
        "timedelta": lambda np: np.timedelta64(3),
        "datetime": lambda np: np.datetime64("2020"),
        "text": lambda np: np.array(["x", "y"])[0],
        "bytes": lambda np: np.array([b"q"])[0],
        "texts": lambda np: np.full(n, "x"),
        "times": lambda np: np.zeros(n, "m8[s]"),
        "structures": lambda np: np.zeros(n, "f8,i4"),
        "another shape": lambda np: np.full(2, "x"),
        "none": lambda np: None,
    }

    def outcome(np, other, operation):
        a = np.arange(n) * 2.0
        try:
            found = operation(a + 1, other(np))
            return isinstance(found, np.ndarray), found.shape, bool(numpy.any(found))
        except Exception as error:
            return type(error), str(error)

    operations = (
        lambda a, b: a == b, lambda a, b: b == a, lambda a, b: a != b, lambda a, b: (a > 1) == b,
    )  # fmt: skip
    for name, other in others.items():
        for operation in operations:
            assert outcome(lazy, other, operation) == outcome(numpy, other, operation), name
