"""Numbers from outside a workunit that change: arguments of its calls, which nobody writes.

A global or closure number is a constant of the code (see `lower.free`). A program that changes one
each step would have each step compiled. So the third value of a float that is named by itself makes
it an argument from then on: calls have it under its name in angle brackets, and what is lowered for
them reads it. Integers stay constants, as what is indexed or counted by them depends on their
values; so do floats of code with a power, which is cheaper for exponents that are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.ir.nodes import Call, Workunit
from pyfuser.ir.visit import all_expressions
from pyfuser.lower.free import outside, unwrapped

VALUES = 2
"""Values that are constants."""


def watch(
    state: WorkunitState, before: Sequence[Iterable[tuple[str, object]]], code: Workunit
) -> None:
    """Look at the values that earlier code took from outside, now that none of them is right."""
    if len(before) < VALUES or any(
        isinstance(each, Call) and each.name == "pow" for each in all_expressions(code.body)
    ):
        return
    function = unwrapped(state.function)
    for path, value in before[-1]:
        if path.isidentifier() and type(value) is float and path not in state.changing:
            now = outside(function, path)
            if type(now) is float and repr(now) != repr(value):
                state.changing.append(path)


def with_changing(state: WorkunitState, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with numbers from outside as they are now."""
    from pyfuser.lower.lower import outer_name

    function = unwrapped(state.function)
    found = {outer_name(name): outside(function, name) for name in state.changing}
    return arguments | {name: value for name, value in found.items() if type(value) is float}
