"""Element-by-element functions of Views: one generated workunit for each rank and broadcasting.

They are workunits like the user's, recorded and fused like theirs. Text is generated because a
workunit's subscripts follow from its operands' shapes: `out[i][j] = a[i][j] + b[j]`.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.creation import array
from pyfuser.frontends.embedded.data_types import CLASS_OF
from pyfuser.frontends.embedded.decorators import workunit
from pyfuser.frontends.embedded.dispatch import dispatch
from pyfuser.frontends.embedded.policies import MDRangePolicy
from pyfuser.frontends.embedded.spaces import ExecutionSpace, get_default_space
from pyfuser.frontends.embedded.views import View, ViewType
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS, evaluate
from pyfuser.support.caches import cached
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.future import Future, plain

_INDICES = "ijklmnop"
_OURS = "pyfuser.frontends.embedded"


def launch(label: str | None, shape: Sequence[int], function: Any, **arguments: Any) -> None:
    """`parallel_for` over a box, recorded with the line of the user's program."""
    dispatch("for", label, _policy(shape), function, arguments, depth=_depth())


def reduction(label: str | None, shape: Sequence[int], function: Any, **arguments: Any) -> Any:
    """`parallel_reduce` over a box, recorded with the line of the user's program."""
    return dispatch("reduce", label, _policy(shape), function, arguments, depth=_depth())


def _policy(shape: Sequence[int]) -> Any:
    """A policy over a box; the Debug space is for workunits of the program's."""
    if get_default_space() is ExecutionSpace.Debug:
        ends = tuple(shape) or (1,)
        return MDRangePolicy((0,) * len(ends), ends, space=ExecutionSpace.Serial)
    if len(shape) < 2:
        return shape[0] if shape else 1
    return MDRangePolicy((0,) * len(shape), tuple(shape))


def _depth() -> int:
    """How many frames above `dispatch` the user's program is."""
    depth = 2
    frame = sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
        depth += 1
    return depth


def view_of(x: Any) -> Any:
    """A View or a number as it is; a View of anything else."""
    scalar = isinstance(x, (bool, int, float, complex, Future))
    return x if scalar or isinstance(x, ViewType) else array(x)


def of_numbers(expression: str, *operands: Any) -> Any:
    """The value of an expression of numbers, as `compute` has it of elements."""
    given = {key: plain(x) for key, x in zip("abc", operands, strict=False)}
    numbers = {key: x.item() if isinstance(x, np.generic) else x for key, x in given.items()}
    functions = {name: partial(_of_numbers, name) for name in FUNCTIONS}
    value = eval(expression.format(a="a", b="b", c="c"), functions | numbers)
    return value.item() if isinstance(value, np.generic) else value


def _of_numbers(name: str, *args: Any) -> Any:
    return evaluate(name, [np.float64(arg) for arg in args], DType.FLOAT64)


def compute(
    name: str,
    expression: str,
    out: View,
    operands: Sequence[Any],
    label: str | None = None,
    by_rows: bool = False,
) -> View:
    """`out = expression`, in which `{a}`, `{b}`, ... stand for elements of the operands.

    Extents of 1 are stretched. An operand of rank 1 beside one of rank 2 is taken along rows if
    `by_rows`, else along columns.

    Raises ValueError for shapes that do not fit. (PyKokkos repeats what is too short.)
    """
    given = dict(zip("abc", operands, strict=False))
    access = {key: key + _access(x, out.shape, by_rows) for key, x in given.items()}
    function = _workunit(name, expression.format(**access), max(out.ndim, 1), ", ".join(given))
    launch(label, out.shape, function, out=out, **given)
    return out


def dtype_of(view: Any) -> Any:
    """The data type of a View, as the class that `View` takes."""
    return CLASS_OF[view._region.dtype]


def incompatible(*views: Any) -> RuntimeError:
    """The error for Views of data types that a function does not take, or not together."""
    names = sorted({f"pk.{dtype_of(view).__name__}" for view in views})
    need = "one type is needed" if len(names) > 1 else "another type is needed"
    return RuntimeError(
        f"Incompatible Types: {' and '.join(names)}, where {need}; "
        "pk.astype(view, pk.double) is the View as doubles"
    )


def common_shape(operands: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a result: that of the operand of highest rank, ones stretched.

    Raises ValueError where two of that rank do not fit.
    """
    shapes = [x.shape for x in operands if isinstance(x, ViewType)]
    rank = max(map(len, shapes))
    full = [shape for shape in shapes if len(shape) == rank]
    if len(full) == 1:
        return full[0]
    if rank == 1:
        return full[0] if full[0] != (1,) else full[1]
    common = []
    for one, other in zip(*full, strict=True):
        if one != other and 1 not in (one, other):
            raise ValueError(f"Views must be broadcastable: {full[0]} and {full[1]}")
        common.append(other if one == 1 else one)
    return tuple(common)


def _access(x: Any, shape: tuple[int, ...], by_rows: bool) -> str:
    """The subscript of an operand's element for the result's indices."""
    if not isinstance(x, ViewType):
        return ""
    if len(x.shape) == len(shape) != 1:
        pairs = zip(_INDICES, x.shape, strict=False)
        return "".join("[0]" if own == 1 else f"[{i}]" for i, own in pairs) or "[0]"
    if x.ndim == 0:
        return "[0]"
    if x.ndim != 1:
        raise ValueError(f"Views must be broadcastable: {x.shape} and {shape}")
    axis = 0 if by_rows else len(shape) - 1
    index, own = _INDICES[axis], x.shape[0]
    if own == 1:
        return "[0]"
    if own != shape[axis]:
        raise ValueError(f"Views must be broadcastable: {x.shape} and {shape}")
    return f"[{index}]"


@cached(1024)
def _workunit(name: str, expression: str, rank: int, operands: str) -> Any:
    """`def name(i, j, out, a): out[i][j] = expression`."""
    if rank > len(_INDICES):
        raise ArgumentError(f"{name} of {rank} dimensions")
    indices = ", ".join(_INDICES[:rank])
    target = "".join(f"[{index}]" for index in _INDICES[:rank])
    text = f"def {name}({indices}, out, {operands}):\n    out{target} = {expression}\n"
    file = f"<pykokkos.{name}: {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return workunit(namespace[name])
