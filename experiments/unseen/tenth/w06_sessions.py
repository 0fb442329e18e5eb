"""Sessions of a web log: events, sorted by user and time, are cut where a user was away too long.

For each of several time-outs: a flag where a session starts, a scan that numbers the sessions, sums
of bytes and numbers of events for each session by atomics, their durations, a histogram of these by
powers of two, and how many visitors left at once.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_500, "default": 250_000, "large": 4_000_000}
TIMEOUTS, BINS = (300, 900, 1800, 3600), 20


@pk.workunit
def first_event(i: int, flag: pk.View1D[pk.int32]):
    flag[i] = 1


@pk.workunit
def starts(
    i: int,
    flag: pk.View1D[pk.int32],
    user: pk.View1D[pk.int32],
    time: pk.View1D[pk.int64],
    timeout: int,
):
    if user[i] != user[i - 1] or time[i] - time[i - 1] > timeout:
        flag[i] = 1
    else:
        flag[i] = 0


@pk.workunit
def number(
    i: int,
    acc: pk.Acc[pk.int64],
    last: bool,
    session: pk.View1D[pk.int32],
    flag: pk.View1D[pk.int32],
):
    acc += flag[i]
    if last:
        session[i] = acc - 1


@pk.workunit
def clear(
    s: int,
    events: pk.View1D[pk.int32],
    volume: pk.View1D[pk.int64],
):
    events[s] = 0
    volume[s] = 0


@pk.workunit
def clear_histogram(b: int, histogram: pk.View1D[pk.int64]):
    histogram[b] = 0


@pk.workunit
def count_events(i: int, events: pk.View1D[pk.int32], session: pk.View1D[pk.int32]):
    pk.atomic_add(events, [session[i]], 1)


@pk.workunit
def add_bytes(
    i: int, volume: pk.View1D[pk.int64], session: pk.View1D[pk.int32], size: pk.View1D[pk.int32]
):
    pk.atomic_add(volume, [session[i]], size[i])


@pk.workunit
def find_begin(
    i: int, begin: pk.View1D[pk.int32], session: pk.View1D[pk.int32], flag: pk.View1D[pk.int32]
):
    if flag[i] == 1:
        begin[session[i]] = i


@pk.workunit
def durations(
    s: int,
    duration: pk.View1D[pk.int64],
    begin: pk.View1D[pk.int32],
    events: pk.View1D[pk.int32],
    time: pk.View1D[pk.int64],
):
    duration[s] = time[begin[s] + events[s] - 1] - time[begin[s]]


@pk.workunit
def to_bin(s: int, bin: pk.View1D[pk.int32], duration: pk.View1D[pk.int64], bins: int):
    left: pk.int64 = duration[s]
    b: int = 0
    while left > 0 and b < bins - 1:
        left = left >> 1
        b += 1
    bin[s] = b


@pk.workunit
def fill_histogram(s: int, histogram: pk.View1D[pk.int64], bin: pk.View1D[pk.int32]):
    pk.atomic_add(histogram, [bin[s]], 1)


@pk.workunit
def bounced(s: int, acc: pk.Acc[pk.int64], events: pk.View1D[pk.int32]):
    if events[s] == 1:
        acc += 1


@pk.workunit
def heavy(s: int, acc: pk.Acc[pk.int64], volume: pk.View1D[pk.int64], least: int):
    if volume[s] >= least:
        acc += 1


@pk.workunit
def total_time(s: int, acc: pk.Acc[pk.int64], duration: pk.View1D[pk.int64]):
    acc += duration[s]


@dataclass
class State:
    """The events; the last time-out's sessions; for each time-out a histogram and four numbers."""

    n: int
    user: pk.View
    time: pk.View
    size: pk.View
    histogram: list
    session: pk.View
    volume: pk.View
    table: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(106)
    user, size, session = (pk.View([n], pk.int32) for _ in range(3))
    time, volume = (pk.View([n], pk.int64) for _ in range(2))
    who = np.sort(rng.integers(0, n // 20 + 1, n))
    gaps = np.where(rng.random(n) < 0.2, rng.integers(200, 8_000, n), rng.integers(0, 120, n))
    user.data[:] = who
    time.data[:] = 1_700_000_000 + np.cumsum(gaps)
    size.data[:] = rng.integers(100, 50_000, n)
    histogram = [pk.View([BINS], pk.int64) for _ in TIMEOUTS]
    return State(n, user, time, size, histogram, session, volume)


def run(state: State) -> None:
    n, session, volume, time = state.n, state.session, state.volume, state.time
    flag, events, begin, bin = (pk.View([n], pk.int32) for _ in range(4))
    duration = pk.View([n], pk.int64)
    state.table = []
    for timeout, histogram in zip(TIMEOUTS, state.histogram):
        pk.parallel_for(1, first_event, flag=flag)
        pk.parallel_for(
            pk.RangePolicy(1, n), starts, flag=flag, user=state.user, time=time, timeout=timeout
        )
        sessions = int(pk.parallel_scan(n, number, session=session, flag=flag))
        pk.parallel_for(n, clear, events=events, volume=volume)
        pk.parallel_for(BINS, clear_histogram, histogram=histogram)
        pk.parallel_for(n, count_events, events=events, session=session)
        pk.parallel_for(n, add_bytes, volume=volume, session=session, size=state.size)
        pk.parallel_for(n, find_begin, begin=begin, session=session, flag=flag)
        pk.parallel_for(
            sessions, durations, duration=duration, begin=begin, events=events, time=time
        )
        pk.parallel_for(sessions, to_bin, bin=bin, duration=duration, bins=BINS)
        pk.parallel_for(sessions, fill_histogram, histogram=histogram, bin=bin)
        left = pk.parallel_reduce(sessions, bounced, events=events)
        big = pk.parallel_reduce(sessions, heavy, volume=volume, least=200_000)
        spent = pk.parallel_reduce(sessions, total_time, duration=duration)
        state.table.append([sessions, int(left), int(big), int(spent)])


def outputs(state: State) -> dict:
    return {
        "session": np.array(state.session.data),
        "volume": np.array(state.volume.data),
        "histogram": np.array([h.data for h in state.histogram]),
        "table": np.array(state.table, dtype=np.float64),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    user, time, size = (np.array(v.data) for v in (fresh.user, fresh.time, fresh.size))
    out = outputs(state)
    for k, timeout in enumerate(TIMEOUTS):
        flag = np.ones(n, bool)
        flag[1:] = (user[1:] != user[:-1]) | (np.diff(time) > timeout)
        session, begin = np.cumsum(flag) - 1, np.flatnonzero(flag)
        events = np.diff(np.append(begin, n))
        volume = np.bincount(session, size, minlength=n)
        duration = time[begin + events - 1] - time[begin]
        bins = np.minimum([int(d).bit_length() for d in duration], BINS - 1)
        np.testing.assert_array_equal(out["histogram"][k], np.bincount(bins, minlength=BINS))
        row = [len(begin), np.sum(events == 1), np.sum(volume >= 200_000), np.sum(duration)]
        np.testing.assert_array_equal(out["table"][k], row)
    np.testing.assert_array_equal(out["session"], session)
    np.testing.assert_array_equal(out["volume"], volume)


if __name__ == "__main__":
    main(globals())
