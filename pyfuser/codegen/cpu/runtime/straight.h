#pragma once

// g++ would move a call into the only branch that uses its value, and join the branches of equal
// conditions around what lies between: neither can then become masked vector operations.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-sink", "no-thread-jumps")
#endif
