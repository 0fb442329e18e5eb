import pykokkos as pk

import pyfuser


@pyfuser.fuse
@pk.workunit
def axpy(i: int, a: float, x: pk.View1D[pk.double]) -> None:
    x[i] = a


axpy(1, "text", pk.View([10], pk.double))  # WRONG
pk.parallel_for(axpy, 10, a=2.0)  # WRONG
pk.parallel_for("label", axpy)  # WRONG
pk.View([10], pk.duble)  # WRONG
pk.View(10, pk.double)  # WRONG
pk.parallel_reduce(10, 3)  # WRONG
x = pk.View([10], pk.double)
word: str = pk.View([2, 2])[1, 1]  # WRONG
print(x.shap)  # WRONG
pyfuser.explain(flushes="all")  # WRONG
pyfuser.fuse(3)  # WRONG
