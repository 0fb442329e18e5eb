// Just enough of CUDA to run emitted kernels on the host: one block after the other, and each thread
// of a block as a coroutine that runs until its next barrier or shuffle. Threads and blocks take
// turns in an order that the caller chooses, so that a missing barrier shows; a barrier that not all
// threads reach, or a shuffle that not all lanes of a warp reach, ends the process with a message.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#ifndef HOST_WARP
#define HOST_WARP 32
#endif
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

namespace host {

struct dimensions { unsigned x, y, z; };
enum state { READY, AT_LANES, AT_WARP, AT_BARRIER, DONE };
constexpr int LANES = 32, WARP = HOST_WARP, STACK = 128 << 10;

struct thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;  // not cleared: most of its pages are never touched
    state at = DONE;
    dimensions place;
};

// Dynamic shared memory: what lies behind that of the launch has to stay as it is.
alignas(16) static unsigned char dynamic[64 << 10];
static unsigned room;

static dimensions thread_place, block_place, threads_shape, blocks_shape;
static ucontext_t scheduler;
static std::vector<thread> threads;
static std::vector<int> words;
static std::function<void()> kernel;
static int running;

static void fail(const char* what) {
    fprintf(stderr, "cuda_on_host: %s\n", what);
    abort();
}

static void wait(state at) {
    threads[running].at = at;
    swapcontext(&threads[running].context, &scheduler);
}

static void body() {
    kernel();
    threads[running].at = DONE;
}

static void resume(int n) {
    running = n;
    thread_place = threads[n].place;
    swapcontext(&scheduler, &threads[n].context);
}

// All of threads [from, to) that wait at `at` go on; false unless all wait there.
static bool release(int from, int to, state at) {
    for (int n = from; n < to; ++n) if (threads[n].at != at) return false;
    for (int n = from; n < to; ++n) threads[n].at = READY;
    return true;
}

static void run_block(int count, const std::vector<int>& order) {
    memset(dynamic, 0x7F, sizeof dynamic);  // large numbers
    for (int n = 0; n < count; ++n) {
        thread& t = threads[n];
        const unsigned flat = n, wide = threads_shape.x, high = threads_shape.y;
        t.place = {flat % wide, flat / wide % high, flat / wide / high};
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.get();
        t.context.uc_stack.ss_size = STACK;
        t.context.uc_link = &scheduler;
        makecontext(&t.context, body, 0);
        t.at = READY;
    }
    for (;;) {
        bool all_done = true;
        for (int n : order) {
            if (threads[n].at == READY) resume(n);
            all_done &= threads[n].at == DONE;
        }
        if (all_done) break;
        bool any = release(0, count, AT_BARRIER);
        for (int n = 0; n < count && !any; n += WARP) {
            any |= release(n, std::min(n + WARP, count), AT_WARP);
        }
        for (int n = 0; n < count; n += LANES) {
            any |= release(n, std::min(n + LANES, count), AT_LANES);
        }
        for (int n = 0; n < count; ++n) any |= threads[n].at == READY;
        if (!any) fail("threads wait at different places, or for threads that have returned");
    }
    for (unsigned n = room; n < sizeof dynamic; ++n) {
        if (dynamic[n] != 0x7F) fail("writes behind the shared memory of the launch");
    }
}

// Runs a grid; seed 0: in ascending order, 1: descending, others: shuffled.
static void run_grid(const unsigned* blocks, const unsigned* shape, int seed) {
    blocks_shape = {blocks[0], blocks[1], blocks[2]};
    threads_shape = {shape[0], shape[1], shape[2]};
    const int count = shape[0] * shape[1] * shape[2];
    const long grid = (long)blocks[0] * blocks[1] * blocks[2];
    threads.resize(std::max<size_t>(threads.size(), count));
    for (thread& t : threads) {
        if (!t.stack) t.stack.reset(new char[STACK]);
    }
    words.resize(threads.size() + WARP);
    std::vector<int> order(count);
    std::vector<long> sequence(grid);
    for (int n = 0; n < count; ++n) order[n] = n;
    for (long n = 0; n < grid; ++n) sequence[n] = n;
    std::mt19937 random(seed);
    if (seed == 1) std::reverse(order.begin(), order.end());
    if (seed == 1) std::reverse(sequence.begin(), sequence.end());
    if (seed > 1) std::shuffle(order.begin(), order.end(), random);
    if (seed > 1) std::shuffle(sequence.begin(), sequence.end(), random);
    for (long n : sequence) {
        block_place = {unsigned(n % blocks[0]), unsigned(n / blocks[0] % blocks[1]),
                       unsigned(n / blocks[0] / blocks[1])};
        run_block(count, order);
    }
    fflush(stdout);
}

template <typename... A, size_t... I>
static void call(void (*function)(A...), void** arguments, std::index_sequence<I...>) {
    function(*(std::remove_const_t<A>*)arguments[I]...);
}

// Launches a kernel with an array of pointers to its arguments, as the driver's interface does.
template <typename... A>
static void launch(void (*function)(A...), void** arguments, const unsigned* blocks,
                   const unsigned* shape, int seed, unsigned bytes = 0) {
    room = bytes;
    kernel = [=] { call(function, arguments, std::index_sequence_for<A...>()); };
    run_grid(blocks, shape, seed);
}

}  // namespace host

#define pf_dynamic ((char*)host::dynamic)
#define threadIdx host::thread_place
#define blockIdx host::block_place
#define blockDim host::threads_shape
#define gridDim host::blocks_shape

static void __syncthreads() { host::wait(host::AT_BARRIER); }
static void __threadfence() {}

static int __shfl_down_sync(unsigned, int word, int lanes) {
    const int me = host::running, other = me + lanes;
    host::words[me] = word;
    host::wait(host::AT_WARP);
    const int result = other / host::WARP == me / host::WARP ? host::words[other] : word;
    host::wait(host::AT_WARP);
    return result;
}

// Groups of 32 lanes: a whole warp of CUDA, or half of one of AMD, whose halves need not meet.
static void __syncwarp() { host::wait(host::AT_LANES); }

static int host_lanes(int word, int from) {
    host::words[host::running] = word;
    host::wait(host::AT_LANES);
    const int result = host::words[from];
    host::wait(host::AT_LANES);
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
