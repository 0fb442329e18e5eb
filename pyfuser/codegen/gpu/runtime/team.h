#pragma once

#include "shared.h"
#include "total.h"

// The first thread's value, for each thread of a block.
template <int threads, typename T> static PF_DEVICE inline T pf_team_first(T value) {
    T* const first = pf_shared<threads, T>();
    if (pf_thread(x) == 0) *first = value;
    pf_barrier();
    value = *first;
    pf_barrier();  // before `first` is used again
    return value;
}

// All values of a block joined in halves, for each of its threads.
template <int threads, typename F, typename T> static PF_DEVICE inline T pf_team_total(T value) {
    return pf_team_first<threads>(pf_total<threads, F>(value));
}
