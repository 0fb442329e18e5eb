#pragma once

static PF_DEVICE inline int64_t pf_length(int64_t extent) { return extent > 0 ? extent : 0; }

#ifndef pf_dynamic
extern PF_SHARED __attribute__((aligned(16))) char pf_dynamic[];
#endif
