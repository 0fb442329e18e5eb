// What the peers share: reading a dumped state, the checksum, the timing.
#pragma once
#include <omp.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// The C library's vector functions, in place of scalar calls in loops (g++ uses them by itself only
// with -ffast-math); their errors are below 4 ulp.
extern "C" {
__attribute__((simd("notinbranch"))) double exp(double) noexcept;
__attribute__((simd("notinbranch"))) double log(double) noexcept;
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
}

template <class T>
struct Array {  // aligned, touched first by the threads that will use it
    T *p = nullptr;
    int64_t n = 0;
    Array() = default;
    explicit Array(int64_t size) { make(size); }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    Array(Array &&o) noexcept : p(o.p), n(o.n) { o.p = nullptr; }
    ~Array() { std::free(p); }
    void make(int64_t size) {
        n = size;
        p = static_cast<T *>(std::aligned_alloc(64, (size * sizeof(T) + 127) / 64 * 64));
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < size; i++) p[i] = T();
    }
    operator T *() { return p; }
    T &operator[](int64_t i) { return p[i]; }
};

struct Dump {
    std::string dir;
    std::map<std::string, double> numbers;
    std::map<std::string, std::vector<int64_t>> shapes;
    std::map<std::string, std::string> types;
    explicit Dump(const std::string &d) : dir(d) {
        std::ifstream meta(d + "/meta.txt");
        if (!meta) { std::fprintf(stderr, "no %s/meta.txt\n", d.c_str()); std::exit(2); }
        std::string line;
        while (std::getline(meta, line)) {
            std::istringstream words(line);
            std::string name, type;
            words >> name >> type;
            if (type == "number") { words >> numbers[name]; continue; }
            types[name] = type;
            int64_t extent;
            while (words >> extent) shapes[name].push_back(extent);
        }
    }
    double number(const std::string &name) {
        if (!numbers.count(name)) { std::fprintf(stderr, "no number %s\n", name.c_str()); std::exit(2); }
        return numbers[name];
    }
    int64_t extent(const std::string &name, int axis = 0) { return shapes.at(name).at(axis); }
    template <class T>
    Array<T> array(const std::string &name) {
        int64_t n = 1;
        for (int64_t e : shapes.at(name)) n *= e;
        Array<T> a(n);
        std::ifstream file(dir + "/" + name + ".bin", std::ios::binary | std::ios::ate);
        if (int64_t(file.tellg()) != n * int64_t(sizeof(T))) {
            std::fprintf(stderr, "%s: %lld bytes, expected %lld\n", name.c_str(),
                         (long long)file.tellg(), (long long)(n * sizeof(T)));
            std::exit(2);
        }
        file.seekg(0);
        file.read(reinterpret_cast<char *>(a.p), n * sizeof(T));
        return a;
    }
};

struct Checksum {
    double total = 0;
    template <class T>
    void add(const char *name, const T *x, int64_t n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += std::fabs(double(x[i])) * double(1 + i % 7);
        put(name, n ? sum / n : 0.0);
    }
    void add(const char *name, double value) { put(name, std::fabs(value)); }
    void put(const char *name, double value) {
        std::printf("checksum %s %.12e\n", name, value);
        total += value;
    }
};

template <class Run, class Outputs>
void bench(Run run, Outputs outputs) {
    run();
    Checksum sum;
    outputs(sum);
    std::printf("checksum total %.12e\n", sum.total);
    double start = omp_get_wtime();
    while (omp_get_wtime() - start < 0.5) run();
    std::vector<double> times;
    for (int k = 0; k < 7; k++) {
        double t = omp_get_wtime();
        run();
        times.push_back(omp_get_wtime() - t);
    }
    std::sort(times.begin(), times.end());
    std::printf("median %.9f\n", times[3]);
}

#define PARALLEL_FROM 8192  // below, threads cost more than they bring
