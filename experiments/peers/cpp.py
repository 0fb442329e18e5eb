"""Compiles and calls the hand-written C++ of `programs/`."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.peers.program import FOLDER
from pyfuser.engine.compiler import LINK_FLAGS, find_compiler, flags
from pyfuser.support.settings import SETTINGS

Function = Callable[..., None]
# What experts add to our flags: their arrays do not overlap in disguise, so types may tell.
EXPERT_FLAGS = ("-fstrict-aliasing",)


class Builder:
    """Compiles files of `programs/`; calls of what it returns take arrays and numbers."""

    def __init__(self, fastmath: bool = False) -> None:
        self._fastmath = fastmath

    def __call__(self, name: str, **constants: float) -> Function:
        """The function `run` of programs/<name>.cpp, with `constants` as macros.

        Arrays are passed as pointers to their data, ints as long, floats as double.
        Raises CompilerError without a compiler and CalledProcessError if compiling fails.
        """
        command = find_compiler(SETTINGS.compiler).command
        macros = [f"-D{key}={value!r}" for key, value in constants.items()]
        source = FOLDER / f"{name}.cpp"
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / f"{name}.so"
            options = [*flags(self._fastmath), *EXPERT_FLAGS, *macros, f"-I{FOLDER}"]
            subprocess.run(
                [*command, *options, str(source), "-o", str(library), *LINK_FLAGS],
                check=True,
                capture_output=True,
            )
            function = ctypes.CDLL(str(library)).run
        function.restype = None

        def call(*arguments: Any) -> None:
            function(*(_native(argument) for argument in arguments))

        return call


def _native(value: Any) -> ctypes.c_void_p | ctypes.c_long | ctypes.c_double:
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_double(value)
