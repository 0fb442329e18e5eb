"""Calls of `pow` whose exponent is a constant for which it is no call of the C library."""

from __future__ import annotations

from pyfuser.ir.maths import POWERS
from pyfuser.ir.nodes import Call, Cast, Const


def power_of(call: Call) -> str:
    """Our name for a call of `pow` of reals with a constant exponent of POWERS; else ""."""
    if call.name != "pow" or call.dtype.is_complex:
        return ""
    exponent = call.args[1]
    while isinstance(exponent, Cast):
        exponent = exponent.operand
    power = POWERS.get(exponent.value) if isinstance(exponent, Const) else None
    return power.name if power is not None else ""
