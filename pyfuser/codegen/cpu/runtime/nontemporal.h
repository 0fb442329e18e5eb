#pragma once

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
typedef long long pf_line __attribute__((vector_size(64)));
static inline void pf_past(char* to, pf_line line) {
    __builtin_ia32_movntdq512((pf_line*)to, line);
}
#elif defined(__GNUC__) && !defined(__clang__) && defined(__AVX__)
typedef long long pf_line __attribute__((vector_size(32)));
static inline void pf_past(char* to, pf_line line) {
    __builtin_ia32_movntdq256((pf_line*)to, line);
}
#else
typedef int64_t pf_line;
static inline void pf_past(char* to, pf_line line) { __builtin_memcpy(to, &line, sizeof line); }
#endif
// Copies elements to memory that is not read soon: whole lines past the caches, the rest plainly.
template <typename T> static inline void pf_stream(T* to, const T* from, int64_t count) {
    constexpr int64_t whole = sizeof(pf_line);
    char* out = (char*)to;
    const char* in = (const char*)from;
    int64_t bytes = count * (int64_t)sizeof(T), head = -(intptr_t)out & (whole - 1);
    if (head > bytes) head = bytes;
    __builtin_memcpy(out, in, head);
    for (out += head, in += head, bytes -= head; bytes >= whole; bytes -= whole) {
        pf_line line;
        __builtin_memcpy(&line, in, whole);
        pf_past(out, line);
        out += whole, in += whole;
    }
    __builtin_memcpy(out, in, bytes);
}
// Before other threads may read what was streamed.
static inline void pf_streamed() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}
