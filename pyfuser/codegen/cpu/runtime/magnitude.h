#pragma once

#define pf_magnitude(x) __builtin_fabs(x)
