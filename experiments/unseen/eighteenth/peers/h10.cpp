// Two passes over the bytes: counts of each thread's part, then all at once; a word is hashed and
// counted where it begins. Each thread has tables of its own. Then the words once, for collisions.
#include "common.hpp"

static constexpr int BUCKETS = 1024, LENGTHS = 16;
enum { SPACE, LETTER, DIGIT, SIGN };

struct Tables {
    int32_t histogram[256], lengths[LENGTHS], members[BUCKETS], earliest[BUCKETS];
    int64_t lines, nested, words, kept, inside, letters, digits, capitals;
    double value;
};

int main(int, char **argv) {
    Dump d(argv[1]);
    const int64_t n = d.number("n");
    auto text = d.array<uint8_t>("text"), table = d.array<uint8_t>("table");
    Array<int32_t> line(n), depth(n), histogram(256), lengths(LENGTHS), members(BUCKETS), earliest(BUCKETS);
    Array<uint32_t> hashes(n);
    Array<uint8_t> packed(n), low(256), small(256);
    Array<double> numbers(11);
    for (int b = 0; b < 256; b++) small[b] = b >= 65 && b <= 90 ? b + 32 : b, low[b] = b >= 48 && b <= 57 ? 35 : small[b];
    std::vector<Tables> all(omp_get_max_threads());
    auto run = [&] {
        int64_t words = 0, collisions = 0, kept = 0;
#pragma omp parallel if (n >= PARALLEL_FROM) reduction(+ : collisions)
        {
            const int64_t t = omp_get_thread_num(), nt = omp_get_num_threads(), i0 = n * t / nt, i1 = n * (t + 1) / nt;
            Tables &m = all[t];
            std::memset(&m, 0, sizeof m);
            std::fill(m.earliest, m.earliest + BUCKETS, int32_t(n));
            const uint8_t *__restrict x = text.p, *__restrict kinds = table.p;
            const int last = i0 == 0 ? -1 : kinds[x[i0 - 1]];
            if (nt > 1) {
                int64_t lines = 0, nested = 0, begun = 0, keep = 0;
                int before = last;
                for (int64_t i = i0; i < i1; i++) {
                    const int b = x[i], k = kinds[b];
                    lines += b == 10, nested += (b == 40) - (b == 41);
                    begun += (k == SIGN) | ((k != SPACE) & (k != before));
                    keep += (k != SPACE) | (before != SPACE);
                    before = k;
                }
                m.lines = lines, m.nested = nested, m.words = begun, m.kept = keep;
            }
#pragma omp barrier
            int64_t ln = 0, nest = 0, word = 0, to = 0, inside = 0;
            for (int k = 0; k < t; k++) ln += all[k].lines, nest += all[k].nested, word += all[k].words, to += all[k].kept;
#pragma omp barrier
            int before = last;
            for (int64_t i = i0; i < i1; i++) {
                const int b = x[i], k = kinds[b];
                m.histogram[b]++;
                line[i] = ln, ln += b == 10;
                nest += (b == 40) - (b == 41), depth[i] = nest, inside += nest > 0;
                if ((k != SPACE) | (before != SPACE)) packed[to++] = low[b];
                if ((k == SIGN) | ((k != SPACE) & (k != before))) {
                    uint32_t h = 5381 * 33 + small[b];
                    double value = b - 48;
                    int64_t j = i + 1;
                    if (k == LETTER)
                        for (; j < n && kinds[x[j]] == LETTER; j++) h = h * 33 + small[x[j]];
                    else if (k == DIGIT)
                        for (; j < n && kinds[x[j]] == DIGIT; j++) h = h * 33 + x[j], value = 10.0 * value + (x[j] - 48);
                    h ^= h >> 15;
                    hashes[word] = h;
                    m.lengths[std::min<int64_t>(j - i, LENGTHS - 1)]++;
                    m.members[h % BUCKETS]++;
                    m.earliest[h % BUCKETS] = std::min(m.earliest[h % BUCKETS], int32_t(word));
                    m.letters += k == LETTER, m.capitals += small[b] != b;
                    if (k == DIGIT) m.digits++, m.value += value;
                    word++;
                }
                before = k;
            }
            m.inside = inside;
            if (t == nt - 1) words = word, kept = to, m.lines = ln, m.nested = nest;
#pragma omp barrier
#pragma omp single
            {
                double value = 0, entropy = 0;
                int64_t in = 0, letters = 0, digits = 0, capitals = 0;
                std::memset(histogram.p, 0, 256 * 4), std::memset(lengths.p, 0, LENGTHS * 4), std::memset(members.p, 0, BUCKETS * 4);
                std::fill(earliest.p, earliest.p + BUCKETS, int32_t(n));
                for (int k = 0; k < nt; k++) {
                    const Tables &o = all[k];
                    for (int b = 0; b < 256; b++) histogram[b] += o.histogram[b];
                    for (int b = 0; b < LENGTHS; b++) lengths[b] += o.lengths[b];
                    for (int b = 0; b < BUCKETS; b++) members[b] += o.members[b], earliest[b] = std::min(earliest[b], o.earliest[b]);
                    in += o.inside, letters += o.letters, digits += o.digits, capitals += o.capitals, value += o.value;
                }
                for (int b = 0; b < 256; b++)
                    if (histogram[b] > 0) {
                        const double share = double(histogram[b]) / n;
                        entropy -= share * std::log(share);
                    }
                const double found[11] = {entropy, double(all[nt - 1].lines), double(all[nt - 1].nested), double(in), double(words), 0, double(letters), double(digits), double(capitals), value, double(kept)};
                std::copy(found, found + 11, numbers.p);
            }
#pragma omp for schedule(static) nowait
            for (int64_t w = 0; w < words; w++) collisions += hashes[w] != hashes[earliest[hashes[w] % BUCKETS]];
#pragma omp for schedule(static)
            for (int64_t i = kept; i < n; i++) packed[i] = 0;
        }
        numbers[5] = collisions;
    };
    bench(run, [&](Checksum &s) {
        s.add("line", line.p, n), s.add("depth", depth.p, n), s.add("packed", packed.p, n), s.add("histogram", histogram.p, 256);
        s.add("lengths", lengths.p, LENGTHS), s.add("members", members.p, BUCKETS), s.add("earliest", earliest.p, BUCKETS), s.add("numbers", numbers.p, 11);
    });
}
