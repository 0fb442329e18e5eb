"""Integer set emptiness by isl (S. Verdoolaege, "isl: An Integer Set Library", 2010).

islpy is imported when the first question comes that no syntactic test can answer: importing it
takes about a tenth of a second.
"""

from __future__ import annotations

from typing import Any

from pyfuser.support.caches import once

MAX_OPERATIONS = 2_000_000  # of isl on one question; about a second


@once
def _library() -> tuple[Any, Any]:
    import islpy

    context = islpy.Context()
    context.set_max_operations(MAX_OPERATIONS)
    return islpy, context


def is_empty(variables: list[str], constraints: list[str]) -> bool | None:
    """Whether no integer point satisfies all the constraints (in isl's notation).

    None: isl gave up.
    """
    islpy, context = _library()
    text = f"{{ [{', '.join(variables)}] : {' and '.join(constraints) or 'true'} }}"
    context.reset_operations()
    try:
        return bool(islpy.Set(text, context).is_empty())
    except islpy.Error:
        return None


def extremes(variables: list[str], constraints: list[str]) -> tuple[int, int] | None:
    """The least and greatest value of the first variable where all the constraints hold.

    None: they never hold, or isl gave up.
    """
    islpy, context = _library()
    text = f"{{ [{', '.join(variables)}] : {' and '.join(constraints)} }}"
    context.reset_operations()
    try:
        points = islpy.Set(text, context)
        if points.is_empty():
            return None
        ends = points.dim_min_val(0), points.dim_max_val(0)
        low, high = (end.to_python() if end.is_int() else None for end in ends)
    except islpy.Error:
        return None
    return None if low is None or high is None else (int(low), int(high))
