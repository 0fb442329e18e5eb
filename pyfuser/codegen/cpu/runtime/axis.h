#pragma once

#include <stdint.h>

// The outermost axis that has enough work for all threads, else the longest.
static inline int pf_axis(const int64_t* begin, const int64_t* end, const int* order, int rank,
                          int64_t threads) {
    int longest = order[0];
    for (int k = 0; k < rank; ++k) {
        const int axis = order[k];
        const int64_t extent = end[axis] - begin[axis];
        if (extent >= 4 * threads) return axis;
        if (extent > end[longest] - begin[longest]) longest = axis;
    }
    return longest;
}
