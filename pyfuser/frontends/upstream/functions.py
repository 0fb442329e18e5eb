"""Getting between a program and a function of PyKokkos that it may have imported already."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def redirect(function: FunctionType, make: Callable[[FunctionType], Callable[..., Any]]) -> None:
    """Make every name that is bound to a function call `make(original)` from now on.

    The function object stays and gets new code, which looks the hook up among the globals of its
    module. Does nothing for a function that is redirected already.
    """
    hook = f"__pyfuser_{function.__name__}__"
    if hook in function.__globals__:
        return
    original = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    original.__kwdefaults__ = function.__kwdefaults__
    original.__doc__ = function.__doc__
    function.__globals__[hook] = make(original)
    function.__code__ = _forwarding(function.__name__, hook)
    function.__defaults__ = function.__kwdefaults__ = None


def _forwarding(name: str, hook: str) -> CodeType:
    text = f"def {name}(*args, **kwargs):\n    return {hook}(*args, **kwargs)\n"
    module = compile(text, __file__, "exec", dont_inherit=True)  # tracebacks leave our files out
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))
