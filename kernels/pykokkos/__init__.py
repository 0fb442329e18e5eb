"""Not PyKokkos, but the way to it: lets `python kernels/heat2d.py` run where none is installed.

Python looks beside a program first, so the programs' `import pykokkos` comes here. If PyKokkos is
installed, this module becomes it; if not, the one that PyFuser brings takes its place.
"""

import importlib
import os
import sys


def _find():
    """What `import pykokkos` would find without this folder, and PyFuser's own finders; or None."""
    for finder in sys.meta_path:
        if not type(finder).__module__.startswith("pyfuser"):
            spec = finder.find_spec("pykokkos", None)
            if spec is not None and spec.loader is not None:
                return spec
    return None


def _load():
    programs = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if os.path.realpath(entry) != programs]
    try:
        spec = _find()
        if spec is not None:
            own = sys.modules[__name__]
            own.__spec__, own.__loader__, own.__file__ = spec, spec.loader, spec.origin
            own.__path__ = spec.submodule_search_locations
            spec.loader.exec_module(own)
            return
        del sys.modules[__name__]
        importlib.import_module("pyfuser")
    except ModuleNotFoundError as error:
        if error.name != "pyfuser":
            raise
        raise ModuleNotFoundError(
            "these programs need PyKokkos, or PyFuser, which brings one: `make demo` installs it; "
            "then run .venv/bin/python " + sys.argv[0],
            name="pykokkos",
        ) from None
    finally:
        sys.path[:] = path


_load()
