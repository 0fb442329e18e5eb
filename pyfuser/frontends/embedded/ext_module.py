"""`pk.compile_into_module`: the user's own C++ with pybind11, as a Python module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from pyfuser.frontends.embedded.spaces import ExecutionSpace, resolve_space
from pyfuser.support.errors import CompilerError
from pyfuser.support.settings import SETTINGS


def compile_into_module(
    path: Path,
    source: list[str],
    module_name: str,
    executionSpace: ExecutionSpace = ExecutionSpace.Default,
) -> ModuleType:
    """Compile lines of C++ that define a pybind11 module, and import it.

    path: accepted and not used: what was compiled is kept with the kernels. The source cannot use
    Kokkos, which is not installed with the embedded engine.

    Raises CompilerError where pybind11 is not installed, or for what the compiler does not accept.
    """
    import sysconfig

    from pyfuser.engine.cache import key_of
    from pyfuser.engine.compiler import build_identity, compile_library, find_compiler
    from pyfuser.engine.native import kernel_cache

    try:
        pybind11 = importlib.import_module("pybind11")  # only such programs need it
    except ImportError:
        raise CompilerError(
            "pk.compile_into_module needs pybind11: install it, for example with "
            "`pip install pybind11`"
        ) from None
    resolve_space(executionSpace)  # raises for a space that is not here
    text = "\n".join(line.rstrip("\n") for line in source) + "\n"
    includes = [pybind11.get_include(), sysconfig.get_paths()["include"]]
    options = [*(f"-I{include}" for include in includes), "-fexceptions", "-frtti"]
    compiler = find_compiler(SETTINGS.compiler)
    versions = [sys.version, pybind11.__version__, *options]
    identity = "\n".join([build_identity(compiler, SETTINGS.fastmath), *versions])

    def build(text: Path, target: Path) -> None:
        compile_library(compiler, text, target, options=options)

    library = kernel_cache().obtain(key_of(text, identity), text, build)
    spec = importlib.util.spec_from_file_location(module_name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
