#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>
#include <omp.h>
using std::vector; using std::min; using std::max;
static std::string folder;
template <class T> vector<T> load(const char *name) {
    std::ifstream f(folder + "/" + name + ".bin", std::ios::binary | std::ios::ate);
    if (!f) { fprintf(stderr, "no %s\n", name); exit(1); }
    size_t bytes = f.tellg();
    vector<T> v(bytes / sizeof(T));
    f.seekg(0);
    f.read((char *)v.data(), bytes);
    return v;
}
template <class T> double sum(const vector<T> &v) { double s = 0; for (auto x : v) s += (double)x; return s; }
template <class F, class G> int bench(F run, G checksum) {
    run();
    double c = checksum();
    double t[7];
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end) run();
    for (double &x : t) {
        auto a = std::chrono::steady_clock::now();
        run();
        x = std::chrono::duration<double>(std::chrono::steady_clock::now() - a).count();
    }
    std::sort(t, t + 7);
    printf("%.9g %.17g\n", t[3], c);
    return 0;
}
