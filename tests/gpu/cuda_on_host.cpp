// The threads of `cuda_on_host.h`, each a coroutine: a library that all emulated kernels share.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "cuda_on_host.h"

namespace host {

dimensions thread_place, block_place, threads_shape, blocks_shape;
alignas(16) unsigned char dynamic[ROOM];
int running, warp, *words;

enum state { READY, AT_LANES, AT_WARP, AT_BARRIER, DONE };
constexpr int STACK = 128 << 10;

struct thread {
    jmp_buf here;
    std::unique_ptr<char[]> stack;  // not cleared: most of its pages are never touched
    state at = DONE;
    dimensions place;
};

static std::vector<thread> threads;
static jmp_buf scheduler;
static void (*kernel)(void**);
static void** arguments;

void fail(const char* what) {
    fprintf(stderr, "cuda_on_host: %s\n", what);
    abort();
}

// Goes on where another thread, or the scheduler, is; without the system calls of swapcontext.
static void wait(state at) {
    if (running < 0) fail("a thread waits where none was to");
    threads[running].at = at;
    if (!_setjmp(threads[running].here)) _longjmp(scheduler, 1);
}
void wait_for_lanes() { wait(AT_LANES); }
void wait_for_warp() { wait(AT_WARP); }
void wait_for_block() { wait(AT_BARRIER); }

static void body() {
    for (;;) {
        kernel(arguments);
        wait(DONE);
    }
}

static void resume(int n) {
    thread& t = threads[running = n];
    thread_place = t.place;
    if (_setjmp(scheduler)) return;
    if (t.stack) _longjmp(t.here, 1);
    t.stack.reset(new char[STACK]);
    ucontext_t first;
    getcontext(&first);
    first.uc_stack.ss_sp = t.stack.get();
    first.uc_stack.ss_size = STACK;
    makecontext(&first, body, 0);
    setcontext(&first);
}

// All of threads [from, to) that wait at `at` go on; false unless all wait there.
static bool release(int from, int to, state at) {
    for (int n = from; n < to; ++n) if (threads[n].at != at) return false;
    for (int n = from; n < to; ++n) threads[n].at = READY;
    return true;
}

static void run_block(int count, const std::vector<int>& order, unsigned room) {
    memset(dynamic, 0x7F, sizeof dynamic);  // large numbers
    for (int n = 0; n < count; ++n) {
        const unsigned flat = n, wide = threads_shape.x, high = threads_shape.y;
        threads[n].place = {flat % wide, flat / wide % high, flat / wide / high};
        threads[n].at = READY;
    }
    for (;;) {
        bool all_done = true;
        for (int n : order) {
            if (threads[n].at == READY) resume(n);
            all_done &= threads[n].at == DONE;
        }
        if (all_done) break;
        bool any = release(0, count, AT_BARRIER);
        for (int n = 0; n < count && !any; n += warp) {
            any |= release(n, std::min(n + warp, count), AT_WARP);
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

void run(void (*called)(void**), void** given, const unsigned* blocks, const unsigned* shape,
         int seed, unsigned room, int width) {
    kernel = called, arguments = given, warp = width;
    blocks_shape = {blocks[0], blocks[1], blocks[2]};
    threads_shape = {shape[0], shape[1], shape[2]};
    const int count = shape[0] * shape[1] * shape[2];
    const long grid = (long)blocks[0] * blocks[1] * blocks[2];
    if (threads.size() < (size_t)count) threads.resize(count);
    std::vector<int> shuffled(count + warp), order(count);
    words = shuffled.data();
    std::vector<long> sequence(grid);
    std::iota(order.begin(), order.end(), 0);
    std::iota(sequence.begin(), sequence.end(), 0);
    std::mt19937 random(seed);
    if (seed == 1) std::reverse(order.begin(), order.end());
    if (seed == 1) std::reverse(sequence.begin(), sequence.end());
    if (seed > 1) std::shuffle(order.begin(), order.end(), random);
    if (seed > 1) std::shuffle(sequence.begin(), sequence.end(), random);
    for (long n : sequence) {
        block_place = {unsigned(n % blocks[0]), unsigned(n / blocks[0] % blocks[1]),
                       unsigned(n / blocks[0] / blocks[1])};
        run_block(count, order, room);
    }
    fflush(stdout);
}

void run_plain(void (*called)(void**), void** given, const unsigned* b, const unsigned* t, int,
               unsigned, int) {
    running = -1;
    blocks_shape = {b[0], b[1], b[2]};
    threads_shape = {t[0], t[1], t[2]};
    for (unsigned z = b[2]; z--;) for (unsigned y = b[1]; y--;) for (unsigned x = b[0]; x--;) {
        block_place = {x, y, z};
        for (unsigned k = 0; k < t[2]; ++k) for (unsigned j = 0; j < t[1]; ++j)
            for (unsigned i = 0; i < t[0]; ++i) {
                thread_place = {i, j, k};
                called(given);
            }
    }
    fflush(stdout);
}

}  // namespace host
