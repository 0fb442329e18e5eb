// Prototypes that tell the compiler of the vector versions in glibc's libmvec, without -ffast-math.
#pragma once
#define VECTOR extern "C" __attribute__((const, simd("notinbranch")))
VECTOR double exp(double);
VECTOR double log(double);
VECTOR double log1p(double);
VECTOR double sin(double);
VECTOR double cos(double);
VECTOR double erf(double);
extern "C" double sqrt(double);
extern "C" double fabs(double);
