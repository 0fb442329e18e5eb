// histogram

namespace pf {

typedef int int32_t;
typedef long int64_t;
#define pf_thread(axis) ((int)threadIdx.axis)
#define pf_block(axis) ((int64_t)blockIdx.axis)
#define pf_blocks(axis) ((int64_t)gridDim.axis)
#define pf_threads(axis) ((int64_t)blockDim.axis)

static __device__ inline int64_t pf_atomic_add_i64(int64_t* cell, int64_t value) {
    return (int64_t)atomicAdd((unsigned long long*)cell, (unsigned long long)value);
}

#define pf_first(axis) (pf_block(axis) * pf_threads(axis) + pf_thread(axis))
#define pf_step(axis) (pf_blocks(axis) * pf_threads(axis))

extern "C" __global__ void __launch_bounds__(256) pf_kernel(
    const int64_t i_begin,
    const int64_t i_end,
    const int32_t* __restrict__ keys,
    int64_t* __restrict__ counts
) {
    for (int64_t i = i_begin + pf_first(x); i < i_end; i += pf_step(x)) {
        pf_atomic_add_i64(&counts[(int64_t)keys[i]], (int64_t)1);
    }
}

}  // namespace pf
