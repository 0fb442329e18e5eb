// Just enough of CUDA to run emitted kernels on the host: one block after the other, and each thread
// of a block as a coroutine that runs until its next barrier or shuffle. Threads and blocks take
// turns in an order that the caller chooses, so that a missing barrier shows; a barrier that not all
// threads reach, or a shuffle that not all lanes of a warp reach, ends the process with a message.
// Hundreds of kernels include this: what takes long to compile is in `cuda_on_host.cpp`.
#pragma once
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS  // none of the templates of <cmath>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

namespace host {

struct dimensions { unsigned x, y, z; };
constexpr int LANES = 32, ROOM = 64 << 10;

extern dimensions thread_place, block_place, threads_shape, blocks_shape;
// Dynamic shared memory: what lies behind that of the launch has to stay as it is.
extern unsigned char dynamic[ROOM];
extern int running, warp, *words;

void fail(const char* what);
void wait_for_lanes();
void wait_for_warp();
void wait_for_block();
// Runs a grid; seed 0: in ascending order, 1: descending, others: shuffled. room: bytes of dynamic
// shared memory. width: that of a warp.
using grid = void(void (*called)(void**), void** arguments, const unsigned* blocks,
                  const unsigned* shape, int seed, unsigned room, int width);
extern grid run, run_plain;  // plain: threads that never wait for each other need no coroutines

template <int... N> struct numbers {};

// A kernel with an array of pointers to its arguments, as the driver's interface takes them.
template <auto kernel> struct entry;
template <typename... A, void (*kernel)(A...)> struct entry<kernel> {
    template <int... N> static void with(void** arguments, numbers<N...>) {
        kernel(*(A*)arguments[N]...);
    }
    static void call(void** arguments) { with(arguments, numbers<__integer_pack(sizeof...(A))...>()); }
    static int sizes(int* out) {
        int n = 0;
        ((out[n++] = sizeof(A)), ...);
        return n;
    }
};

}  // namespace host

#define pf_dynamic ((char*)host::dynamic)
#define threadIdx host::thread_place
#define blockIdx host::block_place
#define blockDim host::threads_shape
#define gridDim host::blocks_shape

static void __syncthreads() { host::wait_for_block(); }
static void __threadfence() {}

static int __shfl_down_sync(unsigned, int word, int lanes) {
    const int me = host::running, other = me + lanes;
    host::words[me] = word;
    host::wait_for_warp();
    const int result = other / host::warp == me / host::warp ? host::words[other] : word;
    host::wait_for_warp();
    return result;
}

// Groups of 32 lanes: a whole warp of CUDA, or half of one of AMD, whose halves need not meet.
static void __syncwarp() { host::wait_for_lanes(); }

static int host_lanes(int word, int from) {
    host::words[host::running] = word;
    host::wait_for_lanes();
    const int result = host::words[from];
    host::wait_for_lanes();
    return result;
}
static int __shfl_down_sync(unsigned, int word, int lanes, int width) {
    if (width != host::LANES) host::fail("a width that is not known");
    const int me = host::running, other = me + lanes;
    return host_lanes(word, other / width == me / width ? other : me);
}
static int __shfl_sync(unsigned, int word, int lane, int width) {
    if (width != host::LANES) host::fail("a width that is not known");
    return host_lanes(word, host::running / width * width + lane);
}

static double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T, typename F> static T host_atomic(T* cell, F change) {
    const T old = *cell;
    *cell = change(old);
    return old;
}
#define HOST_ATOMIC(name, change) \
    template <typename T> static T name(T* cell, T value) { \
        return host_atomic(cell, [value](T old) { (void)old; return (T)(change); }); \
    }
HOST_ATOMIC(atomicAdd, old + value)
HOST_ATOMIC(atomicAnd, old & value)
HOST_ATOMIC(atomicOr, old | value)
HOST_ATOMIC(atomicXor, old ^ value)
HOST_ATOMIC(atomicMin, value < old ? value : old)
HOST_ATOMIC(atomicMax, old < value ? value : old)
HOST_ATOMIC(atomicExch, value)
template <typename T> static T atomicCAS(T* cell, T expected, T value) {
    return host_atomic(cell, [=](T old) { return old == expected ? value : old; });
}
