"""The stand-in's driver as functions of C, for the extension, which calls the driver itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

_POINTER, _NUMBER, _WIDE = ctypes.c_void_p, ctypes.c_uint, ctypes.c_ulonglong
_WHERE = ctypes.POINTER(ctypes.c_void_p)


def _function(python: Callable[..., None], *types: Any) -> Any:
    @ctypes.CFUNCTYPE(ctypes.c_int, *types)
    def of_c(*arguments: Any) -> int:
        try:
            python(*(0 if argument is None else argument for argument in arguments))
        except Exception:  # Python does it again, and sees it
            return 1
        return 0

    return of_c


@cache
def _functions(driver: ModuleType, runtime: ModuleType) -> tuple[Any, ...]:
    def launch(*arguments: int) -> None:
        driver.launchKernel(*arguments)

    def begin(stream: int, mode: int) -> None:
        runtime.streamBeginCapture(stream, mode)

    def end(stream: int, graph: Any) -> None:
        graph[0] = runtime.streamEndCapture(stream)

    def instantiate(made: Any, graph: int, flags: int) -> None:
        made[0] = graph

    def replay(graph: int, stream: int) -> None:
        runtime.graphLaunch(graph, stream)

    def destroy(graph: int) -> None:
        runtime.graphDestroy(graph)

    def keep(graph: int) -> None:
        """What was made of it is the same here."""

    return (
        _function(launch, _POINTER, *[_NUMBER] * 7, *[_POINTER] * 3),
        _function(begin, _POINTER, ctypes.c_int),
        _function(end, _POINTER, _WHERE),
        _function(instantiate, _WHERE, _POINTER, _WIDE),
        _function(replay, _POINTER, _POINTER),
        _function(destroy, _POINTER),
        _function(keep, _POINTER),
    )


def addresses(driver: ModuleType, runtime: ModuleType) -> tuple[int, ...]:
    """As `engine.gpu.steps.addresses`."""
    functions = _functions(driver, runtime)
    return tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
