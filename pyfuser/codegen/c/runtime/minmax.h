#pragma once

template <typename T> static PF_DEVICE inline T pf_min(T a, T b) { return b < a ? b : a; }
template <typename T> static PF_DEVICE inline T pf_max(T a, T b) { return a < b ? b : a; }
