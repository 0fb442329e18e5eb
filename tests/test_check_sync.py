"""PYFUSER_CHECK=sync reports accesses of NumPy arrays whose launches are pending; nothing else."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyfuser import checks
from pyfuser.checks import sync
from pyfuser.support import settings
from pyfuser.support.errors import SettingError
from pyfuser.support.settings import SETTINGS
from tests.processes import python

pytestmark = [
    pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
]

HEAD = """
import os, sys, threading, faulthandler, mmap, ctypes
import numpy as np
import pyfuser, pykokkos as pk

@pyfuser.fuse
@pk.workunit
def over(i, x):
    x[i] += 1

@pyfuser.fuse
@pk.workunit
def into(i, x, y):
    y[i] = x[i]

def launch(x):
    pk.parallel_for(x.size, over, x=x)

small, large = np.zeros(3), np.zeros(100_000)
"""
READS = [
    "x + 1",
    "x.sum()",
    "np.mean(x)",
    "float(x[0])",
    "x.copy()",
    "bytes(x)",
    "list(x)",
    "print(x)",
    "memoryview(x)[1]",
    "x @ x",
    "np.savetxt(os.devnull, x)",
]
WRITES = ["x[0] = 1", "x += 2", "x.fill(3)", "x.sort()", "np.copyto(x, 1)"]


def ran(tmp_path: Path, body: str, *options: str, code: int | None = 0, **more: str) -> list[str]:
    """The warnings of a program, without the lines of source that Python shows."""
    file = tmp_path / "program.py"
    file.write_text(HEAD + body)
    done = python(*options, file, **{"PYFUSER_CHECK": "sync", **more})
    assert code is None or done.returncode == code, done.stderr
    return [line for line in done.stderr.splitlines() if line[:1] not in ("", " ")]


def line_of(body: str, text: str) -> str:
    """Where a text is in the program, as `program.py:12:`."""
    return f"program.py:{(HEAD + body).split(text)[0].count(chr(10)) + 1}:"


@pytest.mark.parametrize("size", ["small", "large"])
def test_every_way_to_touch_an_array_too_early(tmp_path: Path, size: str) -> None:
    body = f"x = {size}\n"
    for use in READS + WRITES:
        body += f"launch(x)\n{use}  # {use}: early\npyfuser.sync()\n"
    found = ran(tmp_path, body)
    assert len(found) == len(READS + WRITES)
    for said, use in zip(found, READS + WRITES, strict=True):
        done = "written" if use in ("x[0] = 1", "x.fill(3)", "np.copyto(x, 1)") else "read"
        assert line_of(body, f"# {use}: early") in said
        assert f"a NumPy array is {done} here before the launch of 'over' at " in said
        assert f"{line_of('', 'pk.parallel_for')[:-1]}, which writes it as 'x', has run" in said


def test_a_thread_of_a_library_whose_caller_has_pythons_lock(tmp_path: Path) -> None:
    source = """
    #include <pthread.h>
    static void* touch(void* at) { *(volatile double*)at; return 0; }
    void touch_in_a_thread(double* at) {
      pthread_t thread;
      pthread_create(&thread, 0, touch, at);
      pthread_join(thread, 0);
    }"""
    (tmp_path / "touch.c").write_text(source)
    library = tmp_path / "touch.so"
    build = [SETTINGS.compiler, "-x", "c", "-shared", "-fPIC", "-o", library, tmp_path / "touch.c"]
    subprocess.run(build, check=True)
    body = f"""
touch = ctypes.PyDLL({str(library)!r}).touch_in_a_thread
launch(large)
touch(ctypes.c_void_p(large.ctypes.data))
pyfuser.sync()
assert large[0] == 1
"""
    (said,) = ran(tmp_path, body)
    assert "<a thread of a library>" in said and "is read here before the launch of 'over'" in said


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_same_uses_after_a_sync(tmp_path: Path, size: str) -> None:
    body = f"x = {size}\n"
    for use in READS + WRITES:
        body += f"launch(x)\npyfuser.sync()\n{use}\n"
    assert ran(tmp_path, body) == []


def test_what_is_read_may_be_read_but_not_written(tmp_path: Path) -> None:
    body = "y = np.zeros(3)\npk.parallel_for(3, into, x=small, y=y)\nsmall + 1\nsmall[1] = 7\n"
    (said,) = ran(tmp_path, body + "pyfuser.sync()\n")
    assert line_of(body, "small[1]") in said
    assert "is written here before the launch of 'into'" in said and "reads it as 'x'" in said


def test_other_data_of_the_same_page(tmp_path: Path) -> None:
    body = "x, y = large[10:20], large[20:30]\nlaunch(x)\ny + 1\ny[:] = 2\nlarge[9:10].sum()\n"
    assert ran(tmp_path, body + "pyfuser.sync()") == []
    body += "launch(x)\nlarge[19:21] + 1  # one element of x\npyfuser.sync()\n"
    (said,) = ran(tmp_path, body)
    assert line_of(body, "large[19") in said


def test_memory_that_numpy_did_not_allocate(tmp_path: Path) -> None:
    body = (
        "held = bytearray(100_000)\nx = np.frombuffer(held, np.float64)\nlaunch(x)\n"
        "held[:8] = bytes(8)\nx[6000]  # here\npyfuser.sync()\nassert x[6000] == 1\n"
        "m = mmap.mmap(-1, 80_000)\nx = np.frombuffer(m, np.float64)\nlaunch(x)\nx[5]\n"
    )
    (said,) = ran(tmp_path, body + "pyfuser.sync()")
    assert line_of(body, "x[6000]  # here") in said


def test_views_run_what_is_pending_when_they_are_read(tmp_path: Path) -> None:
    body = (
        "v = pk.View([1000], pk.double)\nv.data\nlaunch(v)\nassert v[3] == 1\n"
        "w = pk.array(large)\nlaunch(w)\nassert w[3] == 1\nprint(w)\n"
    )
    assert ran(tmp_path, body) == []
    body += "launch(w)\nlarge.sum()  # not through the View\npyfuser.sync()\n"
    (said,) = ran(tmp_path, body)
    assert line_of(body, "large.sum()") in said


def test_several_arrays_one_report_each(tmp_path: Path) -> None:
    body = "launch(small)\nlaunch(large)\nlarge + 1\nlarge + 2\nsmall + 3\nsmall + 4\n"
    found = ran(tmp_path, body + "pyfuser.sync()")
    uses = ["large + 1", "small + 3"]
    assert [
        use for said, use in zip(found, uses, strict=True) if line_of(body, use) in said
    ] == uses


def test_threads(tmp_path: Path) -> None:
    body = (
        "many = [np.zeros(50_000) for _ in range(8)]\n"
        "def read(x):\n    x.sum()  # too early\n"
        "for _ in range(5):\n"
        "    for x in many: launch(x)\n"
        "    threads = [threading.Thread(target=read, args=(x,)) for x in many]\n"
        "    for t in threads: t.start()\n"
        "    for t in threads: t.join()\n"
        "    pyfuser.sync()\n"
        "assert all((x == 5).all() for x in many)\n"
    )
    found = ran(tmp_path, body, PYTHONWARNINGS="always")
    assert len(found) == 40
    assert all(line_of(body, "x.sum()") in said for said in found)


def test_arrays_that_die_or_are_discarded_while_pending(tmp_path: Path) -> None:
    body = (
        "for n in range(50):\n    x = np.zeros(n * 100 + 1)\n    launch(x)\n    del x\n"
        "pyfuser.sync()\nlaunch(small)\npyfuser.discard()\nassert small.sum() == 0\n"
        "y = np.ones(7)\nlaunch(y)\npyfuser.sync()\ny.resize(10_000, refcheck=False)\n"
        "assert y.sum() == 14\n"
    )
    assert ran(tmp_path, body) == []


def test_results_do_not_change(tmp_path: Path) -> None:
    body = (
        "@pyfuser.fuse\n@pk.workunit\ndef total(i, acc: pk.Acc[pk.double], x):\n    acc += x[i]\n"
        "for step in range(20):\n    launch(large)\n"
        "    t = pk.parallel_reduce(large.size, total, x=large)\n"
        "    assert float(t) == 1e5 * (step + 1)\n"
        "pyfuser.sync()\nassert large.min() == large.max() == 20\n"
        "if os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    )
    assert ran(tmp_path, body) == []


def test_a_system_call_fails_and_a_fault_stays_one(tmp_path: Path) -> None:
    body = (
        "launch(large)\nfile = os.open(os.devnull, os.O_WRONLY)\n"
        "r, w = os.pipe()\n"
        "try:\n    os.write(w, large[:100])\n"
        "except OSError as error:\n    assert error.errno == 14\n"
        "else:\n    raise AssertionError\npyfuser.sync()\n"
    )
    assert ran(tmp_path, body) == []
    for more in ("", "faulthandler.enable()\n"):
        crash = f"launch(small)\n{more}ctypes.string_at(16)"
        said = ran(tmp_path, crash, code=-signal.SIGSEGV)
        assert bool(more) is any("Segmentation fault" in line for line in said)


def test_a_faulthandler_that_was_there_before(tmp_path: Path) -> None:
    (said,) = ran(tmp_path, "launch(small)\nsmall + 1\npyfuser.sync()", "-X", "faulthandler")
    assert "is read here" in said


def test_run_reads_arrays_in_time(tmp_path: Path) -> None:
    body = "for _ in range(4):\n    launch(large)\n    launch(large)\n    print(large[:2])\n"
    assert ran(tmp_path, body, "-m", "pyfuser", "run") == []
    assert "4 times" in "".join(ran(tmp_path, body, "-m", "pyfuser", "run", "--report"))


def test_warnings_that_are_errors_are_raised_by_the_next_launch_or_sync(tmp_path: Path) -> None:
    body = (
        "launch(small)\nsmall + 1\ntry:\n    pyfuser.sync()\nexcept pyfuser.PyFuserWarning as e:\n"
    )
    body += "    assert 'is read here' in str(e)\nelse:\n    raise AssertionError\n"
    assert ran(tmp_path, body, "-W", "error") == []


def test_elsewhere_than_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync.sys, "platform", "darwin")
    with pytest.raises(SettingError, match="works on Linux only"):
        sync.install(checks)  # type: ignore[arg-type]


def test_it_is_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings._read().sync
    monkeypatch.setenv("PYFUSER_CHECK", "sync, bounds")
    assert settings._read().sync and settings._read().check == {"bounds"}
