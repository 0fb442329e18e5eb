from __future__ import annotations

import numpy as np
import pykokkos as pk
from pykokkos.linalg import l3_blas

import pyfuser


@pyfuser.fuse
@pk.workunit
def axpy(i: int, a: float, x: pk.View1D[pk.double], y: pk.View1D[pk.double]) -> None:
    t: pk.int64 = 2
    half = x[i] / 2
    y[i] += a * x[i] + half * t + pk.sqrt(x[i])


@pk.workunit(x=pk.ViewTypeInfo(layout=pk.LayoutLeft))
def total(i: int, acc: pk.Acc[float], x: pk.View2D[float]) -> None:
    acc += x[i, 0]


@pk.workunit
def row(i: int, j: int, m: pk.View2D[pk.double]) -> None:
    m[i][j] = m[i, j] + 1.0


@pk.function
def twice(x: float) -> float:
    return 2 * x


@pk.functor
class Functor:
    def __init__(self, n: int) -> None:
        self.x: pk.View1D[pk.double] = pk.View([n], pk.double)
        self.y: pk.View1D[pk.double] = pk.zeros(n)

    @pk.workunit
    def run(self, i: int) -> None:
        self.x[i] = twice(self.y[i])


pk.set_default_space(pk.OpenMP)
x, y = pk.View([10], pk.double), np.zeros(10)
lazy, named = pk.View([10], layout=pk.LayoutLeft), pk.View([10], "float64")
number: float = pk.View([10, 10])[0, 1] + lazy[0]
rows = pk.View([10, 10], np.float64)
rows[0][1] = 3.0
x.fill(1.0)
pk.parallel_for(10, axpy, a=2.0, x=x, y=y)
pk.parallel_for("label", pk.RangePolicy(pk.OpenMP, 0, 10), axpy, a=2.0, x=x, y=y)
pk.parallel_for(pk.MDRangePolicy([0, 0], [2, 2]), axpy, a=2.0, x=x, y=y)
functor = Functor(3)
pk.parallel_for(3, functor.run)
s = pk.parallel_reduce(10, total, x=x)
print(s + 1.0, x[3] + 1, pk.__version__, l3_blas.dgemm(1.0, x, x))
try:
    axpy(1, 2.0, x, x)
except pyfuser.WorkunitError as error:
    print(error.location)
with pyfuser.fusing():
    pk.fence()
print(pyfuser.explain().groups, pyfuser.stats().launches)
