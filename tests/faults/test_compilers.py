"""Compilers that are not there, fail, die, hang, chatter or lie."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyfuser
from pyfuser.engine import compiler
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CacheError, CompilerError, KernelError, PyFuserError
from tests.faults.conftest import Machine, Program, children
from tests.faults.workunits import SIZE, increment, scaled, total
from tests.vendors import tune

FAULTS = {
    "fails": ("echo 'kernel.cpp:7: no such luck' >&2; exit 1", "status 1\nkernel.cpp:7: no such"),
    "killed": ("kill -9 $$", r"was killed \(SIGKILL\): is there enough memory"),
    "crashes": ("kill -11 $$", "was ended by signal 11"),
    "half": ('head -c 1000 /dev/zero > "$target"; kill -9 $$', "SIGKILL"),
    "lazy": ("exit 0", "reported success but wrote no complete library"),
    "cut": (
        '"$real" "$@"; truncate -s 3000 "$target"',
        "reported success but wrote no complete library",
    ),
    "empty": (': > "$target"', "reported success but wrote no complete library"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_compiler_that_fails(fault: str, machine: Machine, program: Program) -> None:
    text, message = FAULTS[fault]
    machine.break_compiler(text)
    for _ in range(2):
        with pytest.raises(CompilerError, match=message):
            pyfuser.sync()
        program.check_untouched()
    assert machine.left() == {".lock"}
    assert children() == []
    machine.mend()
    program.check_done()
    assert machine.left() == {".lock", ".so"}


LIARS = {
    "text": 'echo "not a library" > "$target"',
    "other": 'echo "int other;" > other.cpp; exec "$real" -shared -fPIC other.cpp -o "$target"',
}


@pytest.mark.parametrize("lie", LIARS)
def test_a_compiler_that_makes_no_kernel(lie: str, machine: Machine, program: Program) -> None:
    machine.break_compiler(LIARS[lie])
    with pytest.raises(CacheError, match="the compiled kernel cannot be loaded: "):
        pyfuser.sync()
    program.check_untouched()
    assert ".so" not in machine.left(), "what cannot be loaded is not kept"
    machine.mend()
    program.check_done()


def test_no_compiler(machine: Machine, program: Program) -> None:
    machine.script.unlink()
    for _ in range(2):
        with pytest.raises(CompilerError, match=r"no C\+\+ compiler found .*apt install g\+\+"):
            pyfuser.sync()
    program.check_untouched()
    machine.mend()
    program.check_done()


def test_a_compiler_that_disappears(machine: Machine, program: Program) -> None:
    compiler.find_compiler(str(machine.script))  # it was there a moment ago
    machine.script.unlink()
    with pytest.raises(CompilerError, match="cannot be run: No such file"):
        pyfuser.sync()
    program.check_untouched()
    machine.mend()
    program.check_done()


def test_a_compiler_that_hangs(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed, and with it what it started."""
    started = machine.folder / "started"
    leaps = itertools.count(1)

    def monotonic() -> float:
        """A clock that leaps ahead whenever it is read, once a compiler has started something.

        That may be before anybody has computed until when to wait for it.
        """
        waits = started.exists() and started.read_text()
        return time.monotonic() + (1e6 * next(leaps) if waits else 0.0)

    clock = SimpleNamespace(monotonic=monotonic, perf_counter=time.perf_counter)
    monkeypatch.setattr(compiler, "time", clock)
    machine.break_compiler(f"sleep 300 & echo $! >> {started}; wait")
    with pytest.raises(CompilerError, match=r"no result after .* s; gave up"):
        pyfuser.sync()
    assert children() == []
    pids = started.read_text().split()
    assert pids and not any(map(_runs, pids))
    program.check_untouched()
    assert machine.left() == {".lock"}
    monkeypatch.undo()  # all of it; so:
    again = Machine(machine.folder, monkeypatch)
    program.check_done()
    assert again.left() == {".lock", ".so"}


def _runs(pid: str) -> bool:
    """Whether a process still runs, a moment after it was killed."""
    for _ in range(100):
        try:
            state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state in "ZX":
            return False
        time.sleep(0.01)
    return True


def test_a_compiler_that_chatters(machine: Machine, program: Program) -> None:
    """More than a pipe holds, on both outputs; the kernel is as good as any."""
    machine.break_compiler(
        "yes 'warning: something' | head -c 300000 | tee /dev/stderr; " + 'exec "$real" "$@"'
    )
    program.check_done()
    before = machine.compilations
    machine.restart()
    hits = COUNTERS.cache_hits
    tune(machine.patch, compile_seconds=-1.0)
    Program().check_done()
    assert machine.compilations == before
    assert COUNTERS.cache_hits > hits


REJECTS_SUMS = (
    'if grep -q "accumul\\|pf_sum\\|result" kernel.cpp; then echo no; exit 1; fi; exec "$real" "$@"'
)


def test_one_kernel_of_several_fails(machine: Machine, program: Program) -> None:
    """The others run, once; what did compile is kept, and not compiled again."""
    machine.break_compiler(REJECTS_SUMS)
    for _ in range(2):
        with pytest.raises(KernelError, match=r"status 1\n  called as 'total' at .*conftest"):
            pyfuser.sync()
        assert [line.split()[0] for line in pyfuser.pending()] == ["total"]
    before = machine.compilations
    machine.mend()
    program.check_done()
    assert machine.compilations - before == 1


def test_calls_that_need_nothing_of_a_rejected_one_run(machine: Machine) -> None:
    machine.break_compiler(REJECTS_SUMS)
    x, y, z = (pk.View([SIZE], pk.double) for _ in range(3))
    pk.parallel_for(SIZE, increment, x=x)
    sum = pk.parallel_reduce(SIZE, total, x=x)
    pk.parallel_for(SIZE, scaled, x=y, a=sum)
    pk.parallel_for(SIZE, increment, x=x)  # overwrites what the sum reads, which is copied
    pk.parallel_for(SIZE, increment, x=z)
    assert set(z) == {1.0}, "a read of what does not need the sum"
    message = "1 pending call cannot run and 1 that needs it; all others have run. .*discard"
    with pytest.raises(KernelError, match=message):
        pyfuser.sync()
    with pytest.raises(KernelError, match=message):
        float(sum)
    with pytest.raises(KernelError, match=message):
        print(y[0])
    assert x[0] == 2.0, "nothing that is stuck touches it any more"
    names = ["total", "scaled"]
    assert [line.split()[0] for line in pyfuser.discard()] == names
    assert pyfuser.pending() == ()
    with pytest.raises(PyFuserError, match=r"discard\(\) dropped 'total' at .*test_compilers.py:"):
        float(sum)
    assert (set(x), set(y), set(z)) == ({2.0}, {0.0}, {1.0})
    pk.parallel_for(SIZE, increment, x=y)
    assert set(y) == {1.0}


@pyfuser.fuse
@pk.workunit
def filled(i, x, value):
    x[i] = value


@pyfuser.fuse
@pk.workunit
def rejected(i, x):
    x[i] = 2.0


def test_what_a_rejected_one_would_overwrite_is_kept(machine: Machine) -> None:
    machine.break_compiler('if grep -q rejected kernel.cpp; then exit 1; fi; exec "$real" "$@"')
    x = pk.View([SIZE], pk.double)
    pk.parallel_for(SIZE, filled, x=x, value=3.0)
    pk.parallel_for(SIZE, rejected, x=x)
    with pytest.raises(KernelError, match="1 pending call cannot run; all others have run"):
        pyfuser.sync()
    pyfuser.discard()
    assert set(x) == {3.0}


def test_a_kernel_that_only_fusion_makes_impossible(machine: Machine) -> None:
    """Both calls run alone, and nobody is told of an error."""
    machine.break_compiler('if grep -q fused kernel.cpp; then exit 1; fi; exec "$real" "$@"')
    x, plans = pk.View([SIZE], pk.double), COUNTERS.plans
    for expected in (3.0, 6.0, 9.0):
        pk.parallel_for(SIZE, increment, x=x)
        pk.parallel_for(SIZE, scaled, x=x, a=2.0)
        pyfuser.sync()
        assert pyfuser.pending() == () and set(x) == {expected}
    assert COUNTERS.plans == plans + 1  # not tried again


def test_what_did_not_run_is_told_at_exit(machine: Machine) -> None:
    machine.break_compiler("exit 1")
    process = machine.start("x, y, sum = program()")
    _, err = process.communicate(timeout=60)
    assert "pyfuser: calls that did not run:\n  increment (" in err
    assert err.count("workunits.py:") >= 3
    assert "Traceback" not in err and err.count("pyfuser: ") == 2  # the reason, in short
