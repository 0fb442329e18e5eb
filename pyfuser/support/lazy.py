"""Modules that a program may never need: imported when something of them is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class lazily:
    """Stands for a module: an attribute of it is the module's, which is imported for that.

    For a name at the top of a module, beside an import of it for static checkers::

        if TYPE_CHECKING:
            from pyfuser import report
        else:
            report = lazily("pyfuser.report")
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
