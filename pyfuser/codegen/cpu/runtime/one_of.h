#pragma once

// One of several tests of an integer that follow each other. g++ (since 11) takes these for a switch
// and makes a table or a jump of it, and no vectors of a loop around; not where it is told how likely
// each one is.
static inline bool pf_one_of(bool holds) { return __builtin_expect_with_probability(holds, 1, 0.5); }
