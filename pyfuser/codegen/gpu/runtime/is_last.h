#pragma once

// Whether all other blocks were here before, so that what they wrote to memory is complete.
static PF_DEVICE inline bool pf_is_last(uint32_t* ticket) {
    PF_SHARED bool last;
    pf_fence();
    pf_barrier();
    if (pf_thread(x) == 0) {
        const uint32_t count = (uint32_t)pf_blocks(x);
        last = pf_atomic_add_u32(ticket, 1) == count - 1;
        if (last) *ticket = 0;  // for the next launch
    }
    pf_barrier();
    pf_fence();
    return last;
}
