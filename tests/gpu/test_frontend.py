"""PyKokkos programs on a GPU (or its stand-in): memory, streams, Futures, errors, replay."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

import pyfuser
from pyfuser.runtime.session import TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.extension import HOT
from tests.gpu.conftest import FAKE, real_cupy

ROOT = Path(__file__).parents[2]

N = 700


@pk.workunit
def scale(i, a, x):
    x[i] = a * x[i]


@pk.workunit
def add(i, x, y):
    y[i] += x[i]


@pk.workunit
def set_to(i, value, x):
    x[i] = value


@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pk.workunit
def total_of_all(i, acc, x):
    acc += x[i % 700]


@pk.workunit
def count(i, acc: pk.Acc[pk.int32], x):
    if x[i] > 2.0:
        acc += 1


@pk.workunit
def single(i, acc: pk.Acc[pk.float32], x: pk.View1D[pk.float32]):
    acc += x[i]


@pk.workunit
def running(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


@pk.workunit
def rows(i, j, x):
    x[i][j] = i * 10.0 + j


def ramp() -> pk.View:
    view = pk.View([N], pk.double)
    view[:] = np.arange(N)
    return view


# --------------------------------------------------------------------------- memory


def moved() -> tuple[int, int]:
    return COUNTERS.bytes_to_device, COUNTERS.bytes_to_host


def test_a_view_stays_on_the_device_until_it_is_read(cupy: Any) -> None:
    x, y = pk.View([N], pk.double), pk.View([N], pk.double)
    before = moved()
    for _ in range(4):
        pk.parallel_for(N, set_to, value=2.0, x=x)
        pk.parallel_for(N, add, x=x, y=y)
    assert moved() == before
    assert y[3] == 8.0
    assert y[4] == 8.0, "the host has it all now"
    assert moved() == (before[0], before[1] + 8 * N)
    pk.parallel_for(N, add, x=x, y=y)
    assert moved() == (before[0], before[1] + 8 * N), "reading it made nothing old"
    assert y[3] == 10.0


def test_what_the_host_writes_is_copied_once(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    before = moved()[0]
    for _ in range(3):
        pk.parallel_for(N, add, x=x, y=y)
    assert moved()[0] == before + 8 * N
    x[5] = -1.0
    pk.parallel_for(N, add, x=x, y=y)
    assert moved()[0] == before + 2 * 8 * N
    assert (y[5], y[6]) == (14.0, 24.0)


@pytest.mark.parametrize("mode", [pyfuser.fusing, pyfuser.unfused])
def test_arrays_over_a_view_see_and_are_seen(mode: Any, cupy: Any) -> None:
    with mode():
        x, y = ramp(), pk.View([N], pk.double)
        array = np.asarray(x)
        pk.parallel_for(N, scale, a=2.0, x=x)
        pyfuser.sync()
        assert array[3] == 6.0
        array[3] = 100.0
        pk.parallel_for(N, add, x=x, y=y)
        assert y[3] == 100.0
        array[4] = 50.0
        del array
        pk.parallel_for(N, add, x=x, y=y)
        assert (y[3], y[4]) == (200.0, 58.0)
        before = moved()
        pk.parallel_for(N, add, x=x, y=y)
        pyfuser.sync()
        assert moved() == before, "nobody else looks at it any more"


def test_a_view_of_a_numpy_array_is_that_array(cupy: Any) -> None:
    array = np.arange(float(N))
    x = pk.array(array)
    pk.parallel_for(N, scale, a=3.0, x=x)
    pyfuser.sync()
    assert array[2] == 6.0
    array[2] = 1.0
    pk.parallel_for(N, scale, a=3.0, x=x)
    pyfuser.sync()
    assert (array[2], x[3]) == (3.0, 27.0)


def test_overlapping_arrays_are_one_memory(cupy: Any) -> None:
    array = np.zeros(N + 1)
    low, high = pk.array(array[:-1]), pk.array(array[1:])
    with pyfuser.fusing():
        pk.parallel_for(N, set_to, value=1.0, x=low)
        pk.parallel_for(N, set_to, value=5.0, x=high)
        pk.parallel_for(1, add, x=high, y=low)
    assert array.tolist() == [1.0 + 5.0, *[5.0] * N]


def test_subviews_and_layouts(cupy: Any) -> None:
    x = pk.View([4, 6], pk.double)
    part = x[1:3, 2:5]
    pk.parallel_for(pk.MDRangePolicy([0, 0], [2, 3]), rows, x=part)
    expected = np.zeros((4, 6))
    expected[1:3, 2:5] = [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
    np.testing.assert_array_equal(np.asarray(x), expected)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [4, 6]), rows, x=x)
    assert x[3][5] == 35.0
    assert str(part).startswith("[[12.")


def test_both_spaces_in_one_program(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    host = pk.RangePolicy(pk.OpenMP, 0, N)
    for mode in (pyfuser.fusing, pyfuser.unfused):
        with mode():
            pk.parallel_for(N, scale, a=2.0, x=x)
            pk.parallel_for(host, add, x=x, y=y)
            pk.parallel_for(N, add, x=x, y=y)
            pk.parallel_for(host, scale, a=0.5, x=x)
    assert (x[3], y[3]) == (3.0, 24.0)


def test_arrays_on_the_device_are_arguments(cupy: Any) -> None:
    x, y = cupy.asarray(np.arange(float(N))), cupy.zeros(N)
    before = moved()
    with pyfuser.fusing():
        pk.parallel_for(N, scale, a=2.0, x=x)
        pk.parallel_for(N, add, x=x, y=y)
        pk.parallel_for(N - 1, add, x=x[1:], y=y[:-1])
    assert moved() == before
    expected = np.arange(float(N)) * 2
    expected[:-1] += np.arange(1.0, N) * 2
    np.testing.assert_array_equal(y.get(), expected)


def test_a_view_of_an_array_on_the_device(cupy: Any) -> None:
    array = cupy.asarray(np.arange(12.0).reshape(3, 4))
    x = pk.array(array)
    pk.parallel_for(pk.MDRangePolicy([0, 0], [3, 4]), rows, x=x)
    assert array.get()[2, 3] == 23.0 == x[2][3]
    x[2][3] = 7.0
    assert array.get()[2, 3] == 7.0
    x.fill(1.5)
    assert array.get().tolist() == [[1.5] * 4] * 3
    assert x.xp_array.data.ptr == array.data.ptr


def test_arrays_of_other_libraries(cupy: Any, fake: Any) -> None:
    """By CUDA's array interface, with the stream that makes their values; or by DLPack."""
    values, stream = cupy.zeros(N), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Stream.null.synchronize()
    with stream:
        values.fill(3.0)

    class Tensor:
        @property
        def __cuda_array_interface__(self) -> Any:
            return {**values.__cuda_array_interface__, "stream": stream.ptr}

    class Offered:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **_: Any) -> Any:
            return values

    class ReadOnly(Tensor):
        @property
        def __cuda_array_interface__(self) -> Any:
            return {**values.__cuda_array_interface__, "data": (values.data.ptr, True)}

    y = pk.View([N], pk.double)
    pk.parallel_for(N, add, x=Tensor(), y=y)
    pk.parallel_for(N, add, x=Offered(), y=y)
    pk.parallel_for(N, add, x=ReadOnly(), y=y)
    assert y[0] == 9.0
    with pytest.raises(TypeError, match="read-only"):
        pk.parallel_for(N, scale, a=1.0, x=ReadOnly())


def test_threads_have_contexts_of_their_own(cupy: Any) -> None:
    x = ramp()
    done = []

    def work() -> None:
        with pyfuser.unfused():
            pk.parallel_for(N, scale, a=2.0, x=x)
            done.append(float(x[1]))

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert done == [2.0, 4.0]


PENDING = """
import pyfuser, numpy as np, pykokkos as pk
pk.set_default_space(pk.Cuda)

@pyfuser.fuse
@pk.workunit
def show(i, x):
    x[i] = 1.0 + i
    if i == 2:
        pk.printf("%g\\n", x[i])

x = pk.View([5], pk.double)
pk.parallel_for(5, show, x=x)
"""


def test_what_is_pending_at_exit_runs(cupy: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PENDING)
    paths = [str(ROOT), *[str(FAKE)] * (real_cupy() is None), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_reading_needs_no_second_view_of_the_memory(cupy: Any, fake: Any) -> None:
    """Work is queued only: what is read comes from behind it."""
    x = ramp()
    launched = fake.launched
    pk.parallel_for(N, scale, a=2.0, x=x)
    assert fake.launched == launched + 1
    assert any(queue.waiting for queue in fake.queues.values())
    assert x[2] == 4.0


# --------------------------------------------------------------------------- errors


def test_numpy_arrays_are_refused(cupy: Any) -> None:
    with pytest.raises(TypeError, match=r"test_frontend.py:\d+: argument 'x' is a NumPy array"):
        pk.parallel_for(N, scale, a=2.0, x=np.zeros(N))


def test_device_arrays_are_refused_by_the_host(cupy: Any) -> None:
    with pytest.raises(TypeError, match="device memory"):
        pk.parallel_for(pk.RangePolicy(pk.OpenMP, 0, N), scale, a=2.0, x=cupy.zeros(N))


def test_numbers_that_do_not_fit(cupy: Any) -> None:
    @pk.workunit
    def put(i, k: pk.int32, x):
        x[i] = k

    x = pk.View([N], pk.double)
    with pytest.raises((TypeError, OverflowError, pyfuser.PyFuserError)):
        pk.parallel_for(N, put, k=2**40, x=x)


def test_no_memory(cupy: Any) -> None:
    x = pk.View([1 << 45], pk.double)
    with pytest.raises(MemoryError, match="no memory on GPU"):
        pk.parallel_for(N, set_to, value=1.0, x=x)


# --------------------------------------------------------------------------- Futures


def test_results_stay_on_the_device(cupy: Any) -> None:
    x = ramp()
    with pyfuser.fusing():
        first = pk.parallel_reduce(N, total, x=x)
        pyfuser.sync()
        before = moved()
        pk.parallel_for(N, set_to, value=first, x=x)
        second = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N, scale, a=second, x=x)
        pyfuser.sync()
        assert moved() == before
        assert first._value is None
    assert float(first) == N * (N - 1) / 2
    assert second == N * first
    assert x[0] == float(first) * float(second)


def test_results_of_every_kind(cupy: Any) -> None:
    x = ramp()
    ones = pk.View([N], pk.float32)
    ones.fill(1.5)
    with pyfuser.fusing():
        whole = pk.parallel_reduce(N, count, x=x)
        half = pk.parallel_reduce(N, single, x=ones)
        pk.parallel_for(N, scale, a=half, x=x)
    assert whole == N - 3
    assert type(whole.result()) is int
    assert x[2] == 2 * 1.5 * N


def test_a_result_that_is_wanted_in_another_type(cupy: Any) -> None:
    """Its value has to be known before the kernel that takes it is bound."""
    ones = pk.View([N], pk.float32)
    ones.fill(1.0)
    x = ramp()
    for _ in range(6):
        with pyfuser.fusing():
            half = pk.parallel_reduce(N, single, x=ones)
            pk.parallel_for(2 * N // 2, set_to, value=half, x=x)
        assert x[1] == N


def test_results_that_nobody_reads_do_not_mix(cupy: Any) -> None:
    x = ramp()
    kept = []
    with pyfuser.fusing():
        for k in range(30):
            pk.parallel_for(N, set_to, value=float(k), x=x)
            kept.append(pk.parallel_reduce(N, total, x=x))
            pyfuser.sync()
    assert [value.result() for value in kept] == [float(k * N) for k in range(30)]


def test_working_memory_that_grows_within_a_flush(cupy: Any) -> None:
    """What it was before is nobody else's until what is bound to it is under way."""
    x, late = ramp(), pk.View([64], pk.double)  # a block of memory as large as the first workspace
    with cupy.cuda.Stream(non_blocking=True), pyfuser.fusing():
        few = pk.parallel_reduce(400, total, x=x)
        many = pk.parallel_reduce(20 * N, total_of_all, x=x)
        pk.parallel_for(64, set_to, value=1.0, x=late)
        assert (few, many) == (400 * 399 / 2, 20 * N * (N - 1) / 2)


def test_scans_and_empty_spaces(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    assert pk.parallel_scan(N, running, x=x, y=y) == N * (N - 1) / 2
    assert y[10] == 55.0
    with pyfuser.fusing():
        nothing = pk.parallel_reduce(0, total, x=x)
        pk.parallel_for(0, scale, a=2.0, x=x)
        pk.parallel_for(N, set_to, value=nothing, x=y)
    assert nothing == 0.0
    assert y[4] == 0.0


# --------------------------------------------------------------------------- streams


def test_calls_run_on_the_stream_they_were_made_on(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with pyfuser.fusing():
        for _ in range(3):
            with one:
                pk.parallel_for(N, scale, a=2.0, x=x)
            with two:
                pk.parallel_for(N, add, x=x, y=y)
    assert y[1] == 2.0 + 4.0 + 8.0


def test_an_instance_of_a_space_is_a_stream(cupy: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    space = pk.ExecutionSpaceInstance(pk.Cuda, stream)
    x = ramp()
    for mode in (pyfuser.fusing, pyfuser.unfused):
        with mode():
            pk.parallel_for(pk.RangePolicy(space, 0, N), scale, a=2.0, x=x)
            pk.parallel_for(N, scale, a=2.0, x=x)
    assert x[1] == 16.0
    assert TRACER.place is not None
    with pytest.raises(TypeError, match="not a CuPy stream"):
        pk.ExecutionSpaceInstance(pk.Cuda, 5)


def test_what_cupy_does_on_the_current_stream_comes_first(cupy: Any, fake: Any) -> None:
    array = cupy.zeros(N)
    y = pk.View([N], pk.double)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        array.fill(4.0)
        pk.parallel_for(N, add, x=array, y=y)
    assert y[0] == 4.0


def test_memory_that_another_stream_used_is_not_taken_early(cupy: Any) -> None:
    one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    y = pk.View([N], pk.double)
    with one:
        x = pk.View([N], pk.double)
        pk.parallel_for(N, set_to, value=3.0, x=x)
    with two:
        pk.parallel_for(N, add, x=x, y=y)
    del x
    with one:
        z = pk.View([N], pk.double)  # where x was
        pk.parallel_for(N, set_to, value=5.0, x=z)
        one.synchronize()
    assert (y[0], z[0]) == (3.0, 5.0)


def test_devices(cupy: Any) -> None:
    x = ramp()
    pk.parallel_for(N, scale, a=2.0, x=x)
    count = cupy.cuda.runtime.getDeviceCount()
    with pytest.raises(RuntimeError, match="does not exist"):
        pk.set_device_id(count)
    with pytest.raises(TypeError):
        pk.set_device_id("0")
    if count < 2:
        pytest.skip("one GPU only")
    try:
        pk.set_device_id(1)
        pk.parallel_for(N, scale, a=2.0, x=x)
        assert float(pk.parallel_reduce(N, total, x=x)) == 2.0 * N * (N - 1)
    finally:
        pk.set_device_id(0)
    pk.parallel_for(N, scale, a=2.0, x=x)
    assert x[1] == 8.0


# --------------------------------------------------------------------------- graphs


def step(x: Any, y: Any, a: float = 0.5) -> Any:
    with pyfuser.fusing():
        pk.parallel_for(N, scale, a=a, x=x)
        result = pk.parallel_reduce(N, total, x=x)
        pk.parallel_for(N // 2, add, x=x, y=y)
    return result


def test_a_steady_loop_is_replayed(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    before = COUNTERS.graph_launches
    values = [float(step(x, y)) for _ in range(12)]
    assert COUNTERS.graph_launches - before >= (8 if HOT is None else 7)  # which counts anew
    assert values == [N * (N - 1) / 2 * 0.5 ** (k + 1) for k in range(12)]
    assert y[2] == sum(2.0 * 0.5 ** (k + 1) for k in range(12))


def test_other_arguments_are_no_replay(cupy: Any) -> None:
    x, y, z = ramp(), pk.View([N], pk.double), pk.View([N], pk.double)
    for _ in range(8):
        step(x, y)
    before = COUNTERS.graph_launches
    step(x, z)
    step(x, y, a=4.0)
    assert COUNTERS.graph_launches == before
    for _ in range(8):  # two arrays that take turns: a graph for each
        step(x, y)
        step(x, z)
    assert COUNTERS.graph_launches >= before + 12


def test_results_that_are_kept_are_no_replay_over_them(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    kept = [step(x, y) for _ in range(10)]
    assert [float(value) for value in kept] == [N * (N - 1) / 2 * 0.5 ** (k + 1) for k in range(10)]


def test_without_capturing_launches_stay_plain(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyfuser.engine.gpu.device import current

    def fails(*arguments: Any) -> None:
        raise RuntimeError("not supported")

    device = current()
    device.capture_stream()
    if real_cupy() is not None:
        pytest.skip("the extension calls the driver itself")
    monkeypatch.setattr(device.runtime, "streamBeginCapture", fails)
    x, y = ramp(), pk.View([N], pk.double)
    before = COUNTERS.graph_launches
    try:
        values = [float(step(x, y)) for _ in range(8)]
        assert HOT is not None or not device.captures
    finally:
        device.captures = True
    assert COUNTERS.graph_launches == before
    assert values == [N * (N - 1) / 2 * 0.5 ** (k + 1) for k in range(8)]


# --------------------------------------------------------------------------- what is told


def test_explain_tells_of_copies_and_registers(cupy: Any) -> None:
    x, y = ramp(), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, scale, a=2.0, x=x)
        pk.parallel_for(N, add, x=x, y=y)
    report = pyfuser.explain()
    assert (report.copied_to_device, report.copied_to_host) == (8 * N, 0)
    assert str(report).startswith("2 calls ran as 1 kernel\n")
    assert "\n    copied 5.469 KiB to the GPU\n" in str(report)
    assert report.groups[0].registers.endswith(" registers")
    assert report.groups[0].measured is None
    with pyfuser.fusing():
        pk.parallel_for(N, scale, a=2.0, x=x)
    assert "copied" not in str(pyfuser.explain())


VERIFIED = """
import pyfuser, numpy as np, pykokkos as pk
pk.set_default_space(pk.Cuda)
import cupy

@pk.workunit
def double(i, x, y):
    y[i] += 2.0 * x[i]

@pk.workunit
def total(i, acc, y):
    acc += y[i]

n = 300
base = np.arange(n + 1.0)
x, y, z = pk.View([n], pk.double), pk.View([n], pk.double), pk.array(base[1:])
x[:] = np.arange(n)
for _ in range(3):
    with pyfuser.fusing():
        pk.parallel_for(n, double, x=x, y=y)
        pk.parallel_for(n, double, x=z, y=y)
        result = pk.parallel_reduce(n, total, y=y)
        pk.parallel_for(n, double, x=y, y=z)
with pyfuser.fusing():
    pk.parallel_for(n, double, x=cupy.zeros(n), y=y)
print(float(result), base[1])
"""


@pytest.mark.parametrize("mode", ["PYFUSER_VERIFY", "PYFUSER_FUSION", "PYFUSER_CHECK"])
def test_modes(mode: str, cupy: Any, tmp_path: Path) -> None:
    """A verified run, an unfused one and a checked one give the same."""
    script = tmp_path / "script.py"
    text = VERIFIED.replace("cupy.zeros(n)", "x") if mode == "PYFUSER_CHECK" else VERIFIED
    script.write_text(text)
    paths = [str(ROOT), *[str(FAKE)] * (real_cupy() is None), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment[mode] = {"PYFUSER_VERIFY": "1", "PYFUSER_FUSION": "0"}.get(mode, "bounds")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stderr, done.returncode) == ("", 0)
    x, y, z = np.arange(300.0), np.zeros(300), np.arange(1.0, 301)
    for _ in range(3):
        y += 2.0 * x + 2.0 * z
        result = y.sum()
        z += 2.0 * y
    assert done.stdout == f"{result} {z[0]}\n"
