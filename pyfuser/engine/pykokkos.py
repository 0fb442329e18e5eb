"""The pykokkos engine: fused kernels as PyKokkos source, run by the installed PyKokkos.

The source becomes a module in the cache directory, named by its content, as PyKokkos translates
files and takes what it compiled from a file for good. Its translator knows less than the language
has; what it is not known to translate rightly is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from pyfuser.codegen.pykokkos.text import identifier
from pyfuser.codegen.pykokkos.unit import emit
from pyfuser.engine.cache import private_directory, write_own
from pyfuser.engine.marshal import Number
from pyfuser.engine.on_host import OnHost
from pyfuser.ir import nodes
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import Expr, Param, Stmt, Workunit
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.support.caches import cached
from pyfuser.support.errors import PyFuserError, PyFuserWarning
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.gate import Ran
from pyfuser.trace.memory import Region
from pyfuser.transform.kernel import Kernel

UNUSED = "pk_unused"
"""PyKokkos' reductions need an argument, and take a bool in its place for a scan's."""

MAX_MODULES = 512

#: Calls PyKokkos: (workunit, pattern, space, arguments by name) -> the sum, or None.
Dispatch = Callable[[Any, str, Any, dict[str, Any]], Any]


class Connection:
    """How to reach PyKokkos; the frontend that has hooked it sets `dispatch`."""

    dispatch: Dispatch | None = None


# --------------------------------------------------------------------------- what it can run

_UPSTREAM = frozenset(name for name, f in FUNCTIONS.items() if f.upstream)
_UPDATES = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "min", "max"})
_FETCHES = _UPDATES | {"&", "|", "^"}
_SUMS = (DType.FLOAT64, DType.INT32, DType.INT64)


def refusal(pattern: str, workunit: Workunit) -> str | None:
    """Why PyKokkos cannot be given a kernel; None if it can."""
    if pattern not in ("for", "reduce"):
        return f"parallel_{pattern} is left to PyKokkos"
    if len(workunit.indices) > 1:
        return "PyKokkos runs an MDRangePolicy in workloads only"
    if workunit.indices[0].dtype is not DType.INT32:
        return "more than 2**31 indices are left to PyKokkos"
    return next(_refusals(workunit), None)


def _refusals(workunit: Workunit) -> Iterator[str]:
    syms = [param.sym for param in workunit.params]
    syms += [accumulator.sym for accumulator in workunit.accumulators]
    if any(accumulator.sym.dtype not in _SUMS for accumulator in workunit.accumulators):
        yield "sums of this type are left to PyKokkos"
    if any(sym.dtype.is_complex for sym in syms):
        yield "complex numbers are left to PyKokkos"
    if any(param.rank and param.sym.dtype is DType.BOOL for param in workunit.params):
        yield "arrays of bool are left to PyKokkos"
    for stmt in statements(workunit.body):
        yield from _of_statement(stmt)
    for e in all_expressions(workunit.body):
        yield from _of_expression(e)


def _of_statement(stmt: Stmt) -> Iterator[str]:
    if isinstance(stmt, (nodes.Scratch, nodes.Eval)):
        yield f"{type(stmt).__name__} is left to PyKokkos"
    if isinstance(stmt, nodes.Update):
        known = stmt.op == "+" if stmt.atomic else stmt.op in _UPDATES
        if not known:
            yield f"the update {stmt.op!r} is left to PyKokkos"


def _of_expression(e: Expr) -> Iterator[str]:
    if isinstance(e, nodes.Call) and e.name not in _UPSTREAM:
        yield f"{e.name} is left to PyKokkos"
    if isinstance(e, nodes.AtomicFetch) and e.op not in _FETCHES:
        yield f"an atomic {e.op} is left to PyKokkos"
    if e.dtype.is_complex:
        yield "complex numbers are left to PyKokkos"


# --------------------------------------------------------------------------- how it runs it


class Launchable(OnHost):
    """A kernel that PyKokkos compiles when it first runs, for the layouts it then has.

    spare: makes a launchable that runs if PyKokkos cannot translate or compile the kernel.
    """

    def __init__(self, kernel: Kernel, spare: Callable[[], Any]) -> None:
        workunit = kernel.workunit
        self.pattern = kernel.pattern
        self.execution = kernel.space.execution
        if kernel.pattern == "reduce":
            unused = Param(fresh(UNUSED, DType.INT32), 0)
            workunit = replace(workunit, params=(unused, *workunit.params))
        self.source = emit(workunit)
        self._function = getattr(load(self.source), identifier(workunit.name))
        code = self._function.__code__
        first = len(workunit.indices) + len(workunit.accumulators)
        self.names = code.co_varnames[first : code.co_argcount]
        self._make_spare = spare
        self._spare: list[Any] = []  # the one that runs instead, once it is needed

    def run(
        self, space: tuple[Any, ...], arguments: Sequence[Any], ran: Ran | None = None
    ) -> tuple[Number, ...]:
        """Run the kernel and wait; see `engine.launchable.Launchable`."""
        if self._spare:
            return tuple(self._spare[0].run(space, arguments, ran))
        if ran is not None:
            ran.pass_on()
        values = [a.array() if isinstance(a, Region) else a for a in arguments]
        if self.pattern == "reduce":
            values.insert(0, 0)
        try:
            result = self._dispatch(space, dict(zip(self.names, values, strict=True)))
        except (Exception, SystemExit) as error:  # of the translator: the kernel has not run
            self._replace(error)
            return tuple(self._spare[0].run(space, arguments, ran))
        numbers = () if result is None else (result,)
        if ran is not None:
            ran.append((0, numbers))
        return numbers

    def values(self, result: Any) -> tuple[Number, ...]:
        """The numbers that `run` has put into `ran`."""
        return tuple(self._spare[0].values(result) if self._spare else result)

    def _dispatch(self, space: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
        (begin,), (end,) = space[:2]
        if end <= begin:  # PyKokkos complains if it is less
            return 0 if self.pattern == "reduce" else None
        if Connection.dispatch is None:
            raise PyFuserError("no installed PyKokkos is imported")
        bounds = self.execution, begin, end
        return Connection.dispatch(self._function, self.pattern, bounds, arguments)

    def _replace(self, error: BaseException) -> None:
        warnings.warn(
            f"PyKokkos cannot run the fused kernel {self._function.__name__!r} in "
            f"{self._function.__code__.co_filename} ({error!r}); the native engine does",
            PyFuserWarning,
            stacklevel=2,
        )
        self._spare.append(self._make_spare())


@cached(MAX_MODULES)
def load(source: str) -> ModuleType:
    """The module with this source, which PyKokkos finds in a file of the cache directory.

    Raises CacheError if others could write there.
    """
    folder = private_directory(SETTINGS.cache_dir / "pykokkos-source")
    name = f"pf_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    path = folder / f"{name}.py"
    if not path.is_file() or path.read_text(encoding="utf-8") != source:
        write_own(path, source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
