#pragma once

// Under -ffp-contract=off g++ 12 and later still contract a * b - c beside a * b + c where they
// fill neighbouring lanes (vfmaddsub); this keeps the product apart.
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define pf_rounded(product) __builtin_assoc_barrier(product)
#endif
#endif
#ifndef pf_rounded
#define pf_rounded(product) (product)
#endif
