"""The graph of p10: neighbours at some distances, edges kept at random; CSR, symmetric."""

import numpy as np

from common import rnd

OFFSETS = (1, 3, 17, 171, 4003)


def graph(n):
    i = np.arange(n)
    slots, present = [], []
    for k, o in enumerate(OFFSETS):
        kept = rnd(n, 80 + k) < 0.7
        before = (i - o) % n
        slots += [(i + o) % n, before]
        present += [kept, kept[before]]
    slots, present = np.stack(slots, 1), np.stack(present, 1)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(present.sum(1), out=start[1:])
    return start, slots[present].astype(np.int32), (1e9 * rnd(n, 90)).astype(np.int32)
