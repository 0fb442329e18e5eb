"""Harris' corners of an image."""

import numpy as np

GPU = {"n": 8000}  # what fills one


def make(n=2048):
    rng = np.random.default_rng(4)
    return (rng.random((n, n)),)


def box(a):
    rows = a[:-2] + a[1:-1] + a[2:]
    return rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]


def run(image):
    ix = (image[1:-1, 2:] - image[1:-1, :-2]) * 0.5
    iy = (image[2:, 1:-1] - image[:-2, 1:-1]) * 0.5
    sxx, syy, sxy = box(ix * ix), box(iy * iy), box(ix * iy)
    trace = sxx + syy
    return sxx * syy - sxy * sxy - 0.04 * trace * trace
