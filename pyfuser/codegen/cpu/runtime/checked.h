#pragma once

#include <setjmp.h>
#include <stdint.h>

static thread_local int64_t* pf_report;  // access + 1, axis, index, extent, iteration
static thread_local jmp_buf pf_end;

struct pf_subscript { int64_t index, extent, stride; };  // the stride in bytes

__attribute__((noinline, cold, noreturn))
static void pf_outside(int64_t access, int64_t axis, const pf_subscript& wrong) {
    pf_report[0] = access + 1;
    pf_report[1] = axis;
    pf_report[2] = wrong.index;
    pf_report[3] = wrong.extent;
    longjmp(pf_end, 1);
}

template <typename T> static inline T pf_divisor(T divisor, int64_t division) {
    if (divisor == 0) pf_outside(division, 0, {0, 0, 0});
    return divisor;
}

static inline void pf_iteration(int axis, int64_t index) {
    pf_report[PF_REPORT_HEAD + axis] = index;
}

// The address of an element; does not return if there is no such element.
template <int rank> static inline char* pf_at(char* first, int64_t access,
                                              const pf_subscript (&subscripts)[rank]) {
    for (int axis = 0; axis < rank; ++axis) {
        const pf_subscript& s = subscripts[axis];
        if (s.index < 0 || s.index >= s.extent) pf_outside(access, axis, s);
        first += s.index * s.stride;
    }
    return first;
}
