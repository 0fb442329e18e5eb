"""Calls of `pow`: those that are no call of the C library, and those of whole numbers."""

from __future__ import annotations

from pyfuser.ir.maths import POWERS
from pyfuser.ir.nodes import Call, Cast, Const

_MAX_BITS = 1024  # a double has no greater power


def power_of(call: Call) -> str:
    """Our name for a call of `pow` of reals with a constant exponent of POWERS; else ""."""
    if call.name != "pow" or call.dtype.is_complex:
        return ""
    exponent = call.args[1]
    while isinstance(exponent, Cast):
        exponent = exponent.operand
    power = POWERS.get(exponent.value) if isinstance(exponent, Const) else None
    return power.name if power is not None else ""


def whole_power(base: int | None, exponent: int | None) -> int | None:
    """`base ** exponent`, if both are known and a double is about as great."""
    if base is None or exponent is None or not 0 <= exponent <= _MAX_BITS:
        return None
    return base**exponent if base.bit_length() * exponent <= _MAX_BITS else None
