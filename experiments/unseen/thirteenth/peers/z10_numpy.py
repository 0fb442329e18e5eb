"""The landscape in plain NumPy: eight shifted slices for slopes, a bincount for the flow."""

import numpy as np

SPACING, DT, ERODIBILITY, CREEP, STEEP = 100.0, 400.0, 2e-5, 0.3, 0.6


def solve(n, steps, h0, lift, rain):
    h, area = h0.copy(), rain.copy()
    padded = np.empty((n + 2, n + 2))
    cells = np.arange(n * n)
    offset = np.array([(k // 3 - 1) * n + k % 3 - 1 for k in range(9)])
    sediment, relief, pits = [], [], []
    lengths = [SPACING * (2.0**0.5 if k % 2 == 0 else 1.0) for k in range(9)]
    for _ in range(steps):
        padded[1:-1, 1:-1] = h
        padded[0], padded[-1] = padded[1], padded[-2]
        padded[:, 0], padded[:, -1] = padded[:, 1], padded[:, -2]
        slope, receiver = np.zeros((n, n)), np.full((n, n), 4, np.int8)
        for k in range(9):
            if k != 4:
                # A clamped diagonal is a neighbour along the rim, over the diagonal's length.
                s = (h - padded[k // 3 : k // 3 + n, k % 3 : k % 3 + n]) / lengths[k]
                better = s > slope
                np.copyto(slope, s, where=better)
                receiver[better] = k
        # Where a diagonal went over the rim, nobody finds its water again, as in the program.
        k = receiver.ravel()
        a, b = cells // n + k // 3 - 1, cells % n + k % 3 - 1
        flows = (k != 4) & (a >= 0) & (a < n) & (b >= 0) & (b < n)
        to, source = (cells + offset[k])[flows], cells[flows]
        for _ in range(4):
            area = rain + np.bincount(to, weights=area.ravel()[source], minlength=n * n).reshape(
                n, n
            )
        cut = np.sqrt(area)
        cut *= DT * ERODIBILITY
        cut *= slope
        drop = np.full(n * n, np.inf)
        drop[source] = 0.5 * (h.ravel()[source] - h.ravel()[to])
        np.minimum(cut, drop.reshape(n, n), out=cut)
        move = padded[:-2, 1:-1] + padded[2:, 1:-1]
        move += padded[1:-1, :-2]
        move += padded[1:-1, 2:]
        move -= 4.0 * h
        move *= DT * CREEP / SPACING**2
        move[slope >= STEEP] = 0.0
        h += DT * lift
        h += move
        h -= cut
        h[0] = h[-1] = 0.0
        h[:, 0] = h[:, -1] = 0.0
        sediment.append(cut.sum())
        relief.append(h.sum())
        pits.append(np.count_nonzero(receiver[1:-1, 1:-1] == 4))
    return {
        "h": h,
        "area": area,
        "receiver": receiver,
        "sediment": np.array(sediment),
        "relief": np.array(relief),
        "pits": np.array(pits),
    }


if __name__ == "__main__":
    from numpy_common import bench

    bench(lambda state: solve(*(state[name] for name in ("n", "steps", "h0", "lift", "rain"))))
