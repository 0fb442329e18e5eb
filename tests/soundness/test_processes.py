"""Calls that were made have been made: at exit, across threads and across processes."""

from __future__ import annotations

import textwrap
import threading
from pathlib import Path

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.processes import python

ROOT = Path(__file__).parents[2]
N = 16

HEAD = """
import os, sys, mmap, threading
import numpy as np
import pyfuser
import pykokkos as pk

@pyfuser.fuse
@pk.workunit
def inc(i, x, v):
    x[i] += v

@pyfuser.fuse
@pk.workunit
def rev(i, x, y, n):
    y[i] = x[n - 1 - i]

path = sys.argv[1]
x = np.memmap(path, dtype=float, mode="w+", shape=(2, 8))
"""


def run(tmp_path, body, status=0, name="program.py"):
    """Runs a program that records calls on a file's memory; what the file then holds."""
    program = tmp_path / name
    program.write_text(HEAD + textwrap.dedent(body))
    file = tmp_path / "memory"
    done = python(program, file)
    assert done.returncode == status, done.stderr
    return np.fromfile(file).reshape(2, 8), done


ENDS = {
    "falls off": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise KeyError('mine')", 1),
    "exception in a block": ("with pyfuser.fusing():\n    raise KeyError('mine')", 1),
    "exit in a block": ("with pyfuser.fusing():\n    sys.exit(4)", 4),
    "arrays deleted": ("del x", 0),
    "in atexit": (
        "import atexit\natexit.register(lambda: pk.parallel_for(8, inc, x=x[0], v=0.0))",
        0,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_at_the_end_of_the_program(tmp_path, end):
    """Several kernels: interpreters that shut down start no threads to compile them."""
    text, status = ENDS[end]
    got, _ = run(
        tmp_path,
        "pk.parallel_for(8, inc, x=x[0], v=1.5)\npk.parallel_for(8, rev, x=x[0], y=x[1], n=8)\n"
        "pk.parallel_for(8, inc, x=x[0], v=1.0)\nassert x[0, 0] == 0.0\n" + text + "\n",
        status,
    )
    assert_array_equal(got, [[2.5] * 8, [1.5] * 8])


def test_a_single_kernel_at_the_end_of_the_program(tmp_path):
    got, _ = run(
        tmp_path, "pk.parallel_for(8, inc, x=x[0], v=1.5)\npk.parallel_for(8, inc, x=x[1], v=1.0)\n"
    )
    assert_array_equal(got, [[1.5] * 8, [1.0] * 8])


def test_module_level_views_at_exit(tmp_path):
    _, done = run(
        tmp_path,
        """
        v = pk.View([8], pk.double)
        pk.parallel_for(8, inc, x=v, v=1.0)
        s = v[2:4]
        class Last:
            def __del__(self):
                print(float(v[0]) if v is not None else 1.0)
        last = Last()
        """,
    )
    assert "Error" not in done.stderr, done.stderr


def test_a_fork_does_not_run_the_calls_twice(tmp_path):
    got, _ = run(
        tmp_path,
        """
        x = np.frombuffer(mmap.mmap(os.open(path, os.O_RDWR), 128)).reshape(2, 8)
        pk.parallel_for(8, inc, x=x[0], v=1.0)
        child = os.fork()
        if child == 0:
            pyfuser.sync()
            pk.parallel_for(8, inc, x=x[1], v=5.0)
            pyfuser.sync()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        pk.parallel_for(8, inc, x=x[0], v=1.0)
        pyfuser.sync()
        """,
    )
    assert_array_equal(got, [[2.0] * 8, [5.0] * 8])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(tmp_path, method):
    _, done = run(
        tmp_path,
        f"""
        import multiprocessing

        def work(k):
            v = pk.View([8], pk.double)
            pk.parallel_for(8, inc, x=v, v=float(k))
            pk.parallel_for(8, inc, x=v, v=1.0)
            return float(v[7])

        if __name__ == "__main__":
            warm = pk.View([8], pk.double)
            pk.parallel_for(8, inc, x=warm, v=1.0)
            assert warm[0] == 1.0
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(pool.map(work, range(4)))
        """,
    )
    assert done.stdout == "[1.0, 2.0, 3.0, 4.0]\n"


def test_a_compiler_that_fails_loses_no_call(tmp_path, monkeypatch):
    """The calls stay pending, and a read of what they write raises again: never a stale value."""
    monkeypatch.setenv("PYFUSER_CXX", "/bin/false")
    monkeypatch.setenv("PYFUSER_CACHE_DIR", str(tmp_path / "empty"))
    _, done = run(
        tmp_path,
        """
        v = pk.View([8], pk.double)
        try:
            with pyfuser.fusing():
                pk.parallel_for(8, inc, x=v, v=1.0)
        except pyfuser.support.errors.CompilerError:
            print("raised", len(pyfuser.pending()))
        try:
            print(v[0])
        except pyfuser.support.errors.CompilerError:
            print("raised", len(pyfuser.pending()))
        """,
    )
    assert done.stdout == "raised 1\nraised 1\n"


@pk.workunit
def inc(i, x, v):
    x[i] += v


@pk.workunit
def reverse(i, x, y, n):
    y[i] = x[n - 1 - i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]


def in_threads(*works):
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # what a thread raises is otherwise only printed
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(w,)) for w in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors, errors
    assert not any(t.is_alive() for t in threads)


def test_two_threads_that_trace_at_once():
    results = {}

    def work(name, step):
        x, y = np.zeros(N), np.zeros(N)
        v = pk.View([N], pk.double)
        sums = []
        for _ in range(5):
            with pyfuser.fusing():
                for _ in range(4):
                    pk.parallel_for(N, inc, x=x, v=step)
                    pk.parallel_for(N, reverse, x=x, y=y, n=N)
                    pk.parallel_for(N, inc, x=v, v=step)
                s = pk.parallel_reduce(N, total, x=y)
                if step > 1:
                    sums.append(float(v[0]))
            sums.append(float(s))
        results[name] = (x, y, sums)

    in_threads(*(lambda k=k: work(k, float(k)) for k in (1, 2, 3)))
    for k in (1, 2, 3):
        x, y, sums = results[k]
        assert_array_equal(x, np.full(N, 20.0 * k))
        assert_array_equal(y, x)
        assert sums[-1] == 20.0 * k * N


def test_a_view_written_by_one_thread_and_read_by_another():
    v = pk.View([N], pk.double)
    recorded, got = threading.Event(), []

    def writer():
        with pyfuser.fusing():
            pk.parallel_for(N, inc, x=v, v=2.0)
            recorded.set()
            assert done.wait(30)
            pk.parallel_for(N, inc, x=v, v=1.0)

    done = threading.Event()

    def reader():
        assert recorded.wait(30)
        got.append(float(v[3]))
        done.set()

    in_threads(writer, reader)
    assert got == [2.0]
    assert v[3] == 3.0


def test_a_block_of_one_thread_does_not_defer_calls_of_another():
    x = np.zeros(N)

    def other():
        pk.parallel_for(N, inc, x=x, v=1.0)
        assert x[0] == 1.0

    with pyfuser.fusing():
        in_threads(other)


def test_many_threads_compile_one_kernel():
    arrays = [np.zeros(N) for _ in range(4)]

    def work(x):
        with pyfuser.fusing():
            for _ in range(7):
                pk.parallel_for(N, inc, x=x, v=1.0)

    in_threads(*(lambda x=x: work(x) for x in arrays))
    assert_array_equal(arrays, np.full((4, N), 7.0))
