#pragma once

// Asks for the line of memory that an address is in, where that pays.
#if defined(PF_INTEL) && defined(__AVX512F__)
#define pf_asks
#define pf_ahead(address, written) __builtin_prefetch(address, written)
#else
#define pf_ahead(address, written)
#endif
