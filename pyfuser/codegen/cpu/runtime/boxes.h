#pragma once

#include <stdint.h>

// The iterations from `at` to `stop` of a space whose rows have so many columns, as boxes: a part
// of a row, whole rows, a part of a row.
template <typename F>
static inline void pf_boxes(int64_t at, int64_t stop, int64_t columns, F run) {
    while (at < stop) {
        const int64_t row = at / columns, column = at % columns, rows = (stop - at) / columns;
        if (column == 0 && rows > 0) {
            run(row, row + rows, 0, columns);
            at += rows * columns;
            continue;
        }
        const int64_t end = column + stop - at < columns ? column + stop - at : columns;
        run(row, row + 1, column, end);
        at += end - column;
    }
}
