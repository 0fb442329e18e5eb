#pragma once

// g++ would compute what follows from a constant in the branch that chose the constant, which can
// then not become a masked vector operation. Elsewhere that is left to it: without, it computes again
// what other branches have computed.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre")
#endif
