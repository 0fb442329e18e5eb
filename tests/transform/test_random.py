"""All passes over kernels of random workunits, whose subscripts programs seldom make so.

Twins of `analysis.test_relations`: what is read is added up at an iteration's own place.
"""

import numpy as np
import pytest

from pyfuser.ir.arithmetic import UndefinedBehaviour
from pyfuser.ir.dtypes import DType
from pyfuser.ir.reference.interpret import interpret
from pyfuser.pipeline import for_c, kernel_of
from pyfuser.trace.call import Space
from pyfuser.transform.group import group_shapes
from tests.analysis.build import S, View, both, call, region, select, trace, when, workunit
from tests.analysis.test_relations import DATA, EXTENT, Maker
from tests.codegen.build import Case
from tests.nest.harness import PROCESSORS, assert_interpreted

WHOLE = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


class Reader(Maker):
    """Workunits that read `x` and `z` and add to elements of `y` and `w` of their iteration."""

    def __init__(self, seed):
        super().__init__(seed)
        self.dtype = self.choice(WHOLE)
        self.z, self.w = View("z", dtype=self.dtype), View("w", dtype=DType.INT32)
        self.i = S("i")

    def number(self, variables, depth=0):
        if depth < 2 and self.chance(0.08):
            return self.z[self.number(variables, depth + 1)].cast(DType.INT32)
        if depth < 2 and self.chance(0.05):
            a, b = self.number(variables, depth + 1), self.number(variables, depth + 1)
            return self.choice([a + b, a * b, a - b, a % 5, ((a % EXTENT) + EXTENT) % EXTENT])
        return super().number(variables, depth)

    def access(self, variables):
        at, i = self.number(variables), self.i
        held = select(at < 0, 0, select(at >= EXTENT, EXTENT - 1, at))
        inside = both(at >= 0, at < EXTENT)
        stmt = self.choice(
            [
                when(inside, [self.y[i].update("+", self.x[at])]),
                when(inside, [self.w[i].update("+", self.z[at].cast(DType.INT32))]),
                self.y[i].update("+", self.x[held]),
                self.w[i].update("+", at),
                self.w[i] << at,
            ]
        )
        return when(self.condition(variables), [stmt]) if self.chance(0.2) else stmt

    def calls(self):
        space = Space((0,), (self.choice([1, 5, 12, EXTENT]),))
        regions = [
            region(n, extent, dtype=dtype)
            for n, (extent, dtype) in enumerate(
                [(EXTENT, DType.FLOAT64), (EXTENT, DType.FLOAT64), (1, DType.FLOAT64),
                 (EXTENT, self.dtype), (EXTENT, DType.INT32)]
            )
        ]  # fmt: skip
        views = [self.x, self.y, DATA, self.z, self.w]
        return [
            call(workunit("r", [self.i], views, self.body([self.i], [])), space, *regions)
            for _ in range(self.small(1, 2))
        ]

    def arrays(self):
        rng = np.random.default_rng(self.small(0, 99))
        x, z = rng.random(EXTENT), rng.integers(0, 60, EXTENT).astype(self.dtype.value)
        return [x, np.zeros(EXTENT), rng.random(1) - 0.5, z, np.zeros(EXTENT, np.int32)]


@pytest.mark.parametrize("seed", range(10))
def test_passes_keep_what_random_workunits_compute(seed):
    reader = Reader(seed)
    processors = [*PROCESSORS]
    checked = 0
    for _ in range(16):
        calls, arrays = reader.calls(), reader.arrays()
        expected = [a.copy() for a in arrays]
        try:
            for one in calls:
                interpret(one.workunit, "for", one.space.begin, one.space.end, expected)
        except UndefinedBehaviour:
            continue
        (group,) = group_shapes(trace(*calls), [range(len(calls))])
        kernel = for_c(kernel_of(group))
        given = Case(kernel, lambda: [arrays[s.argument].copy() for s in kernel.slots])  # noqa: B023
        found, _ = given.interpreted()
        for slot, array in zip(kernel.slots, found, strict=True):
            np.testing.assert_array_equal(array, expected[slot.argument])
        assert_interpreted(given, seed, reader.choice(processors))
        checked += 1
    assert checked > 5
