#pragma once

// Iterations of a box, every `step`-th one from number `first` on. An iteration's number has one
// digit for each axis, the last one fastest; stepping adds digits, as divisions are slow.
template <int rank> struct pf_walk {
    int64_t digit[rank], move[rank], begin[rank], extent[rank], count;
    PF_DEVICE pf_walk(const int64_t (&from)[rank], const int64_t (&to)[rank], int64_t first,
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
    PF_DEVICE bool more() const { return count && digit[0] < extent[0]; }
    PF_DEVICE int64_t index(int axis) const { return begin[axis] + digit[axis]; }
    PF_DEVICE void next() {
        for (int axis = rank - 1; axis >= 0; --axis) {
            digit[axis] += move[axis];
            if (axis && digit[axis] >= extent[axis]) {
                digit[axis] -= extent[axis];
                ++digit[axis - 1];
            }
        }
    }
};
