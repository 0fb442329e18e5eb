"""Kernels for other processors than this one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyfuser.codegen import kernel
from pyfuser.engine import compiler
from pyfuser.ir.dtypes import DType
from pyfuser.nest.cost import vectorisable
from pyfuser.tuning.target import Target, host
from pyfuser.tuning.thresholds import NOW, tuned


def emit_as_on(patch: pytest.MonkeyPatch, **facts: Any) -> None:
    """From here on kernels are emitted for this processor with other facts of `Target`."""
    other = replace(host(), **facts)
    patch.setattr(kernel, "host", lambda: other)
    if other.vector_bytes < host().vector_bytes == 64:
        given = compiler.flags
        patch.setattr(compiler, "flags", lambda fastmath: (*given(fastmath), "-mno-avx512f"))


def tune(patch: pytest.MonkeyPatch, **numbers: Any) -> None:
    """From here on with other numbers of `tuning.thresholds`, until the patch is undone."""
    before = NOW.tuning, NOW.running
    with tuned(**numbers):
        tables = NOW.tuning, NOW.running
    for name, old, new in zip(("tuning", "running"), before, tables, strict=True):
        if new is not old:
            patch.setattr(NOW, name, new)


def decide_with_maths(patch: pytest.MonkeyPatch, *names: str) -> None:
    """The decisions of a machine that has vector versions of functions, wherever the tests run."""
    other = Target(vector_maths=functions(*names))
    patch.setattr(vectorisable, "host", lambda: other)


def functions(*names: str) -> frozenset[tuple[str, DType]]:
    """Functions of these names for all real numbers."""
    return frozenset((name, dtype) for name in names for dtype in DType if dtype.is_float)
