"""Kernels for other processors' vendors than this one's: all can run the code of all."""

from __future__ import annotations

import pytest

from pyfuser.engine import compiler


def compile_as_on(patch: pytest.MonkeyPatch, intel: bool) -> None:
    """From here on kernels are compiled as on one of Intel's processors, or as on others."""

    given = compiler.flags

    def flags(fastmath: bool) -> tuple[str, ...]:
        others = tuple(flag for flag in given(fastmath) if flag not in compiler._INTEL_FLAGS)
        return others + compiler._INTEL_FLAGS if intel else others

    patch.setattr(compiler, "flags", flags)
