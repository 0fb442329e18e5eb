#pragma once
#include "common.hpp"
// glibc's vector maths, which its header declares under -ffast-math only
extern "C" {
__attribute__((simd("notinbranch"), const)) double atan(double) noexcept;
__attribute__((simd("notinbranch"), const)) double sin(double) noexcept;
__attribute__((simd("notinbranch"), const)) double log(double) noexcept;
__attribute__((simd("notinbranch"), const)) double exp(double) noexcept;
__attribute__((simd("notinbranch"), const)) float expf(float) noexcept;
__attribute__((simd("notinbranch"), const)) float tanhf(float) noexcept;
}
