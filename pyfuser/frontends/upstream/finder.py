"""Notices when PyKokkos is imported: hooks need its modules, and it is slow to import for nothing.

Importing it starts Kokkos, which programs that never use it should not pay for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


class _Loader(Loader):
    """The loader that was found, and after it an action on the module."""

    def __init__(self, loader: Loader, action: Action, gone: Callable[[], None]) -> None:
        self._loader = loader
        self._action = action
        self._gone = gone

    def __getattr__(self, name: str) -> object:  # get_source, is_package, ...
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if sys.modules.get(module.__name__) is module:
            self._action(module)
        else:  # it stood for another one only
            self._gone()


class _Finder(MetaPathFinder):
    """Finds one module as the finders after it do, and once only."""

    def __init__(self, name: str, action: Action, gone: Callable[[], None]) -> None:
        self._name = name
        self._action = action
        self._gone = gone

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._action, self._gone)
                return spec
        return None


def when_imported(name: str, action: Action, gone: Callable[[], None]) -> None:
    """Call `action` on a module after its import; at once, if it is imported by now.

    gone: called instead if the module took itself out of `sys.modules` while it was imported.
    """
    module = sys.modules.get(name)
    if module is not None:
        action(module)
    else:
        sys.meta_path.insert(0, _Finder(name, action, gone))
