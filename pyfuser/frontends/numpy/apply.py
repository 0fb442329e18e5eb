"""Applying one of NumPy's ufuncs to any operands: recorded, or computed by NumPy at once."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.view_memory import ViewMemory
from pyfuser.frontends.numpy.as_program import as_program
from pyfuser.frontends.numpy.memory import SELECTED, export, host, is_ours_alone, is_pending
from pyfuser.frontends.numpy.operations import OPERATIONS, Operation
from pyfuser.frontends.numpy.record import record
from pyfuser.frontends.numpy.selected import computed
from pyfuser.frontends.numpy.switches import LIMITS
from pyfuser.frontends.numpy.wrap import KIND, adopt, foreign, of_view, result, view
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import cached
from pyfuser.trace import reason
from pyfuser.trace.images import USE

SCALARS = frozenset({int, float, bool, complex, str, bytes, type(None)}) | frozenset(
    np.sctypeDict.values()
)


def is_plain(value: Any) -> bool:
    """Whether NumPy, given our arrays and this value, shows them to nobody else."""
    kind = type(value)
    if kind in SCALARS or kind is np.ndarray:
        return kind is not np.ndarray or value.dtype.kind != "O"
    if kind is list or kind is tuple:
        return SCALARS.issuperset(map(type, value)) or all(map(is_plain, value))
    return False


def small(x: Any, least: int) -> Any:
    """The elements of an array of ours that is computed with at once, if it is one.

    least: elements from which operations are recorded.
    """
    if USE.devices:
        return None
    array = x._array
    if array is None or array.size >= least or (TRACER.calls and is_pending(x)):
        return None
    return array


def binary(operation: Operation, x: Any, y: Any) -> Any:
    """An operation on two operands, each an array of ours or a number."""
    if SELECTED.count:
        found = computed(operation, (x, y))
        if found is not None:
            return found
    ours = KIND.array
    least = LIMITS.first(operation.costly)
    if TRACER.calls or USE.devices:
        one = small(x, least) if type(x) is ours else x
        other = small(y, least) if type(y) is ours else y
    else:  # as `small`, without calling it
        one = x._array if type(x) is ours else x
        other = y._array if type(y) is ours else y
        if (one is not x and one is not None and one.size >= least) or (
            other is not y and other is not None and other.size >= least
        ):
            one = None
    if one is not None and other is not None:
        value = operation.ufunc(one, other)
        if type(value) is not np.ndarray:
            return value
        made = _make(ours)
        made._array = value
        return made
    found = record(operation, (x, y))
    return compute(operation.ufunc, (x, y)) if found is None else found


_make: Any = object.__new__


def unary(operation: Operation, x: Any) -> Any:
    """An operation on an array of ours."""
    if SELECTED.count:
        found = computed(operation, (x,))
        if found is not None:
            return found
    one = small(x, LIMITS.first(operation.costly))
    if one is not None:
        value = operation.ufunc(one)
        return adopt(value) if type(value) is np.ndarray else value
    found = record(operation, (x,))
    return compute(operation.ufunc, (x,)) if found is None else found


def in_place(operation: Operation, x: Any, y: Any) -> Any:
    """`x op= y`, for an array of ours and another one or a number."""
    if SELECTED.count:
        found = computed(operation, (x, y), x)
        if found is not None:
            return found
    least = LIMITS.first(False)
    one = small(x, least)
    if one is not None and x._writeable:
        other = small(y, least) if type(y) is KIND.array else y
        if other is not None:
            operation.ufunc(one, other, one)
            return x
    found = record(operation, (x, y), x)
    return compute(operation.ufunc, (x, y), {"out": (x,)}) if found is None else found


def apply(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call one of NumPy's ufuncs; the results are arrays of ours, or NumPy's scalars.

    Raises and warns what NumPy does.
    """
    inputs = tuple(map(_operand, inputs))
    operation = OPERATIONS.get(ufunc)
    if operation is not None and ufunc.nin < 3 and len(inputs) == ufunc.nin:
        found = _recorded(operation, inputs, kwargs or {})
        if found is not None:
            return found
    return compute(ufunc, inputs, kwargs)


def _operand(x: Any) -> Any:
    """NumPy's scalars come as arrays without axes where they stand on the left of a comparison."""
    if type(x) is np.ndarray and not x.ndim and x.dtype.kind in "biufc":
        return x[()]
    return of_view(x) if isinstance(x, ViewMemory) else x


def _recorded(operation: Operation, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of recording the operation; None: NumPy computes it."""
    if not kwargs:
        found = computed(operation, inputs) if SELECTED.count else None
        return record(operation, inputs) if found is None else found
    out, mask, signature = None, None, None
    casting = "same_kind"
    for name, value in kwargs.items():
        if name == "out":
            out = value[0] if type(value) is tuple and len(value) == 1 else value
        elif name == "where":
            mask = value
        elif name == "dtype":
            signature = value
        elif name == "casting":
            casting = value
        else:
            return None
    if mask is True:
        mask = None
    if not (out is None or type(out) is KIND.array):
        return None
    if mask is not None and (out is None or type(mask) is not KIND.array or not _is_mask(mask)):
        return None
    if signature is not None:
        signature = _signature(operation, signature)
        if signature is None:
            return None
    return record(operation, inputs, out, mask, signature, casting)


def _is_mask(mask: Any) -> bool:
    return bool(mask.dtype == np.bool_) and mask.ndim > 0


def _signature(operation: Operation, dtype: Any) -> Any:
    """The signature that `dtype=` stands for."""
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        return None
    return (None,) * int(operation.ufunc.nin) + (wanted,)


def compute(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call a ufunc of NumPy's at once; what is pending on its operands has run."""
    if TRACER.raw:
        TRACER.flush(reason.ALONE)
    if not kwargs:
        if all(type(x) is KIND.array or is_plain(x) for x in inputs):
            arguments = [host(x) if _ours(x) else x for x in inputs]
            return _plain_result(as_program(ufunc, arguments, {}))
        return call(ufunc, inputs, {})
    out = kwargs.get("out")
    outs = out if type(out) is tuple else (out,)
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    if not all(_ours(x) or is_plain(x) for x in (*inputs, *outs, *rest.values())):
        return call(ufunc, inputs, kwargs)
    inputs = tuple(host(x) if _ours(x) else x for x in inputs)
    arrays = tuple(host(x, True) if _ours(x) else x for x in outs)
    rest = {name: host(value) if _ours(value) else value for name, value in rest.items()}
    if out is None:
        return _plain_result(as_program(ufunc, inputs, rest))
    values = as_program(ufunc, inputs, {"out": arrays, **rest})
    return _given(values, arrays, outs)


def _ours(x: Any) -> bool:
    return type(x) is KIND.array


def _plain_result(value: Any) -> Any:
    """What a ufunc made, which nobody else has."""
    if type(value) is np.ndarray:
        return adopt(value)
    if type(value) is tuple:
        return tuple(map(_plain_result, value))
    return value


def _given(values: Any, arrays: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    """Results in the arrays that were given for them."""
    if type(values) is tuple:
        return tuple(_given(value, arrays, outs) for value in values)
    for array, out in zip(arrays, outs, strict=True):
        if values is array:
            return out
    return _plain_result(values)


def call(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call any function with arrays of NumPy's in place of ours; our type comes back.

    It may be anybody's: what it gets counts as reached for as long as it is kept.
    """
    given: list[tuple[Any, Any]] = []
    arguments = _exported(tuple(args), given)
    named = {k: _exported(v, given) for k, v in kwargs.items()}
    try:
        value = as_program(function, arguments, named)
    except ValueError as error:
        if _NO_ARRAY not in str(error):
            raise
        arguments, named = _converted(arguments), {k: _converted(v) for k, v in named.items()}
        value = as_program(function, arguments, named)
    if type(value) is np.ndarray and sys.getrefcount(value) <= 2 and value.base is None:
        return next((ours for ours, array in given if array is value), None) or adopt(value)
    return result(value, tuple(given))


_NO_ARRAY = "__array__ method not producing an array"


def _converted(value: Any) -> Any:
    """A value with arrays for objects whose `__array__` gives ours, which NumPy refuses."""
    if type(value) is tuple or type(value) is list:
        return type(value)(map(_converted, value))
    if hasattr(type(value), "__array__") and not isinstance(value, (np.ndarray, np.generic)):
        array = value.__array__()
        return export(array) if type(array) is KIND.array else value
    return value


def call_safely(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """`call` of a function that keeps nothing of what it is given but in what it returns."""
    if TRACER.raw:
        TRACER.flush(reason.ALONE)
    given: list[tuple[Any, Any]] = []

    def of(x: Any, writes: bool = False) -> Any:
        array = host(x, writes)
        given.append((x, array))
        return array

    last = _place_of_out(function) if USE.devices else len(args)
    args = (
        *_with_arrays(tuple(args[:last]), of),
        *_with_arrays(tuple(args[last:]), partial(of, writes=True)),
    )
    kwargs = {
        k: _with_arrays(v, partial(of, writes=USE.devices and k == "out"))
        for k, v in kwargs.items()
    }
    try:
        value = as_program(function, args, kwargs)
    except ValueError as error:
        if _NO_ARRAY not in str(error):
            raise
        return call(function, args, kwargs)
    box = [value]
    del value
    return taken(box, given)


@cached(256)
def _place_of_out(function: Any) -> int:
    """From which argument on a function may write arrays."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 1
    if "copy" in names or "overwrite_input" in names:
        return 0
    return names.index("out") if "out" in names else len(names)


def exported(value: Any) -> Any:
    """A value with exports for our arrays, for a function of anybody's."""
    return _with_arrays(value, export)


def without(value: Any) -> Any:
    """A value with NumPy's arrays for ours, for a function that keeps nothing of it."""
    return _with_arrays(value, host)


def taken(box: list[Any], given: Iterable[tuple[Any, Any]]) -> Any:
    """What a function returned, with our arrays for NumPy's: of what it was given, of views of it,
    and of what is new. The function keeps nothing.

    box: has it, and nobody else has. given: our arrays, and those of NumPy's that stood for them.
    """
    value = box.pop()
    if type(value) is np.ndarray:
        for x, array in given:
            if array is value:
                return x
        for x, array in given:
            if np.may_share_memory(array, value):
                return view(x, value)
        return adopt(value) if is_ours_alone(value, 1) else foreign(value)
    if isinstance(value, (list, tuple)):
        make = getattr(type(value), "_make", type(value))
        entries = list(value)[::-1]
        del value
        return make([taken([entries.pop()], given) for _ in range(len(entries))])
    return value


def _exported(value: Any, given: list[tuple[Any, Any]]) -> Any:
    """A value with arrays of NumPy's for ours, which are noted in `given`."""

    def export_once(x: Any) -> Any:
        array = next((array for ours, array in given if ours is x), None)
        if array is None:
            array = export(x)
            given.append((x, array))
        return array

    return _with_arrays(value, export_once)


def _with_arrays(value: Any, of: Callable[[Any], Any]) -> Any:
    """A value with `of(x)` for our arrays x, also inside of lists, tuples, slices and dicts.

    What has none is the same object: a function may change it.
    """
    if type(value) is KIND.array:
        return of(value)
    if isinstance(value, ViewMemory):
        return value.data
    if type(value) is tuple or type(value) is list:
        if not SCALARS.issuperset(map(type, value)):
            entries = [_with_arrays(entry, of) for entry in value]
            if not all(map(operator.is_, entries, value)):
                return type(value)(entries)
    elif type(value) is dict:
        entries = [_with_arrays(entry, of) for entry in value.values()]
        if not all(map(operator.is_, entries, value.values())):
            return dict(zip(value, entries, strict=True))
    elif type(value) is slice:
        parts = value.start, value.stop, value.step
        return value if SCALARS.issuperset(map(type, parts)) else slice(*_with_arrays(parts, of))
    return value
