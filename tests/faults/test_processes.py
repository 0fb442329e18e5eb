"""Faults that need a process of their own: kill -9, Ctrl-C, full disks, no memory, a crowd."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from tests.faults.conftest import NOBODY, REAL, Machine, Program

RUN = "x, y, sum = program(); print(sum, x[0], y[0])"
RIGHT = "100.0 1.0 1.0"


def _namespaces() -> bool:
    """Whether file systems can be mounted that only one process sees."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    test = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(test, capture_output=True, check=False).returncode == 0


can_mount = pytest.mark.skipif(not _namespaces(), reason="needs root and mount namespaces")


def test_many_processes_at_once(machine: Machine) -> None:
    """Each kernel is compiled once; all results are right."""
    processes = [machine.start(RUN) for _ in range(8)]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out.strip(), err) == (0, RIGHT, "")
    kernels = list((machine.cache / "kernels").glob("*.so"))
    assert len(kernels) == machine.compilations > 1
    assert machine.left() == {".lock", ".so"}


def _await(path: Path) -> None:
    for _ in range(3000):
        if path.exists():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


def test_a_loop_that_never_ends_has_no_result(machine: Machine) -> None:
    """C++ may assume that it ends, and what then would be true."""
    process = machine.start(
        "x = np.zeros(1)\n"
        "for step in 0.25, 0.3:\n"
        "    pk.parallel_for(1, until_one, x=x, step=step)\n"
        "    print(x[0], flush=True)"
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "1.0\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
    finally:
        process.kill()
        process.communicate()


def test_kill_9_during_a_compilation(machine: Machine) -> None:
    """The next process waits for nobody, and is right; what is left behind is one directory."""
    started = machine.folder / "started"
    machine.break_compiler(f"touch {started}; sleep 0.5; " + 'exec "$real" "$@"')
    process = machine.start(RUN)
    _await(started)
    process.kill()
    process.communicate()
    kernels = machine.cache / "kernels"
    assert list(kernels.glob("*.so")) == []
    left = list(kernels.glob("build-*"))
    machine.mend()
    start = time.monotonic()
    assert machine.output(RUN)[0] == RIGHT
    assert time.monotonic() - start < 30, "no lock outlives its process"
    # Removed once too old to be alive: test_what_killed_builds_left_is_removed_in_time.
    assert list(kernels.glob("build-*")) == left


AT_EXIT = """
import mmap
memory = np.frombuffer(mmap.mmap(os.open("FILE", os.O_RDWR), 8 * SIZE), np.float64)
y = pk.View([SIZE], pk.double)
pk.parallel_for(SIZE, increment, x=y)
pk.parallel_for(SIZE - 1, shift, x=y, y=memory)
"""


def test_kernels_are_compiled_even_at_exit(machine: Machine) -> None:
    """Several, when Python no longer starts threads."""
    file = machine.folder / "memory"
    file.write_bytes(bytes(8 * 100))
    said, warned = machine.output(AT_EXIT.replace("FILE", str(file)))
    assert said == "" and "PyFuserWarning: 'shift', launched here, ran only when" in warned
    assert warned.count("\n") == 1
    assert list(np.frombuffer(file.read_bytes())) == [1.0] * 99 + [0.0]
    assert machine.compilations > 1


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from pyfuser.engine import compiler
x, y, sum = program()
before = len(pyfuser.pending())
try:
    print("ready", flush=True)
    pyfuser.sync()
except KeyboardInterrupt:
    print("interrupted", before == len(pyfuser.pending()), flush=True)
os.replace(os.environ["MENDED"], os.environ["PYFUSER_CXX"])
print(sum, x[0], y[0])
"""


def test_ctrl_c_during_compilations(machine: Machine) -> None:
    """Of several kernels at once: the compilers are gone at once, the calls are not."""
    mended = machine.script.with_suffix(".mended")
    shutil.copy2(machine.script, mended)
    started = machine.folder / "started"
    machine.break_compiler(f"echo $$ > {started}.$$; mv {started}.$$ {started}; exec sleep 300")
    process = machine.start(INTERRUPTED, MENDED=str(mended))
    _await(started)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.split("\n") == ["ready", "interrupted True", RIGHT, ""], err
    assert time.monotonic() - start < 30
    assert not Path("/proc", started.read_text().strip()).exists()
    assert machine.left() == {".lock", ".so"}


INTERRUPTED_BETWEEN = """
from concurrent.futures import ThreadPoolExecutor
submit, submissions = ThreadPoolExecutor.submit, []

def interrupted(self, *arguments):
    submissions.append(arguments)
    if len(submissions) == 2:
        raise KeyboardInterrupt
    return submit(self, *arguments)

ThreadPoolExecutor.submit = interrupted
x, y, sum = program()
try:
    pyfuser.sync()
except KeyboardInterrupt:
    print("interrupted", len(pyfuser.pending()))
pyfuser.discard()
"""


def test_ctrl_c_when_the_first_of_several_compilations_has_begun(machine: Machine) -> None:
    machine.break_compiler("exec sleep 300")
    start = time.monotonic()
    assert machine.output(INTERRUPTED_BETWEEN)[0] == "interrupted 3"
    assert time.monotonic() - start < 30


# The timer counts processor time, of which the kernel takes most: a slow machine does not matter.
LAUNCHED = """
import time, signal
x = pk.View([4], pk.double)

def record(n):
    pk.parallel_for(4, spin, x=x, n=n)
    sum = pk.parallel_reduce(4, total, x=x)
    pk.parallel_for(3, spin, x=x, n=1)
    return sum

record(1)
pyfuser.sync()  # compiled
sum = record(100_000_000)
signal.signal(signal.SIGVTALRM, signal.default_int_handler)  # what Ctrl-C does
start = time.process_time()
signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
try:
    pyfuser.sync()
except KeyboardInterrupt:
    print("interrupted", time.process_time() - start >= 0.1)
print(float(sum), list(np.asarray(x)) == [100_000_003.0] * 3 + [100_000_001.0])
"""


def test_ctrl_c_during_a_launch(machine: Machine) -> None:
    """It takes effect once the kernel has ended, and the kernel has run once."""
    out, err = machine.output(LAUNCHED, PYFUSER_THREADS="1")
    assert out == "interrupted True\n400000007.0 True", err


HUGE = """
import resource
x = pk.View([SIZE], pk.double)
pk.parallel_for(SIZE, increment, x=x)
pyfuser.sync()
pk.parallel_for(SIZE, increment, x=x)
y = pk.View([200, 1_000_000], pk.double)
rows = pk.parallel_reduce(pk.RangePolicy(pk.OpenMP, 0, 200), column, y=y)
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), hard))
for attempt in (pyfuser.sync, lambda: np.asarray(y)):
    try:
        attempt()
    except MemoryError as error:
        print("MemoryError:", str(error).rpartition(chr(10))[0])
        print(pyfuser.pending()[-1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
print(rows, x[0], y[3, 999_999])
try:
    pk.View([1 << 40, 1 << 40], pk.double)[0, 0]
except MemoryError as error:
    print("MemoryError:", error)
"""


def test_no_memory_for_a_view(machine: Machine) -> None:
    """Told with the view's shape and size, at the launch and at a read; with memory all is well."""
    lines = machine.output(HUGE)[0].split("\n")
    message = (
        "MemoryError: column: argument 'y': no memory for a View of shape (200, 1000000) and type "
        "float64: it needs 1600000000 bytes (1.49 GiB)"
    )
    first = [message, "  called as 'column' at <string>:9", "column"]
    assert lines[:-2] == first * 2
    assert lines[-2] == "200.0 2.0 0.0"
    assert "shape (1099511627776, 1099511627776)" in lines[-1]


def mounted(machine: Machine, options: str) -> tuple[str, ...]:
    """A command that runs another with a file system mounted on the cache directory."""
    machine.cache.mkdir(0o700)
    mount = f'mount -t tmpfs -o {options},mode=700 none {machine.cache} && exec "$@"'
    return ("unshare", "-m", "sh", "-c", mount, "sh")


@can_mount
@pytest.mark.parametrize("size", ["4k", "16k"])
def test_a_full_disk(size: str, machine: Machine, tmp_path: Path) -> None:
    """At whatever point it is full: a warning, and a directory that is gone afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    fill = f"import os; p = '{machine.cache}/kernels'; os.makedirs(p, 0o700, exist_ok=True)\n"
    out, err = machine.output(
        fill + RUN + "\nprint(sorted({n.split('.')[-1] for n in os.listdir(p)}))",
        *mounted(machine, f"size={size}"),
        TMPDIR=str(temporary),
    )
    result, left = out.split("\n")
    assert result == RIGHT
    assert err.count("PyFuserWarning: kernels are not kept") == 1
    assert "No space left on device" in err and "set PYFUSER_CACHE_DIR" in err
    assert left in ("['lock']", "[]", "['lock', 'so']"), "nothing half-written"
    assert not list(temporary.glob("pyfuser-*"))


@can_mount
def test_a_read_only_disk(machine: Machine, program: Program) -> None:
    """What is on it is used; what is not, is compiled elsewhere."""
    program.check_done()
    before = machine.compilations
    here = machine.cache
    mount = f'mount --bind {here} {here} && mount -o remount,ro,bind {here} && exec "$@"'
    wrapper = ("unshare", "-m", "sh", "-c", mount, "sh")
    out, err = machine.output(RUN, *wrapper)
    assert (out, err, machine.compilations) == (RIGHT, "", before)
    out, err = machine.output(
        "x = pk.View([4], pk.double); pk.parallel_for(4, spin, x=x, n=5); print(x[0])", *wrapper
    )
    assert out == "5.0"
    assert err.count("PyFuserWarning: kernels are not kept") == 1
    assert "Read-only file system" in err


@can_mount
def test_a_disk_that_code_cannot_be_run_from(machine: Machine) -> None:
    process = machine.start(RUN, *mounted(machine, "noexec"))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "CacheError: the compiled kernel cannot be loaded: " in err
    assert "is mounted noexec, set PYFUSER_CACHE_DIR" in err


def test_no_file_may_be_written(machine: Machine) -> None:
    """A limit on file sizes holds everywhere: the reason is told, the calls stay."""
    process = machine.start(
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 1 << 40))\n"
        "x, y, sum = program()\n"
        "try: pyfuser.sync()\n"
        "except pyfuser.PyFuserError as error: print(type(error).__name__, error)\n"
        "print(len(pyfuser.pending()), os.listdir(os.environ['PYFUSER_CACHE_DIR'] + '/kernels'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))\n"
        "print(sum, x[0], y[0])\n"
    )
    out, err = process.communicate(timeout=60)
    lines = out.strip().split("\n")
    assert lines[0].startswith("CacheError kernels cannot be compiled: "), err
    assert "File too large" in lines[0]
    assert lines[1].startswith("3 [") and ".so" not in lines[1] and "build-" not in lines[1]
    assert lines[2] == RIGHT
    assert "PyFuserWarning: kernels are not kept" in err


def _is_open() -> bool:
    """Whether other users may read this checkout, and what runs it."""
    here, python = Path(__file__).resolve(), Path(sys.prefix)
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (*here.parents, python))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root")
@pytest.mark.skipif(not _is_open(), reason="needs a checkout that other users may read")
def test_a_directory_of_root_read_by_another_user(machine: Machine, program: Program) -> None:
    """Root's kernels are not loaded by others: the directory is not theirs."""
    program.check_done()
    public = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        shutil.copytree(machine.cache, public / "cache")
        public.chmod(0o755)
        for path in [public / "cache", *(public / "cache").rglob("*")]:
            path.chmod(0o755)
        user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        process = machine.start(
            RUN, *user, PYFUSER_CACHE_DIR=str(public / "cache"), PYFUSER_CXX=str(REAL), HOME="/"
        )
        _, err = process.communicate(timeout=60)
    finally:
        shutil.rmtree(public)
    assert process.returncode == 1
    assert "belongs to user 0" in err and "set PYFUSER_CACHE_DIR to a directory of your own" in err
