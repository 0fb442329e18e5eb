#pragma once

// g++ would move a call into the only branch that uses its value, join the branches of equal
// conditions around what lies between, and compute from a constant in the branch that chose it: none
// of that can then become masked vector operations.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-sink", "no-thread-jumps", "no-tree-pre")
#endif
