"""CUDA and HIP: all that differs between the kernels of the two is in this module.

A dialect gives every other piece of an emitted kernel the same vocabulary: `pf_thread(x)`,
`pf_barrier()`, `pf_compare_exchange(...)`. Nothing is included, so a source compiles with NVRTC and
hipRTC as well as with nvcc, hipcc and plain clang, and what the user calls a local cannot meet a
macro of a header. HIP's maths and counts come from AMD's device libraries (`__ocml_`, `__ockl_`),
which every HIP compiler links; it is what HIP's own headers call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS

Native = Callable[[str, DType], str]
Library = Callable[[str, DType], "tuple[str, str]"]
Piece = tuple[str, str]
"""A word of emitted code, and what defines it; a later piece may use earlier ones."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language for GPU kernels.

    name: "cuda" or "hip". globals: what stands before the namespace of a kernel. vocabulary: words
    and their definitions, of which a kernel has those it uses. printf: the declaration that a call
    of printf needs. native(op, dtype): an expression over `cell` and `value` that applies `op` by
    an instruction of the processor and returns the old value, or "". library(name, dtype): how a
    function of the C library is called, and its declaration where it needs one. options: what
    compilers are told; exact: the same, where floating-point values must be those of other engines.
    """

    name: str
    globals: str
    vocabulary: tuple[Piece, ...]
    printf: str
    native: Native
    library: Library
    options: tuple[str, ...]
    exact: tuple[str, ...]


def _suffix(dtype: DType) -> str:
    return "f" if dtype is DType.FLOAT32 else ""


_TYPES: tuple[Piece, ...] = tuple(
    (name, f"typedef {spelling} {name};\n")
    for name, spelling in (
        ("int8_t", "signed char"),
        ("int16_t", "short"),
        ("int32_t", "int"),
        ("int64_t", "long"),
        ("uint8_t", "unsigned char"),
        ("uint16_t", "unsigned short"),
        ("uint32_t", "unsigned int"),
        ("uint64_t", "unsigned long"),
    )
)

# --------------------------------------------------------------------------- CUDA

_CUDA_VOCABULARY: tuple[Piece, ...] = (
    *_TYPES,
    ("pf_thread(", "#define pf_thread(axis) ((int)threadIdx.axis)\n"),
    ("pf_block(", "#define pf_block(axis) ((int64_t)blockIdx.axis)\n"),
    ("pf_blocks(", "#define pf_blocks(axis) ((int64_t)gridDim.axis)\n"),
    ("pf_threads(", "#define pf_threads(axis) ((int64_t)blockDim.axis)\n"),
    ("pf_copy", "#define pf_copy memcpy\n"),
    ("pf_warp", "constexpr int pf_warp = 32;\n"),
    ("pf_barrier", "static __device__ inline void pf_barrier() { __syncthreads(); }\n"),
    ("pf_fence", "static __device__ inline void pf_fence() { __threadfence(); }\n"),
    (
        "pf_word_down",
        """\
static __device__ inline int pf_word_down(int word, int lanes) {
    return __shfl_down_sync(0xffffffffu, word, lanes);
}
""",
    ),
    (
        "pf_lanes_barrier",
        "static __device__ inline void pf_lanes_barrier() { __syncwarp(); }\n",
    ),
    (
        "pf_lane_word_down",
        """\
static __device__ inline int pf_lane_word_down(int word, int lanes) {
    return __shfl_down_sync(0xffffffffu, word, lanes, 32);
}
""",
    ),
    (
        "pf_lane_word_first",
        """\
static __device__ inline int pf_lane_word_first(int word) {
    return __shfl_sync(0xffffffffu, word, 0, 32);
}
""",
    ),
    (
        "pf_exchange_32",
        """\
static __device__ inline uint32_t pf_exchange_32(uint32_t* cell, uint32_t old, uint32_t next) {
    return atomicCAS(cell, old, next);
}
""",
    ),
    (
        "pf_exchange_64",
        """\
static __device__ inline uint64_t pf_exchange_64(uint64_t* cell, uint64_t old, uint64_t next) {
    return atomicCAS((unsigned long long*)cell, (unsigned long long)old, (unsigned long long)next);
}
""",
    ),
    # Left to itself, the compiler would split the copy of a struct, and does not always join it.
    (
        "pf_words<",
        """\
template <int bytes> struct pf_words { typedef uint4 type; };
template <> struct pf_words<8> { typedef uint2 type; };
template <> struct pf_words<4> { typedef unsigned int type; };
template <> struct pf_words<2> { typedef unsigned short type; };
""",
    ),
    ("pf_get(", "#define pf_get(words) __ldca(words)\n"),
    ("pf_get_constant(", "#define pf_get_constant(words) __ldg(words)\n"),
    ("pf_put(", "#define pf_put(place, words) __stwb(place, words)\n"),
    ("pf_inf()", "#define pf_inf() __longlong_as_double(0x7ff0000000000000ll)\n"),
    ("pf_nan()", "#define pf_nan() __longlong_as_double(0x7ff8000000000000ll)\n"),
    ("pf_inff()", "#define pf_inff() __int_as_float(0x7f800000)\n"),
    ("pf_nanf()", "#define pf_nanf() __int_as_float(0x7fc00000)\n"),
)
_CUDA_NAMES = {"+": "Add", "min": "Min", "max": "Max", "&": "And", "|": "Or", "^": "Xor"}
_CUDA_NAMES |= {"exchange": "Exch", "-": "Add"}
_CUDA_WIDE = "unsigned long long"


def _cuda_native(op: str, dtype: DType) -> str:
    """A subtraction adds the negated value: wrapping for integers, exact for IEEE numbers.

    The processor flushes subnormal float sums of atomicAdd to zero.
    """
    name = _CUDA_NAMES.get(op)
    if name is None:
        return ""
    if dtype.is_float:
        value = {"+": "value", "-": "-value"}.get(op)
        return f"atomicAdd(cell, {value})" if value else ""
    kind = {DType.INT32: "int", DType.UINT32: "unsigned int"}.get(dtype)
    if kind is None and dtype in (DType.INT64, DType.UINT64):
        ordered = op in ("min", "max") and dtype is DType.INT64
        kind = "long long" if ordered else _CUDA_WIDE
    if kind is None:
        return ""
    value = f"0 - ({kind})value" if op == "-" else f"({kind})value"
    return f"({dtype.cpp})atomic{name}(({kind}*)cell, {value})"


def _cuda_library(name: str, dtype: DType) -> tuple[str, str]:
    return FUNCTIONS[name].c_name + _suffix(dtype), ""


CUDA = Dialect("cuda", "", _CUDA_VOCABULARY, "", _cuda_native, _cuda_library, (), ("--fmad=false",))

# --------------------------------------------------------------------------- HIP

_HIP_GLOBALS = """\
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
_OCKL = 'extern "C" __device__ __attribute__((const)) unsigned long __ockl_get_'
_HIP_VOCABULARY: tuple[Piece, ...] = (
    *_TYPES,
    ("pf_number_", "#define pf_number_x 0\n#define pf_number_y 1\n#define pf_number_z 2\n"),
    ("pf_thread(", "#define pf_thread(axis) ((int)__builtin_amdgcn_workitem_id_##axis())\n"),
    ("pf_block(", "#define pf_block(axis) ((int64_t)__builtin_amdgcn_workgroup_id_##axis())\n"),
    (
        "pf_blocks(",
        f"{_OCKL}num_groups(unsigned int);\n"
        "#define pf_blocks(axis) ((int64_t)__ockl_get_num_groups(pf_number_##axis))\n",
    ),
    (
        "pf_threads(",
        f"{_OCKL}local_size(unsigned int);\n"
        "#define pf_threads(axis) ((int64_t)__ockl_get_local_size(pf_number_##axis))\n",
    ),
    ("pf_copy", "#define pf_copy __builtin_memcpy\n"),
    (
        "pf_warp",
        """\
#if defined(__GFX8__) || defined(__GFX9__)
constexpr int pf_warp = 64;
#else
constexpr int pf_warp = 32;
#endif
""",
    ),
    (
        "pf_barrier",
        """\
static __device__ inline void pf_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
""",
    ),
    (
        "pf_fence",
        """\
static __device__ inline void pf_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
""",
    ),
    (
        "pf_word_down",
        """\
static __device__ inline int pf_word_down(int word, int lanes) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane + lanes), word);
}
""",
    ),
    (
        "pf_lanes_barrier",
        """\
static __device__ inline void pf_lanes_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
""",
    ),
    # The upper lanes of a group get values of another one, or none; the first lane's sum has none
    # of theirs.
    (
        "pf_lane_word_down",
        """\
static __device__ inline int pf_lane_word_down(int word, int lanes) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane + lanes), word);
}
""",
    ),
    (
        "pf_lane_word_first",
        """\
static __device__ inline int pf_lane_word_first(int word) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_amdgcn_ds_bpermute(4 * (lane & ~31), word);
}
""",
    ),
    *(
        (
            f"pf_exchange_{bits}",
            f"""\
static __device__ inline uint{bits}_t pf_exchange_{bits}(uint{bits}_t* cell, uint{bits}_t old,
                                                  uint{bits}_t next) {{
    __hip_atomic_compare_exchange_strong(cell, &old, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return old;
}}
""",
        )
        for bits in (32, 64)
    ),
    (
        "pf_words<",
        """\
template <int bytes> struct pf_words {
    typedef unsigned int type __attribute__((ext_vector_type(4)));
};
template <> struct pf_words<8> { typedef unsigned int type __attribute__((ext_vector_type(2))); };
template <> struct pf_words<4> { typedef unsigned int type; };
template <> struct pf_words<2> { typedef unsigned short type; };
""",
    ),
    ("pf_get(", "#define pf_get(words) (*(words))\n"),
    ("pf_get_constant(", "#define pf_get_constant(words) (*(words))\n"),
    ("pf_put(", "#define pf_put(place, words) (*(place) = (words))\n"),
    ("pf_inf()", "#define pf_inf() __builtin_inf()\n"),
    ("pf_nan()", '#define pf_nan() __builtin_nan("")\n'),
    ("pf_inff()", "#define pf_inff() __builtin_inff()\n"),
    ("pf_nanf()", '#define pf_nanf() __builtin_nanf("")\n'),
)
_HIP_NAMES = {"+": "fetch_add", "-": "fetch_add", "&": "fetch_and", "|": "fetch_or"}
_HIP_NAMES |= {"^": "fetch_xor", "min": "fetch_min", "max": "fetch_max", "exchange": "exchange"}
_HIP_SUMS = ("+", "-")


def _hip_native(op: str, dtype: DType) -> str:
    name = _HIP_NAMES.get(op)
    whole = dtype.is_integer and dtype.size >= 4
    if name is None or not (whole or (dtype.is_float and op in _HIP_SUMS)):
        return ""
    value = "value"
    if op == "-":
        value = "-value" if dtype.is_float else f"({dtype.cpp})(0 - (uint{8 * dtype.size}_t)value)"
    return f"__hip_atomic_{name}(cell, {value}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)"


def _hip_library(name: str, dtype: DType) -> tuple[str, str]:
    c_name = FUNCTIONS[name].c_name
    function = f"__ocml_{c_name}_f{8 * dtype.size}"
    types = ", ".join([dtype.cpp] * FUNCTIONS[name].arity)
    attributes = "__device__ __attribute__((const))"
    return function, f'extern "C" {attributes} {dtype.cpp} {function}({types});'


HIP = Dialect(
    "hip",
    _HIP_GLOBALS,
    _HIP_VOCABULARY,
    'extern "C" __device__ int printf(const char*, ...);\n',
    _hip_native,
    _hip_library,
    ("-fno-strict-aliasing",),
    ("-ffp-contract=off",),
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (CUDA, HIP)}
