"""Integer set emptiness by isl (S. Verdoolaege, "isl: An Integer Set Library", 2010).

islpy is imported when the first question comes that no syntactic test can answer: importing it
takes about a tenth of a second.
"""

from __future__ import annotations

from functools import cache
from typing import Any

MAX_OPERATIONS = 2_000_000  # of isl on one question; about a second


@cache
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
