"""`pk.execute`: the main method of a workload, then its callbacks."""

from __future__ import annotations

import inspect
from typing import Any

from pyfuser import driver
from pyfuser.errors import ArgumentError
from pyfuser.frontends.embedded.spaces import (
    Defaults,
    resolve_space,
    set_default_space,
)


def execute(space: Any, workload: Any) -> None:
    """Run a workload's `@pk.main` method with `space` as default, then its `@pk.callback`s.

    PyKokkos translates the main method; here it is Python, and its calls are those of any program:
    traced where calls are. Callbacks run after all of them.

    Raises ArgumentError for an object whose class has no main method.
    """
    mains, callbacks = _marked(workload, "__pk_main__"), _marked(workload, "__pk_callback__")
    if not mains:
        raise ArgumentError(
            f"pk.execute: {type(workload).__name__} has no method that is decorated with @pk.main"
        )
    before = Defaults.space
    set_default_space(resolve_space(space))
    try:
        for method in mains:
            method()
    finally:
        set_default_space(before)
    if callbacks:
        driver.TRACER.flush()
    for method in callbacks:
        method()


def _marked(workload: Any, mark: str) -> list[Any]:
    """The methods that carry a mark, in the order of their definition."""
    found = {}
    for cls in reversed(type(workload).__mro__):
        for name, value in vars(cls).items():
            if inspect.isfunction(value) and mark in vars(value):
                found[name] = getattr(workload, name)
    return list(found.values())
