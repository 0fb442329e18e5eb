#pragma once

#include <stdint.h>

// The running sums of `pf_sum`, to which a loop of as many trips adds without a detour over memory.
template <typename T> struct pf_lanes {
    static constexpr int64_t count = 4 * 64 / sizeof(T);
    alignas(64) T lane[count] = {};
    T total() {
        for (int64_t half = count / 2; half >= 1; half /= 2)
            for (int64_t k = 0; k < half; ++k) lane[k] += lane[k + half];
        return lane[0];
    }
};
