#pragma once

#define pf_rounded(product) (product)  // the compiler is told not to contract
