"""What is hooked in an installed PyKokkos."""

from __future__ import annotations

import atexit
import os
import warnings
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pyfuser import driver
from pyfuser.engine.pykokkos import Connection
from pyfuser.frontends.upstream import methods
from pyfuser.frontends.upstream.dispatch import Dispatcher
from pyfuser.frontends.upstream.finder import when_imported
from pyfuser.frontends.upstream.functions import redirect
from pyfuser.frontends.upstream.versions import refusal
from pyfuser.frontends.upstream.views import all_quiet
from pyfuser.lower.records import CLASSTYPE


def install() -> None:
    """Hook the installed PyKokkos, now or as soon as it is imported."""
    when_imported("pykokkos", hook)


def hook(pykokkos: ModuleType) -> None:
    """Hook a PyKokkos that is imported; warns and leaves it alone if we do not know it."""
    why = _refusal(pykokkos)
    if why is not None:
        warnings.warn(why, stacklevel=2)
        return
    package: Any = pykokkos
    interface = package.interface
    methods.install(interface.views)
    for policy in (package.RangePolicy, package.MDRangePolicy, package.TeamPolicy):
        methods.take_plain_numbers(policy)
    _hook_calls(package, Dispatcher(package))
    Connection.dispatch = partial(_launch, package)
    redirect(interface.decorators.function, lambda original: _device_function)
    redirect(interface.decorators.classtype, lambda original: _classtype)
    # After PyKokkos' own, so before them: they end Kokkos.
    atexit.register(driver.TRACER.flush)


def _refusal(pykokkos: ModuleType) -> str | None:
    if not pykokkos.__file__:
        return "pyfuser does not know what `pykokkos` is here, and leaves it alone"
    why = refusal(Path(pykokkos.__file__).parent)
    if why is None and "PK_FUSION" in os.environ:
        return "PK_FUSION is set, so PyKokkos fuses by itself and pyfuser leaves it alone"
    return why


def _hook_calls(package: Any, dispatcher: Dispatcher) -> None:
    calls = package.interface.parallel_dispatch
    redirect(calls.parallel_for, lambda original: dispatcher.pattern("for", original))
    redirect(calls.parallel_reduce, lambda original: dispatcher.pattern("reduce", original))
    redirect(calls.parallel_scan, lambda original: dispatcher.pattern("scan", original))
    for function in (calls.execute, calls.flush, package.fence):
        redirect(function, dispatcher.barrier)
    redirect(package.kokkos_manager.finalize, dispatcher.end)


def _launch(
    package: Any, function: Any, pattern: str, space: Any, arguments: dict[str, Any]
) -> Any:
    """Let PyKokkos run a kernel of ours; see `engine.pykokkos.Dispatch`."""
    execution, begin, end = space
    policy = package.RangePolicy(package.ExecutionSpace[execution], begin, end)
    with all_quiet():
        views = {
            name: package.array(value) if isinstance(value, np.ndarray) else value
            for name, value in arguments.items()
        }
        runtime = package.runtime_singleton.runtime
        return runtime.run_workunit(None, policy, function, pattern, **views)


def _device_function(func: Any) -> Any:
    """`pk.function`: PyKokkos finds such functions by their decorators, we by a mark."""
    func.__pk_function__ = True
    return func


def _classtype(func: Any) -> Any:
    setattr(func, CLASSTYPE, True)
    return func
