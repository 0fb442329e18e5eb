"""Programs for an installed PyKokkos, run with and without PyFuser; a script, not a test.

`python cases.py plain|traced|careful FILE` runs every case and writes what each made to FILE. Each
is right in plain PyKokkos, and reads nothing later than a program may that knows of the contract
for raw arrays. Numbers are small integers, so sums do not depend on their order. With `random FILE
SEED COUNT` it runs `random_programs`: one script, as PyKokkos keeps kernels by the script.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pykokkos as pk
from pykokkos import RangePolicy, parallel_for, parallel_reduce  # bound before the hooks

N = 12
Outputs = dict[str, Any]
EARLY = {"view": pk.View([N], pk.double)}  # made before the hooks; emptied before Kokkos ends

MODE = sys.argv[1]
if MODE != "plain":
    import pyfuser


@pk.function
def twice(x: float) -> float:
    return x + x


@pk.workunit
def index(i, x):
    x[i] = i + 1


@pk.workunit
def copy(i, y, x):
    y[i] = x[i]


@pk.workunit
def scale(i, y, x, a):
    y[i] = a * x[i]


@pk.workunit
def neighbour(i, y, x, k):
    y[i] = x[i + k]


@pk.workunit
def grow(i, x):
    x[i] += 1


@pk.workunit
def double_it(i, y, x):
    y[i] = twice(x[i])


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def count(i, acc: pk.Acc[int], x, least: float):
    if x[i] > least:
        acc += 1


@pk.workunit
def prefix(i, acc, last, y, x):
    acc += x[i]
    if last:
        y[i] = acc


@pk.workunit
def row_sums(i, y, m):
    y[i] = 0
    for j in range(m.extent(1)):
        y[i] += m[i][j] * (j + 1)


@pk.workunit
def typed(i, y: pk.View1D[pk.int32], k: int, flag: bool, f: pk.float):
    if flag:
        y[i] = i * k + int(f)


@pk.workunit
def scatter(i, y, where, x):
    y[where[i]] = x[i]


@pk.functor
class Doubler:
    def __init__(self, x: pk.View1D[pk.double], factor: float):
        self.x: pk.View1D[pk.double] = x
        self.factor: float = factor

    @pk.workunit
    def run(self, i: int):
        self.x[i] = self.factor * self.x[i]


def vector() -> Any:
    """1, 2, ..., N."""
    x = pk.View([N], pk.double)
    pk.parallel_for(N, index, x=x)
    return x


# --------------------------------------------------------------------------- cases


def chain() -> Outputs:
    def result() -> Any:
        x, y, z = vector(), pk.View([N], pk.double), pk.View([N], pk.double)
        pk.parallel_for("named", N, scale, y=y, x=x, a=3.0)
        pk.parallel_for(pk.RangePolicy(0, N), double_it, y=z, x=y)
        return pk.parallel_reduce(N, total, x=z)

    value = result()
    return {"sum": value, "more": value + 1, "text": str(value), "half": round(value / 4)}


def bound_before() -> Outputs:
    x = pk.View([N], pk.double)
    parallel_for(N, index, x=x)
    early = EARLY["view"]
    parallel_for(RangePolicy(2, N), copy, y=early, x=x)
    return {"sum": parallel_reduce(N, total, x=x), "x": x[3], "early": early[2], "zero": early[1]}


def reads() -> Outputs:
    """Reads that nobody announces, each after a call that changes what it reads."""
    x = vector()
    found: Outputs = {"element": x[2]}

    def step() -> None:
        pk.parallel_for(N, grow, x=x)

    step()
    found["text"] = str(x)
    step()
    found["array"] = np.array(np.asarray(x))
    step()
    found["numpy"] = np.sum(x)
    step()
    found["data"] = np.array(x.data)
    step()
    found["slice"] = np.array(x[2:5].data)
    part = x[4:6]
    step()
    found["part"] = [part[0], part[1]]
    step()
    found["last"] = x[-1]
    step()
    seen = []
    for value in x:
        seen.append(value)
        if len(seen) < 4:
            step()
    found["seen"] = seen
    y = pk.View([N], pk.double)
    step()
    y[:] = x
    step()
    found["copied"] = np.array(y.data)
    one = x[3:4]
    step()
    found["scalar"] = float(one)
    found["list"] = list(x)
    return found


def writes() -> Outputs:
    """The host writes what pending calls still have to read (anti) or write (output)."""
    x, y = vector(), pk.View([N], pk.double)
    pk.parallel_for(N, copy, y=y, x=x)
    x[0] = 100
    pk.parallel_for(N, scale, y=x, x=y, a=2.0)
    y.fill(7)
    pk.parallel_for(N, grow, x=y)
    y[2:4] = 50
    y.data[5] = 60
    pk.parallel_for(N, grow, x=y)
    x[:] = 1
    pk.parallel_for(N, index, x=x)
    x.data += 1
    pk.parallel_for(N, grow, x=x)
    return {"x": np.array(x.data), "y": np.array(y.data)}


def fills() -> Outputs:
    """Views and parts are set to numbers while calls are pending that read or write them."""
    x, y, z = vector(), pk.View([N], pk.double), pk.View([N], pk.double)
    pk.parallel_for(N, copy, y=y, x=x)
    x.fill(3)  # anti: y has the old values
    pk.parallel_for(N, scale, y=z, x=x, a=2.0)
    z[:] = 5  # output
    pk.parallel_for(N, scale, y=x, x=z, a=4.0)
    found: Outputs = {"y": np.array(y.data), "x": np.array(x.data)}
    pk.parallel_for(N, grow, x=x)
    part = x[2:6]
    part.fill(7)
    pk.parallel_for(4, grow, x=part)
    x[4:8] = 9
    pk.parallel_for(N, grow, x=x)
    part[:] = part[0] + 100
    pk.parallel_for(N, grow, x=x)
    sum_of_x = pk.parallel_reduce(N, total, x=x)
    y.fill(sum_of_x)
    pk.parallel_for(N, grow, x=y)
    z[:] = pk.parallel_reduce(N, total, x=y)
    x.fill(0)
    pk.parallel_for(N, copy, y=x, x=z)
    found.update({"sum": sum_of_x, "filled": np.array(y.data), "set": np.array(x.data)})
    memory = np.arange(1.0, N + 1)
    wrapped = pk.array(memory)
    pk.parallel_for(N, copy, y=y, x=wrapped)
    wrapped.fill(2)
    pk.parallel_for(N, grow, x=wrapped)
    wrapped[:] = 30
    pk.parallel_for(N, grow, x=wrapped)
    pk.fence()
    found.update({"array": memory.copy(), "before": np.array(y.data)})
    matrix = pk.View([4, 3], pk.double)
    pk.parallel_for(3, grow, x=matrix[1, :])
    matrix[1, :] = 6
    matrix[:, 2] = 8
    pk.parallel_for(3, grow, x=matrix[1, :])
    dead = vector()
    dead.fill(1)
    pk.parallel_for(N, grow, x=dead)
    found.update({"matrix": np.array(matrix.data), "dead": pk.parallel_reduce(N, total, x=dead)})
    return found


def aliases() -> Outputs:
    x, y = vector(), pk.View([N], pk.double)
    left, right = x[0 : N - 1], x[1:N]
    pk.parallel_for(N - 1, scale, y=y, x=right, a=2.0)
    pk.parallel_for(N - 1, copy, y=left, x=y)
    pk.parallel_for(N - 1, grow, x=right)
    pk.parallel_for(N - 2, neighbour, y=y, x=left, k=1)
    pk.parallel_for(N - 1, copy, y=right, x=y)
    pk.parallel_for(N, grow, x=x)
    shifted = np.array(y.data)
    matrix = pk.View([4, 3], pk.double)
    for row in range(4):
        pk.parallel_for(3, scale, y=matrix[row, :], x=x[row : row + 3], a=10.0)
    return {"x": np.array(x.data), "y": shifted, "matrix": np.array(matrix.data)}


def dependences() -> Outputs:
    x, y, z = vector(), pk.View([N], pk.double), pk.View([N], pk.double)
    pk.parallel_for(N, copy, y=y, x=x)
    pk.parallel_for(N, grow, x=x)  # anti
    pk.parallel_for(N, copy, y=z, x=x)
    pk.parallel_for(N, index, x=z)  # output
    pk.parallel_for(N - 1, neighbour, y=x, x=y, k=1)  # flow, at a distance
    pk.parallel_for(N - 1, neighbour, y=y, x=x, k=1)
    where = pk.View([N], pk.int32)
    where[:] = np.arange(N)[::-1]
    pk.parallel_for(N, scatter, y=z, where=where, x=y)
    pk.parallel_for(N, grow, x=z)
    return {"x": np.array(x.data), "y": np.array(y.data), "z": np.array(z.data)}


def futures() -> Outputs:
    x, y = vector(), pk.View([N], pk.double)
    norm = pk.parallel_reduce(N, total, x=x)
    pk.parallel_for(N, scale, y=y, x=x, a=norm)
    many = pk.parallel_reduce(N, count, x=x, least=8.0)
    pk.parallel_for(many, grow, x=y)
    pk.parallel_for(pk.RangePolicy(many, N), scale, y=x, x=y, a=2.0)
    made = pk.View([many], pk.double)
    y[many] = norm
    y.fill(norm) if many > 100 else None
    empty = pk.parallel_reduce(0, total, x=x)
    return {
        "x": np.array(x.data), "y": np.array(y.data), "made": made.shape, "at": x[many],
        "kinds": [type(empty + 0).__name__, type(many + 0).__name__], "empty": empty, "many": many,
    }  # fmt: skip


def types() -> Outputs:
    y = pk.View([N], pk.int32)
    pk.parallel_for(N, typed, y=y, k=3, flag=True, f=np.float32(2.5))
    pk.parallel_for(N, typed, y=y, k=5, flag=False, f=np.float32(2.5))
    small = pk.View([N], pk.uint8)
    pk.parallel_for(N, index, x=small)
    single = pk.View([N], pk.float)
    pk.parallel_for(N, index, x=single)
    return {"y": np.array(y.data), "small": np.array(small.data), "single": np.array(single.data)}


def arrays() -> Outputs:
    """NumPy arrays are read after a fence only; a matrix in Fortran's order is one, too."""
    x, y = np.arange(1.0, N + 1), np.zeros(N)
    pk.parallel_for(N, scale, y=y, x=x, a=4.0)
    pk.fence()
    first = y.copy()
    pk.parallel_for(4, copy, y=y[4:8], x=x[0:4])
    pk.fence()
    rows = pk.View([3], pk.double)
    results = {"first": first, "y": y.copy()}
    for name, order in (("c", "C"), ("f", "F")):
        matrix = np.array(np.arange(12.0).reshape(3, 4), order=order)
        pk.parallel_for(3, row_sums, y=rows, m=matrix)
        results[name] = np.array(rows.data)
    return results


def ours_not() -> Outputs:
    """What PyKokkos runs itself: strides it ignores, a scan, a functor, its Debug space."""
    x = vector()
    matrix = pk.View([4, 4], pk.double)
    pk.parallel_for(4, copy, y=matrix[:, 0], x=x)
    matrix[2, :][1] = 0
    found = {"matrix": np.array(matrix.data)}
    sums = pk.View([N], pk.double)
    pk.parallel_for(N, grow, x=x)
    found["sum"] = pk.parallel_scan(N, prefix, y=sums, x=x)
    found["sums"] = np.array(sums.data)
    pk.parallel_for(N, grow, x=x)
    doubler = Doubler(x, 3.0)
    pk.parallel_for(N, doubler.run)
    pk.parallel_for(N, grow, x=x)
    pk.parallel_for(pk.RangePolicy(pk.ExecutionSpace.Debug, 0, N), grow, x=x)
    found["x"] = np.array(x.data)
    return found


def mistakes() -> Outputs:
    """PyKokkos' own errors, and nothing else, where a call cannot be made."""
    x = vector()
    found = {}
    for name, call in {
        "unknown": lambda: pk.parallel_for(N, grow, x=x, z=1),
        "policy": lambda: pk.parallel_for("x", 1.5, grow, x=x),
        "count": lambda: pk.parallel_for(N),
        "kind": lambda: pk.parallel_for(N, scale, y=x, x=x, a="text"),
    }.items():
        try:
            call()
        except (Exception, SystemExit) as error:
            found[name] = type(error).__name__
    found["x"] = np.array(x.data)
    return found


def lifetimes() -> Outputs:
    def part_of_nothing_else() -> Any:
        whole = vector()
        pk.parallel_for(N, grow, x=whole)
        return whole[3:6]

    part = part_of_nothing_else()
    pk.parallel_for(3, grow, x=part)
    x = vector()
    before = x[0:4]
    pk.parallel_for(N, grow, x=x)
    x.resize(0, N + 3)
    pk.parallel_for(4, grow, x=before)
    pk.parallel_for(N + 3, grow, x=x)
    for _ in range(5):
        lost = vector()
        pk.parallel_for(N, grow, x=lost)
        del lost
    return {"part": np.array(part.data), "before": np.array(before.data), "x": np.array(x.data)}


CASES: tuple[Callable[[], Outputs], ...] = (
    chain, bound_before, reads, writes, fills, aliases, dependences, futures, types, arrays,
    ours_not, mistakes, lifetimes,
)  # fmt: skip


def traced(case: Callable[[], Outputs]) -> Outputs:
    before = pyfuser.stats()
    with pyfuser.fusing():
        outputs = case()
    after = pyfuser.stats()
    outputs["_recorded"] = after.recorded - before.recorded
    outputs["_launches"] = after.launches - before.launches
    return outputs


def text(value: Any) -> Any:
    """A result as JSON has it; exactly, as all numbers are small integers or halves."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [text(item) for item in value]
    if isinstance(value, (str, int)):
        return value
    return float(value)


def check_random() -> Outputs:
    import random_programs  # which is beside this script

    workunits = sys.modules["__main__"]
    return random_programs.check(int(sys.argv[3]), int(sys.argv[4]), workunits)


def main() -> None:
    if MODE == "random":
        EARLY.clear()
        write(check_random())
        return
    run = traced if MODE == "traced" else lambda case: case()
    found = {case.__name__: {k: text(v) for k, v in run(case).items()} for case in CASES}
    EARLY.clear()
    if MODE != "plain":
        found["unrecorded"] = dict(enumerate(pyfuser.explain().unrecorded))
    write(found)


def write(found: Outputs) -> None:
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
