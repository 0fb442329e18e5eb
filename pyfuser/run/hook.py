"""Rewrites modules as they are imported: those that lie below the program's own folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from pyfuser.run.rewrite import rewritten

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_NOT_THE_PROGRAM = ("site-packages", "dist-packages")


class RewritingLoader(SourceFileLoader):
    """Loads a module from its source, rewritten; Python's files of bytecode are left alone.

    It has no `exec_module` of its own, so that tracebacks do not show it.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return rewritten(self.get_data(path), path, keep=True)


class ProgramFinder:
    """Finds what the path finder finds, and gives modules below a folder another loader."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(os.path.realpath(folder), "")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if not self._is_the_programs(spec.origin):
            return None
        spec.loader = RewritingLoader(spec.loader.name, spec.loader.path)
        return spec

    def _is_the_programs(self, file: str) -> bool:
        real = os.path.realpath(file)
        inside = real.startswith(self.folder) and not real.startswith(_PACKAGE)
        standard = os.path.join(os.path.realpath(os.path.dirname(os.__file__)), "")
        parts = real.removeprefix(self.folder).split(os.sep)
        return inside and not real.startswith(standard) and not set(parts) & {*_NOT_THE_PROGRAM}


def rewritten_modules() -> list[str]:
    """The names of the main module and of those that were rewritten."""
    return [
        name
        for name, module in [*sys.modules.items()]
        if name == "__main__" or type(getattr(module, "__loader__", None)) is RewritingLoader
    ]


def install(folder: str) -> None:
    """Rewrite the modules below a folder that are imported from here on."""
    sys.meta_path.insert(0, ProgramFinder(folder))
