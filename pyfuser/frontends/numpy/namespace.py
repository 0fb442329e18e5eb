"""What `pyfuser.numpy` has: names of ours, ufuncs, NumPy's types and constants, and all else."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import (
    functions,
    known,
    lookup,
    rearranged,
    tallies,
    ufuncs,
)
from pyfuser.frontends.numpy.at_once import (
    ANY,
    CREATES,
    JOINS,
    KEEPS,
    NUMBERS,
    PAIRS,
    RIPENS,
    SEARCHES,
    STORES,
    at_once,
    kind_of,
)
from pyfuser.frontends.numpy.compiled import ndarray
from pyfuser.frontends.numpy.fallbacks import (
    Module,
    Subscripted,
    fallbacks,
    function_of,
    safe_function,
)
from pyfuser.frontends.numpy.operations import NAMED, WHERE
from pyfuser.frontends.numpy.spaces import set_space

_VIEWERS = (
    "transpose", "swapaxes", "squeeze", "moveaxis", "rollaxis", "expand_dims", "diagonal",
    "permute_dims", "matrix_transpose", "flip", "flipud", "fliplr", "broadcast_to", "rot90",
    "array_split", "hsplit", "vsplit", "dsplit", "atleast_1d", "atleast_2d", "atleast_3d",
)  # fmt: skip
_CREATORS = (
    "arange", "linspace", "logspace", "geomspace", "eye", "identity", "tri", "fromstring",
    "hanning", "hamming", "blackman", "bartlett", "kaiser",
)  # fmt: skip
_ATTRIBUTES = (
    "shape", "ndim", "size", "iscomplexobj", "isrealobj", "isscalar",
    "result_type", "can_cast", "broadcast_shapes", "min_scalar_type", "promote_types",
)  # fmt: skip
_METHODS = (
    "sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax", "cumsum",
    "cumprod", "reshape", "ravel",
)  # fmt: skip
_ALIASES = {"amin": "min", "amax": "max"}
_REARRANGED = (
    "concatenate", "stack", "hstack", "vstack", "column_stack", "append", "roll", "diff", "repeat",
    "tile", "pad",
)  # fmt: skip
_JOINED = frozenset(["concatenate", "stack", "hstack", "vstack", "column_stack"])
_FUNCTIONS = (
    "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "array", "zeros",
    "empty", "ones", "full", "zeros_like", "ones_like", "empty_like",
    "full_like", "where", "clip", "copy", "copyto", "shares_memory",
    "may_share_memory",
)  # fmt: skip


_SAFE = (
    "dot", "vdot", "inner", "kron", "cross", "tensordot", "convolve", "correlate",
    "bincount", "count_nonzero", "allclose", "array_equal",
    "isclose", "nan_to_num", "nansum", "nanmean", "nanmax", "nanmin", "median", "percentile",
    "ptp", "sort", "argsort", "triu", "tril", "insert",
    "delete", "gradient", "vander", "polyval", "dstack",
    "round", "around", "trace", "angle", "isin", "nonzero", "cov", "corrcoef", "average",
    "take_along_axis", "unravel_index", "ravel_multi_index", "quantile", "einsum", "meshgrid",
    "histogram2d", "choose", "flatnonzero", "argwhere", "trapezoid", "select",
    "unique", "lexsort", "partition", "argpartition", "nancumsum", "nanstd", "nanvar", "nanargmax",
    "nanargmin", "nanprod", "nanmedian", "nanpercentile", "nanquantile", "ediff1d", "setdiff1d",
    "intersect1d", "union1d", "unwrap", "packbits", "unpackbits", "compress", "extract", "take",
    "diagflat", "resize", "sinc", "iscomplex", "isreal", "fix", "roots", "polyfit",
    "polymul", "polyder", "polyint", "cumulative_sum", "array_equiv",
    "indices", "tril_indices", "triu_indices", "tril_indices_from", "triu_indices_from",
    "diag_indices", "diag_indices_from", "ix_", "block", "real_if_close", "trim_zeros", "poly",
    "histogram_bin_edges", "histogramdd", "setxor1d", "unique_values", "unique_counts",
    "unique_inverse", "unique_all", "frombuffer",
)  # fmt: skip
"""Functions that keep nothing of what they are given, nor return it."""
_ARRAYS = {
    "insert": 3, "median": 1, "trace": 1, "nansum": 1, "nanmean": 1, "ptp": 1,
    "take_along_axis": 2, "unravel_index": 1, "einsum": 6, "meshgrid": 4,
    "polyfit": 3, "select": 2, "unique": 1, "ix_": 4, "frombuffer": 0,
}  # fmt: skip

_LOOKUPS = {"searchsorted": 2, "digitize": 2, "interp": 3}
_STORING = {"fill_diagonal": 2, "put_along_axis": 3, "put": 3, "place": 3, "putmask": 3}
"""Functions that write their first argument, and how many of the first are arrays."""

_VIEWS = frozenset(_VIEWERS) - {"broadcast_to", "diagonal"}
"""Functions whose result may be a view of the first argument, and as writeable."""


def _own() -> dict[str, Any]:
    names: dict[str, Any] = {"ndarray": ndarray, "ufunc": ufuncs.ufunc}
    names |= {"fallbacks": fallbacks, "set_space": set_space}
    names |= {name: getattr(functions, name) for name in _FUNCTIONS}
    for name in _REARRANGED:
        arrays, joins = 2 if name in ("append", "pad", "repeat") else 1, name in _JOINED
        numpys, python = getattr(np, name), getattr(rearranged, name)
        how = name if joins else None
        names[name] = at_once(numpys, python, JOINS if joins else RIPENS, arrays, operation=how)
    for maker, group in (
        (functions.viewer, _VIEWERS),
        (functions.creator, _CREATORS),
        (functions.attribute, _ATTRIBUTES),
        (functions.method, _METHODS),
        (functions.part, ("real", "imag")),
    ):
        names |= {name: _made(maker, name) for name in group if hasattr(np, name)}
    for name in _VIEWS & names.keys():
        names[name] = at_once(getattr(np, name), names[name], ANY, first=True)
    for name in _METHODS:
        if hasattr(np, name):
            numpys = getattr(np.ndarray, name)
            names[name] = at_once(numpys, names[name], kind_of(name), first=True)
    names["where"] = at_once(np.where, names["where"], arrays=3, operation=WHERE)
    names["clip"] = at_once(np.clip, names["clip"], arrays=3, operation=NAMED["clip"], out=True)
    for name in ("zeros_like", "ones_like", "empty_like", "full_like", "copy"):
        names[name] = at_once(getattr(np, name), names[name], first=True)
    for name in ("zeros", "ones", "empty", "full"):
        names[name] = at_once(getattr(np, name), names[name], CREATES)
    for name in _CREATORS:
        names[name] = at_once(getattr(np, name), names[name], NUMBERS, arrays=0)
    names["asarray"] = at_once(np.asarray, names["asarray"], NUMBERS, arrays=0)
    names["array"] = at_once(np.array, names["array"], KEEPS, arrays=1)
    names["split"] = at_once(np.split, functions.split, ANY, first=True)
    names["diag"] = functions.diag
    names["copyto"] = at_once(np.copyto, functions.copyto, STORES, arrays=2, first=True)
    for name, arrays in _STORING.items():
        python = function_of(getattr(np, name), name)
        names[name] = at_once(getattr(np, name), python, STORES, arrays, first=True)
    names["outer"] = at_once(np.outer, ufuncs.outer, PAIRS, arrays=2, first=True)
    for name, arrays in _LOOKUPS.items():
        names[name] = at_once(getattr(np, name), getattr(lookup, name), SEARCHES, arrays)
    names["histogram"] = at_once(np.histogram, tallies.histogram, SEARCHES)
    names["vectorize"] = vectorize
    names |= {name: Subscripted(getattr(np, name)) for name in ("mgrid", "ogrid", "r_", "c_")}
    names |= {alias: names[name] for alias, name in _ALIASES.items()}
    return names


class vectorize(np.vectorize):
    """As NumPy's."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return function_of(super().__call__, "vectorize")(*args, **kwargs)


def _made(maker: Callable[[str], Any], name: str) -> Any:
    return maker(name)


def _tell(name: str, value: Any) -> None:
    """Give a function the signature and the text of NumPy's."""
    function = getattr(np, name, None)
    python: Any = value if isinstance(value, types.FunctionType) else None
    python = getattr(value, "python", python)
    if python is not None and not isinstance(function, (type, types.NoneType)):
        python.__wrapped__, python.__doc__ = function, function.__doc__


known.bind()
NAMES: dict[str, Any] = _own()
for _name in NAMES.keys() - _ALIASES.keys():
    _tell(_name, NAMES[_name])


def find(name: str) -> Any:
    """A name that the module is asked for and has not yet. Raises AttributeError as NumPy does."""
    if name in NAMES:
        return NAMES[name]
    value = getattr(np, name)
    if isinstance(value, np.ufunc):
        return ufuncs.of(value)
    if isinstance(value, types.ModuleType):
        return Module(name, value)
    if isinstance(value, type) or not callable(value):
        return value
    if name in _SAFE:
        return safe_function(value, name, _ARRAYS.get(name, 2))
    return function_of(value, name)
