#pragma once

template <typename T, typename F> static PF_DEVICE inline T pf_fetch(T* cell, T value, F change) {
    const T old = *cell;
    *cell = change(old, value);
    return old;
}
