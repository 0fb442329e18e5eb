"""The oracle's integers against those of a C++ compiler: all operators, all pairs of types."""

from __future__ import annotations

import contextlib
import operator
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pyfuser.support.settings import SETTINGS
from tests.fuzz.cxx import Number, as_kind, chosen

KINDS = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
_SOURCE = r"""
#include <cstdint>
#include <cstdio>

static const char* name(bool) { return "bool"; }
%NAMES%
template <class T> void show(T v) {
    if (T(-1) < T(0)) printf("%s %lld\n", name(v), (long long)v);
    else printf("%s %llu\n", name(v), (unsigned long long)v);
}
template <class A, class B> bool divides(A a, B b) {
    typedef decltype(a + b) C;
    return C(b) != 0 && !(C(-1) < C(0) && C(b) == C(-1) && a && C(a) == C(-C(a)));
}
template <class A, class B> void both(A a, B b) {
    show(a + b); show(a - b); show(a * b); show(a & b); show(a | b); show(a ^ b);
    show(a < b); show(a <= b); show(a > b); show(a >= b); show(a == b); show(a != b);
    show(true ? a : b); show((B)a);
    if (divides(a, b)) { show((int)(a / b)); show(a % b); }
}
template <class A> void one(A a) {
    show(-a); show(~a); show(+a); show((bool)a); show(a << 3); show(a >> 3); show(a >> (uint64_t)1);
    printf("%a\n", (double)a);
}
%VALUES%
template <class A, int N, class B, int M> void pairs(const A (&a)[N], const B (&b)[M]) {
    for (A x : a) for (B y : b) both(x, y);
}
int main() {
%CALLS%
}
"""


def _values(kind: str) -> list[int]:
    limits = np.iinfo(kind)
    found = {0, 1, 3, 100, 200, 255, 40000, 70000, -1, -5, limits.min, limits.max, limits.max // 3}
    return sorted(value for value in found if limits.min <= value <= limits.max)


def _literal(value: int, kind: str) -> str:
    return f"({kind}_t){value % 2**64}ull"


def _source() -> str:
    names = [f'static const char* name({kind}_t) {{ return "{kind}"; }}' for kind in KINDS]
    values = [
        f"static const {kind}_t of_{kind}[] = "
        f"{{{', '.join(_literal(value, kind) for value in _values(kind))}}};"
        for kind in KINDS
    ]
    calls = [f"    pairs(of_{a}, of_{b});" for a in KINDS for b in KINDS]
    calls += [f"    for ({kind}_t x : of_{kind}) one(x);" for kind in KINDS]
    text = _SOURCE.replace("%NAMES%", "\n".join(names)).replace("%VALUES%", "\n".join(values))
    return text.replace("%CALLS%", "\n".join(calls))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return f"bool {int(value)}"
    return f"{value.kind} {value.value}" if isinstance(value, Number) else str(value)


_Binary = Callable[[Number, Number], object]
_BINARY: list[_Binary] = [
    *(operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    lambda a, b: chosen(True, lambda: a, lambda: b),
    lambda a, b: as_kind(b.kind, a),
]


def _both(a: Number, b: Number) -> Iterator[str]:
    yield from (_shown(operation(a, b)) for operation in _BINARY)
    with contextlib.suppress(ArithmeticError):
        yield from (_shown(a // b), _shown(a % b))


def _one(a: Number) -> Iterator[str]:
    for value in (-a, ~a, +a, as_kind("bool", a), a << 3, a >> 3, a >> Number(1, "uint64")):
        yield _shown(value)
    yield f"{float(a).hex()}"


def _expected() -> Iterator[str]:
    for left in KINDS:
        for right in KINDS:
            for x in _values(left):
                for y in _values(right):
                    yield from _both(Number(x, left), Number(y, right))
    for kind in KINDS:
        for x in _values(kind):
            yield from _one(Number(x, kind))


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
def test_numbers_compute_as_a_compiler_does(tmp_path: Path) -> None:
    source, program = tmp_path / "numbers.cpp", tmp_path / "numbers"
    source.write_text(_source())
    command = [SETTINGS.compiler, "-std=c++17", "-fwrapv", "-w", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    found = [
        float.fromhex(line).hex() if line.lstrip("-").startswith("0x") else line
        for line in output.splitlines()
    ]
    expected = list(_expected())
    assert len(expected) > 100_000
    for n, (left, right) in enumerate(zip(expected, found, strict=True)):
        assert left == right, n
