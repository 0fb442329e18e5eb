"""HIP, as hipRTC, hipcc and clang compile it.

Its maths and counts come from AMD's device libraries (`__ocml_`, `__ockl_`), which every HIP
compiler links; it is what HIP's own headers call.
"""

from __future__ import annotations

from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS

_GLOBALS = """\
#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __shared__
#define __shared__ __attribute__((shared))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#endif
"""
_NAMES = {"+": "fetch_add", "-": "fetch_add", "&": "fetch_and", "|": "fetch_or"}
_NAMES |= {"^": "fetch_xor", "min": "fetch_min", "max": "fetch_max", "exchange": "exchange"}
_SUMS = ("+", "-")


def _native(op: str, dtype: DType) -> str:
    name = _NAMES.get(op)
    whole = dtype.is_integer and dtype.size >= 4
    if name is None or not (whole or (dtype.is_float and op in _SUMS)):
        return ""
    value = "value"
    if op == "-":
        value = "-value" if dtype.is_float else f"({dtype.cpp})(0 - (uint{8 * dtype.size}_t)value)"
    return f"__hip_atomic_{name}(cell, {value}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)"


def _library(name: str, dtype: DType) -> tuple[str, str]:
    c_name = FUNCTIONS[name].c_name
    function = f"__ocml_{c_name}_f{8 * dtype.size}"
    types = ", ".join([dtype.cpp] * FUNCTIONS[name].arity)
    attributes = "__device__ __attribute__((const))"
    return function, f'extern "C" {attributes} {dtype.cpp} {function}({types});'


HIP = Dialect(
    name="hip",
    globals=_GLOBALS,
    printf='extern "C" __device__ int printf(const char*, ...);\n',
    native=_native,
    library=_library,
    options=("-fno-strict-aliasing",),
    exact=("-ffp-contract=off",),
)
