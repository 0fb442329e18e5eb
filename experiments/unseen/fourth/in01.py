"""The picture of p01."""

import numpy as np

from common import rnd

SCALES = (1, 2, 4)


def picture(size):
    """Return noise with bright bands."""
    i, j = np.indices((size, size))
    lines = ((i + 2 * j) % 37 < 3) * 0.7 + ((3 * i - j + 3 * size) % 53 < 5) * 0.5
    return lines + 0.25 * rnd(size * size, 1).reshape(size, size)
