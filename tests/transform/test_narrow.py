"""Locals that hold elements of 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.native import prepare
from pyfuser.ir.nodes import Declare
from pyfuser.ir.visit import statements
from pyfuser.transform.narrow import narrow
from pyfuser.transform.widen import widen
from tests.codegen.build import case

LEAST = (0, 1, 2, 127)
BYTES, SIGNED = (*LEAST, 128, 255), (*LEAST, -128, -1)


def arguments() -> list[Any]:
    """z, and all pairs of bytes of both kinds, beside words."""
    a, b = np.meshgrid(np.array(BYTES, np.uint8), np.array(SIGNED, np.int8))
    u, s = a.ravel(), b.ravel()
    w = np.where(u > 2, 65535 - u.astype(np.int32), u).astype(np.uint16)
    return [np.zeros(u.size, np.int64), u, s, u[::-1].copy(), w]


def greatest(i, z, u, s, v, w):
    m: int = u[i]
    n: int = v[i]
    z[i] = max(m, n)


def kept_greatest(i, z, u, s, v, w):
    m: int = u[i]
    if v[i] > m:
        m = v[i]
    z[i] = m


def with_constants(i, z, u, s, v, w):
    m: int = 0
    if u[i] > 100:
        m = v[i] if s[i] > 0 else 255
    z[i] = m if m > u[i] else -4


def bits(i, z, u, s, v, w):
    m: int = u[i] & 15 | v[i]
    z[i] = m


def of_two_signs(i, z, u, s, v, w):
    m: int = u[i]
    if s[i] < m:
        m = s[i]
    z[i] = m


def of_words(i, z, u, s, v, w):
    m: int = w[i]
    if u[i] > m:
        m = u[i]
    z[i] = m


def of_another(i, z, u, s, v, w):
    m: int = s[i]
    n: int = m
    z[i] = n * n


def used_up(i, z, u, s, v, w):
    m: int = u[i]
    z[i] = m - v[i]


def summed(i, z, u, s, v, w):
    m: int = u[i] + v[i]
    z[i] = m


def added_to(i, z, u, s, v, w):
    m: int = u[i]
    m += 1
    z[i] = m


def negated(i, z, u, s, v, w):
    m: int = u[i]
    if s[i] > 0:
        m = -m
    z[i] = m


def beyond(i, z, u, s, v, w):
    m: int = u[i]
    if s[i] > 0:
        m = 65536
    z[i] = m


def of_all_kinds(i, z, u, s, v, w):
    m: int = w[i]
    if s[i] < 0:
        m = s[i]
    z[i] = m


def of_a_wide_one(i, z, u, s, v, w):
    n: int = u[i] * 2
    m: int = v[i]
    if s[i] < 0:
        m = n
    z[i] = m


def subscript(i, z, u, s, v, w):
    m: int = u[i] & 3
    z[i] = v[m]


def flag(i, z, u, s, v, w):
    m: int = 0
    if u[i] > 9:
        m = 1
    z[i] = m


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (greatest, "uint8 uint8"),
        (kept_greatest, "uint8"),
        (with_constants, "uint8"),
        (bits, "uint8"),
        (of_two_signs, "int16"),
        (of_words, "uint16"),
        (of_another, "int8 int32"),
        (used_up, "int32"),
        (summed, "int32"),
        (added_to, "int32"),
        (negated, "int32"),
        (beyond, "int32"),
        (of_all_kinds, "int32"),
        (of_a_wide_one, "int32 int32"),
        (subscript, "int32"),
        (flag, "int32"),
    ],
)
def test_locals_have_the_least_type_that_has_all_their_values(
    function: Callable[..., None], types: str
) -> None:
    given = case(function, [arguments()[0].size], arguments, widened=False)
    kernel = narrow(given.kernel)
    declared = [
        s.sym.dtype.value for s in statements(kernel.workunit.body) if isinstance(s, Declare)
    ]
    assert " ".join(declared) == types
    assert (kernel.workunit is given.kernel.workunit) == ({*types.split()} == {"int32"})
    changed = replace(given, kernel=widen(kernel))
    (launchable,) = prepare([changed.kernel])
    for (found, *_), (wanted, *_) in (
        (changed.run(launchable)[0], given.interpreted()[0]),
        (changed.interpreted()[0], given.interpreted()[0]),
    ):
        np.testing.assert_array_equal(found, wanted)


def test_casts_that_change_nothing_go() -> None:
    given = case(greatest, [arguments()[0].size], arguments, widened=False)
    text = emit(spec_of(narrow(given.kernel)))
    assert "const uint8_t n = v[i];" in text
