"""Functions of NumPy's that keep nothing of what they are given: called at once on small arrays.

With the extension such a call takes some 50 ns more than NumPy's; without it, Python decides.
"""

from __future__ import annotations

from typing import Any

from pyfuser.support.extension import NUMPY

(
    MOST, COSTLY, KEEPS, CREATES, NUMBERS, RIPENS, SUMS, STORES, PAIRS, RESHAPES, JOINS, VIEWS,
    SEARCHES, ANY,
) = *range(13), -1  # fmt: skip
"""Which limit of `switches.LIMITS` arrays are below: of most, of costly functions, none. The others
are of most. KEEPS: a result of objects may refer to arrays in a list. CREATES: the first argument
is the shape of a new array. NUMBERS: no argument is an array. RIPENS: `record.is_due` decides.
SUMS: see `sums`, and along axes `record.is_due` decides. STORES: the first argument is written.
PAIRS: the result has an element for each pair of theirs. RESHAPES: it is the first argument with
other axes. JOINS: it is made of a list of arrays; `record.is_due` decides. VIEWS: the result is the
first argument with elements of another type. SEARCHES: see
`lookup.SEARCH`."""


def kind_of(name: str) -> int:
    """What decides of a reduction."""
    if name in ("sum", "mean", "var", "std"):
        return SUMS
    return RIPENS if name in ("prod", "min", "max", "any", "all", "argmin", "argmax") else MOST


def at_once(
    numpys: Any,
    python: Any,
    size: int = MOST,
    arrays: int = 1,
    first: bool = False,
    method: bool = False,
    operation: Any = None,
    out: bool = False,
) -> Any:
    """`numpys` for small arrays on which nothing is pending, and for numbers; else `python`.

    arrays: how many of the first arguments are arrays; one after these would take the result.
    first: whether that is so only if the first argument is an array of ours; then the result may be
    a view of that one, or a list of such. method: makes a method of the class of arrays. operation:
    what the extension records for it; or a table with one for each value of the argument after the
    arrays; or how arrays are joined. out: whether an array may be named that takes the result, as
    ufuncs have it.
    """
    if NUMPY is None:
        return python
    if method:
        return NUMPY.Method(numpys, python, size, True, arrays, operation)
    return NUMPY.Function(numpys, python, size, first, arrays, operation, out)
