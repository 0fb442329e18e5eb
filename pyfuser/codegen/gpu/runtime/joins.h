#pragma once

// How two partial results become one.
struct pf_plus {
    template <typename T> static PF_DEVICE inline T join(T a, T b) { return (T)(a + b); }
};
struct pf_least {
    template <typename T> static PF_DEVICE inline T join(T a, T b) { return (T)(b < a ? b : a); }
};
struct pf_most {
    template <typename T> static PF_DEVICE inline T join(T a, T b) { return (T)(a < b ? b : a); }
};
struct pf_or {
    template <typename T> static PF_DEVICE inline T join(T a, T b) { return (T)(a | b); }
};
struct pf_xor {
    template <typename T> static PF_DEVICE inline T join(T a, T b) { return (T)(a ^ b); }
};
