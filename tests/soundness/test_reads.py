"""However Python or NumPy reaches the data of a View, it sees every call made before."""

from __future__ import annotations

import copy as copying
import io
import operator
import pickle

import numpy as np
import pykokkos as pk
import pytest
from numpy.testing import assert_array_equal

import pyfuser
from tests.soundness.workunits import copy, count, count2, inc, put, total

N = 6
WANT = np.arange(N) + 1.0


def to_file(v):
    file = io.BytesIO()
    np.save(file, v)
    file.seek(0)
    return np.load(file)


def assigned(v):
    y = np.zeros(N)
    y[:] = v
    return y


def copied_to(v):
    y = np.zeros(N)
    np.copyto(y, v)
    return y


def by_view(v):
    w = pk.View([N], pk.double)
    w[:] = v
    return np.asarray(w)


def put_into(v):
    y = np.zeros(N)
    np.put(y, range(N), v)
    return y


READS = {
    "index": lambda v: [v[k] for k in range(N)],
    "negative index": lambda v: [v[k - N] for k in range(N)],
    "slice": lambda v: np.asarray(v[:]),
    "two slices": lambda v: np.concatenate([np.asarray(v[0:3]), np.asarray(v[3:6])]),
    "iteration": list,
    "unpacking": lambda v: [*v],
    "enumerate": lambda v: [b for _, b in enumerate(v)],
    "asarray": np.asarray,
    "array": np.array,
    "asarray of other dtype": lambda v: np.asarray(v, dtype=np.float32),
    "ascontiguousarray": np.ascontiguousarray,
    "data": lambda v: v.data,
    "array attribute": lambda v: v.array,
    "copy": lambda v: np.asarray(copying.copy(v)),
    "deepcopy": lambda v: np.asarray(copying.deepcopy(v)),
    "numpy copy": np.copy,
    "tolist": lambda v: np.asarray(v).tolist(),
    "bytes": lambda v: np.frombuffer(np.asarray(v).tobytes()),
    "memoryview": lambda v: np.frombuffer(memoryview(np.asarray(v))),
    "dlpack": lambda v: np.from_dlpack(np.asarray(v)),
    "save": to_file,
    "assignment": assigned,
    "copyto": copied_to,
    "view assignment": by_view,
    "put": put_into,
    "plus zero": lambda v: np.add(v, 0.0),
    "where": lambda v: np.where(True, v, 0.0),
    "stack": lambda v: np.stack([v, v])[1],
    "concatenate": lambda v: np.concatenate([v]),
    "sorted": sorted,
    "pykokkos array": lambda v: np.asarray(pk.asarray(np.asarray(v))),
    "map": lambda v: list(map(float, v)),
    "zip": lambda v: [a for a, _ in zip(v, range(N), strict=True)],
    "string": lambda v: np.fromstring(str(v).strip("[]"), sep=" "),
    "format": lambda v: np.fromstring(f"{v}".strip("[]"), sep=" "),
    "full_like": lambda v: np.full_like(v, v),
    "object array": lambda v: np.array([v[k] for k in range(N)], dtype=object).astype(float),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("made_by", ["call", "slice", "twice"])
def test_a_read_of_a_pending_view(name, made_by):
    v = pk.View([N + 2], pk.double)[1 : N + 1] if made_by == "slice" else pk.View([N], pk.double)
    with pyfuser.fusing():
        if made_by == "twice":
            pk.parallel_for(N, put, x=v, v=9.0)
            assert v[1] == 9.0
        pk.parallel_for(N, count, x=v)
        got = READS[name](v)
        assert_array_equal(np.asarray(got, dtype=float), WANT)


SCALARS = {
    "sum": (np.sum, 21.0),
    "builtin sum": (sum, 21.0),
    "max": (max, 6.0),
    "numpy max": (np.max, 6.0),
    "dot": (lambda v: np.dot(v, v), 91.0),
    "mean": (np.mean, 3.5),
    "norm": (np.linalg.norm, 91.0**0.5),
    "allclose": (lambda v: np.allclose(v, WANT), True),
    "array_equal": (lambda v: np.array_equal(v, WANT), True),
    "equal": (lambda v: np.asarray(v == WANT).all(), True),
    "not equal": (lambda v: np.asarray(v != WANT).any(), False),
    "contains": (lambda v: 6.0 in v, True),
    "any": (any, True),
    "length": (len, 6),
    "item": (lambda v: np.asarray(v)[2].item(), 3.0),
    "index of": (lambda v: list(v).index(4.0), 3),
    "count": (lambda v: operator.countOf(v, 2.0), 1),
    "nonzero": (np.count_nonzero, 6),
}


@pytest.mark.parametrize("name", SCALARS)
def test_a_number_from_a_pending_view(name):
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        function, want = SCALARS[name]
        assert function(v) == want


def test_views_of_one_element():
    v = pk.View([1], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(1, count, x=v)
        assert float(v) == 1.0
        pk.parallel_for(1, put, x=v, v=4.0)
        assert int(v) == 4
        pk.parallel_for(1, put, x=v, v=0.0)
        assert not bool(v)


def test_a_pickled_view_is_a_copy_of_the_new_values():
    v = pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        try:
            again = pickle.loads(pickle.dumps(v))
        except (TypeError, pickle.PicklingError):
            again = pickle.loads(pickle.dumps(np.asarray(v)))
        assert_array_equal(np.asarray(again), WANT)


def test_a_subview_read_while_its_base_is_pending():
    m = pk.View([4, N], pk.double)
    row, column = m[2, :], m[:, 3]
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [4, N]), count2, m=m)
        assert row[1] == 21.0
        pk.parallel_for(N, put, x=row, v=7.0)
        assert column[2] == 7.0
        pk.parallel_for(4, put, x=column, v=8.0)
        assert_array_equal(np.asarray(m)[2], [7, 7, 7, 8, 7, 7])
        assert m[0][3] == 8.0


def test_a_base_read_while_its_subview_is_pending():
    v = pk.View([2 * N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v[3 : 3 + N])
        assert_array_equal(np.asarray(v)[3:9], WANT)
        pk.parallel_for(N, put, x=v[0:N], v=0.0)
        assert v[4] == 0.0
        assert v[8] == 6.0


def test_a_subview_of_a_subview_made_before_the_call():
    v = pk.View([2 * N], pk.double)
    inner = v[2:10][1:7]
    with pyfuser.fusing():
        pk.parallel_for(2 * N, count, x=v)
        assert_array_equal(np.asarray(inner), WANT + 3)


def test_a_numpy_array_taken_before_is_current_after_a_read():
    v = pk.View([N], pk.double)
    a = np.asarray(v)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        assert v[0] == 1.0
        assert_array_equal(a, WANT)


def test_writing_the_array_of_a_view_that_pending_calls_read():
    v, w = pk.View([N], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        pk.parallel_for(N, copy, x=v, y=w)
        a = np.asarray(v)
        a[:] = -1.0
        assert_array_equal(np.asarray(w), WANT)


def test_in_place_operators_on_the_host():
    v, w = pk.View([N], pk.double), pk.View([N], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        v[2] += 10.0
        pk.parallel_for(N, copy, x=v, y=w)
        v[2] *= 0.0
    want = WANT.copy()
    want[2] = 13.0
    assert_array_equal(np.asarray(w), want)
    assert v[2] == 0.0


def test_views_over_numpy_memory():
    a = np.zeros(N)
    v = pk.array(a)
    with pyfuser.fusing():
        pk.parallel_for(N, count, x=v)
        assert v[5] == 6.0
        assert_array_equal(a, WANT)
        pk.parallel_for(N, put, x=a, v=3.0)
        assert v[0] == 3.0


def test_a_future_read_in_every_way():
    x = WANT.copy()
    reads = [
        float,
        int,
        str,
        bool,
        repr,
        lambda s: s + 0.0,
        lambda s: 21.0 - s,
        lambda s: s == 21.0,
        lambda s: s > 20,
        lambda s: f"{s:.1f}",
        lambda s: np.float64(s),
        lambda s: np.asarray(s),
        lambda s: round(s),
        lambda s: abs(s),
        lambda s: -s,
        lambda s: s // 2,
        lambda s: divmod(s, 4),
        lambda s: np.sqrt(s),
        lambda s: max(s, 3.0),
        lambda s: [s][0] < 1,
        lambda s: {21.0: 1}.get(s),
    ]
    for read in reads:
        with pyfuser.fusing():
            s = pk.parallel_reduce(N, total, x=x)
            pk.parallel_for(N, put, x=x, v=0.0)
            got = read(s)
        want = read(21.0)
        assert str(got) == str(want)
        assert_array_equal(x, np.zeros(N))
        x[:] = WANT


def test_printing_within_a_block(capsys):
    v = pk.View([3], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(3, count, x=v)
        s = pk.parallel_reduce(3, total, x=v)
        print(v, s, f"{s:6.2f}", f"{s!s:>5}")
        pk.parallel_for(3, put, x=v, v=0.0)
        print(v[0], v)
    assert capsys.readouterr().out == "[1. 2. 3.] 6.0   6.00   6.0\n0.0 [0. 0. 0.]\n"


def test_other_results_are_right_whichever_is_read_first():
    for first in range(4):
        v = [pk.View([N], pk.double) for _ in range(4)]
        with pyfuser.fusing():
            pk.parallel_for(N, count, x=v[0])
            for k in range(3):
                pk.parallel_for(N, copy, x=v[k], y=v[k + 1])
                pk.parallel_for(N, put, x=v[k], v=float(k))
            assert v[first][5] == (first if first < 3 else 6.0)
            for k in range(4):
                assert_array_equal(np.asarray(v[k]), WANT if k == 3 else np.full(N, float(k)))


def test_iteration_and_calls_that_alternate():
    v = pk.View([4], pk.double)
    with pyfuser.fusing():
        seen = []
        for element in v:
            seen.append(float(element))
            pk.parallel_for(4, inc, x=v)
        backwards = reversed(v)
        pk.parallel_for(4, inc, x=v)
        assert next(backwards) == 5.0
    assert seen == [0.0, 1.0, 2.0, 3.0]
