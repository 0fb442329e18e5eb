"""Checks in C++: subscripts are tested before memory is touched, divisors of integers for 0.

The first mistake ends the kernel at once, by a jump out of the loops: going on with a made-up value
could divide by it or loop for ever. What was wrong goes to an array of 64-bit integers that the
entry point takes as its last argument: 1 + the number of the access (its place in
`ir.accesses`), axis, index and extent, then the iteration's indices. Divisions are
counted on after the accesses; axis, index and extent are then 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyfuser.codegen.c.expressions import Expressions
from pyfuser.ir import nodes
from pyfuser.ir.accesses import AccessNode, accesses
from pyfuser.ir.divisions import Division, divisions
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, Sym
from pyfuser.ir.visit import statements, sym_of
from pyfuser.nest.spec import ViewSpec


class Declared(NamedTuple):
    """A parameter of an entry point."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class CheckedExpressions(Expressions):
    """Prints expressions whose accesses and divisors are tested; one thread runs the kernel."""

    by_doubles: Mapping[str, str] = {}

    def __init__(
        self,
        names: Mapping[Sym, str],
        views: Mapping[Sym, ViewSpec],
        strides: Mapping[int, str],
        body: Body,
    ) -> None:
        super().__init__(names, views, strides, serial=True)
        self._nodes = tuple(
            access.node for access in accesses(body)
        )  # keeps the ids below from being reused
        self._numbers = {id(access): n for n, access in enumerate(self._nodes)}
        self._divisions = tuple(divisions(body))
        self._division_numbers = {
            id(division): n for n, division in enumerate(self._divisions, len(self._nodes))
        }
        self._lengths = {
            s.sym: len(s.values) for s in statements(body) if isinstance(s, nodes.DeclareArray)
        }

    def division(self, op: str, dtype: DType, left: str, right: str, e: Division) -> str:
        divisor = f"pf_divisor<{dtype.cpp}>({right}, {self._division_numbers[id(e)]})"
        return f"{super().division(op, dtype, left, divisor, e)}"

    def element(self, access: AccessNode) -> str:
        """The element, as an lvalue at the address that `pf_at` gives."""
        view = sym_of(access)
        assert view is not None
        if view in self.made:
            return super().element(access)
        spec, kind = self.views.get(view), view.dtype.cpp
        if spec is not None and not spec.packed:
            self.unaligned.add(view.dtype)
            kind = f"pf_unaligned_{view.dtype.value}"
        subscripts = ", ".join(
            f"{{(int64_t)({self.text(index)}), {extent}, {stride}}}"
            for index, extent, stride in zip(
                access.indices, *self._extents_and_strides(view, spec), strict=True
            )
        )
        const = "" if spec is None or spec.written else "const "
        cell = f"pf_at<{len(access.indices)}>((char*){self.names[view]}"
        return f"*({const}{kind}*){cell}, {self._numbers[id(access)]}, {{{subscripts}}})"

    def _extents_and_strides(
        self, view: Sym, spec: ViewSpec | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        """For each axis the extent, and the stride in bytes."""
        size = str(view.dtype.size)
        if spec is None:
            return [str(self._lengths[view])], [size]
        steps = [
            str(-s * int(size))
            if s < 0
            else self.strides[s] + (f" * {size}" if spec.packed else "")
            for s in spec.strides
        ]
        return [self.extent_name(view, axis) for axis in range(len(steps))], steps


def guard(nothing: str) -> str:
    """What a function that holds loops starts with: a mistake in them makes it return `nothing`."""
    return f"if (pf_report[0] || setjmp(pf_end)) return{' ' * bool(nothing)}{nothing};"


REPORT = Declared("int64_t*", "report")
"""The further parameter of the entry point of a checked kernel."""


def guarded(results: Sequence[Declared], outside: int) -> list[str]:
    """What that entry point does, around the usual one. results: its parameters after the slots."""
    names = "".join(f", {parameter.name}" for parameter in results)
    return [
        "pf_report = report;",
        f"const int status = pf_unguarded(slot{names});",
        f"return report[0] ? {outside} : status;",
    ]
