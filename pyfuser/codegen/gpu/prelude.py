"""The pieces of device code that emitted kernels are built on; a kernel carries only those it uses.

They use the vocabulary of `gpu.dialect`, so they are the same text for every GPU.
"""

from __future__ import annotations

from pyfuser.codegen.cpu import prelude as cpu_prelude
from pyfuser.codegen.gpu.team_analysis import LANES

THREADS = 256
"""Threads of a block."""

WORKSPACE_HEAD = 64
"""Bytes at the start of a workspace that hold the ticket of `pf_is_last`."""


def on_device(piece: str) -> str:
    """A piece of `cpu.prelude`, with its functions made for the GPU."""
    for before, after in (
        ("static inline", "static __device__ inline"),
        ("friend ", "friend __device__ "),
        ("    constexpr ", "    __device__ constexpr "),
        ("explicit constexpr ", "explicit __device__ constexpr "),
        ("pf_complex& operator", "__device__ pf_complex& operator"),
        ("__builtin_fabs", "pf_magnitude"),
    ):
        piece = piece.replace(before, after)
    return piece


ROUNDED = "#define pf_rounded(product) (product)  // the compiler is told not to contract\n"

MINMAX = on_device(cpu_prelude.MINMAX)

PLAIN_FETCH = on_device(cpu_prelude.PLAIN_FETCH)

# Aligned as wide as it is, so that it is loaded at once and 8-byte atomics reach all of it.
COMPLEX = "#define pf_magnitude(x) ((x) < 0 ? -(x) : (x))\n\n" + on_device(
    cpu_prelude.COMPLEX
).replace("struct ", "struct alignas(2 * sizeof(T)) ", 1)

WRAPPING = tuple(
    (
        f"pf_{name}_i{bits}(",
        f"static __device__ inline int{bits}_t pf_{name}_i{bits}(int{bits}_t a, int{bits}_t b) {{ "
        f"return (int{bits}_t)((uint{bits}_t)a {op} (uint{bits}_t)b); }}\n",
    )
    for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"))
    for bits in (32, 64)
)
"""Signed arithmetic that wraps."""

PLACES = """\
#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))
"""

WALK = """\
// Iterations of a box, every `step`-th one from number `first` on. An iteration's number has one
// digit for each axis, the last one fastest; stepping adds digits, as divisions are slow.
template <int rank> struct pf_walk {
    int64_t digit[rank], move[rank], begin[rank], extent[rank], count;
    __device__ pf_walk(const int64_t (&from)[rank], const int64_t (&to)[rank], int64_t first,
                       int64_t step) : count(1) {
        for (int axis = 0; axis < rank; ++axis) {
            begin[axis] = from[axis];
            extent[axis] = to[axis] > from[axis] ? to[axis] - from[axis] : 0;
            count *= extent[axis];
        }
        if (!count) return;
        for (int axis = rank - 1; axis >= 0; --axis) {
            digit[axis] = axis ? first % extent[axis] : first;
            move[axis] = axis ? step % extent[axis] : step;
            first /= extent[axis];
            step /= extent[axis];
        }
    }
    __device__ bool more() const { return count && digit[0] < extent[0]; }
    __device__ int64_t index(int axis) const { return begin[axis] + digit[axis]; }
    __device__ void next() {
        for (int axis = rank - 1; axis >= 0; --axis) {
            digit[axis] += move[axis];
            if (axis && digit[axis] >= extent[axis]) {
                digit[axis] -= extent[axis];
                ++digit[axis - 1];
            }
        }
    }
};
"""

VECTOR = """\
// Neighbouring elements, which are loaded and stored at once.
template <typename T, int lanes> struct alignas(lanes * sizeof(T)) pf_vector { T cell[lanes]; };

template <int lanes, typename T>
static __device__ inline pf_vector<T, lanes> pf_load(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

// Of memory that the kernel does not write.
template <int lanes, typename T>
static __device__ inline pf_vector<T, lanes> pf_load_constant(const T* first) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    const words all = pf_get_constant((const words*)first);
    pf_vector<T, lanes> result;
    pf_copy(&result, &all, sizeof(words));
    return result;
}

template <int lanes, typename T>
static __device__ inline void pf_store(T* first, pf_vector<T, lanes> values) {
    typedef typename pf_words<lanes * sizeof(T)>::type words;
    words all;
    pf_copy(&all, &values, sizeof(words));
    pf_put((words*)first, all);
}
"""

SHARED = """\
template <int threads, typename T> static __device__ inline T* pf_shared() {
    __shared__ T cells[threads];
    return cells;
}
"""

TOTAL = """\
template <typename T> static __device__ inline T pf_down(T value, int lanes) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_word_down(word[k], lanes);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

// All values of a block joined in halves, which is the same order for every width of a warp. The
// result is thread 0's.
template <int threads, typename F, typename T>
static __device__ PF_INLINE T pf_total(T value) {
    T* const upper = pf_shared<threads, T>();
    const int me = pf_thread(x);
    for (int half = threads / 2; half >= pf_warp; half /= 2) {
        if (half <= me && me < 2 * half) upper[me] = value;
        pf_barrier();
        if (me < half) value = F::join(value, upper[me + half]);
    }
    if (me < pf_warp) {
        for (int half = pf_warp / 2; half; half /= 2) value = F::join(value, pf_down(value, half));
    }
    pf_barrier();  // before `upper` is used again
    return value;
}
"""

CALLED_TOTAL = TOTAL.replace("PF_INLINE", "__attribute__((noinline))")
"""For many values: the code is there once."""

TOTAL = TOTAL.replace("PF_INLINE", "inline")

_JOINS = {
    "pf_plus": "a + b",
    "pf_least": "b < a ? b : a",
    "pf_most": "a < b ? b : a",
    "pf_or": "a | b",
    "pf_xor": "a ^ b",
}
JOINS = tuple(
    (
        name,
        f"struct {name} {{\n"
        "    template <typename T> static __device__ inline T join(T a, T b) { "
        f"return (T)({text}); }}\n}};\n",
    )
    for name, text in _JOINS.items()
)
"""How two partial results become one."""

IS_LAST = """\
// Whether all other blocks were here before, so that what they wrote to memory is complete.
static __device__ inline bool pf_is_last(uint32_t* ticket) {
    __shared__ bool last;
    pf_fence();
    pf_barrier();
    if (pf_thread(x) == 0) {
        const uint32_t count = (uint32_t)pf_blocks(x);
        last = pf_atomic_add_u32(ticket, 1) == count - 1;
        if (last) *ticket = 0;  // for the next launch
    }
    pf_barrier();
    pf_fence();
    return last;
}
"""

BEFORE = """\
// The sum of the values of all threads before this one, and of the whole block. Pairs that are
// 1, 2, 4... threads apart are added (Hillis and Steele, 1986): the order is always the same.
template <int threads, typename T>
static __device__ inline T pf_before(T value, T& total) {
    T* const sum = pf_shared<threads, T>();
    const int me = pf_thread(x);
    sum[me] = value;
    pf_barrier();
    for (int apart = 1; apart < threads; apart *= 2) {
        T left = T();
        if (me >= apart) left = sum[me - apart];
        pf_barrier();
        if (me >= apart) sum[me] = (T)(left + sum[me]);
        pf_barrier();
    }
    const T before = me ? sum[me - 1] : T();
    total = sum[threads - 1];
    pf_barrier();  // before `sum` is used again
    return before;
}
"""

ATOMIC = """\
template <typename T, typename F>
static __device__ inline T pf_atomic_{bits}(T* cell, T value, F change) {{
    uint{bits}_t seen = *(volatile uint{bits}_t*)cell, before;
    T old;
    do {{
        before = seen;
        pf_copy(&old, &before, sizeof(T));
        const T next = change(old, value);
        uint{bits}_t after;
        pf_copy(&after, &next, sizeof(T));
        seen = pf_exchange_{bits}((uint{bits}_t*)cell, before, after);
    }} while (seen != before);
    return old;
}}
"""

ATOMIC_NARROW = """\
// Cells of one or two bytes change together with the other bytes of their word.
template <typename T, typename F>
static __device__ inline T pf_atomic_narrow(T* cell, T value, F change) {
    uint32_t* const word = (uint32_t*)((uint64_t)cell & ~(uint64_t)3);
    const int shift = 8 * (int)((uint64_t)cell & 3);
    const uint32_t mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    uint32_t seen = *(volatile uint32_t*)word, before;
    T old;
    do {
        before = seen;
        uint32_t bits = (before & mask) >> shift;
        pf_copy(&old, &bits, sizeof(T));
        const T next = change(old, value);
        bits = 0;
        pf_copy(&bits, &next, sizeof(T));
        seen = pf_exchange_32(word, before, (before & ~mask) | (bits << shift));
    } while (seen != before);
    return old;
}
"""

ATOMIC_WIDE = """\
// No instruction of all processors covers 16 bytes: one lock for all such cells of the kernel. It
// is taken and left within one trip, as threads of a warp may have to wait for each other.
static __device__ uint32_t pf_lock;

template <typename T, typename F>
static __device__ inline T pf_atomic_locked(T* cell, T value, F change) {
    T old = T();
    for (bool done = false; !done;) {
        if (pf_exchange_32(&pf_lock, 0u, 1u) == 0u) {
            pf_fence();
            old = *cell;
            *cell = change(old, value);
            pf_fence();
            pf_exchange_32(&pf_lock, 1u, 0u);
            done = true;
        }
    }
    return old;
}
"""

TEAMS = (
    ("pf_lane(", f"#define pf_lane() (pf_thread(x) % {LANES})\n"),
    ("pf_group(", f"#define pf_group() (pf_thread(x) / {LANES})\n"),
    (
        "pf_lanes_first",
        """\
// The first lane's value, for each lane of a group.
template <typename T> static __device__ inline T pf_lanes_first(T value) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_first(word[k]);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}
""",
    ),
    (
        "pf_lanes_total<",
        """\
template <typename T> static __device__ inline T pf_from_above(T value, int lanes) {
    int word[(sizeof(T) + 3) / 4] = {};
    pf_copy(word, &value, sizeof(T));
    for (int k = 0; k < (int)(sizeof(word) / sizeof(int)); ++k) {
        word[k] = pf_lane_word_down(word[k], lanes);
    }
    pf_copy(&value, word, sizeof(T));
    return value;
}

// All values of a group of lanes joined in halves, for each of them.
template <int lanes, typename F, typename T> static __device__ inline T pf_lanes_total(T value) {
    for (int half = lanes / 2; half; half /= 2) {
        value = F::join(value, pf_from_above(value, half));
    }
    return pf_lanes_first(value);
}
""",
    ),
    (
        "pf_team_first<",
        """\
// The first thread's value, for each thread of a block.
template <int threads, typename T> static __device__ inline T pf_team_first(T value) {
    T* const first = pf_shared<threads, T>();
    if (pf_thread(x) == 0) *first = value;
    pf_barrier();
    value = *first;
    pf_barrier();  // before `first` is used again
    return value;
}
""",
    ),
    (
        "pf_team_total<",
        """\
// All values of a block joined in halves, for each of its threads.
template <int threads, typename F, typename T> static __device__ inline T pf_team_total(T value) {
    return pf_team_first<threads>(pf_total<threads, F>(value));
}
""",
    ),
    (
        "pf_length(",
        "static __device__ inline int64_t pf_length(int64_t extent) { "
        "return extent > 0 ? extent : 0; }\n",
    ),
    (
        "pf_dynamic",
        """\
#ifndef pf_dynamic
extern __shared__ __attribute__((aligned(16))) char pf_dynamic[];
#endif
""",
    ),
)
"""What teams are built on; needs the pieces before it."""
