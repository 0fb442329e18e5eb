"""What is hooked in an installed PyKokkos."""

from __future__ import annotations

import atexit
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from pyfuser.engine.pykokkos import Connection
from pyfuser.frontends.embedded.register import take_the_place
from pyfuser.frontends.upstream import failures, methods
from pyfuser.frontends.upstream.dispatch import Dispatcher
from pyfuser.frontends.upstream.finder import when_imported
from pyfuser.frontends.upstream.functions import redirect
from pyfuser.frontends.upstream.lifetime import note_all
from pyfuser.frontends.upstream.probes import refusal
from pyfuser.frontends.upstream.views import all_quiet
from pyfuser.lower.types import CLASSTYPE
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import PyFuserWarning, warn
from pyfuser.trace.reason import PROGRAM_ENDS


def install() -> None:
    """Hook the installed PyKokkos, now or as soon as it is imported."""
    when_imported("pykokkos", hook, take_the_place)


def hook(pykokkos: ModuleType) -> None:
    """Hook a PyKokkos that is imported; warns and leaves it alone if the hooks do not fit."""
    why = refusal(pykokkos)
    if why is not None:
        warn(why, *failures.place(), PyFuserWarning)
        return
    package: Any = pykokkos
    note_all(package.ViewType)
    methods.install(package)
    for policy in (package.RangePolicy, package.MDRangePolicy, package.TeamPolicy):
        methods.take_plain_numbers(policy)
    _hook_calls(package, Dispatcher(package))
    Connection.dispatch = partial(_launch, package)
    redirect(package.function, lambda original: _device_function)
    if hasattr(package, "classtype"):
        redirect(package.classtype, lambda original: _classtype)
    failures.install(package)
    # After PyKokkos' own, so before them: they end Kokkos.
    atexit.register(TRACER.flush, PROGRAM_ENDS)


def _hook_calls(package: Any, dispatcher: Dispatcher) -> None:
    redirect(package.parallel_for, lambda original: dispatcher.pattern("for", original))
    redirect(package.parallel_reduce, lambda original: dispatcher.pattern("reduce", original))
    redirect(package.parallel_scan, lambda original: dispatcher.pattern("scan", original))
    for name in ("fence", "execute", "flush"):
        if hasattr(package, name):
            redirect(getattr(package, name), dispatcher.barrier)
    redirect(package.finalize, dispatcher.end)


def _launch(
    package: Any, function: Any, pattern: str, space: Any, arguments: dict[str, Any]
) -> Any:
    """Let PyKokkos run a kernel of ours; see `engine.pykokkos.Dispatch`."""
    execution, begin, end = space
    policy = package.RangePolicy(package.ExecutionSpace[execution], begin, end)
    with all_quiet(), failures.in_a_line((function,)):
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
