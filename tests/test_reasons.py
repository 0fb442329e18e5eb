"""Who makes the recorded calls run gives the reason, and `explain()` shows it with the line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.frontends.modes import SWITCHES
from pyfuser.runtime.session import SESSION
from pyfuser.trace import reason
from pyfuser.trace.reason import Reason
from tests.processes import python

N = 10


@pk.workunit
def fill(i, x, value):
    x[i] = value


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def outside(i, x):
    x[i + 1000] = 1.0


@pk.workload
class Work:
    def __init__(self, x: Any) -> None:
        self.x = x

    @pk.main
    def run(self) -> None:
        with_one(self.x)

    @pk.callback
    def done(self) -> None:
        pass


def with_one(x: Any) -> None:
    pyfuser.enable()
    pk.parallel_for(N, fill, x=x, value=1.0)


def full(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SESSION.tracer, "limit", 1)
    with_one(x)


def begin_unfused(x: Any, _: Any) -> None:
    with pyfuser.unfused():
        pass


def careful(pattern: Any, workunit: Any, error: type[Exception] | None = None) -> Any:
    """A call of a program that knows nothing of us, as `pyfuser run` makes it."""

    def call(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SWITCHES, "careful", True)
        arguments = {"x": np.zeros(N)} | ({"value": 1.0} if workunit is fill else {})
        if error is None:
            pattern(N, workunit, **arguments)
            return
        with pytest.raises(error):
            pattern(N, workunit, x=x)

    return call


def fork(_x: Any, _: Any) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def alone(x: Any, _: Any) -> None:
    pyfuser.enable()
    SWITCHES.everywhere = None
    pk.parallel_for(N, fill, x=x, value=2.0)


ENTRIES: list[tuple[str, Reason, Callable[[Any, pytest.MonkeyPatch], Any]]] = [
    ("an element of a View", reason.VIEW, lambda x, _: x[0]),
    ("a View as an array", reason.VIEW, lambda x, _: np.asarray(x)),
    ("a View that is written", reason.VIEW, lambda x, _: x.__setitem__(0, 3.0)),
    ("a result", reason.RESULT, lambda x, _: float(pk.parallel_reduce(N, total, x=x))),
    ("a result that is waited for", reason.RESULT,
     lambda x, _: pyfuser.sync(pk.parallel_reduce(N, total, x=x))),
    ("a full list", reason.FULL, full),
    ("an effect seen at once", reason.AT_ONCE, careful(pk.parallel_for, fill)),
    ("a number", reason.NUMBER, careful(pk.parallel_reduce, total)),
    ("a mistake", reason.MISTAKE, careful(pk.parallel_for, outside, pyfuser.BoundsError)),
    ("a call by itself", reason.ALONE, alone),
    ("the Debug space", reason.ALONE,
     lambda x, _: pk.parallel_for(pk.RangePolicy(pk.Debug, 0, 1), fill, x=x, value=1.0)),
    ("callbacks", reason.CALLBACKS, lambda x, _: pk.execute(pk.OpenMP, Work(x))),
    ("pk.fence", reason.FENCE, lambda x, _: pk.fence()),
    ("pk.flush", reason.FLUSH, lambda x, _: pk.flush()),
    ("pk.finalize", reason.FINALIZE, lambda x, _: pk.finalize()),
    ("sync", reason.SYNC, lambda x, _: pyfuser.sync()),
    ("sync of a View", reason.SYNC, lambda x, _: pyfuser.sync(x)),
    ("sync of anything", reason.SYNC, lambda x, _: pyfuser.sync(object())),
    ("disable", reason.DISABLE, lambda x, _: pyfuser.disable()),
    ("explain", reason.EXPLAIN, lambda x, _: pyfuser.explain()),
    ("unfused begins", reason.UNFUSED_BEGINS, begin_unfused),
    ("a fork", reason.FORK, fork),
]  # fmt: skip

#: Reasons of which other tests show that they are given, and those that need a GPU.
ELSEWHERE = {
    "FUSING_ENDS": "below",
    "PROGRAM_ENDS": "below",
    "CAPTURED": "test_capture",
    "CELL_ENDS": "test_notebook",
    "STREAM": "needs two streams",
}


@pytest.mark.parametrize(("_name", "why", "entry"), ENTRIES, ids=[name for name, _, _ in ENTRIES])
def test_what_flushes_gives_its_reason(
    _name: str, why: Reason, entry: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pyfuser.sync()
    monkeypatch.setattr(SWITCHES, "everywhere", None)
    x = pk.View([N], pk.double)
    with_one(x)
    before = len(SESSION.tracer.calls)
    SESSION.flushes.clear()
    entry(x, monkeypatch)
    asked = SESSION.flushes[0].asked
    assert before == 1 and asked.why == why.text
    assert asked.file == __file__ and asked.line > 0
    monkeypatch.undo()
    pyfuser.sync()


def test_the_end_of_a_block() -> None:
    with pyfuser.fusing():
        pk.parallel_for(N, fill, x=pk.View([N], pk.double), value=1.0)
    assert SESSION.flushes[-1].asked.why == reason.FUSING_ENDS.text
    assert SESSION.flushes[-1].asked.file == __file__


def test_the_end_of_the_program(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import atexit, pyfuser, pykokkos as pk\n"
        "from pyfuser.runtime.session import SESSION\n"
        "atexit.unregister(pyfuser.api._finish)\n"
        "atexit.register(lambda: print(tuple(SESSION.flushes[-1].asked)))\n"
        "atexit.register(pyfuser.api._finish)\n"
        "@pyfuser.fuse\n@pk.workunit\ndef fill(i, x):\n    x[i] = 1.0\n"
        "pk.parallel_for(9, fill, x=pk.View([9], pk.double))\n"
    )
    done = python(script, check=True)
    assert done.stdout.strip() == str(("", 0, reason.PROGRAM_ENDS.text)), done.stderr


def test_every_reason_is_shown() -> None:
    known = {name: value for name, value in vars(reason).items() if isinstance(value, Reason)}
    shown = {why for _, why, _ in ENTRIES}
    assert {name for name, why in known.items() if why not in shown} == set(ELSEWHERE)
