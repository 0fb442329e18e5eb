"""What new processes and new traces cost: imports, the first result, plans, processes at once.

`python experiments/cold.py` prints all of it; `second`, `import`, `plan` and `together` are parts.
Each figure is the least of several runs, in milliseconds; where bytecode is kept it counts as kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RUNS = 7
PROCESSES = 8
WORKUNITS = 16
VIEWS = 37  # prime to WORKUNITS: all calls of a program are different

WORKUNIT = """
@pk.workunit
def f{k}(i, y, x, a):
    t = a * x[i] + {k}.5
    y[i] = y[i] * 0.25 + t * t - {k} * x[i]
"""

PROGRAM = """
import sys, time
START = time.perf_counter()
CPU = time.process_time()
import pyfuser
import pykokkos as pk
IMPORTED = time.perf_counter() - START
{workunits}
@pk.workunit
def total(i, acc, x):
    acc += x[i]

F = [{names}]

def record(calls, n):
    v = [pk.View([n], pk.double) for _ in range({views})]
    for k in range(calls):
        y, x = v[k % {views}], v[(5 * k + 3) % {views}]
        pk.parallel_for(n, F[k % len(F)], y=y, x=x, a=0.5)
    return v
"""

FIRST_RESULT = """
with pyfuser.fusing():
    v = record({calls} - 1, 1000)
    print(float(pk.parallel_reduce(1000, total, x=v[0])))
import json
stats = pyfuser.stats()
print(json.dumps(dict(
    seconds=time.perf_counter() - START, imported=IMPORTED, cpu=time.process_time() - CPU,
    compilations=stats.compilations, analysis=stats.analysis_seconds, plans=stats.plans)))
"""

PLANNING = """
import gc, json, os
from pyfuser.analysis.accesses import structural_scalars
from pyfuser.pipeline import planned
from pyfuser.runtime.session import TRACER
from pyfuser.trace.shape import shape_of

def plan(n):
    with pyfuser.fusing():
        v = record({calls}, n)
        trace = shape_of(list(TRACER.calls), structural_scalars)
        assert len(set(trace.kinds)) == len(trace.calls) == {calls}
        TRACER.remove(list(TRACER.calls))
    gc.collect()
    start = time.perf_counter()
    planned(trace)
    return time.perf_counter() - start

made = [plan(n) for n in (100_000, 100_001, 100_002, 150_003, 90_001)]
print(json.dumps(dict(first=made[0], again=made[1:])))
sys.stdout.flush()
os._exit(0)
"""


def program(calls: int, end: str) -> str:
    """The text of a program of so many calls, all of them different."""
    workunits = "".join(WORKUNIT.format(k=k) for k in range(WORKUNITS))
    names = ", ".join(f"f{k}" for k in range(WORKUNITS))
    start = PROGRAM.format(workunits=workunits, names=names, views=VIEWS)
    return start + end.format(calls=calls)


class Place:
    """A folder for a program and a cache of its own."""

    def __init__(self, folder: Path, text: str) -> None:
        self.script = folder / "program.py"
        self.script.write_text(text)
        self.environment = os.environ | {"PYFUSER_CACHE_DIR": str(folder / "cache")}

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.script)],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> dict[str, float]:
        return result(self.start())


def result(process: subprocess.Popen[str]) -> dict[str, float]:
    """What a program prints in its last line."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return dict(json.loads(out.splitlines()[-1]))


def in_a_folder(text: str, measure: Callable[[Place], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="pyfuser-cold-") as folder:
        measure(Place(Path(folder), text))


def show(name: str, seconds: float, more: str = "") -> None:
    print(f"{name:46}{1e3 * seconds:9.1f} ms  {more}".rstrip(), flush=True)


def second() -> None:
    """From the first import to the first result, with a warm cache."""

    def measure(place: Place) -> None:
        first = place.run()
        show("first process, 40 calls", first["seconds"], f"{first['compilations']} compilations")
        later = [place.run() for _ in range(RUNS)]
        for name in ("seconds", "cpu", "imported", "analysis"):
            what = {"seconds": "import to first result"}.get(name, name)
            show(f"second process: {what}", min(run[name] for run in later))
        last = later[-1]
        print(f"  plans {last['plans']}, compilations {last['compilations']}")

    in_a_folder(program(40, FIRST_RESULT), measure)


def plan() -> None:
    """Planning traces of different calls; the same again with other sizes."""
    for calls in (100, 511):  # with 512 a trace is full, and runs

        def measure(place: Place, calls: int = calls) -> None:
            runs = [place.run() for _ in range(3)]
            show(f"planning {calls} different calls", min(r["first"] for r in runs))
            each = zip(*(r["again"] for r in runs), strict=True)
            again = ", ".join(f"{1e3 * min(times):.1f}" for times in each)
            print(f"  with other sizes, one after the other: {again} ms")

        in_a_folder(program(calls, PLANNING), measure)


def imports() -> None:
    """Importing NumPy, and PyFuser after it."""
    code = (
        "import time, json; t = time.process_time(); import numpy; n = time.process_time(); "
        "import pyfuser, pykokkos; e = time.process_time(); "
        "print(json.dumps(dict(numpy=n - t, pyfuser=e - n)))"
    )

    def measure(place: Place) -> None:
        runs = [place.run() for _ in range(2 * RUNS)]
        for name in ("numpy", "pyfuser"):
            show(f"importing {name} (processor time)", min(run[name] for run in runs[1:]))

    in_a_folder(code, measure)


def together() -> None:
    """Processes that start at once with an empty cache."""

    def measure(place: Place) -> None:
        start = time.perf_counter()
        found = [result(each) for each in [place.start() for _ in range(PROCESSES)]]
        compiled = sum(int(each["compilations"]) for each in found)
        made = len(list(place.script.parent.glob("cache/kernels/*.so")))
        show(
            f"{PROCESSES} processes from cold",
            time.perf_counter() - start,
            f"{compiled} compilations of {made} kernels",
        )

    in_a_folder(program(40, FIRST_RESULT), measure)


PARTS = {"import": imports, "second": second, "plan": plan, "together": together}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
