"""Which calls the extension records under `pyfuser run`, and which Python has to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends.embedded import careful
from pyfuser.frontends.embedded.dispatch import watched_for
from pyfuser.frontends.modes import SWITCHES, recording
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import BoundsError
from pyfuser.support.extension import HOT
from pyfuser.trace.reason import SYNC
from tests.processes import python

pytestmark = pytest.mark.skipif(HOT is None, reason="needs the extension")


@pk.workunit
def add(i, x, s):
    x[i] = x[i] + s


@pk.workunit
def shift(i, x, k):
    x[i] = x[i + k] + 1.0


@pk.workunit
def tell(i, x):
    x[i] = x[i] + 1.0
    pk.printf("%d ", i)


@pk.workunit
def divide(i, x, k):
    x[i] = x[i] + 12 // k


@pk.workunit
def share(i, x, n):
    x[i] = x[i] + 12 // n[i]


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the calls that Python decided about, in a program that knows nothing of us."""
    seen: list[str] = []
    decide = careful.record

    def record(binding: Any, call: Any, watched: bool) -> tuple[bool, Any]:
        seen.append(call.name)
        return decide(binding, call, watched)

    TRACER.flush(SYNC)
    monkeypatch.setattr(careful, "record", record)
    monkeypatch.setattr(SWITCHES, "careful", True)
    monkeypatch.setattr(SWITCHES, "watched", False)
    monkeypatch.setattr(SWITCHES, "everywhere", True)
    yield seen
    TRACER.flush(SYNC)


def view(*shape: int) -> Any:
    return pk.View(list(shape), pk.double)


def test_calls_on_views_are_recorded_by_the_extension(in_python: list[str]) -> None:
    x, rows = view(8), view(6, 4)
    for k in range(6):
        watched_for(8, add, x=x, s=1.0)
        pk.parallel_for(4, add, x=rows[k], s=float(k))
    assert len(TRACER.calls) == 12
    assert len(in_python) <= 2  # types of arguments that are new
    assert x[3] == 6.0 and [row[1] for row in rows] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_each_size_is_looked_at_once(in_python: list[str]) -> None:
    x, y = view(5), view(7)
    for _ in range(4):
        watched_for(5, add, x=x, s=1.0)
        watched_for(7, add, x=y, s=1.0)
        watched_for(5, add, x=y, s=1.0)
    assert len(in_python) == 3
    assert x[4] == 4.0 and y[4] == 8.0


def test_each_number_that_decides_is_looked_at_once(in_python: list[str]) -> None:
    x = view(12)
    for _ in range(3):
        for k in range(4):
            watched_for(8, shift, x=x, k=k)
    assert len(in_python) == 4


def test_a_mistake_is_told_where_the_call_is_made(in_python: list[str]) -> None:
    x = view(13)
    for _ in range(3):
        watched_for(8, shift, x=x, k=5)
    for _ in range(2):  # the second one is no better known than the first
        with pytest.raises(BoundsError):
            watched_for(8, shift, x=x, k=6)
    assert len(in_python) == 3


def test_what_prints_or_may_fail_is_decided_in_python(
    in_python: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    x, n = view(3), pk.View([3], pk.int32)
    n.fill(5)
    pyfuser.sync()
    for _ in range(4):
        watched_for(3, tell, x=x)
        watched_for(3, divide, x=x, k=2)
        watched_for(3, share, x=x, n=n)
    assert [in_python.count(name) for name in ("tell", "divide", "share")] == [4, 4, 4]
    assert capfd.readouterr().out.split() == ["0", "1", "2"] * 4


def test_memory_that_there_may_be_too_little_of_is_looked_at_in_python(
    in_python: list[str],
) -> None:
    small, large = view(8), view((1 << 23) + 8)
    for _ in range(3):
        watched_for(8, add, x=small, s=1.0)
        watched_for(9, add, x=large, s=1.0)
    pyfuser.discard()
    assert 3 <= len(in_python) <= 4


def test_arrays_that_nobody_looks_after_are_no_calls_that_wait(in_python: list[str]) -> None:
    x = np.zeros(8)
    for k in range(4):
        pk.parallel_for(8, add, x=x, s=1.0)
        assert x[5] == k + 1 and not TRACER.calls


def test_calls_that_nobody_looks_after_run_what_is_pending(in_python: list[str]) -> None:
    """The twin: a View beside a View waits; a View beside an array does not, nor the other way."""
    x, y, a = view(10), view(10), np.zeros(10)
    for first, second in ((x, y), (x, a), (a, y)):
        for _ in range(3):
            with recording():
                pk.parallel_for(10, add, x=first, s=1.0)
            pk.parallel_for(10, add, x=second, s=1.0)
        assert len(TRACER.calls) == (6 if a is not first and a is not second else 0)
        TRACER.flush(SYNC)
    assert x[9] == y[9] == a[9] == 6.0


def test_blocks_make_their_own_promises(in_python: list[str]) -> None:
    x = np.zeros(8)
    with pyfuser.fusing():
        for _ in range(4):
            pk.parallel_for(8, add, x=x, s=1.0)
        assert len(TRACER.calls) == 4
    assert x[5] == 4.0 and len(in_python) <= 1


SCRIPT = """\
import sys, threading
import numpy as np
import pykokkos as pk
from pyfuser.frontends.embedded import careful

seen, decide = [], careful.record

def record(*given):
    seen.append(given)
    return decide(*given)

careful.record = record

@pk.workunit
def add(i, x, s):
    x[i] = x[i] + s

def loop(a, n):
    for k in range(n):
        pk.parallel_for(4, add, x=a[k], s=float(k))

a = np.zeros((60, 4))
loop(a, 30)
print(len(seen), a[29])
end = threading.Event()
other = threading.Thread(target=end.wait)
if "thread" in sys.argv:
    other.start()
seen.clear()
loop(a, 60)
print(len(seen), a[29], a[59])
end.set()
"""


@pytest.mark.parametrize("thread", [False, True])
def test_rows_of_arrays(tmp_path: Path, thread: bool) -> None:
    """The twin: while another thread may read them, each runs at once."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = python("-m", "pyfuser", "run", script, *(["thread"] * thread), check=True)
    row, last = "[29. 29. 29. 29.]", "[58. 58. 58. 58.] [59. 59. 59. 59.]"
    first, second = done.stdout.splitlines()
    assert first == f"1 {row}"
    count, rows = second.split(" ", 1)
    assert rows == last and (int(count) > 0) == thread


ODD_ROWS = """\
import sys
import numpy as np
import pykokkos as pk

@pk.workunit
def add(i, y, x, s):
    y[i] = y[i] + s * x[i]

def loop(ys, xs, read=False):
    total = 0.0
    for k in range(20):
        pk.parallel_for(4, add, y=ys[k], x=xs[k], s=0.5)
        if read:
            total += float(ys[k][1])
    return total

def owned(k):
    return np.full((2, 4), float(k))[1]

def numbers(n):
    return np.arange(float(n))

flat = numbers(80)
loop([flat[k : k + 4] for k in range(1, 21)], [flat[k : k + 4] for k in range(20)])
print(flat)
a = numbers(84).reshape(21, 4)
loop(a[1:], a)  # a recurrence
print(a)
loop(a[::-1], a)  # two arrays over one memory
print(a)
print(loop(a, a[1:], True))
kept = [owned(k) for k in range(20)]  # only the rows hold their memory
loop(kept, [owned(k + 1) for k in range(20)])
print(kept)
wide = numbers(20 * 8).reshape(20, 8)
loop([row[::2] for row in wide], [row[7:3:-1] for row in wide])
print(wide)
mixed = [row if k % 3 else row[::2].astype(np.float32) for k, row in enumerate(wide)]
loop([row[:4] for row in mixed], [row[::-1][:4] for row in mixed])
print(mixed)
"""


def test_rows_that_overlap_die_or_differ(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ODD_ROWS, encoding="utf-8")
    outputs = []
    for options in ([], ["--no-fusion"]):
        done = python("-m", "pyfuser", "run", *options, script, check=True)
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1] and "nan" not in outputs[0]
