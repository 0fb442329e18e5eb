"""Random bodies with what passes over nests look for, as kernels that nobody compiles."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.codegen.build import Case, case, from_text

_ONE_AXIS = (
    "y[{i}] = 2.0 * x[{i}] + z[{i}]",
    "z[{i}] = x[{i}] - {c}",
    "if i >= low and i < high:\n        y[{i}] = x[{i}] * {c}",
    "if i < high:\n        z[{i}] += y[{i}]",
    "if i >= low:\n        y[{i}] -= {c}",
    "if i == low:\n        z[{i}] = {c}",
    "if i == high:\n        y[{i}] += x[{i}]",
    "if i > 0 and i < n - 1:\n        y[{i}] += x[i - 1] + x[i + 1]",
    "if i % m > 0:\n        y[{i}] -= x[i - 1]",
    "if i // m > 0 and i // m < 3:\n        z[{i}] = z[{i}] + 1.0",
    "y[{i}] += x[(i + n - 1) % n] - x[(i + 1) % n]",
    "z[{i}] -= x[(i + m) % n] + x[(i + n - m) % n]",
    "y[{i}] += x[(i + 1) % m] + x[(i + n + n - 1) % n]",  # inside nowhere, or by chance
    "z[{i}] += x[(2 * i + 1) % n] - x[(n - 1 - i + n) % n]",
    "for k in range(m):\n        y[{i}] += x[k]",
    "t{c}: float = x[{i}] + 1.0\n    z[{i}] = t{c} * t{c}",
)
_TWO_AXES = (
    "y[i][j] = 2.0 * x[i][j] + z[i][j]",
    "if i >= low and i < high:\n        y[i][j] = x[i][j] * {c}",
    "if j < high:\n        z[i][j] += y[i][j]",
    "if i >= low and j >= low and j < high:\n        y[i][j] -= {c}",
    "if i > 0 and i < n - 1 and j > 0 and j < n - 1:\n        y[i][j] += x[i - 1][j] + x[i][j + 1]",
    "if j == 0:\n        z[i][j] = {c}",
    "y[i][j] += x[(i + n - 1) % n][j] - x[i][(j + 1) % n]",
    "z[i][j] -= x[(i + m) % n][(j + n - m) % n]",
    "y[i][j] += x[(i + j + 1) % n][j] + x[(i + 1) % m][(j + n - 1) % n]",
)


def random_case(seed: int, extents: Sequence[int], **options: Any) -> Case:
    """A kernel over a box that begins at the places of `begin`; always the same one for a seed."""
    rng = random.Random(seed)
    rank = len(extents)
    chosen = rng.sample((_ONE_AXIS, _TWO_AXES)[rank - 1], rng.randint(1, 4))
    lines = [line.format(i="i", c=n + 2) for n, line in enumerate(chosen)]
    indices = "i, j" if rank == 2 else "i"
    source = f"def body({indices}, x, y, z, low, high, m, n):\n    " + "\n    ".join(lines) + "\n"
    size = max(*extents, 5) + 1
    numbers = [rng.randint(-2, size + 1), rng.randint(-2, size + 1), rng.randint(1, 5), size]

    def arguments() -> list[Any]:
        shape = (size,) * rank
        count = int(np.prod(shape))
        arrays = [(np.arange(count, dtype=float) * k % 7.0).reshape(shape) for k in (3, 5, 2)]
        return [*arrays, *numbers]

    return case(from_text(source), extents, arguments, **options)
