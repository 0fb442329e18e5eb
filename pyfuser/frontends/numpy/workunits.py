"""Workunits of elementwise operations, made without source and kept by what they compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.complex_numbers import choose
from pyfuser.frontends.numpy.expressions import Code, cast
from pyfuser.frontends.numpy.layout import Form, Layout
from pyfuser.frontends.numpy.operations import COPY, WHERE, Operation
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Expr, If, Load, Param, Read, Stmt, Store, Sym, Workunit
from pyfuser.support.caches import Table, cached
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Space
from pyfuser.trace.memory import Array

_MAX_INDEX = (1 << 31) - 1

#: C's function: the one that NumPy shows calls Python's first, where a signal handler may come in.
COPYTO: Any = getattr(np.copyto, "_implementation", np.copyto)


@dataclass(frozen=True, eq=False)
class Recipe:
    """An operation on operands of certain types and places.

    arrays: the form of each operand, None for numbers; the mask's is the last, if there is one.
    """

    operation: Operation
    loops: tuple[DType, ...]
    workunit: Workunit
    space: Space
    forms: tuple[Form | None, ...]
    result: Form
    masked: bool

    def prepared(self, arguments: tuple[Any, ...]) -> Callable[[], object]:
        """What the kernel does, by NumPy, on arrays of the forms' shapes and on numbers.

        It is a function of C's, which makes all changes.
        """
        out, *values = [
            kind.type(value) if axes is None else value[axes] if axes else value
            for value, axes, kind in zip(arguments, self._spread, self._types, strict=True)
        ]
        mask: Any = values.pop() if self.masked else True
        ufunc = self.operation.ufunc
        if self.operation is WHERE:
            values = [np.where(*values)]
        if ufunc is None:
            return partial(COPYTO, out, values[0], casting="unsafe", where=mask)
        more = {} if mask is True else {"where": mask}
        kinds = self._signature
        return partial(ufunc, *values, out=out, signature=kinds, casting="unsafe", **more)

    @cached_property
    def _signature(self) -> tuple[Any, ...]:
        return tuple(dtype.numpy for dtype in self.loops)

    @cached_property
    def _types(self) -> tuple[Any, ...]:
        """NumPy's type of the result and of each operand."""
        operands = self.loops[: len(self.forms) - self.masked]
        types = (self.loops[-1], *operands, *(DType.BOOL,) * self.masked)
        return tuple(dtype.numpy for dtype in types)

    @cached_property
    def _spread(self) -> tuple[Any, ...]:
        """How the result and each operand get an axis for each of the kernel's.

        None: a number; empty: they have them.
        """
        rank = len(self.space.end)
        return tuple(
            None if form is None else spreading(form, rank) for form in (self.result, *self.forms)
        )


def spreading(form: Form, rank: int) -> tuple[Any, ...]:
    """The key that gives an operand an axis for each of the kernel's; empty: it has them."""
    if len(form.axes) == rank:
        return ()
    if not form.axes:
        return (slice(None), *(None,) * (rank - 1))
    return tuple(slice(None) if axis in form.axes else None for axis in range(rank))


def spread(array: Array, form: Form, rank: int) -> Array:
    """An operand of NumPy's with an axis for each of the kernel's."""
    key = spreading(form, rank)
    return array[key] if key else array


_RECIPES: Table[Any, Recipe] = Table("recorded NumPy operations", 4096)


def recipe_of(
    operation: Operation,
    loops: tuple[DType, ...],
    kinds: tuple[DType | None, ...],
    result: DType,
    layout: Layout,
    masked: bool,
    fresh: bool = False,
) -> Recipe:
    """How an operation is called.

    loops: the types of NumPy's loop, of the result last. kinds: of the operands, None for numbers;
    of the mask last. result: the type of what is stored. fresh: the result is a new array, so that
    anything may be stored where the mask does not hold; NumPy, which would warn of it, does not.
    """
    guard = "" if not masked else "none" if fresh and not operation.costly else "branch"
    if guard == "branch" and operation is COPY and result.is_complex:
        guard = "select"  # there are no masked stores of pairs
    key = operation, loops, kinds, result, layout, guard, SPACE.execution
    found = _RECIPES.get(key)
    if found is not None:
        return found
    places = iter(layout.forms)
    forms = tuple(None if kind is None else next(places) for kind in kinds)
    wide = max(layout.extents) > _MAX_INDEX
    axes = tuple(None if form is None else form.axes for form in forms)
    rank = len(layout.extents)
    workunit = _workunit(
        operation, loops, kinds, result, axes, layout.result.axes, rank, guard, wide
    )
    space = space_of(layout.extents)
    recipe = Recipe(operation, loops, workunit, space, forms, layout.result, masked)
    return _RECIPES.keep(key, recipe)


def space_of(extents: tuple[int, ...]) -> Space:
    """All indices below some extents."""
    return _space(extents, SPACE.execution)


@cached(1024)
def _space(extents: tuple[int, ...], execution: str) -> Space:
    return Space((0,) * len(extents), extents, execution)


@cached(4096)
def _workunit(
    operation: Operation,
    loops: tuple[DType, ...],
    kinds: tuple[DType | None, ...],
    result: DType,
    axes: tuple[tuple[int, ...] | None, ...],
    out_axes: tuple[int, ...],
    rank: int,
    guard: str,
    wide: bool,
) -> Workunit:
    index_type = DType.INT64 if wide else DType.INT32
    indices = tuple(Sym("ijklm"[n], n, index_type) for n in range(rank))
    out = Sym("out", rank, result)
    code = Code(rank + 1 + len(kinds))
    params, operands = [Param(out, max(len(out_axes), 1))], []
    types = (*loops[: len(kinds) - 1], DType.BOOL) if guard else loops[: len(kinds)]
    for n, (kind, own, dtype) in enumerate(zip(kinds, axes, types, strict=True)):
        sym = Sym("xyzw"[n], rank + 1 + n, kind or dtype)
        params.append(Param(sym, 0 if own is None else max(len(own), 1)))
        operands.append(Read(sym) if own is None else Load(sym, subscripts(indices, own)))
    mask: Expr | None = cast(operands.pop(), DType.BOOL) if guard else None
    values = [code.let(cast(e, dtype)) for e, dtype in zip(operands, types, strict=False)]
    value = cast(operation.build(code, *values), loops[-1])
    places = subscripts(indices, out_axes)
    value = cast(value, result)
    if mask is not None and guard == "select":
        value = choose(code, mask, code.let(value), code.let(Load(out, places)))
    body: tuple[Stmt, ...] = (*code.statements, Store(out, places, value))
    if mask is not None and guard == "branch":
        body = (If(mask, body),)
    name = operation.name if operation is not COPY else "copy"
    return Workunit(name=name, indices=indices, params=tuple(params), body=body)


def subscripts(indices: tuple[Sym, ...], axes: tuple[int, ...]) -> tuple[Expr, ...]:
    """Of an operand that has some of a kernel's axes."""
    if not axes:
        return (Const(0, DType.INT32),)
    return tuple(Read(indices[axis]) for axis in axes)
