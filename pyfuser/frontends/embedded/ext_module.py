"""`pk.compile_into_module`: the user's own C++ with pybind11, as a Python module."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from pyfuser.engine.compiler import compile_library, find_compiler
from pyfuser.errors import CompilerError
from pyfuser.frontends.embedded.spaces import ExecutionSpace, resolve_space
from pyfuser.settings import SETTINGS


def compile_into_module(
    path: Path,
    source: list[str],
    module_name: str,
    executionSpace: ExecutionSpace = ExecutionSpace.Default,
) -> ModuleType:
    """Compile lines of C++ that define a pybind11 module, and import it.

    path: of the program, or of its folder, in which `pk_cpp` keeps what was compiled. The source
    cannot use Kokkos, which is not installed with the embedded engine.

    Raises CompilerError where pybind11 is not installed, or for what the compiler does not accept.
    """
    try:
        pybind11 = importlib.import_module("pybind11")  # only such programs need it
    except ImportError:
        raise CompilerError(
            "pk.compile_into_module needs pybind11: install it, for example with "
            "`pip install pybind11`"
        ) from None
    space: Any = resolve_space(executionSpace)
    text = "\n".join(line.rstrip("\n") for line in source) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(path).resolve()
    beside = path if path.is_dir() else path.parent
    folder = beside / "pk_cpp" / module_name / f"{space.value}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / (module_name + str(sysconfig.get_config_var("EXT_SUFFIX")))
    if not library.exists():
        file = folder / f"{module_name}.cpp"
        file.write_text(text)
        partial = library.with_suffix(".partial")
        includes = [pybind11.get_include(), sysconfig.get_paths()["include"]]
        options = [*(f"-I{include}" for include in includes), "-fexceptions", "-frtti"]
        compile_library(find_compiler(SETTINGS.compiler), file, partial, options=options)
        partial.replace(library)
    spec = importlib.util.spec_from_file_location(module_name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
