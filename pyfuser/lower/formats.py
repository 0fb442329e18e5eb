"""The formats of pk.printf: C does not compare them with the values, and shows what is none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyfuser.ir.dtypes import DType

_CONVERSION = re.compile(
    r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|j|z|t|L|q)?(.)", re.DOTALL
)
_OF_FLOATS, _OF_INTEGERS = "fFeEgGaA", "diouxXc"


def wrong_format(text: str, types: Sequence[DType]) -> str:
    """What is wrong with a format for values of these types; empty if nothing is."""
    conversions = [c for c in _CONVERSION.finditer(text) if c[1] != "%"]
    if any("*" in c[0] for c in conversions):  # widths are values, too
        return ""
    if len(conversions) != len(types):
        return f"the text shows {len(conversions)} value(s), and {len(types)} are given"
    for conversion, dtype in zip(conversions, types, strict=True):
        shown, kind = conversion[0], conversion[1]
        if kind not in _OF_FLOATS + _OF_INTEGERS:
            return f"{shown!r} shows no number: use %d, or %f for a float"
        if dtype.is_integer and kind in _OF_FLOATS:
            return f"{shown!r} shows a float, not {dtype.value}: use %d, or pk.double(...)"
        if not dtype.is_integer and kind in _OF_INTEGERS:
            return f"{shown!r} shows an integer, not {dtype.value}: use %f, or int(...)"
    return ""
