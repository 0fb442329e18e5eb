"""Kernels from plain workunit functions, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.pipeline import kernel_of
from pyfuser.trace.call import Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Handle, Region, contiguous
from pyfuser.trace.shape import TraceShape, shape_of
from pyfuser.transform.group import group_shapes
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.widen import widen


class Temporary:
    """A zero View of `extent` doubles that nobody can reach once the calls are recorded."""

    def __init__(self, *shape: int) -> None:
        self._handle = Handle()
        size = int(np.prod(shape)) * 8
        self.region = Region(
            Buffer(size, self._handle), 0, contiguous(shape, 8), shape, DType.FLOAT64
        )

    def release(self) -> None:
        del self._handle


class Program:
    """Calls recorded over one space; `kernel()` fuses them all into one."""

    def __init__(self, *extents: int) -> None:
        self.space = Space((0,) * len(extents), extents)
        self.calls: list[Call] = []
        self._arrays: dict[int, Region] = {}
        self._temporaries: list[Temporary] = []

    def call(self, function: Callable[..., Any], pattern: str = "for", **arguments: Any) -> None:
        types = {}
        bound = []
        for name, value in arguments.items():
            region = self._region(value)
            if region is not None:
                types[name] = ViewType(region.dtype, len(region.shape))
                bound.append(region)
            else:
                dtype = DType.INT32 if isinstance(value, int) else DType.FLOAT64
                types[name] = ScalarType(dtype)
                bound.append(value)
        lowered = lower(function, pattern, len(self.space.begin), types)
        values = dict(zip(arguments, bound, strict=True))
        result = None if pattern == "for" else Future(DType.FLOAT64, lambda _: None)
        self.calls.append(
            Call(
                pattern,
                self.space,
                lowered.workunit,
                tuple(values[name] for name in lowered.names),
                result,
                None,
                function.__code__,
                1,
            )
        )

    def _region(self, value: Any) -> Region | None:
        if isinstance(value, Temporary):
            self._temporaries.append(value)
            return value.region
        if isinstance(value, np.ndarray):
            dtype = from_numpy(value.dtype)
            assert dtype is not None
            region = Region(Buffer.wrap(value), 0, value.strides, value.shape, dtype)
            return self._arrays.setdefault(id(value), region)
        return None

    def shape(self) -> TraceShape:
        for temporary in {id(t): t for t in self._temporaries}.values():
            temporary.release()
        self._temporaries.clear()
        return shape_of(self.calls, _all_integers)

    def kernel(self) -> Kernel:
        """All calls in one optimised kernel (legal or not)."""
        kernel = kernel_of(group_shapes(self.shape(), [range(len(self.calls))])[0])
        verify(kernel.workunit)
        return kernel

    def check(self) -> Kernel:
        """The kernel, after comparing it (and its widened form) with the calls one by one."""
        kernel = self.kernel()
        arrays = {
            id(r.buffer): r.buffer for c in self.calls for r in c.arguments if isinstance(r, Region)
        }
        for buffer in arrays.values():
            buffer.allocate()
        before = {key: np.array(buffer.root) for key, buffer in arrays.items()}
        expected = []
        for call in self.calls:
            expected += self._run(call.workunit, call.pattern, call.arguments)
        after = {key: np.array(buffer.root) for key, buffer in arrays.items()}
        for form in (kernel, widen(kernel)):
            verify(form.workunit)
            for key, buffer in arrays.items():
                buffer.root[...] = before[key]
            arguments = [self.calls[s.call].arguments[s.argument] for s in form.slots]
            results = self._run(form.workunit, form.pattern, arguments)
            assert results == expected
            for key, buffer in arrays.items():
                if buffer.external:
                    np.testing.assert_array_equal(np.asarray(buffer.root), after[key])
        return kernel

    def _run(self, workunit: Workunit, pattern: str, arguments: Sequence[Any]) -> list[Any]:
        values = [a.array() if isinstance(a, Region) else a for a in arguments]
        return list(interpret(workunit, pattern, self.space.begin, self.space.end, values, order=1))


def _all_integers(workunit: Workunit) -> frozenset[int]:
    return frozenset(
        n for n, p in enumerate(workunit.params) if not p.rank and p.sym.dtype.is_integer
    )
