#pragma once

template <int threads, typename T> static PF_DEVICE inline T* pf_shared() {
    PF_SHARED T cells[threads];
    return cells;
}
