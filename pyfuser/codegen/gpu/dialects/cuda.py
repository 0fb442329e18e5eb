"""CUDA C++, as NVRTC, nvcc and clang compile it."""

from __future__ import annotations

from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS

_NAMES = {"+": "Add", "min": "Min", "max": "Max", "&": "And", "|": "Or", "^": "Xor"}
_NAMES |= {"exchange": "Exch", "-": "Add"}
_WIDE = "unsigned long long"


def _native(op: str, dtype: DType) -> str:
    """A subtraction adds the negated value: wrapping for integers, exact for IEEE numbers.

    The processor flushes subnormal float sums of atomicAdd to zero.
    """
    name = _NAMES.get(op)
    if name is None:
        return ""
    if dtype.is_float:
        value = {"+": "value", "-": "-value"}.get(op)
        return f"atomicAdd(cell, {value})" if value else ""
    kind = {DType.INT32: "int", DType.UINT32: "unsigned int"}.get(dtype)
    if kind is None and dtype in (DType.INT64, DType.UINT64):
        ordered = op in ("min", "max") and dtype is DType.INT64
        kind = "long long" if ordered else _WIDE
    if kind is None:
        return ""
    value = f"0 - ({kind})value" if op == "-" else f"({kind})value"
    return f"({dtype.cpp})atomic{name}(({kind}*)cell, {value})"


def _library(name: str, dtype: DType) -> tuple[str, str]:
    return FUNCTIONS[name].c_name + ("f" if dtype is DType.FLOAT32 else ""), ""


CUDA = Dialect(
    name="cuda",
    globals="",
    printf="",
    native=_native,
    library=_library,
    options=(),
    exact=("--fmad=false",),
)
