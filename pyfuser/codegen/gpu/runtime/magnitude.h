#pragma once

#define pf_magnitude(x) ((x) < 0 ? -(x) : (x))
