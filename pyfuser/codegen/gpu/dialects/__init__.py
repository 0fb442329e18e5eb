"""The GPU languages."""

from __future__ import annotations

from collections.abc import Mapping

from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.codegen.gpu.dialects.cuda import CUDA
from pyfuser.codegen.gpu.dialects.hip import HIP

__all__ = ["CUDA", "DIALECTS", "HIP"]

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (CUDA, HIP)}
