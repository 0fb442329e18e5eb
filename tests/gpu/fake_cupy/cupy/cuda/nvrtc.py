"""See README.md."""

from __future__ import annotations

from typing import Any
from zlib import crc32 as _crc32

from cupy.cuda._kernels import SHIM as _SHIM
from cupy.cuda._kernels import CompilerFailure as _CompilerFailure
from cupy.cuda._kernels import compile_source as _compile_source
from cupy.cuda._machine import MACHINE as _MACHINE


class NVRTCError(RuntimeError):
    """The compiler failed."""


_programs: dict[int, dict[str, Any]] = {}


def getVersion() -> tuple[int, int]:
    """Another one for each text of the stand-in, so that no kernel of an older one is loaded."""
    return 13, _crc32(_SHIM.read_bytes())


def getSupportedArchs() -> tuple[int, ...]:
    return 75, 80, 90, 100


def createProgram(src: str, name: str, headers: Any, include_names: Any) -> int:
    handle = _MACHINE.handle()
    _programs[handle] = {"source": src, "log": ""}
    return handle


def compileProgram(prog: int, options: Any) -> None:
    program = _programs[prog]
    try:
        program["code"] = _compile_source(program["source"], tuple(options))
    except _CompilerFailure as error:
        program["log"] = str(error)
        raise NVRTCError("NVRTC_ERROR_COMPILATION (6)") from None


def getCUBIN(prog: int) -> bytes:
    return bytes(_programs[prog]["code"])


def getPTX(prog: int) -> bytes:
    return bytes(_programs[prog]["code"])


def getProgramLog(prog: int) -> str:
    return str(_programs[prog]["log"])


def destroyProgram(prog: int) -> None:
    del _programs[prog]
