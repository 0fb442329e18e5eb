#pragma once

#include <stdint.h>

template <typename T> static inline T pf_bits(const int64_t& slot) {
    T value;
    __builtin_memcpy(&value, &slot, sizeof(T));
    return value;
}
